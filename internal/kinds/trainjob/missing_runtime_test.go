package trainjob_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpitest"
)

func TestWarnMissingRuntime(t *testing.T) {
	t.Parallel()
	runtime := func(kind, namespace, name string) client.Object {
		of := &unstructured.Unstructured{}
		of.SetGroupVersionKind(trainjob.GroupVersion.WithKind(kind))
		of.SetNamespace(namespace)
		of.SetName(name)
		return of
	}
	api := mpitest.FakeAPI().WithObjects(runtime(trainjob.ClusterRuntimeKind, "", "mpi-openmpi"), runtime(trainjob.RuntimeKind, "ns", "own"), runtime(trainjob.RuntimeKind, "other", "distant")).Build()
	for name, test := range map[string]struct{ kind, runtime, want string }{
		"of the other kind":           {trainjob.RuntimeKind, "mpi-openmpi", "spec.runtimeRef.kind: there is no TrainingRuntime mpi-openmpi, but a ClusterTrainingRuntime of this name: remove kind"},
		"of the namespace":            {"", "own", "spec.runtimeRef.kind: there is no ClusterTrainingRuntime own, but a TrainingRuntime of this name: write kind: TrainingRuntime"},
		"of another namespace":        {"", "distant", ""},
		"misspelled":                  {trainjob.ClusterRuntimeKind, "mpi-opnmpi", "spec.runtimeRef.name: there is no ClusterTrainingRuntime mpi-opnmpi; did you mean mpi-openmpi?"},
		"misspelled of the namespace": {trainjob.RuntimeKind, "owm", "did you mean own?"},
		"unknown":                     {"", "pytorch", ""},
	} {
		job := trainjob.TrainJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "train"}}
		job.Spec.RuntimeRef = trainjob.RuntimeRef{Kind: test.kind, Name: test.runtime}
		got := strings.Join(trainjob.WarnMissingRuntime(t.Context(), api, job), "\n")
		if !strings.Contains(got, test.want) || test.want == "" && got != "" {
			t.Errorf("%s: warns %q, want %q", name, got, test.want)
		}
	}
}
