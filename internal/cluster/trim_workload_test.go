package cluster_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/internal/cluster"
	"opendatahub.io/mpijob/internal/kueue"
)

// TestCachedWorkloads: a cached Workload has what it holds or requests, and not its pods or their nodes.
func TestCachedWorkloads(t *testing.T) {
	t.Parallel()
	const pods = `[{name: launcher, count: 1, template: {spec: {containers: [{name: l, resources: {limits: {cpu: 500m}}}]}}},
		{name: worker, count: 3, template: {spec: {overhead: {cpu: 100m}, containers: [{name: w, resources: {requests: {cpu: "2", nvidia.com/gpu: "1"}, limits: {nvidia.com/gpu: "1"}}}],
			initContainers: [{name: big, resources: {requests: {memory: 1Gi}}}]}}}]`
	for name, test := range map[string]struct{ workload, want string }{
		"it waits": {
			workload: `{metadata: {name: w, labels: {a: b}}, spec: {queueName: team, priority: 5, podSets: ` + pods + `}}`,
			want: `{metadata: {name: w}, spec: {queueName: team, priority: 5, podSets: [{name: launcher, count: 1}, {name: worker, count: 3}]}, status: {resourceRequests: [
				{name: launcher, resources: {cpu: 500m}}, {name: worker, resources: {cpu: 6300m, nvidia.com/gpu: "3", memory: 3Gi}}]}}`,
		},
		"Kueue has said what it requests": {
			workload: `{metadata: {name: w}, spec: {podSets: ` + pods + `}, status: {resourceRequests: [{name: launcher, resources: {cpu: "1"}}], nominatedClusterName: x}}`,
			want:     `{metadata: {name: w}, spec: {podSets: [{name: launcher, count: 1}, {name: worker, count: 3}]}, status: {resourceRequests: [{name: launcher, resources: {cpu: "1"}}]}}`,
		},
		"it is admitted": {
			workload: `{metadata: {name: w}, spec: {podSets: ` + pods + `}, status: {admission: {clusterQueue: team, podSetAssignments: [
				{name: launcher, count: 1, flavors: {cpu: f}, resourceUsage: {cpu: 500m}, topologyAssignment: {levels: [host], slices: [{domainCount: 1}]}}]}}}`,
			want: `{metadata: {name: w}, spec: {podSets: [{name: launcher, count: 1}, {name: worker, count: 3}]}, status: {admission: {clusterQueue: team, podSetAssignments: [{flavors: {cpu: f}, resourceUsage: {cpu: 500m}}]}}}`,
		},
		"pods that cannot be read": {
			workload: `{metadata: {name: w}, spec: {queueName: team, podSets: none}}`,
			want:     `{metadata: {name: w}, spec: {queueName: team, podSets: none}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, want := &unstructured.Unstructured{}, map[string]any{}
			if err := yaml.Unmarshal([]byte(test.workload), &got.Object); err != nil {
				t.Fatal(err)
			}
			if err := yaml.Unmarshal([]byte(test.want), &want); err != nil {
				t.Fatal(err)
			}
			for _, options := range cluster.WorkloadCacheOptions(kueue.WorkloadKind).ByObject {
				if _, err := options.Transform(got); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(want, got.Object); diff != "" {
				t.Error(diff)
			}
		})
	}
}
