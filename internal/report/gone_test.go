package report_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
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

// TestGoneRankOutlivesTheLauncherThatAUserDeletes: who deletes a launcher whose ranks wait still learns why they waited, in the next attempt
// and when the job has failed.
func TestGoneRankOutlivesTheLauncherThatAUserDeletes(t *testing.T) {
	lines := []string{
		"Traceback (most recent call last):", `  File "/app/train.py", line 8, in <module>`, `    root = os.environ["DATA_ROOT"]`, "KeyError: 'DATA_ROOT'",
		agentapi.StallPrefix + "all 2 ranks wait, since 02:57:18 UTC; sleeping: 1; polling: 0",
		agentapi.StackPrefix + "rank 1: its program has ended",
		agentapi.StackPrefix + "rank 0: <module> (/app/train.py:13) | loss = comm.allreduce(1.0 / (epoch + 1)) / size",
	}
	begin := func() (*history, jobstate.Observed) {
		h := &history{t: t, job: job(2)}
		seen := pods(h.job, corev1.PodRunning, 0)
		h.pass(0, seen, jobstate.Evidence{})
		h.pass(time.Minute, seen, jobstate.Evidence{Logs: map[string]jobstate.Log{seen.LauncherPods[0].Name: {LastAt: mpitest.Now, Lines: lines}}})
		if got := h.last.Status.Findings[0]; !slices.Contains(remedyTexts(got), codes.EndWaiting.Text) {
			t.Fatalf("the cause is %s with the remedies %q", got.Code, remedyTexts(got))
		}
		return h, seen
	}
	check := func(h *history, when string) {
		t.Helper()
		got := h.last.Status.Findings
		if len(got) < 2 || got[0].Code != codes.RankGone || !strings.Contains(got[0].Summary, "KeyError: 'DATA_ROOT'") || got[1].Code != codes.LauncherDeleted {
			t.Fatalf("%s: the findings are %+v", when, got)
		}
		if slices.Contains(remedyTexts(got[0]), codes.EndWaiting.Text) {
			t.Errorf("%s: the remedies are %q", when, remedyTexts(got[0]))
		}
		if n := len(slices.DeleteFunc(slices.Clone(got[0].Evidence), func(e string) bool { return !strings.HasPrefix(e, "Last seen in an earlier attempt") })); n != 1 {
			t.Errorf("%s: the evidence is %q", when, got[0].Evidence)
		}
	}

	h, seen := begin()
	seen.LauncherPods[0].DeletionTimestamp = &metav1.Time{Time: mpitest.Now.Add(2 * time.Minute)}
	h.pass(2*time.Minute, seen, jobstate.Evidence{})
	check(h, "its pod goes")
	next := pods(h.job, corev1.PodRunning, 0)
	next.LauncherPods[0] = mpitest.LauncherPod(h.job, 1, corev1.PodRunning)
	h.pass(3*time.Minute, next, jobstate.Evidence{})
	check(h, "the next attempt runs")
	h.pass(4*time.Minute, next, jobstate.Evidence{Logs: map[string]jobstate.Log{next.LauncherPods[0].Name: {LastAt: mpitest.Now, Lines: lines}}})
	if got := h.last.Status.Findings[0]; got.Code != codes.RankGone || strings.HasPrefix(got.Evidence[0], "Last seen") || !slices.Contains(remedyTexts(got), codes.EndWaiting.Text) {
		t.Errorf("the next attempt waits as well: %+v", got)
	}
	h.pass(30*time.Minute, next, jobstate.Evidence{})
	if got := h.last.Status.Findings; len(got) != 0 {
		t.Errorf("the ranks continue: %+v", got)
	}

	h, seen = begin()
	seen.LauncherPods[0].DeletionTimestamp = &metav1.Time{Time: mpitest.Now.Add(2 * time.Minute)}
	seen.LauncherPods[0].Status.Phase = corev1.PodFailed
	mpitest.Exited(143, "Error")(seen.LauncherPods[0])
	seen.LauncherPods[0].Status.ContainerStatuses[0].State.Terminated.FinishedAt = metav1.NewTime(mpitest.Now.Add(2*time.Minute + time.Second))
	h.pass(2*time.Minute, seen, jobstate.Evidence{})
	over := ended(seen, h.job, batchv1.JobFailed, 2*time.Minute)
	h.pass(2*time.Minute+time.Second, over, jobstate.Evidence{})
	check(h, "the job has failed")
	over.LauncherPods = nil
	h.pass(3*time.Minute, over, jobstate.Evidence{})
	check(h, "the job has failed, and its launcher is gone")
	if got := h.last.Status.Failure; got == nil || got.Code != codes.RankGone {
		t.Errorf("the failure is %+v", got)
	}
}

func remedyTexts(f v1alpha1.Finding) (texts []string) {
	for _, r := range f.Remedies {
		texts = append(texts, r.Text)
	}
	return texts
}

// TestLauncherThatTheJobControllerDeleted: the pod is deleted when the Job gives up, before the job has failed. The record has it, as its log.
func TestLauncherThatTheJobControllerDeleted(t *testing.T) {
	h := &history{t: t, job: job(2)}
	seen := pods(h.job, corev1.PodRunning, 0)
	h.pass(0, seen, jobstate.Evidence{})
	launcher := seen.LauncherPods[0].DeepCopy()
	launcher.Status.Phase = corev1.PodFailed
	mpitest.Exited(1, "Error")(launcher)
	seen.LauncherPods = nil
	h.pass(time.Minute, seen, jobstate.Evidence{})
	h.pass(2*time.Minute, ended(seen, h.job, batchv1.JobFailed, 2*time.Minute), jobstate.Evidence{Gone: []*corev1.Pod{launcher}})
	if got := h.last.Status.Pods[0]; got.Name != launcher.Name || got.Phase != "Failed" || got.ExitCode == nil || *got.ExitCode != 1 {
		t.Errorf("the first pod is %+v", got)
	}
}
