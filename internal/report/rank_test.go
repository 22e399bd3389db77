package report_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpitest"
)

// TestAFailedRanksPodIsKnownWhenItIsGone: Trainer removes workers before their job counts as failed.
func TestAFailedRanksPodIsKnownWhenItIsGone(t *testing.T) {
	h := &history{t: t, job: job(3)}
	running := pods(h.job, corev1.PodRunning, 0)
	h.pass(time.Minute, running, jobstate.Evidence{})
	seen := ended(running, h.job, batchv1.JobFailed, 2*time.Minute)
	seen.Workers = nil
	mpitest.Exited(1, "Error")(seen.LauncherPods[0])
	evidence := jobstate.Evidence{Logs: map[string]jobstate.Log{seen.LauncherPods[0].Name: {Lines: []string{
		"AssertionError: no data", "  Process name: [[57546,1],6]", "  Exit code:    1",
	}}}}
	failure := h.pass(2*time.Minute, seen, evidence).Status.Failure
	if failure == nil || failure.Rank == nil || *failure.Rank != 6 || failure.Pod != "pi-worker-1" {
		t.Errorf("it began at %+v, want rank 6 on pi-worker-1", failure)
	}
}
