package report_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/curves"
	"opendatahub.io/mpijob/internal/diagnose"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/report"
)

// history is a job that is reported on pass by pass. What a pass knows of earlier ones is what the API gives back.
type history struct {
	t    *testing.T
	job  mpi.Job
	last *v1alpha1.JobReport
}

func (h *history) pass(after time.Duration, seen jobstate.Observed, evidence jobstate.Evidence) *v1alpha1.JobReport {
	h.t.Helper()
	seen.Now = mpitest.Now.Add(after)
	outcome := jobstate.Judge(h.job, seen)
	next := report.Make(h.job, seen, evidence, outcome, diagnose.Job(h.job, seen, evidence, outcome), h.last)
	data, err := json.Marshal(next)
	if err != nil {
		h.t.Fatal(err)
	}
	if len(data) > report.MaxSize {
		h.t.Errorf("the report has %d bytes", len(data))
	}
	h.last = &v1alpha1.JobReport{}
	if err := json.Unmarshal(data, h.last); err != nil {
		h.t.Fatal(err)
	}
	return h.last
}

func (h *history) events() []string {
	var events []string
	for _, entry := range h.last.Status.Timeline {
		events = append(events, fmt.Sprintf("%s %s", entry.Time.UTC().Format("04:05"), entry.Event))
	}
	return events
}

func job(workers int32, change ...func(*mpi.Job)) mpi.Job {
	return mpitest.Job(workers, append([]func(*mpi.Job){func(j *mpi.Job) {
		j.UID, j.SlotsPerWorker = "0123456789abcdef", 4
		j.Workers.Template.Spec.Containers[0].Resources.Limits = corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("4Gi"), "nvidia.com/gpu": resource.MustParse("1"),
		}
		j.Launcher.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")}
	}}, change...)...)
}

// pods are those of a job in a phase, all on nodes since a time after the start of the test.
func pods(job mpi.Job, phase corev1.PodPhase, since time.Duration, change ...func(*corev1.Pod)) jobstate.Observed {
	started := metav1.NewTime(mpitest.Now.Add(since))
	seen := jobstate.Observed{Launcher: mpitest.Launcher(job), LauncherPods: []*corev1.Pod{mpitest.LauncherPod(job, 0, phase)}, Workers: mpitest.Workers(job, phase)}
	for i, pod := range append([]*corev1.Pod{seen.LauncherPods[0]}, podsOf(seen.Workers)...) {
		pod.CreationTimestamp, pod.Status.StartTime, pod.Spec.NodeName = started, &started, fmt.Sprintf("node-%d", i%2)
		for _, c := range change {
			c(pod)
		}
	}
	return seen
}

func podsOf(workers []jobstate.Worker) []*corev1.Pod {
	var list []*corev1.Pod
	for _, w := range workers {
		list = append(list, w.Pod)
	}
	return list
}

func ended(seen jobstate.Observed, job mpi.Job, how batchv1.JobConditionType, after time.Duration) jobstate.Observed {
	seen.Launcher = mpitest.Launcher(job, how)
	seen.Launcher.Status.Conditions[0].LastTransitionTime = metav1.NewTime(mpitest.Now.Add(after))
	return seen
}

func TestLifeOfAJob(t *testing.T) {
	h := &history{t: t, job: job(2)}
	h.pass(0, jobstate.Observed{}, jobstate.Evidence{})
	h.pass(time.Second, pods(h.job, corev1.PodPending, time.Second), jobstate.Evidence{})
	h.pass(10*time.Second, pods(h.job, corev1.PodRunning, time.Second), jobstate.Evidence{})
	h.pass(60*time.Second, pods(h.job, corev1.PodRunning, time.Second), jobstate.Evidence{Training: v1alpha1.Training{Epoch: "3", Loss: "0.5"}})
	h.pass(120*time.Second, ended(pods(h.job, corev1.PodRunning, time.Second), h.job, batchv1.JobComplete, 110*time.Second), jobstate.Evidence{})
	mpitest.Golden(t, "succeeded", h.last)

	whole := h.last.DeepCopy()
	h.pass(time.Hour, ended(jobstate.Observed{}, h.job, batchv1.JobComplete, 110*time.Second), jobstate.Evidence{})
	if got := h.last.Status.Pods; len(got) != 3 || got[2].Phase != "Gone" || got[2].Node != "node-0" {
		t.Errorf("pods that were removed do not stay in the record: %+v", got)
	}
	if diff := cmp.Diff(whole.Status.Timeline, h.last.Status.Timeline); diff != "" {
		t.Errorf("the timeline of a finished job changed:\n%s", diff)
	}
}

