package gang_test

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/internal/gang"
	"opendatahub.io/mpijob/internal/mpi"
)

func TestFromKueue(t *testing.T) {
	const cannot = "couldn't assign flavors to pod set Worker: insufficient unused quota for cpu in flavor default, 3 more needed"
	tests := map[string]struct {
		workload string
		place    *gang.Place
		want     mpi.QueueState
	}{
		"not taken up yet": {want: mpi.QueueState{Name: "team-a", Message: "Kueue has not taken the job up yet"}},
		"just made":        {workload: "{spec: {queueName: team-a}}", want: mpi.QueueState{Name: "team-a"}},
		"waits": {
			workload: "{spec: {queueName: team-b}, status: {conditions: [{type: QuotaReserved, status: 'False', reason: WaitingForQuota, message: \"" + cannot + "\"}]}}",
			place:    &gang.Place{InQueue: 2, InClusterQueue: 6},
			want:     mpi.QueueState{Name: "team-b", Reason: "WaitingForQuota", Message: cannot, Position: 3, Total: 7},
		},
		"can never be let in": {
			workload: "{status: {conditions: [{type: QuotaReserved, status: 'False', reason: ExceedsMaxQuota, message: too much}]}}",
			want:     mpi.QueueState{Name: "team-a", Reason: "ExceedsMaxQuota", Message: "too much", Never: true},
		},
		"can never be let in, by Kueue's words": {
			workload: "{status: {conditions: [{type: QuotaReserved, status: 'False', reason: Pending, message: 'insufficient quota for pods in flavor f, request > maximum capacity (5)'}]}}",
			place:    &gang.Place{},
			want:     mpi.QueueState{Name: "team-a", Reason: "ExceedsMaxQuota", Message: "insufficient quota for pods in flavor f, request > maximum capacity (5)", Never: true, Position: 1, Total: 1},
		},
		"no such queue": {
			workload: "{status: {conditions: [{type: QuotaReserved, status: 'False', reason: Misconfigured, message: LocalQueue x doesn't exist}]}}",
			want:     mpi.QueueState{Name: "team-a", Reason: "Misconfigured", Message: "LocalQueue x doesn't exist", Never: true},
		},
		"waits for checks": {
			workload: "{status: {conditions: [{type: QuotaReserved, status: 'True'}, {type: Admitted, status: 'False', reason: UnsatisfiedAdmissionChecks, message: prov is pending}]}}",
			want:     mpi.QueueState{Name: "team-a", Reason: "UnsatisfiedAdmissionChecks", Message: "prov is pending"},
		},
		"is let in": {
			workload: "{status: {conditions: [{type: QuotaReserved, status: 'True'}, {type: Admitted, status: 'True'}]}}",
			want:     mpi.QueueState{Name: "team-a", Admitted: true},
		},
		"was put out": {
			workload: "{status: {requeueState: {count: 2, requeueAt: '2026-01-02T03:04:05Z'}, conditions: [{type: Evicted, status: 'True', reason: PodsReadyTimeout, message: no pods in time, lastTransitionTime: '2026-01-02T03:00:00Z'}]}}",
			want:     mpi.QueueState{Name: "team-a", Message: "It is tried again at 03:04:05 UTC", Evicted: "no pods in time", Requeues: 2},
		},
		"was given up": {
			workload: "{spec: {active: false}, status: {conditions: [{type: Evicted, status: 'True', reason: Deactivated, message: requeued too often}]}}",
			want:     mpi.QueueState{Name: "team-a", Never: true, Reason: gang.ReasonDeactivated, Message: "requeued too often"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var workload *gang.Workload
			if test.workload != "" {
				workload = &gang.Workload{}
				if err := yaml.Unmarshal([]byte(test.workload), workload); err != nil {
					t.Fatal(err)
				}
			}
			got := gang.FromKueue("team-a", workload, test.place)
			if (got.Evicted != "") == got.EvictedAt.IsZero() {
				t.Errorf("it was put out at %s: %q", got.EvictedAt, got.Evicted)
			}
			test.want.Backend, test.want.EvictedAt = gang.Kueue, got.EvictedAt
			if got != test.want {
				t.Errorf("got  %+v\nwant %+v", got, test.want)
			}
		})
	}
}

// TestQueuedJob: a job that its queue holds back is told so, and one that its user suspends is not.
func TestQueuedJob(t *testing.T) {
	job := mpi.New()
	job.Lifecycle.Suspended, job.Queue = true, "team-a"
	state := gang.FromKueue("team-a", nil, &gang.Place{})
	out := mpi.Judge(job, mpi.Observed{Queue: &state})
	if out.Phase != mpi.PhaseQueued || !out.Suspended() || !strings.HasPrefix(out.Message, "Waiting in the queue team-a.") {
		t.Errorf("it is %s: %s", out.Phase, out.Message)
	}
	if out := mpi.Judge(job, mpi.Observed{}); out.Phase != mpi.PhaseSuspended {
		t.Errorf("without a queue it is %s", out.Phase)
	}
}
