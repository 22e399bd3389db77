package jobstate_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

var evictedAt = time.Date(2026, 11, 21, 9, 30, 0, 0, time.UTC)

func TestTextsOfWaitingGangs(t *testing.T) {
	t.Parallel()
	fits := func(g jobstate.GangState, pods, nodes, total int32) jobstate.GangState {
		g.PodsFit, g.NodesFit, g.NodesTotal = &pods, &nodes, &total
		return g
	}
	waits := jobstate.GangState{Hold: true, Wanted: 9}
	for name, test := range map[string]struct {
		state jobstate.GangState
		want  string
		never bool
	}{
		"nothing known":         {waits, "Waiting for capacity: 9 pods requested.", false},
		"some fit":              {fits(waits, 5, 2, 3), "Waiting for capacity: 9 pods requested, 5 fit on 2 of 3 nodes.", false},
		"some have a place":     {fits(jobstate.GangState{Wanted: 9, Placed: 3}, 2, 1, 1), "Waiting for capacity: 9 pods requested, 3 scheduled, 2 more fit on 1 of 1 node.", false},
		"in line":               {jobstate.GangState{Hold: true, Wanted: 1, Position: 4}, "Waiting for capacity: 1 pod requested; position 4.", false},
		"in a line with a name": {jobstate.GangState{Hold: true, Wanted: 2, Position: 4, Scope: "of all"}, "Waiting for capacity: 2 pods requested; position 4 of all.", false},
		"a message":             {jobstate.GangState{Hold: true, Wanted: 2, Message: "no node matches"}, "Waiting for capacity: 2 pods requested. No node matches.", false},
		"it can never start":    {jobstate.GangState{Hold: true, Wanted: 2, Never: true}, "Waiting for capacity: 2 pods requested.", true},
		"put back once": {
			jobstate.GangState{Hold: true, Wanted: 2, Attempts: 1, EvictedAt: evictedAt, NextTry: evictedAt.Add(time.Minute)},
			"Waiting for capacity: 2 pods requested. Requeued once, last at 09:30:00 UTC, next attempt at 09:31:00 UTC.", false,
		},
		"put back, and tried again": {
			jobstate.GangState{Wanted: 2, Attempts: 2, EvictedAt: evictedAt},
			"Waiting for capacity: 2 pods requested. Requeued twice, last at 09:30:00 UTC.", false,
		},
	} {
		job := mpitest.Job(8)
		out := jobstate.Judge(job, jobstate.Observed{Now: mpitest.Now, Gang: &test.state})
		if out.Phase != v1alpha1.PhaseGangScheduling || out.Reason != codes.WaitingForPlaces || out.Message != test.want || out.NeedsAction != test.never {
			t.Errorf("%s: %s %s needs action: %t\n got %s\nwant %s", name, out.Phase, out.Reason, out.NeedsAction, out.Message, test.want)
		}
		if out.PodsMayStart == test.state.Hold {
			t.Errorf("%s: pods may start: %t", name, out.PodsMayStart)
		}
	}
}

// TestSuspendedInQueue: a job that is created suspended in a queue starts no pods, even if Kueue admits it first.
func TestSuspendedInQueue(t *testing.T) {
	t.Parallel()
	held := mpitest.Job(2, func(j *mpi.Job) { j.SuspendedInQueue = true })
	for name, test := range map[string]struct {
		job   mpi.Job
		queue *jobstate.QueueState
		want  bool
	}{
		"suspended by its user":    {held, &jobstate.QueueState{Name: "team"}, false},
		"suspended, but no queue":  {held, nil, true},
		"not suspended in a queue": {mpitest.Job(2), &jobstate.QueueState{Name: "team"}, true},
	} {
		out := jobstate.Judge(test.job, jobstate.Observed{Now: mpitest.Now, Queue: test.queue})
		if out.PodsMayStart != test.want || out.LauncherMayStart && !test.want {
			t.Errorf("%s: pods may start: %t, launcher: %t", name, out.PodsMayStart, out.LauncherMayStart)
		}
	}
}

func TestGangGivesUp(t *testing.T) {
	t.Parallel()
	for want, state := range map[string]jobstate.GangState{
		"Timeout at 09:30:00 UTC: 3 pods could not be scheduled together.":                                 {Attempts: 1},
		"Timeout at 09:30:00 UTC: 3 pods could not be scheduled together, requeued twice before. No room.": {Attempts: 3, Message: "No room"},
	} {
		state.GaveUp, state.Wanted, state.EvictedAt = true, 3, evictedAt
		out := jobstate.Judge(mpitest.Job(2), jobstate.Observed{Now: mpitest.Now, Gang: &state})
		if out.Phase != v1alpha1.PhaseFailed || out.Finish == nil || out.Finish.Reason != codes.GangTimeout || out.Finish.Message != want || !out.Finish.At.Equal(mpitest.Now) {
			t.Errorf("%s %+v, want %s", out.Phase, out.Finish, want)
		}
	}
}

func TestMessagesAboutOtherPodsOfAGang(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]bool{"minCount (3) cannot be satisfied: 1 scheduled": true, "0/2 nodes are available: 2 Insufficient cpu.": false} {
		if jobstate.IsOfGang(message) != want {
			t.Errorf("%q: %t", message, !want)
		}
	}
}