func TestFailureOutlivesPods(t *testing.T) {
	h := &history{t: t, job: job(2)}
	h.pass(0, pods(h.job, corev1.PodRunning, 0), jobstate.Evidence{})
	seen := ended(pods(h.job, corev1.PodRunning, 0), h.job, batchv1.JobFailed, time.Minute)
	seen.LauncherPods[0].Status.Phase = corev1.PodFailed
	mpitest.Exited(1, "Error")(seen.LauncherPods[0])
	evidence := jobstate.Evidence{Logs: map[string]jobstate.Log{seen.LauncherPods[0].Name: {Lines: []string{"epoch=1", "", "ValueError: bad"}}}}
	h.pass(time.Minute, seen, evidence)
	mpitest.Golden(t, "failed", h.last)
	if !report.Settled(h.last, mpitest.Now.Add(time.Minute)) {
		t.Error("a failure with its cause and log is not settled")
	}

	before := h.last.DeepCopy()
	h.pass(time.Hour, ended(jobstate.Observed{}, h.job, batchv1.JobFailed, time.Minute), jobstate.Evidence{})
	// Only the log in the report is left.
	before.Status.Findings[0].Remedies[0].Action = "kubectl odh mpijob logs mpijob/pi -n ns"
	if diff := cmp.Diff(before.Status.Findings, h.last.Status.Findings); diff != "" {
		t.Errorf("findings changed when the pods went:\n%s", diff)
	}
	if diff := cmp.Diff(before.Status.Failure, h.last.Status.Failure); diff != "" {
		t.Errorf("the failure changed when the pods went:\n%s", diff)
	}
}

func TestACauseFoundLaterIsTaken(t *testing.T) {
	h := &history{t: t, job: job(2)}
	h.pass(0, ended(jobstate.Observed{}, h.job, batchv1.JobFailed, 0), jobstate.Evidence{})
	if report.Settled(h.last, mpitest.Now.Add(time.Second)) || !report.Settled(h.last, mpitest.Now.Add(time.Hour)) {
		t.Error("a failure of unknown cause is to be looked into for a while")
	}
	seen := ended(pods(h.job, corev1.PodRunning, 0), h.job, batchv1.JobFailed, 0)
	mpitest.Exited(137, "OOMKilled")(seen.Workers[1].Pod)
	h.pass(time.Second, seen, jobstate.Evidence{})
	if got := h.last.Status.Failure; got.Code != codes.OutOfMemory || got.Pod != "pi-worker-1" {
		t.Errorf("the failure is %+v", got)
	}
}

// TestExitCodeIsFoundLater: the Job's end may be known before that of its pod.
func TestExitCodeIsFoundLater(t *testing.T) {
	h := &history{t: t, job: job(2)}
	h.pass(0, pods(h.job, corev1.PodRunning, 0), jobstate.Evidence{})
	seen := ended(pods(h.job, corev1.PodRunning, 0), h.job, batchv1.JobFailed, time.Minute)
	launcher := seen.LauncherPods[0]
	evidence := jobstate.Evidence{Logs: map[string]jobstate.Log{launcher.Name: {Lines: []string{"Segmentation fault"}}}}
	h.pass(time.Minute, seen, evidence)
	if failure := h.last.Status.Failure; failure == nil || failure.Code != codes.SegmentationFault || failure.ExitCode != nil || report.Settled(h.last, mpitest.Now.Add(time.Minute)) {
		t.Errorf("the failure is %+v, settled: %t", failure, report.Settled(h.last, mpitest.Now.Add(time.Minute)))
	}
	launcher.Status.Phase = corev1.PodFailed
	mpitest.Exited(7, "Error")(launcher)
	h.pass(time.Minute+time.Second, seen, evidence)
	if failure := h.last.Status.Failure; failure == nil || failure.ExitCode == nil || *failure.ExitCode != 7 || !report.Settled(h.last, mpitest.Now.Add(time.Minute)) {
		t.Errorf("the failure is %+v, settled: %t", failure, report.Settled(h.last, mpitest.Now.Add(time.Minute)))
	}
}

