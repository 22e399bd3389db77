package mpi_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

func TestJudgeGangs(t *testing.T) {
	unplaced := func(pod *corev1.Pod) {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/2 nodes are available"}}
	}
	room := func(pods, nodes, of int32) mpi.GangState {
		return mpi.GangState{Wanted: 3, PodsFit: &pods, NodesFit: &nodes, NodesTotal: &of}
	}
	with := func(state mpi.GangState, change func(*mpi.GangState)) *mpi.GangState {
		change(&state)
		return &state
	}
	tests := map[string]struct {
		state *mpi.GangState
		pod   func(*corev1.Pod)
		phase mpi.Phase
		says  string
		start bool
	}{
		"it waits": {
			state: with(room(2, 1, 2), func(s *mpi.GangState) { s.Message = "2 Insufficient cpu" }), pod: unplaced, start: true,
			phase: mpi.PhaseGangScheduling, says: "It needs 3 pods placed together, 2 fit on 1 of 2 nodes. 2 Insufficient cpu.",
		},
		"there is no room at all": {
			state: with(room(0, 0, 4), func(*mpi.GangState) {}), pod: unplaced, start: true,
			phase: mpi.PhaseGangScheduling, says: "It needs 3 pods placed together, none fits on any of 4 nodes.",
		},
		"it waits for its turn": {
			state: with(room(2, 2, 2), func(s *mpi.GangState) { s.Hold, s.Position, s.Scope = true, 4, "in line" }), pod: unplaced,
			phase: mpi.PhaseGangScheduling, says: "number 4 in line",
		},
		"it rests": {
			state: with(room(2, 2, 2), func(s *mpi.GangState) {
				s.Hold, s.Attempts, s.EvictedAt, s.NextTry = true, 2, mpitest.Now, mpitest.Now.Add(time.Minute)
			}), pod: unplaced,
			phase: mpi.PhaseGangScheduling, says: "It was put back twice, last at 10:00:00 UTC, and is tried again at 10:01:00 UTC.",
		},
		"its pods have places": {
			state: &mpi.GangState{Wanted: 3, Placed: 3}, pod: func(*corev1.Pod) {}, start: true,
			phase: mpi.PhaseInitializing, says: "0 of 2 workers run",
		},
		"a pod has another trouble": {
			state: with(room(2, 2, 2), func(*mpi.GangState) {}), pod: mpitest.Waiting("ImagePullBackOff", "no"), start: true,
			phase: mpi.PhaseInitializing, says: "its image",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			job := mpitest.Job(2)
			seen := mpi.Observed{Now: mpitest.Now, Gang: test.state, Launcher: mpitest.Launcher(job)}
			for i := range 2 {
				seen.Workers = append(seen.Workers, mpitest.Worker(job, i, corev1.PodPending, test.pod))
			}
			out := mpi.Judge(job, seen)
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
		got, errs := mpi.Requeues(map[string]string{mpi.AnnotationRequeues: text})
		if want < 0 {
			if len(errs) == 0 || got != mpi.RequeueLimit {
				t.Errorf("%q is taken for %d: %v", text, got, errs)
			}
		} else if got != want || len(errs) > 0 {
			t.Errorf("%q is taken for %d: %v", text, got, errs)
		}
	}
	if got, errs := mpi.Requeues(nil); got != mpi.RequeueLimit || len(errs) > 0 {
		t.Errorf("nothing is taken for %d: %v", got, errs)
	}
}
