package report_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

// restarted is a launcher's container that ended and was started again in the same pod.
func restarted(times, code int32, message string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "main", RestartCount: times,
			State:                corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(mpitest.Now)}},
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Error", Message: message}},
		}}
	}
}

// stopped is the same container after the Job controller deleted its pod.
func stopped(times, code int32, message string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		restarted(times, code, message)(pod)
		mpitest.Leaving(pod)
		pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 143, Reason: "Error"}}
	}
}

func said(t *testing.T, summary agentapi.Summary) string {
	t.Helper()
	data, err := json.Marshal(summary)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestAKnownCauseIsKept plays what Kubernetes does to launchers that fail, by restart policy and backoff limit. In each
// case the pod is gone before the job has failed.
func TestAKnownCauseIsKept(t *testing.T) {
	segfault := said(t, agentapi.Summary{
		Role: agentapi.RoleLauncher, Code: agentapi.RankFailed, ExitCode: new(int32(139)),
		Ranks: []agentapi.RankEnd{{Rank: 6, ExitCode: 139, Signal: 11, Program: "train"}},
	})
	lost := said(t, agentapi.Summary{
		Role: agentapi.RoleLauncher, Code: agentapi.ConnectionLost, ExitCode: new(int32(205)),
		Hosts: []agentapi.HostTrouble{{Host: "pi-worker-1", Code: agentapi.ConnectionLost, Message: "connection reset"}},
	})
	type step func(pod *corev1.Pod)
	tests := map[string]struct {
		limit int32
		steps []step
		code  string
		rank  int32
		exit  int32
	}{
		"segmentation fault, restarted in place": {
			limit: 1, steps: []step{restarted(1, 139, segfault), stopped(1, 139, segfault)}, code: codes.SegmentationFault, rank: 6, exit: 139,
		},
		"no more attempts": {
			limit: 0, steps: []step{restarted(1, 139, segfault), stopped(1, 139, segfault)}, code: codes.SegmentationFault, rank: 6, exit: 139,
		},
		"seen only on its way out": {
			limit: 0, steps: []step{stopped(1, 139, segfault)}, code: codes.SegmentationFault, rank: 6, exit: 139,
		},
		"many attempts": {
			limit: 6, steps: []step{restarted(1, 139, segfault), restarted(5, 139, segfault), stopped(6, 139, segfault)}, code: codes.SegmentationFault, rank: 6, exit: 139,
		},
		"the command's own exit code": {
			limit: 1, steps: []step{restarted(1, 7, ""), stopped(1, 7, "")}, code: codes.ApplicationFailed, rank: -1, exit: 7,
		},
		"a lost worker, then any exit code": {
			limit: 6, steps: []step{restarted(1, 205, lost), restarted(2, 1, ""), stopped(6, 1, "")}, code: codes.ConnectionLost, rank: -1,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			h := &history{t: t, job: job(2, func(j *mpi.Job) { j.Lifecycle.BackoffLimit = &test.limit })}
			observe := func(conditions ...batchv1.JobConditionType) jobstate.Observed {
				seen := pods(h.job, corev1.PodRunning, 0)
				seen.Launcher = mpitest.Launcher(h.job, conditions...)
				seen.Launcher.Spec.BackoffLimit = &test.limit
				for i := range seen.Launcher.Status.Conditions {
					seen.Launcher.Status.Conditions[i].Reason = batchv1.JobReasonBackoffLimitExceeded
				}
				return seen
			}
			running := observe()
			restarted(0, 0, "")(running.LauncherPods[0])
			running.LauncherPods[0].Status.ContainerStatuses[0].LastTerminationState = corev1.ContainerState{}
			h.pass(time.Second, running, jobstate.Evidence{})
			for i, change := range test.steps {
				seen := observe()
				change(seen.LauncherPods[0])
				h.pass(time.Duration(i+2)*time.Second, seen, jobstate.Evidence{})
				if got := h.last.Status.Findings; len(got) == 0 || got[0].Code != test.code {
					t.Fatalf("step %d: findings are %+v", i, got)
				}
			}
			gone := func(after time.Duration, conditions ...batchv1.JobConditionType) {
				t.Helper()
				seen := observe(conditions...)
				seen.LauncherPods = nil
				killing := jobstate.Event{Kind: "Pod", Name: "pi-launcher-0", Reason: "Killing", Message: "Stopping container main", Last: mpitest.Now.Add(3 * time.Second), Count: 1}
				// The operator has kept the log of the run that ended badly.
				logs := map[string]jobstate.Log{"pi-launcher-0": {Lines: []string{"the last words"}}}
				h.pass(after, seen, jobstate.Evidence{Events: []jobstate.Event{killing}, Logs: logs})
				if got := h.last.Status.Findings; len(got) == 0 || got[0].Code != test.code {
					t.Errorf("the cause was lost with the pod: %+v", got)
				}
			}
			gone(10*time.Second, batchv1.JobFailureTarget)
			gone(11*time.Second, batchv1.JobFailureTarget, batchv1.JobFailed)
			gone(12*time.Second, batchv1.JobFailureTarget, batchv1.JobFailed)
			got := h.last.Status.Failure
			if got == nil || got.Code != test.code || got.Pod == "" || test.exit != 0 && (got.ExitCode == nil || *got.ExitCode != test.exit) {
				t.Errorf("the failure is %+v", got)
			}
			if len(got.LogTail) != 1 {
				t.Errorf("the log is %q", got.LogTail)
			}
			if test.rank >= 0 && (got.Rank == nil || *got.Rank != test.rank) {
				t.Errorf("the rank is lost: %+v", got)
			}
			if wrong := slices.IndexFunc(h.last.Status.Timeline, func(e v1alpha1.TimelineEntry) bool {
				return e.Event == codes.LauncherDeleted || e.Event == codes.Unknown
			}); wrong >= 0 {
				t.Errorf("the timeline has %+v", h.last.Status.Timeline[wrong])
			}
		})
	}
}

