package kueue_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/internal/kueue"
	"opendatahub.io/mpijob/internal/waiting"
)

// startQueue has 10 CPUs of flavor plain, of which 8 are held, and 4 GPUs of flavor gpus.
const startQueue = `{metadata: {name: team}, spec: {resourceGroups: [{coveredResources: [cpu], flavors: [
  {name: plain, resources: [{name: cpu, nominalQuota: "10"}]}%s]}]}, status: {flavorsReservation: [{name: plain, resources: [{name: cpu, total: "8"}]}]}}`

// runs holds so many CPUs of a flavor.
func runs(name string, cpu int) string {
	return fmt.Sprintf(`{metadata: {uid: %[1]s, name: %[1]s}, status: {admission: {clusterQueue: team, podSetAssignments: [{flavors: {cpu: plain}, resourceUsage: {cpu: "%[2]d"}}]},
  conditions: [{type: QuotaReserved, status: "True"}, {type: Admitted, status: "True", lastTransitionTime: "2026-11-21T10:00:00Z"}]}}`, name, cpu)
}

// waits requests so many CPUs, in two pod sets, since a minute after 10:00.
func waits(name string, cpu, minute int, change ...string) string {
	text := fmt.Sprintf(`{metadata: {uid: %[1]s, name: %[1]s, creationTimestamp: "2026-11-21T10:%02[3]d:00Z"}, spec: {queueName: team},
  status: {resourceRequests: [{name: launcher, resources: {cpu: "1", memory: "0"}}, {name: worker, resources: {cpu: "%[2]d"}}],
  conditions: [{type: QuotaReserved, status: "False", reason: Pending, message: MESSAGE}]}}`, name, cpu-1, minute)
	return strings.NewReplacer(append(change, "MESSAGE", "x")...).Replace(text)
}

