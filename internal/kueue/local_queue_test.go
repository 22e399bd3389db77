package kueue_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/internal/kueue"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

// TestQueueWarnings: what a user learns of the queue when a job is created.
func TestQueueWarnings(t *testing.T) {
	const label = "metadata.labels[kueue.x-k8s.io/queue-name]: "
	const quotas = "flavorsUsage: [{name: default, resources: [{name: cpu, total: '0'}, {name: example.com/seat, total: '0'}]}]"
	inactive := func(reason string) string {
		return "{spec: {clusterQueue: all}, status: {conditions: [{type: Active, status: 'False', reason: " + reason + "}]}}"
	}
	tests := map[string]struct {
		queue    string
		requests string
		required bool
		want     string
	}{
		"it admits jobs":           {queue: "{spec: {stopPolicy: None}, status: {conditions: [{type: Active, status: 'True'}]}}"},
		"it is new":                {queue: "{}", requests: "cpu"},
		"it holds jobs back":       {queue: "{spec: {stopPolicy: Hold}}", want: label + "LocalQueue team is stopped: it admits no job until its administrator starts it again. The job waits until then"},
		"it is drained":            {queue: "{spec: {stopPolicy: HoldAndDrain}}", want: label + "LocalQueue team is stopped"},
		"it was just started":      {queue: inactive("Stopped")},
		"its ClusterQueue is held": {queue: inactive("ClusterQueueIsInactive"), want: label + "ClusterQueue all is inactive: it is stopped or incompletely configured, and admits no job until its administrator corrects that. The job waits until then"},
		"it has no ClusterQueue":   {queue: inactive("ClusterQueueDoesNotExist"), want: label + "ClusterQueue all does not exist: LocalQueue team admits no job until its administrator creates it. The job waits until then"},
		"it has quotas for all":    {queue: "{status: {" + quotas + "}}", requests: "example.com/seat"},
		"it has no quota for one":  {queue: "{status: {" + quotas + "}}", requests: "nvidia.com/gpu", want: label + "queue team has no quota for nvidia.com/gpu, which the pods request: Kueue does not admit the job, unless it is configured to ignore that"},
		"it has no quota for RDMA": {
			queue: "{status: {" + quotas + "}}", requests: "rdma/hca",
			want: label + "queue team has no quota for rdma/hca, which the pods request: Kueue does not admit the job, unless it is configured to ignore that. " +
				"Without a request for RDMA, the job runs over TCP",
		},
		"it has no quota for RDMA that is required": {
			queue: "{status: {" + quotas + "}}", requests: "rdma/hca", required: true,
			want: label + "queue team has no quota for rdma/hca, which the pods request: Kueue does not admit the job, unless it is configured to ignore that",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var queue kueue.LocalQueue
			if err := yaml.Unmarshal([]byte(test.queue), &queue); err != nil {
				t.Fatal(err)
			}
			queue.Name = "team"
			job := mpitest.Job(2, func(j *mpi.Job) {
				j.Queue, j.RDMA.Optional = "team", !test.required
				for _, template := range []*corev1.PodTemplateSpec{&j.Launcher.Template, &j.Workers.Template} {
					template.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
				}
				if test.requests != "" {
					j.Workers.Template.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceName(test.requests): resource.MustParse("1")}
				}
			})
			got := strings.Join(queue.Warnings(job), "\n")
			if test.want == "" && got != "" || !strings.HasPrefix(got, test.want) || strings.HasSuffix(test.want, "that") && got != test.want {
				t.Errorf("it warns\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}