func TestALostWorkerIsRemembered(t *testing.T) {
	h := &history{t: t, job: job(2)}
	evict := func(pod *corev1.Pod) {
		mpitest.Leaving(pod)
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "EvictionByEvictionAPI"})
	}
	h.pass(0, pods(h.job, corev1.PodRunning, 0), jobstate.Evidence{})
	seen := pods(h.job, corev1.PodRunning, 0)
	evict(seen.Workers[1].Pod)
	h.pass(time.Minute, seen, jobstate.Evidence{})
	// The worker is made again, and all is well for a moment.
	h.pass(time.Minute+5*time.Second, pods(h.job, corev1.PodRunning, 0), jobstate.Evidence{})
	if got := h.last.Status.Findings; len(got) != 1 || got[0].Code != codes.Evicted || got[0].Severity != v1alpha1.SeverityWarning {
		t.Fatalf("the eviction is not remembered: %+v", got)
	}
	failed := ended(pods(h.job, corev1.PodRunning, 0), h.job, batchv1.JobFailed, 70*time.Second)
	mpitest.Exited(1, "Error")(failed.LauncherPods[0])
	h.pass(70*time.Second, failed, jobstate.Evidence{Logs: map[string]jobstate.Log{"pi-launcher-0": {Lines: []string{"ORTE has lost communication with a remote daemon."}}}})
	if got := h.last.Status.Findings; len(got) != 2 || got[0].Code != codes.Evicted || got[0].Severity != v1alpha1.SeverityError || got[1].Severity != v1alpha1.SeverityInfo {
		t.Errorf("the eviction is not the cause: %+v", got)
	}
	if got := h.last.Status.Failure; got.Code != codes.Evicted || got.Pod != "pi-worker-1" {
		t.Errorf("the failure is %+v", got)
	}

	other := &history{t: t, job: h.job}
	other.pass(0, pods(h.job, corev1.PodRunning, 0), jobstate.Evidence{})
	other.pass(time.Minute, seen, jobstate.Evidence{})
	other.pass(time.Hour, pods(h.job, corev1.PodRunning, 0), jobstate.Evidence{})
	if got := other.last.Status.Findings; len(got) != 0 {
		t.Errorf("the eviction is remembered for too long: %+v", got)
	}
}

// TestPreemptionIsTheCause: pods that had to make room find none when they come back. That keeps the job, and is not what
// failed it.
func TestPreemptionIsTheCause(t *testing.T) {
	h := &history{t: t, job: job(2)}
	h.pass(0, pods(h.job, corev1.PodRunning, 0), jobstate.Evidence{})
	seen := pods(h.job, corev1.PodRunning, 0)
	for _, worker := range seen.Workers {
		mpitest.Leaving(worker.Pod)
		worker.Pod.Status.Conditions = append(worker.Pod.Status.Conditions, corev1.PodCondition{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "PreemptionByScheduler", Message: "preempted by a pod of higher priority",
		})
	}
	h.pass(time.Minute, seen, jobstate.Evidence{})
	short := pods(h.job, corev1.PodPending, time.Minute)
	for _, worker := range short.Workers {
		worker.Pod.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/2 nodes are available: 2 Insufficient cpu.",
		}}
	}
	h.pass(time.Minute+5*time.Second, short, jobstate.Evidence{})
	if got := h.last.Status.Findings; len(got) == 0 || got[0].Code != codes.InsufficientResources {
		t.Fatalf("what keeps the job is not what it is told first: %+v", got)
	}
	again := *h
	again.last = h.last.DeepCopy()
	again.pass(90*time.Second, pods(h.job, corev1.PodRunning, 80*time.Second), jobstate.Evidence{})
	if line := again.last.Status.Timeline; line[len(line)-1].Event != "Running" || line[len(line)-1].Detail != "Launcher and 2 workers running." {
		t.Errorf("that it runs again is told as %+v", line[len(line)-1])
	}
	failed := ended(short, h.job, batchv1.JobFailed, 70*time.Second)
	h.pass(70*time.Second, failed, jobstate.Evidence{})
	if got := h.last.Status.Failure; got.Code != codes.Preempted || got.Pod != "pi-worker-0" {
		t.Errorf("the failure is %+v", got)
	}
	if got := h.last.Status.Findings; len(got) != 2 || got[0].Code != codes.Preempted || got[1].Severity != v1alpha1.SeverityInfo {
		t.Errorf("the preemption is not the cause: %+v", got)
	}
}

