package report_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/kueue"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/report"
)

// TestWaitInAQueue: a job that waits says since when, and how long others did; once it is let in, its record tells how
// long it waited.
func TestWaitInAQueue(t *testing.T) {
	waiting := jobstate.QueueState{Backend: kueue.Kueue, Name: "team", Position: 2, Total: 5, Message: "2 more needed for pods"}
	h := &history{t: t, job: job(3, func(j *mpi.Job) { j.Queue, j.Lifecycle.Suspended = "team", true })}
	few := jobstate.Wait{Samples: 3, FewestPods: 2, MostPods: 8}
	h.pass(0, jobstate.Observed{Queue: &waiting}, jobstate.Evidence{Wait: few})
	first := h.pass(10*time.Second, jobstate.Observed{Queue: &waiting}, jobstate.Evidence{Wait: few})
	mpitest.Golden(t, "queued-few-known", first.Status.Scheduling)
	later := h.pass(50*time.Second, jobstate.Observed{Queue: &waiting}, jobstate.Evidence{Wait: few})
	if report.Changed(first, *later) {
		t.Errorf("that time goes by is news:\n%+v\n%+v", first.Status.Scheduling, later.Status.Scheduling)
	}
	many := jobstate.Wait{Known: true, Samples: 23, FewestPods: 2, MostPods: 8, P50: 4 * time.Minute, P90: 12*time.Minute + 29*time.Second}
	known := h.pass(60*time.Second, jobstate.Observed{Queue: &waiting}, jobstate.Evidence{Wait: many})
	mpitest.Golden(t, "queued", known.Status.Scheduling)
	never := waiting
	never.Never, never.Message = true, strings.Repeat("é", 2000)
	if got := h.pass(61*time.Second, jobstate.Observed{Queue: &never}, jobstate.Evidence{Wait: many}).Status.Scheduling; got.WaitP50 != nil ||
		len(got.Message) > 1000 || !strings.Contains(got.Message, "Waiting since") {
		t.Errorf("one that never fits waits like this: %+v", got)
	}

	h.job.Lifecycle.Suspended = false
	in := jobstate.QueueState{Backend: kueue.Kueue, Name: "team", Admitted: true}
	admitted := pods(h.job, corev1.PodRunning, 90*time.Second)
	admitted.Queue = &in
	running := h.pass(100*time.Second, admitted, jobstate.Evidence{})
	mpitest.Golden(t, "let-in", running.Status.Waited)

	h.job.Lifecycle.Suspended = true
	h.pass(200*time.Second, jobstate.Observed{Queue: &waiting}, jobstate.Evidence{})
	h.job.Lifecycle.Suspended = false
	again := h.pass(500*time.Second, admitted, jobstate.Evidence{})
	if *again.Status.Waited != *running.Status.Waited {
		t.Errorf("after it was put out and let in again it has waited %+v, first %+v", again.Status.Waited, running.Status.Waited)
	}
}

// TestLetInAtOnce: a job that waits for nobody counts among those that others are compared with.
func TestLetInAtOnce(t *testing.T) {
	h := &history{t: t, job: job(2, func(j *mpi.Job) { j.Queue = "team" })}
	seen := pods(h.job, corev1.PodRunning, 0)
	seen.Queue = &jobstate.QueueState{Backend: kueue.Kueue, Name: "team", Admitted: true}
	if waited := h.pass(time.Second, seen, jobstate.Evidence{}).Status.Waited; waited == nil || waited.Seconds != 0 || waited.Pods != 3 {
		t.Errorf("it has waited %+v", waited)
	}
	none := &history{t: t, job: job(2)}
	if waited := none.pass(time.Second, pods(none.job, corev1.PodRunning, 0), jobstate.Evidence{}).Status.Waited; waited != nil {
		t.Errorf("without a queue it has waited %+v", waited)
	}
}
