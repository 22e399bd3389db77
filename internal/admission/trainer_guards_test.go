package admission

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"opendatahub.io/mpijob/internal/kinds/trainjob"
)

// TestNameTaken: JobSet would take a Service of the job's name for its own.
func TestNameTaken(t *testing.T) {
	tests := map[string]struct {
		owner *metav1.OwnerReference
		none  bool
		says  string
	}{
		"no Service":               {none: true},
		"an earlier TrainJob's":    {owner: &metav1.OwnerReference{Kind: "JobSet", Name: "pi", UID: "old", Controller: new(true)}},
		"an MPIJob's":              {owner: &metav1.OwnerReference{Kind: "MPIJob", Name: "pi", UID: "u", Controller: new(true)}, says: "that of MPIJob pi"},
		"another owner's, by hand": {says: "that of another owner"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			have := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme)
			if !test.none {
				service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pi"}}
				if test.owner != nil {
					service.OwnerReferences = []metav1.OwnerReference{*test.owner}
				}
				have = have.WithObjects(service)
			}
			err := checkServiceName(t.Context(), have.Build(), trainjob.TrainJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pi"}})
			if (err != nil) != (test.says != "") || err != nil && !strings.Contains(err.Error(), test.says) {
				t.Errorf("the answer is %v, want %q", err, test.says)
			}
		})
	}
}

// TestClosedDestinations: a runtime of a namespace is warned of what it cannot allow.
func TestClosedDestinations(t *testing.T) {
	const allowed = "2049,169.254.169.254:80,0.0.0.0/0,namespace/minio,wrong"
	got := closedDestinations(trainjob.RuntimeKind, allowed)
	if len(got) != 1 || !strings.Contains(got[0], "metadata.annotations[mpi.opendatahub.io/allow-egress]: 169.254.169.254/32:80 has no effect") {
		t.Errorf("the warnings are %q", got)
	}
	if got := closedDestinations(trainjob.ClusterRuntimeKind, allowed); len(got) > 0 {
		t.Errorf("an administrator is warned: %q", got)
	}
}