func TestTextsOfQueuedJobs(t *testing.T) {
	t.Parallel()
	queue := func(change func(*jobstate.QueueState)) jobstate.QueueState {
		q := jobstate.QueueState{Name: "team", Object: "w"}
		change(&q)
		return q
	}
	for name, test := range map[string]struct {
		queue  jobstate.QueueState
		reason codes.Code
		want   string
	}{
		"nothing known":      {queue(func(*jobstate.QueueState) {}), codes.Queued, "Waiting in queue team."},
		"a position":         {queue(func(q *jobstate.QueueState) { q.Position = 2 }), codes.Queued, "Waiting in queue team: position 2."},
		"two positions":      {queue(func(q *jobstate.QueueState) { q.Position, q.Total = 2, 7 }), codes.Queued, "Waiting in queue team: position 2, about 7 among all queues that share its quota."},
		"a message":          {queue(func(q *jobstate.QueueState) { q.Message = "no quota" }), codes.Queued, "Waiting in queue team. no quota."},
		"evicted before":     {queue(func(q *jobstate.QueueState) { q.Message, q.Evicted = "no quota", "preempted" }), codes.Queued, "Waiting in queue team. no quota. Evicted after admission: preempted."},
		"stopped by a user":  {queue(func(q *jobstate.QueueState) { q.Never, q.Stopped = true, true }), codes.Suspended, "Suspended: a user deactivated Workload w. To wait in queue team again, run kubectl odh mpijob resume pi."},
		"it can never start": {queue(func(q *jobstate.QueueState) { q.Never, q.Message = true, "too large" }), codes.Queued, "Waiting in queue team. too large."},
		"it never fits":      {queue(func(q *jobstate.QueueState) { q.Message, q.NeverFits = "tried once", "only 2 of 3 pods fit" }), codes.Queued, "Waiting in queue team. tried once. only 2 of 3 pods fit."},
		"admitted, not resumed": {queue(func(q *jobstate.QueueState) { q.Admitted, q.AdmittedAt = true, mpitest.Now.Add(-time.Minute) }), codes.Queued, "Admitted by queue team at " +
			mpitest.Now.Add(-time.Minute).Format(time.TimeOnly) + " UTC, but Kueue has not resumed the job since. A policy may refuse that: for example, a limit of the namespace may have been lowered. Run kubectl odh mpijob doctor, and see the log of Kueue."},
		"admitted a moment ago": {queue(func(q *jobstate.QueueState) { q.Admitted = true }), codes.Queued, "Admitted by queue team. Waiting for Kueue to resume the job."},
	} {
		job := mpitest.Job(1, func(j *mpi.Job) { j.Queue, j.Lifecycle.Suspended = "team", true })
		out := jobstate.Judge(job, jobstate.Observed{Now: mpitest.Now, Queue: &test.queue})
		if out.Reason != test.reason || out.Message != test.want {
			t.Errorf("%s: %s\n got %s\nwant %s", name, out.Reason, out.Message, test.want)
		}
		if needs := test.queue.Never && !test.queue.Stopped || test.queue.NeverFits != ""; out.NeedsAction != needs {
			t.Errorf("%s: needs action: %t", name, out.NeedsAction)
		}
	}
}

func TestSuspendedInQueueBeforeItIsPutOut(t *testing.T) {
	t.Parallel()
	want := "Suspended: a user requested it. To wait in queue team again, run kubectl odh mpijob resume pi."
	for _, queue := range []jobstate.QueueState{{Name: "team"}, {Name: "team", Admitted: true}, {Name: "team", Object: "w", Never: true, Stopped: true}} {
		job := mpitest.Job(1, func(j *mpi.Job) { j.Queue, j.Lifecycle.Suspended, j.SuspendedInQueue = "team", true, true })
		if out := jobstate.Judge(job, jobstate.Observed{Now: mpitest.Now, Queue: &queue}); out.Phase != v1alpha1.PhaseSuspended || out.Message != want || out.NeedsAction {
			t.Errorf("%+v: %s, %q, needs action: %t", queue, out.Phase, out.Message, out.NeedsAction)
		}
	}
}

func TestPodsOfAnObservation(t *testing.T) {
	t.Parallel()
	job := mpitest.Job(2)
	larger := mpitest.Job(3)
	seen := jobstate.Observed{
		LauncherPods: []*corev1.Pod{mpitest.LauncherPod(job, 0, corev1.PodFailed), mpitest.LauncherPod(job, 1, corev1.PodRunning)},
		Workers:      mpitest.Workers(larger, corev1.PodRunning),
	}
	names := func(pods []*corev1.Pod) string {
		var all []string
		for _, pod := range pods {
			all = append(all, pod.Name)
		}
		return strings.Join(all, " ")
	}
	first, second := seen.LauncherPods[0].Name, seen.LauncherPods[1].Name
	if got, want := names(seen.AllPods()), first+" "+second+" pi-worker-0 pi-worker-1 pi-worker-2"; got != want {
		t.Errorf("all are %s, want %s", got, want)
	}
	if got, want := names(seen.CurrentPods(2)), second+" pi-worker-0 pi-worker-1"; got != want {
		t.Errorf("those of now are %s, want %s", got, want)
	}
	if len(seen.LauncherPods) != 2 || names((jobstate.Observed{}).CurrentPods(2)) != "" {
		t.Error("the observation has changed, or one without pods has some")
	}
}