// TestRefusedPodsAreTheCause: nobody asks again for pods once the launcher has given up waiting for them.
func TestRefusedPodsAreTheCause(t *testing.T) {
	h := &history{t: t, job: job(2)}
	seen := pods(h.job, corev1.PodRunning, 0)
	seen.Workers = nil
	refused := jobstate.Evidence{Refusals: []jobstate.Refusal{{Kind: "Pod", Name: "pi-worker-0", Message: `pods "pi-worker-0" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true`}}}
	h.pass(0, seen, refused)
	failed := ended(seen, h.job, batchv1.JobFailed, 2*time.Minute)
	mpitest.Exited(255, "Error")(failed.LauncherPods[0])
	h.pass(2*time.Minute, failed, jobstate.Evidence{Logs: map[string]jobstate.Log{"pi-launcher-0": {Lines: []string{"ORTE was unable to reliably start one or more daemons."}}}})
	if got := h.last.Status.Findings; len(got) != 2 || got[0].Code != codes.PodSecurityDenied || got[0].Severity != v1alpha1.SeverityError {
		t.Errorf("the refusal is not the cause: %+v", got)
	}
}

// TestRDMANotUsedIsRemembered: libraries say it once, when the program begins.
func TestRDMANotUsedIsRemembered(t *testing.T) {
	h := &history{t: t, job: job(2, func(j *mpi.Job) {
		j.Workers.Template.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"rdma/hca": resource.MustParse("1")}
	})}
	log := func(line string) jobstate.Evidence {
		return jobstate.Evidence{Logs: map[string]jobstate.Log{"pi-launcher-0": {Lines: []string{line}, LastAt: mpitest.Now}}}
	}
	h.pass(time.Second, pods(h.job, corev1.PodRunning, 0), log("NCCL INFO Using network Socket"))
	h.pass(time.Hour, pods(h.job, corev1.PodRunning, 0), log("step 100000"))
	h.pass(2*time.Hour, ended(pods(h.job, corev1.PodRunning, 0), h.job, batchv1.JobComplete, 2*time.Hour), log("done"))
	if got := h.last.Status.Findings; len(got) != 1 || got[0].Code != codes.RDMANotUsed || got[0].Severity != v1alpha1.SeverityWarning {
		t.Errorf("findings are %+v", got)
	}
}

func TestEachTransitionStandsOnceOnTheTimeline(t *testing.T) {
	h := &history{t: t, job: job(1)}
	suspended := job(1, func(j *mpi.Job) { j.Lifecycle.Suspended = true })
	running := func(after time.Duration) {
		for range 3 {
			h.pass(after, pods(h.job, corev1.PodRunning, after-time.Second), jobstate.Evidence{})
		}
	}
	running(time.Second)
	h.job = suspended
	h.pass(60*time.Second, jobstate.Observed{}, jobstate.Evidence{})
	h.pass(61*time.Second, jobstate.Observed{}, jobstate.Evidence{})
	h.job = job(1)
	before := pods(h.job, corev1.PodRunning, 0)
	mpitest.Leaving(before.LauncherPods[0])
	mpitest.Leaving(before.Workers[0].Pod)
	h.pass(62*time.Second, before, jobstate.Evidence{})
	both := pods(h.job, corev1.PodPending, 62*time.Second)
	both.LauncherPods = append([]*corev1.Pod{before.LauncherPods[0]}, both.LauncherPods...)
	h.pass(63*time.Second, both, jobstate.Evidence{})
	running(120 * time.Second)
	restarted := pods(h.job, corev1.PodRunning, 119*time.Second)
	restarted.LauncherPods = append([]*corev1.Pod{mpitest.LauncherPod(h.job, 0, corev1.PodFailed)}, mpitest.LauncherPod(h.job, 1, corev1.PodRunning))
	h.pass(130*time.Second, restarted, jobstate.Evidence{})
	h.pass(131*time.Second, restarted, jobstate.Evidence{})
	// A clock that goes back does not turn the order.
	h.pass(-time.Hour, ended(restarted, h.job, batchv1.JobComplete, -time.Hour), jobstate.Evidence{})
	want := []string{
		"00:00 Created", "00:00 PodsStarting", "00:01 PodsPlaced", "00:01 WorkersReady", "00:01 LauncherStarted", "00:01 Running",
		"01:00 Suspended", "01:02 Resumed", "01:02 PodsStarting", "01:03 PodsPlaced", "02:00 WorkersReady", "02:00 LauncherStarted", "02:00 Running",
		"02:10 LauncherRestarted", "02:10 Succeeded",
	}
	if diff := cmp.Diff(want, h.events()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for _, times := range h.last.Status.PhaseTimes {
		if times.Seconds < 0 {
			t.Errorf("a phase took less than no time: %+v", times)
		}
	}
}

// TestConsumptionDoesNotOverflow: requests that no node can meet are refused, but a record must not turn negative by them.
func TestConsumptionDoesNotOverflow(t *testing.T) {
	for _, amount := range []string{"1e18", "1e400", "9223372036854775807"} {
		h := &history{t: t, job: job(2, func(j *mpi.Job) {
			j.Workers.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount), corev1.ResourceMemory: resource.MustParse(amount)}
		})}
		h.pass(0, pods(h.job, corev1.PodRunning, 0), jobstate.Evidence{})
		last := int64(0)
		for i := range 3 {
			h.pass(time.Duration(i+1)*time.Hour, pods(h.job, corev1.PodRunning, 0), jobstate.Evidence{})
			if got := h.last.Status.Consumption.CPUCoreSeconds; got <= 0 || got < last {
				t.Errorf("%s CPUs for %d hours are %d core seconds", amount, i+1, got)
			} else {
				last = got
			}
		}
	}
}

