package report_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpitest"
)

// TestGoneRankIsNoCauseOfTheEnd: that ranks go on after one failed is over once the job has failed.
func TestGoneRankIsNoCauseOfTheEnd(t *testing.T) {
	h := &history{t: t, job: job(2)}
	seen := pods(h.job, corev1.PodRunning, 0)
	h.pass(0, seen, jobstate.Evidence{})
	lines := []string{"step 41", agentapi.StallPrefix + "Rank 1 (ranks) ended with code 118, but 2 other ranks still run, since 17:05:34 UTC"}
	logs := func() jobstate.Evidence {
		return jobstate.Evidence{Logs: map[string]jobstate.Log{seen.LauncherPods[0].Name: {LastAt: mpitest.Now, Lines: lines}}}
	}
	h.pass(time.Minute, seen, logs())
	if got := h.last.Status.Findings; len(got) == 0 || got[0].Code != codes.RankGone {
		t.Fatalf("findings are %+v", got)
	}
	seen.LauncherPods[0].Status.Phase = corev1.PodFailed
	mpitest.Exited(118, "Error")(seen.LauncherPods[0])
	for _, evidence := range []jobstate.Evidence{{}, logs()} {
		h.pass(2*time.Minute, ended(seen, h.job, batchv1.JobFailed, 2*time.Minute), evidence)
		if got := h.last.Status.Findings[0]; got.Code != codes.ApplicationFailed || got.ExitCode == nil || *got.ExitCode != 118 {
			t.Errorf("the cause is %s: %s", got.Code, got.Summary)
		}
	}
}
