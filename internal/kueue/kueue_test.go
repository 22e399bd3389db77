package kueue_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/kueue"
	"opendatahub.io/mpijob/internal/mpi"
)

func TestFromKueue(t *testing.T) {
	const cannot = "couldn't assign flavors to pod set Worker: insufficient unused quota for cpu in flavor default, 3 more needed"
	tests := map[string]struct {
		workload string
		position *kueue.Position
		want     jobstate.QueueState
	}{
		"not taken up yet": {want: jobstate.QueueState{Name: "team-a", Message: "Kueue has not created a Workload yet"}},
		"just made":        {workload: "{spec: {queueName: team-a}}", want: jobstate.QueueState{Name: "team-a"}},
		"waits": {
			workload: "{spec: {queueName: team-b}, status: {conditions: [{type: QuotaReserved, status: 'False', reason: WaitingForQuota, message: \"" + cannot + "\"}]}}",
			position: &kueue.Position{InQueue: 2, InClusterQueue: 6},
			want:     jobstate.QueueState{Name: "team-b", Reason: "WaitingForQuota", Message: cannot, Position: 3, Total: 7},
		},
		"can never be let in": {
			workload: "{status: {conditions: [{type: QuotaReserved, status: 'False', reason: ExceedsMaxQuota, message: too much}]}}",
			want:     jobstate.QueueState{Name: "team-a", Reason: "ExceedsMaxQuota", Message: "too much", Never: true},
		},
		"can never be let in, by Kueue's words": {
			workload: "{status: {conditions: [{type: QuotaReserved, status: 'False', reason: Pending, message: 'insufficient quota for pods in flavor f, request > maximum capacity (5)'}]}}",
			position: &kueue.Position{},
			want:     jobstate.QueueState{Name: "team-a", Reason: "ExceedsMaxQuota", Message: "insufficient quota for pods in flavor f, request > maximum capacity (5)", Never: true, Why: "flavor f has at most 5 of pods", Position: 1, Total: 1},
		},
		"a resource without a quota": {
			workload: "{status: {conditions: [{type: QuotaReserved, status: 'False', reason: Pending, message: \"couldn't assign flavors to pod set launcher: insufficient unused quota for cpu in flavor default, 3 more needed; couldn't assign flavors to pod set worker: resource nvidia.com/gpu unavailable in ClusterQueue\"}]}}",
			want: jobstate.QueueState{
				Name: "team-a", Reason: "LacksResource", Never: true, Why: "it has no quota for nvidia.com/gpu",
				Message: "couldn't assign flavors to pod set launcher: insufficient unused quota for cpu in flavor default, 3 more needed; couldn't assign flavors to pod set worker: resource nvidia.com/gpu unavailable in ClusterQueue",
			},
		},
		"pods that request nothing, where Kueue selects the nodes": {
			workload: "{status: {conditions: [{type: QuotaReserved, status: 'False', reason: Pending, message: Workload no longer fits after processing another workload}], resourceRequests: [{name: launcher, resources: {cpu: 100m}}, {name: worker}]}}",
			want: jobstate.QueueState{
				Name: "team-a", Reason: "NeedsRequests", Never: true, Why: "pods of the pod set worker request nothing, and Kueue does not admit such pods where it selects the nodes",
				Message: "Workload no longer fits after processing another workload",
			},
		},
		"pods that request nothing, where Kueue selects the nodes and counts no pods": {
			workload: "{status: {conditions: [{type: QuotaReserved, status: 'False', reason: Pending, message: 'failed to assign flavors to pod set launcher: no TAS flavor assigned'}], resourceRequests: [{name: launcher}, {name: worker, resources: {cpu: 100m}}]}}",
			want: jobstate.QueueState{
				Name: "team-a", Reason: "NeedsRequests", Never: true, Why: "pods of the pod set launcher request nothing, and Kueue does not admit such pods where it selects the nodes",
				Message: "failed to assign flavors to pod set launcher: no TAS flavor assigned",
			},
		},
		"others were faster": {
			workload: "{status: {conditions: [{type: QuotaReserved, status: 'False', reason: Pending, message: Workload no longer fits after processing another workload}], resourceRequests: [{name: launcher, resources: {cpu: 100m}}, {name: worker, resources: {cpu: 100m}}]}}",
			want:     jobstate.QueueState{Name: "team-a", Reason: "Pending", Message: "Workload no longer fits after processing another workload"},
		},
		"no such queue": {
			workload: "{status: {conditions: [{type: QuotaReserved, status: 'False', reason: Misconfigured, message: LocalQueue x doesn't exist}]}}",
			want:     jobstate.QueueState{Name: "team-a", Reason: "Misconfigured", Message: "LocalQueue x doesn't exist", Never: true},
		},
		"waits for checks": {
			workload: "{status: {conditions: [{type: QuotaReserved, status: 'True'}, {type: Admitted, status: 'False', reason: UnsatisfiedAdmissionChecks, message: prov is pending}]}}",
			want:     jobstate.QueueState{Name: "team-a", Reason: "UnsatisfiedAdmissionChecks", Message: "prov is pending"},
		},
		"is let in": {
			workload: "{status: {conditions: [{type: QuotaReserved, status: 'True'}, {type: Admitted, status: 'True'}]}}",
			want:     jobstate.QueueState{Name: "team-a", Admitted: true},
		},
		"was put out": {
			workload: "{status: {requeueState: {count: 2, requeueAt: '2026-01-02T03:04:05Z'}, conditions: [{type: Evicted, status: 'True', reason: PodsReadyTimeout, message: no pods in time, lastTransitionTime: '2026-01-02T03:00:00Z'}]}}",
			want:     jobstate.QueueState{Name: "team-a", Message: "Next attempt at 03:04:05 UTC", Evicted: "no pods in time", Requeues: 2},
		},
		"is put out, and its pods go": {
			workload: "{status: {conditions: [{type: QuotaReserved, status: 'True', message: reserved}, {type: Admitted, status: 'True', message: The workload is admitted}, {type: Evicted, status: 'True', reason: Preempted, message: another is more important, lastTransitionTime: '2026-01-02T03:00:00Z'}]}}",
			want:     jobstate.QueueState{Name: "team-a", Evicted: "another is more important", Message: "Its pods are being deleted, then it waits for quota again"},
		},
		"was preempted, and waits again": {
			workload: "{status: {conditions: [{type: QuotaReserved, status: 'False', reason: Pending, message: another is more important}, {type: Admitted, status: 'False', message: The workload has no reservation}, {type: Evicted, status: 'True', reason: Preempted, message: another is more important, lastTransitionTime: '2026-01-02T03:00:00Z'}]}}",
			position: &kueue.Position{InQueue: 1, InClusterQueue: 1},
			want:     jobstate.QueueState{Name: "team-a", Reason: "Pending", Evicted: "another is more important", Position: 2, Total: 2},
		},
		"its queue is stopped": {
			workload: "{status: {conditions: [{type: QuotaReserved, status: 'False', reason: Inadmissible, message: LocalQueue team-a is stopped}]}}",
			want: jobstate.QueueState{
				Name: "team-a", Reason: kueue.ReasonStopped, Never: true, Message: "LocalQueue team-a is stopped",
				Why: "LocalQueue team-a is stopped: it admits no job until its administrator starts it again",
			},
		},
		"its queue is inactive": {
			workload: "{status: {conditions: [{type: QuotaReserved, status: 'False', reason: Suspended, message: ClusterQueue all is inactive}]}}",
			want: jobstate.QueueState{
				Name: "team-a", Reason: kueue.ReasonStopped, Never: true, Message: "ClusterQueue all is inactive",
				Why: "ClusterQueue all is inactive: it is stopped or incompletely configured, and admits no job until its administrator corrects that",
			},
		},
		"rests, since its pods found no nodes": {
			workload: "{metadata: {annotations: {mpi.opendatahub.io/gang-timeouts: '2 2026-01-02T03:04:05Z'}}, spec: {active: false}, status: {conditions: [{type: Admitted, status: 'True'}, {type: Evicted, status: 'True', reason: Deactivated, message: The workload is deactivated, lastTransitionTime: '2026-01-02T03:00:00Z'}]}}",
			want: jobstate.QueueState{
				Name: "team-a", Reason: kueue.ReasonTimeout, Requeues: 2,
				Message: "Admitted, but not all pods were scheduled in time (2 times); next attempt at 03:04:05 UTC",
			},
		},
		"was stopped by somebody, after it had rested": {
			workload: "{metadata: {name: mpijob-pi, annotations: {mpi.opendatahub.io/gang-timeouts: '2'}}, spec: {active: false}}",
			want:     jobstate.QueueState{Name: "team-a", Object: "mpijob-pi", Never: true, Stopped: true, Reason: kueue.ReasonDeactivated, Message: "the Workload is deactivated"},
		},
		"is admitted for a time": {
			workload: "{spec: {maximumExecutionTimeSeconds: 3600}, status: {conditions: [{type: Admitted, status: 'True', lastTransitionTime: '2026-01-02T03:00:00Z'}]}}",
			want:     jobstate.QueueState{Name: "team-a", Admitted: true, AdmittedAt: time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC), EndsAt: time.Date(2026, 1, 2, 4, 0, 0, 0, time.UTC), Limit: time.Hour},
		},
		"is admitted for the rest of a time": {
			workload: "{spec: {maximumExecutionTimeSeconds: 3600}, status: {accumulatedPastExecutionTimeSeconds: 600, conditions: [{type: Admitted, status: 'True', lastTransitionTime: '2026-01-02T03:00:00Z'}]}}",
			want:     jobstate.QueueState{Name: "team-a", Admitted: true, AdmittedAt: time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC), EndsAt: time.Date(2026, 1, 2, 3, 50, 0, 0, time.UTC), Limit: time.Hour},
		},
		"was stopped by somebody while it ran": {
			workload: "{spec: {active: false}, status: {conditions: [{type: Evicted, status: 'True', reason: Deactivated, message: The workload is deactivated}]}}",
			want:     jobstate.QueueState{Name: "team-a", Never: true, Stopped: true, Reason: kueue.ReasonDeactivated, Message: "the Workload is deactivated"},
		},
		"was stopped by somebody when it had made room": {
			workload: "{spec: {active: false}, status: {conditions: [{type: Evicted, status: 'True', reason: Preempted, message: another is more important}]}}",
			want:     jobstate.QueueState{Name: "team-a", Never: true, Stopped: true, Reason: kueue.ReasonDeactivated, Message: "the Workload is deactivated"},
		},
		"was stopped by somebody, let in since it had been given up": {
			workload: "{spec: {active: false}, status: {conditions: [{type: Evicted, status: 'False', reason: DeactivatedDueToAdmissionCheck}]}}",
			want:     jobstate.QueueState{Name: "team-a", Never: true, Stopped: true, Reason: kueue.ReasonDeactivated, Message: "the Workload is deactivated"},
		},
		"waits again that somebody had stopped": {
			workload: "{status: {conditions: [{type: Evicted, status: 'True', reason: Deactivated, message: The workload is deactivated}, {type: QuotaReserved, status: 'False', reason: WaitingForQuota, message: too little}]}}",
			want:     jobstate.QueueState{Name: "team-a", Reason: "WaitingForQuota", Message: "too little"},
		},
		"is being given up": {
			workload: "{spec: {active: false}, status: {conditions: [{type: DeactivationTarget, status: 'True', reason: RequeuingLimitExceeded}]}}",
			want:     jobstate.QueueState{Name: "team-a", Never: true, Reason: kueue.ReasonDeactivated, Message: "the Workload is deactivated"},
		},
		"was given up": {
			workload: "{spec: {active: false}, status: {conditions: [{type: Evicted, status: 'True', reason: DeactivatedDueToRequeuingLimitExceeded, message: requeued too often}]}}",
			want:     jobstate.QueueState{Name: "team-a", Never: true, Reason: kueue.ReasonDeactivated, Message: "requeued too often"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var workload *kueue.Workload
			if test.workload != "" {
				workload = &kueue.Workload{}
				if err := yaml.Unmarshal([]byte(test.workload), workload); err != nil {
					t.Fatal(err)
				}
			}
			got := kueue.FromKueue("team-a", workload)
			test.position.AddTo(&got)
			if rests := got.Reason == kueue.ReasonTimeout; (got.Evicted != "" || rests) == got.EvictedAt.IsZero() {
				t.Errorf("it was put out at %s: %q", got.EvictedAt, got.Evicted)
			} else if want := day.Add(3*time.Hour + 3*time.Minute + 5*time.Second); rests && !got.EvictedAt.Equal(want) {
				t.Errorf("it rests since %s, want %s", got.EvictedAt, want)
			}
			test.want.Backend, test.want.EvictedAt = kueue.Kueue, got.EvictedAt
			got.AdmittedAt, got.EndsAt = got.AdmittedAt.UTC(), got.EndsAt.UTC()
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
	state := kueue.FromKueue("team-a", nil)
	out := jobstate.Judge(job, jobstate.Observed{Queue: &state})
	if out.Phase != v1alpha1.PhaseQueued || !out.Suspended() || !strings.HasPrefix(out.Message, "Waiting in queue team-a.") {
		t.Errorf("it is %s: %s", out.Phase, out.Message)
	}
	if out := jobstate.Judge(job, jobstate.Observed{}); out.Phase != v1alpha1.PhaseSuspended || !strings.Contains(out.Message, "queue team-a") {
		t.Errorf("without Kueue it is %s: %s", out.Phase, out.Message)
	}
	// Kueue resumes it a moment after it has admitted it.
	state.Admitted = true
	out = jobstate.Judge(job, jobstate.Observed{Queue: &state})
	if out.Phase != v1alpha1.PhaseQueued || out.NeedsAction || out.Message != "Admitted by queue team-a. Waiting for Kueue to resume the job." {
		t.Errorf("admitted it is %s: %s", out.Phase, out.Message)
	}
}

// TestSuspendedInAQueue: a job that a user keeps out of its queue is suspended, as any other is, and says how it gets back.
func TestSuspendedInAQueue(t *testing.T) {
	job := mpi.New()
	job.Name, job.Queue, job.Lifecycle.Suspended = "pi", "team-a", true
	workload := &kueue.Workload{}
	workload.Name, workload.Spec.Active = "mpijob-pi-1a2b3", new(false)
	state := kueue.FromKueue("team-a", workload)
	out := jobstate.Judge(job, jobstate.Observed{Queue: &state})
	const want = "Suspended: a user deactivated Workload mpijob-pi-1a2b3. To wait in queue team-a again, run kubectl odh mpijob resume pi."
	if out.Phase != v1alpha1.PhaseSuspended || out.Reason != codes.Suspended || out.NeedsAction || out.Message != want {
		t.Errorf("it is %s for %s, trouble: %v\ngot  %s\nwant %s", out.Phase, out.Reason, out.NeedsAction, out.Message, want)
	}
	if found := diagnose.Job(job, jobstate.Observed{Queue: &state}, jobstate.Evidence{}, out); len(found) > 0 {
		t.Errorf("something is wrong with it: %+v", found)
	}
	job.Lifecycle.Suspended = false
	if out := jobstate.Judge(job, jobstate.Observed{Queue: &state}); out.Phase != v1alpha1.PhasePending {
		t.Errorf("until Kueue has suspended it it is %s", out.Phase)
	}
}

// TestSwitch: what a user changes of a Workload is for the very one that was read, and ends our clock of it.
func TestSwitch(t *testing.T) {
	const timeouts = mpi.AnnotationGangTimeouts
	read := map[string]any{"uid": types.UID("u"), "resourceVersion": "7"}
	counted := map[string]any{"uid": types.UID("u"), "resourceVersion": "7", "annotations": map[string]any{timeouts: "2"}}
	for name, test := range map[string]struct {
		annotations map[string]string
		want        map[string]any
	}{
		"as most are": {nil, read},
		"rests":       {map[string]string{timeouts: "2 2026-01-02T03:04:05Z"}, counted},
		"has rested":  {map[string]string{timeouts: "2"}, read},
	} {
		workload := &kueue.Workload{}
		workload.UID, workload.ResourceVersion, workload.Annotations = "u", "7", test.annotations
		for _, active := range []bool{false, true} {
			want := map[string]any{"metadata": test.want, "spec": map[string]any{"active": active}}
			if diff := cmp.Diff(want, workload.Switch(active)); diff != "" {
				t.Errorf("%s: -want +got\n%s", name, diff)
			}
		}
	}
}