func TestTimelineIsBounded(t *testing.T) {
	h := &history{t: t, job: job(1, func(j *mpi.Job) { j.Lifecycle.BackoffLimit = new(int32(1000)) })}
	for i := range 200 {
		seen := pods(h.job, corev1.PodRunning, 0)
		seen.LauncherPods[0].Status.ContainerStatuses = []corev1.ContainerStatus{{RestartCount: int32(i)}}
		h.pass(time.Duration(i)*time.Second, seen, jobstate.Evidence{})
	}
	events := h.events()
	if len(events) != 64 || events[0] != "00:00 Created" || events[63] != "03:19 LauncherRestarted" {
		t.Errorf("%d entries, from %s to %s", len(events), events[0], events[len(events)-1])
	}
}

func TestConsumption(t *testing.T) {
	h := &history{t: t, job: job(2)}
	want := func(cpu, memory, gpu int64) {
		t.Helper()
		c := h.last.Status.Consumption
		if c.CPUCoreSeconds != cpu || c.MemoryGiBSeconds != memory || c.GPUSeconds["nvidia.com/gpu"] != gpu {
			t.Errorf("got %+v, want %d, %d, %d", c, cpu, memory, gpu)
		}
	}
	h.pass(0, jobstate.Observed{}, jobstate.Evidence{})
	want(0, 0, 0)
	h.pass(100*time.Second, pods(h.job, corev1.PodRunning, 0), jobstate.Evidence{})
	want(450, 800, 200) // 100 s of 2 workers and a launcher
	h.pass(100*time.Second, pods(h.job, corev1.PodRunning, 0), jobstate.Evidence{})
	want(450, 800, 200)
	h.pass(50*time.Second, pods(h.job, corev1.PodRunning, 0), jobstate.Evidence{})
	want(450, 800, 200) // the clock went back
	// One worker vanishes, the other ended in between.
	seen := pods(h.job, corev1.PodRunning, 0)
	seen.Workers = seen.Workers[:1]
	mpitest.Exited(0, "Completed")(seen.Workers[0].Pod)
	seen.Workers[0].Pod.Status.Phase = corev1.PodSucceeded
	seen.Workers[0].Pod.Status.ContainerStatuses[0].State.Terminated.FinishedAt = metav1.NewTime(mpitest.Now.Add(150 * time.Second))
	h.pass(200*time.Second, seen, jobstate.Evidence{})
	want(450+50+200+100, 800+400+200, 200+100+50)
	h.pass(300*time.Second, seen, jobstate.Evidence{})
	want(450+50+200+100+50, 800+400+200, 200+100+50)
}

