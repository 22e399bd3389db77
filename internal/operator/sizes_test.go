package operator_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/kinds/trainjob"
)

// TestSizesThatStopTrainer: the API server itself refuses numbers of nodes that would keep Trainer busy for good.
func TestSizesThatStopTrainer(t *testing.T) {
	needsPolicies(t)
	objects, err := manifests("webhook", "sizes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	server := newTrainerServer(t)
	for _, object := range objects {
		server.create(t, object)
	}
	sized := func(kind string, nodes int64, path ...string) *unstructured.Unstructured {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(trainjob.GroupVersion.WithKind(kind))
		object.SetName("sized")
		if kind != trainjob.ClusterRuntimeKind {
			object.SetNamespace("default")
		}
		if err := unstructured.SetNestedField(object.Object, "mpi", "spec", "runtimeRef", "name"); kind == trainjob.Kind && err != nil {
			t.Fatal(err)
		}
		if err := unstructured.SetNestedField(object.Object, nodes, append([]string{"spec"}, path...)...); err != nil {
			t.Fatal(err)
		}
		return object
	}
	for kind, path := range map[string][]string{
		trainjob.Kind:               {"trainer", "numNodes"},
		trainjob.RuntimeKind:        {"mlPolicy", "numNodes"},
		trainjob.ClusterRuntimeKind: {"mlPolicy", "numNodes"},
	} {
		for _, nodes := range []int64{-1 << 31, -1, 100_001, 1<<31 - 1} {
			want := "spec." + strings.Join(path, ".") + ": Invalid value"
			eventually(t, kind+" of that size is refused", func() error {
				switch err := server.client.Create(t.Context(), sized(kind, nodes, path...), client.DryRunAll); {
				case err == nil:
					return fmt.Errorf("%d nodes are accepted", nodes)
				case !strings.Contains(err.Error(), want):
					return err
				}
				return nil
			})
		}
		for _, nodes := range []int64{1, 100_000} {
			if err := server.client.Create(t.Context(), sized(kind, nodes, path...), client.DryRunAll); err != nil && strings.Contains(err.Error(), "mpijob-sizes") {
				t.Errorf("%s of %d nodes: %v", kind, nodes, err)
			}
		}
	}
}