// TestACauseIsOverWhenTheNextAttemptRuns: what an earlier attempt failed of is not what is wrong now.
func TestACauseIsOverWhenTheNextAttemptRuns(t *testing.T) {
	h := &history{t: t, job: job(2)}
	failed := pods(h.job, corev1.PodRunning, 0)
	mpitest.Exited(1, "Error")(failed.LauncherPods[0])
	h.pass(time.Second, pods(h.job, corev1.PodRunning, 0), jobstate.Evidence{})
	h.pass(2*time.Second, failed, jobstate.Evidence{})
	next := pods(h.job, corev1.PodRunning, 0)
	next.LauncherPods = []*corev1.Pod{mpitest.LauncherPod(h.job, 1, corev1.PodRunning)}
	next.LauncherPods[0].Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(mpitest.Now)}}}}
	h.pass(3*time.Second, next, jobstate.Evidence{})
	if got := h.last.Status.Findings; len(got) != 0 {
		t.Errorf("findings are %+v", got)
	}
}

// TestTheErrorLineIsKept: the run that the Job controller stops at once has a log of its own, without the program's error.
func TestTheErrorLineIsKept(t *testing.T) {
	limit := int32(1)
	h := &history{t: t, job: job(2, func(j *mpi.Job) { j.Lifecycle.BackoffLimit = &limit })}
	h.pass(time.Second, pods(h.job, corev1.PodRunning, 0), jobstate.Evidence{})
	log := func(line string) jobstate.Evidence {
		return jobstate.Evidence{Logs: map[string]jobstate.Log{"pi-launcher-0": {Lines: []string{line}}}}
	}
	seen := pods(h.job, corev1.PodRunning, 0)
	restarted(1, 1, "")(seen.LauncherPods[0])
	h.pass(2*time.Second, seen, log("ValueError: shard 2 has no rows"))
	seen = pods(h.job, corev1.PodRunning, 0)
	stopped(1, 1, "")(seen.LauncherPods[0])
	h.pass(3*time.Second, seen, log("This is usually caused by a firewall on the remote host."))
	if got := h.last.Status.Findings[0].Summary; !strings.Contains(got, "ValueError: shard 2 has no rows") {
		t.Errorf("the summary is %q", got)
	}
}