func TestWhatTheLaunchersAgentToldIsKept(t *testing.T) {
	h := &history{t: t, job: job(2)}
	seen := pods(h.job, corev1.PodRunning, 0)
	h.pass(0, seen, jobstate.Evidence{})
	mpitest.Exited(0, "Completed")(seen.LauncherPods[0])
	seen.LauncherPods[0].Status.ContainerStatuses[0].State.Terminated.Message = `{"role":"launcher","slotsExpected":8,"slotsFound":4,"connectSeconds":1.25,"initSeconds":0.5}`
	want := h.last.Status.MPI
	want.SlotsExpected, want.SlotsFound, want.ConnectMilliseconds, want.InitMilliseconds = 8, 4, 1250, 500
	for _, seen := range []jobstate.Observed{seen, {}} {
		if diff := cmp.Diff(want, h.pass(time.Minute, seen, jobstate.Evidence{}).Status.MPI); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}

// TestStartup: the parts of a start are written once all pods have started, and stay when the pods end.
func TestStartup(t *testing.T) {
	h := &history{t: t, job: job(2)}
	timed := func(pod *corev1.Pod, scheduledAfter, startedAfter time.Duration) {
		made := pod.CreationTimestamp.Time
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(made.Add(scheduledAfter)),
		})
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
			Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(made.Add(startedAfter))},
		}}}
	}
	starting := pods(h.job, corev1.PodPending, 0)
	if s := h.pass(time.Second, starting, jobstate.Evidence{}).Status.Startup; s != nil {
		t.Errorf("a job whose pods start has %+v", s)
	}
	running := pods(h.job, corev1.PodRunning, 0)
	timed(running.LauncherPods[0], time.Second, 3*time.Second)
	timed(running.Workers[0].Pod, time.Second, 3*time.Second)
	timed(running.Workers[1].Pod, 5*time.Minute, 5*time.Minute)
	status := h.pass(6*time.Minute, running, jobstate.Evidence{}).Status
	if status.Startup == nil || len(status.Findings) != 1 || status.Findings[0].Code != codes.SlowStartupStep || status.Phase != v1alpha1.PhaseRunning {
		t.Fatalf("a job that started slowly has %+v and findings %+v", status.Startup, status.Findings)
	}
	if strings.Contains(status.Message, "slow") {
		t.Errorf("the message of a healthy job is %q", status.Message)
	}
	gone := h.pass(7*time.Minute, jobstate.Observed{Launcher: running.Launcher}, jobstate.Evidence{}).Status
	if diff := cmp.Diff(status.Startup, gone.Startup); diff != "" {
		t.Errorf("it changes when the pods are gone (-want +got):\n%s", diff)
	}
	end := ended(running, h.job, batchv1.JobComplete, 8*time.Minute)
	for i := range 3 {
		findings := h.pass(8*time.Minute+time.Duration(i)*time.Second, end, jobstate.Evidence{}).Status.Findings
		if len(findings) != 1 || findings[0].Code != codes.SlowStartupStep {
			t.Errorf("look %d at the job that succeeded: %+v", i+1, findings)
		}
	}
}

// TestRemediesOutliveWorkers: users read the remedies of a finished job after its workers are deleted, although the report is written
// before that.
func TestRemediesOutliveWorkers(t *testing.T) {
	const inCopy = `kubectl odh mpijob clone mpijob/pi -n ns --workers 1 --command 'mpirun -n 1 sh -c '\''ldconfig -p | grep -F -e "$0"'\'' libx.so.1' --logs`
	const inPod = `kubectl -n ns exec pi-worker-0 -- sh -c 'ldconfig -p | grep -F -e "$0"' libx.so.1`
	for name, test := range map[string]struct {
		change  func(*mpi.Job)
		workers corev1.PodPhase
		want    string
	}{
		"workers that stay":         {func(j *mpi.Job) { j.Lifecycle.CleanPods = mpi.CleanNone }, corev1.PodRunning, inPod},
		"running workers":           {func(j *mpi.Job) { j.Lifecycle.CleanPods = mpi.CleanRunning }, corev1.PodRunning, inCopy},
		"all workers":               {func(j *mpi.Job) { j.Lifecycle.CleanPods = mpi.CleanAll }, corev1.PodRunning, inCopy},
		"workers that JobSet stops": {func(j *mpi.Job) { j.External = true }, corev1.PodRunning, inCopy},
		"workers that have ended":   {func(j *mpi.Job) { j.Lifecycle.CleanPods = mpi.CleanRunning }, corev1.PodSucceeded, inCopy},
	} {
		t.Run(name, func(t *testing.T) {
			h := &history{t: t, job: job(2, test.change)}
			seen := ended(pods(h.job, test.workers, 0), h.job, batchv1.JobFailed, time.Minute)
			seen.LauncherPods[0].Status.Phase = corev1.PodFailed
			mpitest.Exited(127, "Error")(seen.LauncherPods[0])
			if h.job.External {
				h.job.Recorded.Finish = &mpi.Finish{Reason: "Failed", At: mpitest.Now.Add(time.Minute)}
			}
			h.pass(time.Minute, seen, jobstate.Evidence{Logs: map[string]jobstate.Log{seen.LauncherPods[0].Name: {
				Lines: []string{"train: error while loading shared libraries: libx.so.1: cannot open shared object file: No such file or directory"},
			}}})
			found := h.last.Status.Findings
			if len(found) == 0 || found[0].Code != codes.LibraryMissing {
				t.Fatalf("findings are %+v", found)
			}
			if got := found[0].Remedies[1].Action; got != test.want {
				t.Errorf("the command is\n%s, want\n%s", got, test.want)
			}
		})
	}
}

