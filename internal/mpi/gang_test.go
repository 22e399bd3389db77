package mpi_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

func TestJudgeGangs(t *testing.T) {
	unplaced := func(pod *corev1.Pod) {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/2 nodes are available"}}
	}
	room := func(pods, nodes, of int32) jobstate.GangState {
		return jobstate.GangState{Wanted: 3, PodsFit: &pods, NodesFit: &nodes, NodesTotal: &of}
	}
	with := func(state jobstate.GangState, change func(*jobstate.GangState)) *jobstate.GangState {
		change(&state)
		return &state
	}
	tests := map[string]struct {
		state *jobstate.GangState
		pod   func(*corev1.Pod)
		phase v1alpha1.Phase
		says  string
		start bool
	}{
		"it waits": {
			state: with(room(2, 1, 2), func(s *jobstate.GangState) { s.Message = "2 Insufficient cpu" }), pod: unplaced, start: true,
			phase: v1alpha1.PhaseGangScheduling, says: "Waiting for capacity: 3 pods requested, 2 fit on 1 of 2 nodes. 2 Insufficient cpu.",
		},
		"there is no room at all": {
			state: with(room(0, 0, 4), func(*jobstate.GangState) {}), pod: unplaced, start: true,
			phase: v1alpha1.PhaseGangScheduling, says: "Waiting for capacity: 3 pods requested, 0 fit on 0 of 4 nodes.",
		},
		"it waits for its turn": {
			state: with(room(2, 2, 2), func(s *jobstate.GangState) { s.Hold, s.Position, s.Scope = true, 4, "in line" }), pod: unplaced,
			phase: v1alpha1.PhaseGangScheduling, says: "position 4 in line",
		},
		"it rests": {
			state: with(room(2, 2, 2), func(s *jobstate.GangState) {
				s.Hold, s.Attempts, s.EvictedAt, s.NextTry = true, 2, mpitest.Now, mpitest.Now.Add(time.Minute)
			}), pod: unplaced,
			phase: v1alpha1.PhaseGangScheduling, says: "Requeued twice, last at 10:00:00 UTC, next attempt at 10:01:00 UTC.",
		},
		"its pods have places": {
			state: &jobstate.GangState{Wanted: 3, Placed: 3}, pod: func(*corev1.Pod) {}, start: true,
			phase: v1alpha1.PhaseInitializing, says: "0 of 2 workers run",
		},
		"a pod has another trouble": {
			state: with(room(2, 2, 2), func(*jobstate.GangState) {}), pod: mpitest.Waiting("ImagePullBackOff", "no"), start: true,
			phase: v1alpha1.PhaseInitializing, says: "cannot be pulled",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			job := mpitest.Job(2)
			seen := jobstate.Observed{Now: mpitest.Now, Gang: test.state, Launcher: mpitest.Launcher(job)}
			for i := range 2 {
				seen.Workers = append(seen.Workers, mpitest.Worker(job, i, corev1.PodPending, test.pod))
			}
			out := jobstate.Judge(job, seen)
			if out.Phase != test.phase || !strings.Contains(out.Message, test.says) || out.PodsMayStart != test.start || out.LauncherMayStart != test.start {
				t.Errorf("it is %s, may start %v, and says %q", out.Phase, out.PodsMayStart, out.Message)
			}
		})
	}
}

func TestValidateGangs(t *testing.T) {
	least := func(n int32) func(*mpi.Job) { return func(j *mpi.Job) { j.Gang.MinAvailable = &n } }
	later := func(j *mpi.Job) { j.Launcher.AfterWorkers = true }
	tests := map[string]struct {
		change []func(*mpi.Job)
		want   string
	}{
		"all":                                       {change: []func(*mpi.Job){least(3)}},
		"more than there are":                       {change: []func(*mpi.Job){least(4)}, want: "must be at most 3"},
		"fewer than none":                           {change: []func(*mpi.Job){least(-1)}, want: "must be 0 or more"},
		"workers, and the launcher later":           {change: []func(*mpi.Job){least(2), later}},
		"the launcher too, which comes later":       {change: []func(*mpi.Job){least(3), later}, want: "must be at most 2"},
		"a time that is over before it has begun":   {change: []func(*mpi.Job){func(j *mpi.Job) { j.Gang.Timeout = -time.Second }}, want: "scheduleTimeoutSeconds"},
		"nothing is said, and the launcher is late": {change: []func(*mpi.Job){later}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			job := mpitest.Job(2, test.change...)
			job.Fields.Gang = field.NewPath("schedulingPolicy")
			job.Fields.GangTimeout = job.Fields.Gang.Child("scheduleTimeoutSeconds")
			got := ""
			if errs := mpi.Validate(job); len(errs) > 0 {
				got = errs.ToAggregate().Error()
			}
			if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
				t.Errorf("it says %q, want %q", got, test.want)
			}
		})
	}
}

func TestRequeues(t *testing.T) {
	for text, want := range map[string]int32{"0": 0, "12": 12, "-1": -1, "many": -1} {
		got, errs := mpi.ParseRequeues(map[string]string{mpi.AnnotationRequeues: text})
		if want < 0 {
			if len(errs) == 0 || got != mpi.RequeueLimit {
				t.Errorf("%q is taken for %d: %v", text, got, errs)
			}
		} else if got != want || len(errs) > 0 {
			t.Errorf("%q is taken for %d: %v", text, got, errs)
		}
	}
	if got, errs := mpi.ParseRequeues(nil); got != mpi.RequeueLimit || len(errs) > 0 {
		t.Errorf("nothing is taken for %d: %v", got, errs)
	}
}