// TestAttemptsStandOnTheTimeline: each with the cause of the one before.
func TestAttemptsStandOnTheTimeline(t *testing.T) {
	h := &history{t: t, job: job(2)}
	h.pass(time.Second, pods(h.job, corev1.PodRunning, 0), jobstate.Evidence{})
	for i := range 3 {
		seen := pods(h.job, corev1.PodRunning, 0)
		restarted(int32(i+1), int32(139-2*i), "")(seen.LauncherPods[0])
		h.pass(time.Duration(i+2)*time.Second, seen, jobstate.Evidence{})
		h.pass(time.Duration(i+2)*time.Second, seen, jobstate.Evidence{})
	}
	var got []string
	for _, e := range h.last.Status.Timeline {
		if e.Event == codes.LauncherRestarted {
			got = append(got, e.Detail)
		}
	}
	want := []string{
		"Attempt 2 of 6. The previous one ended: SegmentationFault, exit code 139.",
		"Attempt 3 of 6. The previous one ended: Killed, exit code 137.",
		"Attempt 4 of 6. The previous one ended: BusError, exit code 135.",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestCauseOfAnEarlierAttempt: what ended an earlier attempt, even if it explains more, is not the cause of a later one that ended
// with an exit code of its own. It is the cause of one that ended as follows from it.
func TestCauseOfAnEarlierAttempt(t *testing.T) {
	evict := func(pod *corev1.Pod) {
		pod.Status.Reason, pod.Status.Message = "Evicted", "The node was low on resource: ephemeral-storage."
	}
	launcherEvicted := func(seen *jobstate.Observed) {
		evict(seen.LauncherPods[0])
		seen.LauncherPods[0].Status.Phase = corev1.PodFailed
	}
	workerEvicted := func(seen *jobstate.Observed) {
		evict(seen.Workers[1].Pod)
		mpitest.Leaving(seen.Workers[1].Pod)
	}
	launcherOutOfMemory := func(seen *jobstate.Observed) {
		seen.LauncherPods[0].Status.Phase = corev1.PodFailed
		mpitest.Exited(137, "OOMKilled")(seen.LauncherPods[0])
	}
	programMissing := func(seen *jobstate.Observed) {
		seen.LauncherPods[0].Status.Phase = corev1.PodFailed
		mpitest.Exited(127, "Error")(seen.LauncherPods[0])
	}
	for name, test := range map[string]struct {
		first func(*jobstate.Observed)
		log   string
		code  int32
		want  codes.Code
	}{
		"launcher evicted":            {launcherEvicted, "Traceback: no such column", 7, codes.ApplicationFailed},
		"worker evicted":              {workerEvicted, "Traceback: no such column", 7, codes.ApplicationFailed},
		"launcher out of memory":      {launcherOutOfMemory, "Traceback: no such column", 7, codes.ApplicationFailed},
		"program misspelled twice":    {programMissing, "", 127, codes.ProgramMissing},
		"worker evicted and not back": {workerEvicted, "ORTE was unable to reliably start one or more daemons.", 1, codes.Evicted},
	} {
		t.Run(name, func(t *testing.T) {
			h := &history{t: t, job: job(2)}
			h.pass(0, pods(h.job, corev1.PodRunning, 0), jobstate.Evidence{})
			first := pods(h.job, corev1.PodRunning, 0)
			test.first(&first)
			h.pass(time.Minute, first, jobstate.Evidence{})
			again := mpitest.LauncherPod(h.job, 1, corev1.PodRunning)
			seen := pods(h.job, corev1.PodRunning, 0)
			seen.LauncherPods = []*corev1.Pod{first.LauncherPods[0], again}
			h.pass(70*time.Second, seen, jobstate.Evidence{})
			again.Status.Phase = corev1.PodFailed
			mpitest.Exited(test.code, "Error")(again)
			h.pass(2*time.Minute, ended(seen, h.job, batchv1.JobFailed, 2*time.Minute), jobstate.Evidence{Logs: map[string]jobstate.Log{again.Name: {Lines: []string{test.log}}}})
			if got := h.last.Status.Findings[0]; got.Code != test.want || got.Severity != v1alpha1.SeverityError {
				t.Errorf("the cause is %s: %s", got.Code, got.Summary)
			}
			if got := h.last.Status.Failure; got == nil || got.Code != test.want {
				t.Errorf("the failure is %+v", got)
			}
		})
	}
}

// TestAttemptWhosePodsAreGone: JobSet replaces all pods of a TrainJob. The timeline has why the attempt ended.
func TestAttemptWhosePodsAreGone(t *testing.T) {
	h := &history{t: t, job: job(2, func(j *mpi.Job) { j.External, j.Lifecycle.MaxRestarts = true, 1 })}
	seen := pods(h.job, corev1.PodRunning, 0)
	h.pass(time.Second, seen, jobstate.Evidence{})
	seen.LauncherPods = []*corev1.Pod{mpitest.LauncherPod(h.job, 0, corev1.PodFailed, mpitest.Exited(3, "Error"))}
	h.pass(2*time.Second, seen, jobstate.Evidence{})
	h.pass(3*time.Second, jobstate.Observed{}, jobstate.Evidence{})
	seen = pods(h.job, corev1.PodRunning, 0)
	seen.Restarts = 1
	h.pass(4*time.Second, seen, jobstate.Evidence{})
	if !slices.ContainsFunc(h.last.Status.Timeline, func(e v1alpha1.TimelineEntry) bool {
		return e.Event == codes.LauncherRestarted && strings.HasSuffix(e.Detail, ". The previous one ended: ApplicationFailed.")
	}) {
		t.Errorf("the timeline is %v", h.last.Status.Timeline)
	}
}

// TestStepsOfEachAttempt: what the pods of an attempt do stands behind its beginning. JobSet replaces all pods of a TrainJob, which start
// anew; a batch Job only replaces the launcher of an MPIJob.
func TestStepsOfEachAttempt(t *testing.T) {
	const second = time.Second
	summary := said(t, agentapi.Summary{Role: agentapi.RoleLauncher, Code: agentapi.RankFailed, ExitCode: new(int32(3)), ConnectSeconds: 1.25, InitSeconds: 0.5})
	for name, test := range map[string]struct {
		trainJob bool
		want     string
	}{
		"TrainJob": {trainJob: true, want: "00:00 Created, 00:00 PodsStarting, 00:01 LauncherStarted, 00:02 ApplicationFailed, " +
			"00:05 LauncherRestarted, 00:05 PodsStarting, 00:07 PodsPlaced, 00:09 WorkersReady, 00:09 LauncherStarted, 00:09 Running, 00:12 WorkersFound"},
		"MPIJob": {want: "00:00 Created, 00:00 PodsStarting, 00:01 LauncherStarted, 00:02 ApplicationFailed, " +
			"00:07 PodsPlaced, 00:09 WorkersReady, 00:09 LauncherRestarted, 00:09 Running, 00:12 WorkersFound"},
	} {
		t.Run(name, func(t *testing.T) {
			h := &history{t: t, job: job(2, func(j *mpi.Job) { j.External, j.Lifecycle.MaxRestarts = test.trainJob, 1 })}
			failed := pods(h.job, corev1.PodRunning, 0, since(second))
			for _, worker := range failed.Workers {
				worker.Pod.Status = corev1.PodStatus{Phase: corev1.PodPending}
				worker.Pod.Spec.NodeName = ""
			}
			h.pass(second, failed, jobstate.Evidence{})
			failed.LauncherPods[0] = mpitest.LauncherPod(h.job, 0, corev1.PodFailed, mpitest.Exited(3, "Error"))
			failed.LauncherPods[0].Spec.NodeName, failed.LauncherPods[0].Status.ContainerStatuses[0].State.Terminated.Message = "node-0", summary
			h.pass(2*second, failed, jobstate.Evidence{})

			again := pods(h.job, corev1.PodRunning, 5*second, since(9*second))
			if test.trainJob {
				h.pass(3*second, jobstate.Observed{}, jobstate.Evidence{})
				again.Restarts = 1
			} else {
				again.LauncherPods = []*corev1.Pod{failed.LauncherPods[0], mpitest.LauncherPod(h.job, 1, corev1.PodRunning, since(9*second))}
				again.LauncherPods[1].Spec.NodeName = "node-0"
			}
			h.pass(9*second, again, jobstate.Evidence{})
			for _, launch := range []agentapi.Launch{
				{ConnectedAt: mpitest.Now.Add(second).UnixMilli(), ConnectSeconds: 1.25},
				{ConnectedAt: mpitest.Now.Add(12 * second).UnixMilli(), ConnectSeconds: 2},
			} {
				if !test.trainJob && launch.ConnectSeconds < 2 {
					continue
				}
				h.pass(13*second, again, jobstate.Evidence{Usage: &agentapi.Usage{Launch: &launch}})
			}
			if got := strings.Join(h.events(), ", "); got != test.want {
				t.Errorf("the timeline is\n%s\nand not\n%s", got, test.want)
			}
			if h.last.Status.Startup == nil {
				t.Fatal("nothing is known of its start")
			}
			if slices.ContainsFunc(h.last.Status.Startup.Steps, func(step v1alpha1.StartupStep) bool { return step.Name == v1alpha1.StepConnected }) {
				t.Errorf("the start of the second attempt has the times of the first: %+v", h.last.Status.Startup)
			}
		})
	}
}

// TestLinesOfALogThatIsGone: a leader that ended had read the log of a launcher whose pod is gone. Its lines are those of the
// findings.
func TestLinesOfALogThatIsGone(t *testing.T) {
	h := &history{t: t, job: job(2, func(j *mpi.Job) { j.Lifecycle.BackoffLimit = new(int32(0)) })}
	seen := pods(h.job, corev1.PodRunning, 0)
	h.pass(time.Second, seen, jobstate.Evidence{})
	restarted(1, 1, "")(seen.LauncherPods[0])
	h.pass(2*time.Second, seen, jobstate.Evidence{Logs: map[string]jobstate.Log{"pi-launcher-0": {Lines: []string{"[1,5]<stderr>:KeyError: 'lr'"}}}})
	seen = pods(h.job, corev1.PodRunning, 0)
	seen.Launcher, seen.LauncherPods = mpitest.Launcher(h.job, batchv1.JobFailed), nil
	h.pass(3*time.Second, seen, jobstate.Evidence{})
	failure := h.last.Status.Failure
	if failure == nil || len(failure.LogTail) == 0 || failure.LogTail[0] != "[pi-launcher-0] KeyError: 'lr'" {
		t.Errorf("the failure is %+v", failure)
	}
}

// TestLogOfAGuessedCause: exit code 127 alone means that a program is missing. A log that is read later, before the job's end
// or after it, tells which, or that a script has Windows line ends.
func TestLogOfAGuessedCause(t *testing.T) {
	for name, ended := range map[string]bool{"before the end": false, "after the end": true} {
		t.Run(name, func(t *testing.T) {
			h := &history{t: t, job: job(2, func(j *mpi.Job) { j.Lifecycle.BackoffLimit = new(int32(0)) })}
			seen := pods(h.job, corev1.PodRunning, 0)
			h.pass(time.Second, seen, jobstate.Evidence{})
			restarted(1, 127, "")(seen.LauncherPods[0])
			h.pass(2*time.Second, seen, jobstate.Evidence{})
			if got := h.last.Status.Findings[0].Code; got != codes.ProgramMissing {
				t.Fatalf("without a log, it is %s", got)
			}
			if ended {
				seen = pods(h.job, corev1.PodRunning, 0)
				seen.Launcher = mpitest.Launcher(h.job, batchv1.JobFailed)
				restarted(1, 127, "")(seen.LauncherPods[0])
				h.pass(3*time.Second, seen, jobstate.Evidence{})
			}
			h.pass(4*time.Second, seen, jobstate.Evidence{Logs: map[string]jobstate.Log{"pi-launcher-0": {Lines: []string{"/usr/bin/env: ‘sh\\r’: No such file or directory"}}}})
			if got := h.last.Status.Findings[0]; got.Code != codes.WindowsLineEnds || got.Severity == v1alpha1.SeverityInfo {
				t.Errorf("with the log, it is %s %s: %s", got.Severity, got.Code, got.Summary)
			}
			h.pass(5*time.Second, seen, jobstate.Evidence{})
			if got := h.last.Status.Findings[0].Code; got != codes.WindowsLineEnds {
				t.Errorf("later it is %s", got)
			}
		})
	}
}

// TestWhatKeptAJobFromStartingStaysTheCause: the deadline, or the end of its pods, follows from it.
func TestWhatKeptAJobFromStartingStaysTheCause(t *testing.T) {
	for name, test := range map[string]struct {
		waiting func(*corev1.Pod)
		// between is what is seen before the job has failed; nil for nothing.
		between func(*jobstate.Observed)
		reason  string
		want    string
	}{
		"no node, then the deadline": {noNode, nil, batchv1.JobReasonDeadlineExceeded, codes.NoMatchingNode},
		"no node, then the deadline ends the launcher": {noNode, func(seen *jobstate.Observed) {
			seen.Launcher.Status.StartTime = &metav1.Time{Time: mpitest.Now}
			mpitest.Leaving(seen.LauncherPods[0])
		}, batchv1.JobReasonDeadlineExceeded, codes.NoMatchingNode},
		"no image, then the deadline": {mpitest.Waiting("ErrImagePull", "not found"), nil, batchv1.JobReasonDeadlineExceeded, codes.ImagePullFailed},
		"nothing, then the deadline":  {func(*corev1.Pod) {}, nil, batchv1.JobReasonDeadlineExceeded, codes.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			h := &history{t: t, job: job(2, func(j *mpi.Job) { j.Lifecycle.Deadline = new(int64(20)) })}
			waits := func() jobstate.Observed {
				seen := pods(h.job, corev1.PodPending, 0, test.waiting)
				seen.LauncherPods[0] = mpitest.LauncherPod(h.job, 0, corev1.PodRunning)
				seen.Launcher = mpitest.Launcher(h.job)
				return seen
			}
			h.pass(time.Second, waits(), jobstate.Evidence{})
			if test.between != nil {
				seen := waits()
				test.between(&seen)
				h.pass(21*time.Second, seen, jobstate.Evidence{})
			}
			over := jobstate.Observed{Launcher: mpitest.Launcher(h.job, batchv1.JobFailed)}
			over.Launcher.Status.Conditions[0].Reason = test.reason
			last := h.pass(22*time.Second, over, jobstate.Evidence{}).Status
			if len(last.Findings) == 0 || last.Findings[0].Code != test.want || last.Failure == nil || last.Failure.Code != test.want || last.Findings[0].Severity != v1alpha1.SeverityError {
				t.Errorf("want %s: %+v, %+v", test.want, last.Findings, last.Failure)
			}
			if test.want != codes.DeadlineExceeded && (len(last.Findings) < 2 || last.Findings[1].Code != codes.DeadlineExceeded || last.Findings[1].Severity != v1alpha1.SeverityInfo) {
				t.Errorf("the deadline is not the second finding: %+v", last.Findings)
			}
		})
	}
}

// TestDeadlineOfAStuckJob: the deadline of a job whose ranks waited for each other is reported with that, although its pods are gone.
func TestDeadlineOfAStuckJob(t *testing.T) {
	for name, test := range map[string]struct {
		lines []string
		want  string
	}{
		"stuck": {
			[]string{"step 41", agentapi.StallPrefix + "all 3 ranks wait, since 10:00:00 UTC; polling: 0, 1, 2"},
			"The job exceeded its deadline of 20 seconds and was stopped. At 10:00:19 UTC: All 3 ranks wait since 10:00:00 UTC: none computes or transfers data (polling: 0, 1, 2). The job is probably stuck.",
		},
		"busy": {[]string{"step 41"}, "The job exceeded its deadline of 20 seconds and was stopped."},
	} {
		t.Run(name, func(t *testing.T) {
			h := &history{t: t, job: job(2, func(j *mpi.Job) { j.Lifecycle.Deadline = new(int64(20)) })}
			seen := pods(h.job, corev1.PodRunning, 0)
			h.pass(time.Second, seen, jobstate.Evidence{})
			h.pass(19*time.Second, seen, jobstate.Evidence{Logs: map[string]jobstate.Log{"pi-launcher-0": {Lines: test.lines}}})
			mpitest.Leaving(seen.LauncherPods[0])
			h.pass(20*time.Second, seen, jobstate.Evidence{})
			over := jobstate.Observed{Launcher: mpitest.Launcher(h.job, batchv1.JobFailed)}
			over.Launcher.Status.Conditions[0].Reason = batchv1.JobReasonDeadlineExceeded
			for range 2 {
				got := h.pass(22*time.Second, over, jobstate.Evidence{}).Status.Findings
				if len(got) == 0 || got[0].Code != codes.DeadlineExceeded || got[0].Summary != test.want {
					t.Fatalf("found %+v", got)
				}
				if first := got[0].Remedies[0].Text; strings.Contains(first, "matching send") != (name == "stuck") {
					t.Errorf("the first remedy is %q", first)
				}
			}
		})
	}
}

func noNode(pod *corev1.Pod) {
	pod.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector.",
	}}
}
