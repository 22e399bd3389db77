package dashboard_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/internal/dashboard"
	"opendatahub.io/mpijob/internal/mpi"
)

// TestOptionsWithoutRights: a user who may list neither Secrets nor priorities gets the data connections that earlier jobs name, and
// no Secret besides; an administrator gets what exists.
func TestOptionsWithoutRights(t *testing.T) {
	needsServer(t)
	tokens := namespace(t, "wizards", "user")
	for _, name := range []string{"lab-data", "unused"} {
		must(t, api.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "wizards", Name: name, Labels: map[string]string{"opendatahub.io/dashboard": "true"}}}))
	}
	mpiJob(t, "wizards", "earlier", func(job *kubeflow.MPIJob) {
		job.Annotations = map[string]string{mpi.AnnotationConnections: "models, lab-data"}
	})
	namesOf := func(token string) (names []string, missing []string) {
		choices := get[dashboard.Choices](caller{t, token}, "namespaces/wizards/options")
		for _, connection := range choices.Connections {
			names = append(names, connection.Name)
		}
		return names, choices.Missing
	}
	names, missing := namesOf(tokens["user"])
	if diff := cmp.Diff([]string{"lab-data", "models"}, names); diff != "" {
		t.Errorf("the connections of a user (-want +got)\n%s", diff)
	}
	for _, want := range []string{"data connections", "priority classes"} {
		if !slices.Contains(missing, want) {
			t.Errorf("the user may not read %q, without %q", missing, want)
		}
	}
	names, _ = namesOf(administrator(t, "wizards"))
	if diff := cmp.Diff([]string{"lab-data", "unused"}, names); diff != "" {
		t.Errorf("the connections of an administrator (-want +got)\n%s", diff)
	}
}