// TestEstimateStarts: the starts in a queue follow from when those end that hold its quota.
func TestEstimateStarts(t *testing.T) {
	now := time.Date(2026, 11, 21, 10, 30, 0, 0, time.UTC)
	at := func(minute int) time.Time { return time.Date(2026, 11, 21, 10, minute, 0, 0, time.UTC) }
	by := func(minute int) waiting.Estimate { return waiting.Estimate{By: at(minute), Basis: waiting.Deadlines} }
	ends := func(minutes int) waiting.Job {
		return waiting.Job{Deadline: time.Duration(minutes) * time.Minute, DeadlineFrom: at(0), Lingers: -1}
	}
	for name, test := range map[string]struct {
		queue     string
		workloads []string
		jobs      map[string]waiting.Job
		want      map[types.UID]waiting.Estimate
	}{
		"those that hold the quota end one after the other": {
			workloads: []string{runs("a", 5), runs("b", 3), waits("c", 4, 1), waits("d", 6, 2)},
			jobs:      map[string]waiting.Job{"a": ends(50), "b": ends(40), "c": {Deadline: time.Hour}},
			want:      map[types.UID]waiting.Estimate{"c": by(40), "d": by(50)},
		},
		"one with a higher priority goes first": {
			workloads: []string{runs("a", 5), runs("b", 3), waits("c", 4, 1), waits("d", 5, 2, "queueName: team", "queueName: team, priority: 5")},
			jobs:      map[string]waiting.Job{"a": ends(50), "b": ends(40), "d": {Deadline: time.Hour}},
			want:      map[types.UID]waiting.Estimate{"c": by(50), "d": by(40)},
		},
		"Kueue's own limit of time": {
			workloads: []string{strings.Replace(runs("a", 8), "status:", "spec: {maximumExecutionTimeSeconds: 2700}, status:", 1), waits("c", 4, 1)},
			want:      map[types.UID]waiting.Estimate{"c": by(45)},
		},
		"a limit that comes after the job's own": {
			workloads: []string{strings.Replace(runs("a", 8), "status:", "spec: {maximumExecutionTimeSeconds: 2700}, status:", 1), waits("c", 4, 1)},
			jobs:      map[string]waiting.Job{"a": ends(40)},
			want:      map[types.UID]waiting.Estimate{"c": by(40)},
		},
		"nothing bounds one that holds the quota": {
			workloads: []string{runs("a", 8), waits("c", 4, 1), waits("d", 6, 2)},
			want:      map[types.UID]waiting.Estimate{"c": {Reason: waiting.NoDeadline, Other: &waiting.Job{Name: "a", Start: at(0)}}, "d": {Reason: waiting.NoneAhead, Other: &waiting.Job{Name: "c"}}},
		},
		"one that never fits is passed": {
			workloads: []string{runs("a", 8), waits("c", 40, 1, "MESSAGE", "'insufficient quota for cpu in flavor plain, request > maximum capacity (10)'"), waits("d", 6, 2)},
			jobs:      map[string]waiting.Job{"a": ends(50)},
			want:      map[types.UID]waiting.Estimate{"d": by(50)},
		},
		"one that never fits stops a strict queue": {
			queue:     strings.Replace(fmt.Sprintf(startQueue, ""), "spec: {", "spec: {queueingStrategy: StrictFIFO, ", 1),
			workloads: []string{runs("a", 8), waits("c", 40, 1, "MESSAGE", "'insufficient quota for cpu in flavor plain, request > maximum capacity (10)'"), waits("d", 6, 2)},
			jobs:      map[string]waiting.Job{"a": ends(50)},
			want:      map[types.UID]waiting.Estimate{"c": {Reason: waiting.NotReleased}, "d": {Reason: waiting.NoneAhead, Other: &waiting.Job{Name: "c"}}},
		},
		"a second flavor": {
			queue:     fmt.Sprintf(startQueue, `, {name: spot, resources: [{name: cpu, nominalQuota: "5"}]}`),
			workloads: []string{runs("a", 8), waits("c", 7, 1, "launcher, resources: {cpu: \"1\"", "launcher, resources: {cpu: \"2\""), waits("d", 3, 2)},
			jobs:      map[string]waiting.Job{"a": ends(50), "c": ends(55)},
			want:      map[types.UID]waiting.Estimate{"c": by(50), "d": by(50)},
		},
		"a second flavor that does not accept the pods": {
			queue:     fmt.Sprintf(startQueue, `, {name: spot, resources: [{name: cpu, nominalQuota: "5"}]}`),
			workloads: []string{runs("a", 8), waits("c", 5, 1, "MESSAGE", `"couldn't assign flavors to pod set worker: flavor spot doesn't match node affinity, insufficient unused quota for cpu in flavor plain, 3 more needed"`)},
			jobs:      map[string]waiting.Job{"a": ends(50)},
			want:      map[types.UID]waiting.Estimate{"c": by(50)},
		},
		"others hold the quota": {
			workloads: []string{runs("a", 1), waits("c", 9, 1)},
			jobs:      map[string]waiting.Job{"a": ends(50)},
			want:      map[types.UID]waiting.Estimate{"c": {Reason: waiting.NotReleased}},
		},
		"those that are over, kept out or tried again later": {
			workloads: []string{
				runs("a", 8), strings.Replace(runs("z", 8), "conditions: [", `conditions: [{type: Finished, status: "True"}, `, 1), waits("c", 2, 1, "queueName: team", "queueName: team, active: false"),
				waits("d", 2, 2, "status: {res", `status: {requeueState: {requeueAt: "2026-11-21T11:00:00Z"}, res`), waits("e", 6, 3),
			},
			jobs: map[string]waiting.Job{"a": ends(50)},
			want: map[types.UID]waiting.Estimate{"e": by(50)},
		},
		"a cohort": {
			queue:     strings.Replace(fmt.Sprintf(startQueue, ""), "spec: {", "spec: {cohortName: all, ", 1),
			workloads: []string{runs("a", 8), waits("c", 4, 1)},
			jobs:      map[string]waiting.Job{"a": ends(50)},
		},
		"quota is free for one that waits for nodes": {
			workloads: []string{runs("a", 5), waits("c", 2, 1, "MESSAGE", "'topology \"default\" allows to fit only 1 out of 2 pod(s)'"), waits("d", 9, 2)},
			jobs:      map[string]waiting.Job{"a": ends(50), "c": ends(55)},
			want:      map[types.UID]waiting.Estimate{"c": {Reason: waiting.NotForQuota, Other: &waiting.Job{Name: "c"}}, "d": {Reason: waiting.NoneAhead, Other: &waiting.Job{Name: "c"}}},
		},
		"fair sharing decides about the order": {
			queue:     strings.Replace(fmt.Sprintf(startQueue, ""), "spec: {", "spec: {admissionScope: {}, ", 1),
			workloads: []string{runs("a", 8), waits("c", 4, 1)},
			jobs:      map[string]waiting.Job{"a": ends(50)},
		},
		"one of a stopped LocalQueue is passed in a strict queue": {
			queue:     strings.Replace(fmt.Sprintf(startQueue, ""), "spec: {", "spec: {queueingStrategy: StrictFIFO, ", 1),
			workloads: []string{runs("a", 8), waits("c", 4, 1, "MESSAGE", "LocalQueue team is stopped"), waits("d", 6, 2)},
			jobs:      map[string]waiting.Job{"a": ends(50)},
			want:      map[types.UID]waiting.Estimate{"d": by(50)},
		},
		"pods that have ended have released their part": {
			queue:     strings.Replace(fmt.Sprintf(startQueue, ""), `total: "8"`, `total: "2"`, 1),
			workloads: []string{runs("a", 8), waits("c", 12, 1)},
			jobs:      map[string]waiting.Job{"a": ends(50)},
			want:      map[types.UID]waiting.Estimate{"c": {Reason: waiting.NotReleased}},
		},
		"a quota without an end": {
			queue: `{metadata: {name: team}, spec: {resourceGroups: [{coveredResources: [cpu, memory], flavors: [{name: plain, resources: [{name: cpu, nominalQuota: 10}, {name: memory, nominalQuota: 1Ei}]}]}]},
  status: {flavorsReservation: [{name: plain, resources: [{name: cpu, total: "8"}, {name: memory, total: 1Gi}]}]}}`,
			workloads: []string{runs("a", 8), waits("c", 4, 1, `memory: "0"`, "memory: 10Pi")},
			jobs:      map[string]waiting.Job{"a": ends(50)},
			want:      map[types.UID]waiting.Estimate{"c": by(50)},
		},
		"a resource that Kueue may be configured to ignore": {
			workloads: []string{runs("a", 8), waits("c", 4, 1, `memory: "0"`, "hugepages-2Mi: 1Gi", `{type: QuotaReserved, status: "False", reason: Pending, message: MESSAGE}`, "")},
			jobs:      map[string]waiting.Job{"a": ends(50)},
			want:      map[types.UID]waiting.Estimate{"c": by(50)},
		},
		"one that waits for checks counts from when it got its quota": {
			workloads: []string{strings.NewReplacer(`{type: QuotaReserved, status: "True"}, {type: Admitted, status: "True", lastTransitionTime: "2026-11-21T10:00:00Z"}`,
				`{type: QuotaReserved, status: "True", lastTransitionTime: "2026-11-21T10:10:00Z"}`).Replace(runs("a", 8)), waits("c", 4, 1)},
			jobs: map[string]waiting.Job{"a": {Deadline: time.Hour}},
			want: map[types.UID]waiting.Estimate{"c": {By: time.Date(2026, 11, 21, 11, 10, 0, 0, time.UTC), Basis: waiting.Deadlines}},
		},
		"a quota of pods": {
			queue: `{metadata: {name: team}, spec: {resourceGroups: [{coveredResources: [cpu, pods], flavors: [{name: plain, resources: [{name: cpu, nominalQuota: 1k}, {name: pods, nominalQuota: 6}]}]}]},
  status: {flavorsReservation: [{name: plain, resources: [{name: cpu, total: "8"}, {name: pods, total: 5}]}]}}`,
			workloads: []string{
				strings.NewReplacer("{cpu: plain}", "{cpu: plain, pods: plain}", `{cpu: "8"}`, `{cpu: "8", pods: "5"}`).Replace(runs("a", 8)),
				waits("c", 4, 1, "queueName: team", "queueName: team, podSets: [{name: launcher, count: 1}, {name: worker, count: 3}]"),
			},
			jobs: map[string]waiting.Job{"a": ends(50)},
			want: map[types.UID]waiting.Estimate{"c": by(50)},
		},
		"a resource that the queue does not have": {
			workloads: []string{runs("a", 8), waits("c", 2, 1, "memory: \"0\"", "memory: 1Gi")},
			jobs:      map[string]waiting.Job{"a": ends(50)},
			want:      map[types.UID]waiting.Estimate{"c": {Reason: waiting.NotReleased}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			queue := &kueue.ClusterQueue{}
			if test.queue == "" {
				test.queue = fmt.Sprintf(startQueue, "")
			}
			if err := yaml.UnmarshalStrict([]byte(test.queue), queue); err != nil {
				t.Fatal(err)
			}
			var workloads []*kueue.Workload
			for _, text := range test.workloads {
				workload := &kueue.Workload{}
				if err := yaml.UnmarshalStrict([]byte(text), workload); err != nil {
					t.Fatalf("%v\n%s", err, text)
				}
				workloads = append(workloads, workload)
			}
			got := kueue.EstimateStarts(now, queue, workloads, func(workload *kueue.Workload) waiting.Job {
				job := test.jobs[workload.Name]
				job.Name = workload.Name
				return job
			})
			for uid, estimate := range got {
				estimate.From = time.Time{}
				if other := estimate.Other; other != nil {
					estimate.Other = &waiting.Job{Name: other.Name, Start: other.Start}
				}
				got[uid] = estimate
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
