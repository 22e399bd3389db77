package admission

import (
	"encoding/json"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"opendatahub.io/mpijob/internal/cluster"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/plan"
)

// TestJobSetWithoutRDMA: requests for RDMA are removed from a JobSet if the TrainJob allows it and no node offers it.
func TestJobSetWithoutRDMA(t *testing.T) {
	const jobSet = `{"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "pi", "namespace": "ns", "annotations": {"mpi.opendatahub.io/mpi-implementation": "OpenMPI"},
"ownerReferences": [{"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "name": "pi", "uid": "u", "controller": true}]},
"spec": {"replicatedJobs": [{"name": "node", "template": {"spec": {"template": {"spec": {"containers": [{"name": "node", "resources": {"limits": {"cpu": "1", "rdma/hca": "1"}}}]}}}}}]}}`
	for name, test := range map[string]struct {
		annotation string
		offered    bool
		removed    bool
		patched    bool
	}{
		"optional, and the TrainJob has patched the marker of the runtime": {annotation: mpi.RDMAOptional, removed: true, patched: true},
		"optional, not offered": {annotation: mpi.RDMAOptional, removed: true},
		"optional, offered":     {annotation: mpi.RDMAOptional, offered: true},
		"required, not offered": {annotation: mpi.RDMARequired},
		"not set":               {},
	} {
		t.Run(name, func(t *testing.T) {
			job := trainjob.New()
			job.SetNamespace("ns")
			job.SetName("pi")
			job.SetUID("u")
			job.SetAnnotations(map[string]string{mpi.AnnotationRDMA: test.annotation})
			job.Object["spec"] = map[string]any{"runtimeRef": map[string]any{"name": "mpi"}}
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{"cpu": resource.MustParse("8")}}}
			if test.offered {
				node.Status.Allocatable["rdma/hca"] = resource.MustParse("1")
			}
			api := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(job, node).Build()
			request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: admissionv1.Create, Namespace: "ns", Object: k8sruntime.RawExtension{Raw: []byte(jobSet)}}}
			if test.patched {
				request.Object.Raw = []byte(strings.Replace(jobSet, `"OpenMPI"`, `""`, 1))
			}
			answer := wireJobSet(t.Context(), api, cluster.New(api, api, nil, clock.RealClock{}), plan.Settings{}, noGangs{}, request)
			patch, err := json.Marshal(answer.Patches)
			if err != nil || !answer.Allowed {
				t.Fatalf("the answer is %+v (%v)", answer, err)
			}
			if got := strings.Contains(string(patch), "without-rdma") && strings.Contains(string(patch), `{"op":"remove","path":"/spec/replicatedJobs/0/template/spec/template/spec/containers/0/resources/limits/rdma~1hca"}`); got != test.removed {
				t.Errorf("the patch is %s, want the request removed: %v", patch, test.removed)
			}
		})
	}
}
