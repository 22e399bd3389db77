package trainjob_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/internal/kinds/trainjob"
)

// TestPodSets: the pods of all jobs of a runtime, with the field of the TrainJob that sets what they request.
func TestPodSets(t *testing.T) {
	const (
		torch = `spec: {mlPolicy: {torch: {}}, template: {spec: {replicatedJobs: [
{name: dataset-initializer, template: {spec: {template: {spec: {containers: [{name: dataset-initializer}]}}}}}, {name: none, replicas: 0},
{name: node, template: {metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}, spec: {template: {spec: {containers: [{name: node}]}}}}}]}}}`
		mpi = `spec: {mlPolicy: {mpi: {runLauncherAsNode: RANKS}}, template: {spec: {replicatedJobs: [
{name: launcher, template: {metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}, spec: {template: {spec: {containers: [{name: LAUNCHER}]}}}}},
{name: node, template: {spec: {template: {spec: {containers: [{name: node}]}}}}}]}}}`
	)
	for name, test := range map[string]struct {
		runtime, trainer string
		want             []string
	}{
		"without MPI": {torch, "{numNodes: 2, resourcesPerNode: {requests: {cpu: 1}}}", []string{
			"dataset-initializer: map[] by the runtime", "node: map[cpu:1] by spec.trainer.resourcesPerNode",
		}},
		"with MPI": {strings.NewReplacer("RANKS", "true", "LAUNCHER", "node").Replace(mpi), "{numNodes: 2, resourcesPerNode: {requests: {cpu: 1}}}", []string{
			"launcher: map[cpu:1] by spec.trainer.resourcesPerNode", "node: map[cpu:1] by spec.trainer.resourcesPerNode",
		}},
		"with a launcher of the runtime": {strings.NewReplacer("RANKS", "false", "LAUNCHER", "mpirun").Replace(mpi), "{numNodes: 2, resourcesPerNode: {requests: {cpu: 1}}}", []string{
			"launcher: map[] by the runtime", "node: map[] by the runtime",
		}},
		"only a launcher": {strings.NewReplacer("RANKS", "false", "LAUNCHER", "node").Replace(mpi), "{numNodes: 0}", []string{
			"launcher: map[] by spec.trainer.resourcesPerNode",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var used trainjob.Runtime
			if err := yaml.Unmarshal([]byte(test.runtime), &used); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, set := range trainjob.PodSets(job(t, test.trainer), used) {
				by, requests := "the runtime", map[string]string{}
				if set.Requests != nil {
					by = set.Requests.String()
				}
				for name, quantity := range set.Template.Spec.Containers[0].Resources.Requests {
					requests[string(name)] = quantity.String()
				}
				got = append(got, fmt.Sprintf("%s: %v by %s", set.Name, requests, by))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