// TestInvalidChange: the report of a job that became invalid after it had been started says what is ignored, until it ends.
func TestInvalidChange(t *testing.T) {
	h := &history{t: t, job: job(2)}
	running := pods(h.job, corev1.PodRunning, 0)
	silent := field.Invalid(field.NewPath("metadata", "annotations").Key(mpi.AnnotationSilence), "x y", "must be a duration")
	h.job.Ignored = field.ErrorList{silent}
	status := h.pass(0, running, jobstate.Evidence{}).Status
	if len(status.Findings) != 1 || status.Phase != v1alpha1.PhaseRunning {
		t.Fatalf("it is %s with findings %+v", status.Phase, status.Findings)
	}
	found := status.Findings[0]
	if want := "The job became invalid after it had been started: " + silent.Error() + ". The default is used instead."; found.Code != codes.InvalidChange || found.Severity != v1alpha1.SeverityWarning || found.Summary != want {
		t.Errorf("the finding is %+v, want %q", found, want)
	}
	if found.Remedies[0].Action != "kubectl -n ns edit mpijob pi" || strings.Contains(status.Message, "invalid") {
		t.Errorf("the remedies are %+v, and the message %q", found.Remedies, status.Message)
	}
	h.job.Ignored = append(h.job.Ignored, field.Invalid(field.NewPath("spec", "slotsPerWorker"), -1, "must be 0 or more"))
	if found := h.pass(time.Second, running, jobstate.Evidence{}).Status.Findings; len(found) != 1 || !strings.HasSuffix(found[0].Summary, "No others are created until this is corrected.") {
		t.Errorf("findings are %+v", found)
	}
	h.job.Ignored = nil
	if found := h.pass(2*time.Second, running, jobstate.Evidence{}).Status.Findings; len(found) > 0 {
		t.Errorf("once it is corrected, findings are %+v", found)
	}
}

func TestWhatIsHeldIsToldHourly(t *testing.T) {
	h := &history{t: t, job: job(2)}
	running := pods(h.job, corev1.PodRunning, 0)
	first := h.pass(time.Second, running, jobstate.Evidence{})
	for after, want := range map[time.Duration]bool{time.Hour: false, time.Hour + time.Second: true} {
		h.last = first
		if got := report.Changed(first, *h.pass(after, running, jobstate.Evidence{})); got != want {
			t.Errorf("changed after %s is %v", after, got)
		}
	}
}

func TestWrittenOnlyOnChange(t *testing.T) {
	h := &history{t: t, job: job(2)}
	trained := func(epoch string) jobstate.Evidence {
		return jobstate.Evidence{Training: v1alpha1.Training{Epoch: epoch}}
	}
	next := func(after time.Duration, seen jobstate.Observed, evidence jobstate.Evidence) bool {
		before := h.last
		return report.Changed(before, *h.pass(after, seen, evidence))
	}
	running := pods(h.job, corev1.PodRunning, 0)
	tests := []struct {
		name    string
		changed bool
	}{
		{"first", next(0, jobstate.Observed{}, jobstate.Evidence{})},
		{"pods", next(time.Second, running, jobstate.Evidence{})},
		{"time passes", next(90*time.Second, running, jobstate.Evidence{})},
		{"training begins", next(100*time.Second, running, trained("1"))},
	}
	for i, want := range []bool{true, true, false, true} {
		if tests[i].changed != want {
			t.Errorf("%s: changed is %v", tests[i].name, tests[i].changed)
		}
	}
	base := h.last
	for _, test := range []struct {
		after time.Duration
		epoch string
		want  bool
	}{{110 * time.Second, "2", false}, {140 * time.Second, "2", true}, {140 * time.Second, "1", false}} {
		h.last = base
		if got := next(test.after, running, trained(test.epoch)); got != test.want {
			t.Errorf("epoch %s at %s: changed is %v", test.epoch, test.after, got)
		}
	}
}

func TestNewsAreWhatIsNew(t *testing.T) {
	h := &history{t: t, job: job(1)}
	first := h.pass(0, jobstate.Observed{}, jobstate.Evidence{})
	if news := report.NewEntries(nil, *first); len(news) != 1 || news[0].Event != codes.Created {
		t.Errorf("the first news are %+v", news)
	}
	second := h.pass(time.Second, jobstate.Observed{}, jobstate.Evidence{})
	if news := report.NewEntries(first, *second); len(news) != 0 {
		t.Errorf("nothing has happened, and the news are %+v", news)
	}
}

// A report of a job of 1,000 workers with names as long as they can be, in trouble all of them.
func TestReportsAreBounded(t *testing.T) {
	name, nodeName := strings.Repeat("j", 44), strings.Repeat("n", 253)
	h := &history{t: t, job: job(1000, func(j *mpi.Job) { j.Name = name })}
	seen := ended(pods(h.job, corev1.PodFailed, 0, mpitest.Exited(1, strings.Repeat("R", 200)), func(pod *corev1.Pod) {
		pod.Spec.NodeName = nodeName
	}), h.job, batchv1.JobFailed, time.Minute)
	evidence := jobstate.Evidence{Logs: map[string]jobstate.Log{}}
	for _, pod := range append(podsOf(seen.Workers[:8]), seen.LauncherPods...) {
		lines := make([]string, jobstate.MaxLogLines)
		for i := range lines {
			lines[i] = strings.Repeat("<&>", 1000)
		}
		evidence.Logs[pod.Name] = jobstate.Log{Lines: append(lines, "ValueError: "+strings.Repeat("<", 1000))}
	}
	for range 100 {
		evidence.Events = append(evidence.Events, jobstate.Event{Kind: "Pod", Name: name, Warning: true, Reason: "x", Message: strings.Repeat("<", 2000), Count: 1})
	}
	evidence.Curves = largestCurves()
	r := h.pass(time.Minute, seen, evidence)
	s := r.Status
	if s.Curves == nil || len(s.Curves.Figures) != curves.MaxCurves || len(s.Curves.Figures[7].At) != curves.MaxPoints {
		t.Errorf("the curves are %+v", s.Curves)
	}
	if len(s.Pods) == 0 || int(s.PodsOmitted)+len(s.Pods) != 1001 || s.Pods[0].Role != "launcher" {
		t.Errorf("%d pods and %d omitted", len(s.Pods), s.PodsOmitted)
	}
	if len(s.Failure.LogTail) == 0 {
		t.Error("there is no log")
	}

	// With names as they usually are all pods have room.
	h = &history{t: t, job: job(1000, func(j *mpi.Job) { j.Name = "train-llama-7b" })}
	if s := h.pass(time.Minute, pods(h.job, corev1.PodRunning, 0, func(pod *corev1.Pod) { pod.Spec.NodeName = "ip-10-0-123-45.eu-west-1.compute.internal" }), jobstate.Evidence{}).Status; s.PodsOmitted != 0 {
		t.Errorf("%d pods are omitted", s.PodsOmitted)
	}
}

// largestCurves returns curves that are as large as they can be.
func largestCurves() (all *v1alpha1.TrainingCurves) {
	for i := range curves.MaxPoints {
		line := curves.Line{Time: mpitest.Now.Add(time.Duration(i) * time.Millisecond), Step: 1e15 - 1000 + float64(i)}
		for name := range curves.MaxCurves {
			line.Figures = append(line.Figures, curves.Figure{Name: strings.Repeat("x", 31) + string(rune('a'+name)), Value: -1.23456789e-300})
		}
		all = curves.Add(all, []curves.Line{line})
	}
	return all
}

func BenchmarkMake(b *testing.B) {
	j := job(1000)
	seen := pods(j, corev1.PodRunning, 0)
	seen.Now = mpitest.Now.Add(time.Minute)
	outcome := jobstate.Judge(j, seen)
	previous := report.Make(j, seen, jobstate.Evidence{}, outcome, nil, nil)
	for b.Loop() {
		next := report.Make(j, seen, jobstate.Evidence{}, outcome, nil, &previous)
		if report.Changed(&previous, next) {
			b.Fatal("nothing has changed")
		}
	}
}
