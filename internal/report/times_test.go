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

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/report"
)

// since makes a pod have its node two seconds after it was made, and have run and been ready for as long as it says.
func since(after time.Duration) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		started := metav1.NewTime(mpitest.Now.Add(after))
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: started}}}}
		for i := range pod.Status.Conditions {
			pod.Status.Conditions[i].LastTransitionTime = started
		}
		placed(pod)
	}
}

func placed(pod *corev1.Pod) {
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(pod.CreationTimestamp.Add(2 * time.Second)),
	})
}

// ran makes a pod's container have run from one time to another, and end well, with a message of its program.
func ran(from, to time.Duration) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			StartedAt: metav1.NewTime(mpitest.Now.Add(from)), FinishedAt: metav1.NewTime(mpitest.Now.Add(to)), Message: "done",
		}}}}
	}
}

// The operator is not always there when something happens; the times are told all the same.
func TestTimesAreThoseOfTheJobAndNotOfItsPasses(t *testing.T) {
	tests := map[string]struct {
		play   func(*history)
		want   []string
		phases map[string]int64
	}{
		"seen late": {
			func(h *history) {
				h.pass(0, jobstate.Observed{}, jobstate.Evidence{})
				h.pass(time.Hour, pods(h.job, corev1.PodRunning, time.Second, since(9*time.Second)), jobstate.Evidence{})
			},
			[]string{"00:00 Created", "00:01 PodsStarting", "00:03 PodsPlaced", "00:09 WorkersReady", "00:09 LauncherStarted", "00:09 Running"},
			map[string]int64{"Pending": 9, "Running": 0},
		},
		"ran and ended meanwhile": {
			func(h *history) {
				h.pass(0, jobstate.Observed{}, jobstate.Evidence{})
				seen := ended(pods(h.job, corev1.PodRunning, time.Second, since(9*time.Second)), h.job, batchv1.JobComplete, 49*time.Second)
				ran(9*time.Second, 48*time.Second)(seen.LauncherPods[0])
				h.pass(time.Hour, seen, jobstate.Evidence{})
			},
			[]string{"00:00 Created", "00:01 PodsStarting", "00:03 PodsPlaced", "00:09 LauncherStarted", "00:09 Running", "00:49 Succeeded"},
			map[string]int64{"Pending": 9, "Running": 40, "Succeeded": 0},
		},
		"a launcher that is started again in its pod": {
			func(h *history) {
				h.pass(9*time.Second, pods(h.job, corev1.PodRunning, time.Second, since(9*time.Second)), jobstate.Evidence{})
				again := pods(h.job, corev1.PodRunning, time.Second, since(9*time.Second))
				since(49 * time.Second)(again.LauncherPods[0])
				h.pass(50*time.Second, again, jobstate.Evidence{})
				if got := report.RanSince(h.last); !got.Equal(mpitest.Now.Add(49 * time.Second)) {
					h.t.Errorf("all pods run since %s", got)
				}
			},
			[]string{"00:01 Created", "00:01 PodsStarting", "00:03 PodsPlaced", "00:09 WorkersReady", "00:09 LauncherStarted", "00:09 Running", "00:49 Running"},
			map[string]int64{"Running": 40},
		},
		"first seen when its launcher had been started again": {
			func(h *history) {
				seen := pods(h.job, corev1.PodRunning, time.Second, since(9*time.Second))
				container := &seen.LauncherPods[0].Status.ContainerStatuses[0]
				container.RestartCount, container.State.Running.StartedAt = 1, metav1.NewTime(mpitest.Now.Add(49*time.Second))
				container.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{
					ExitCode: 1, Reason: "Error", StartedAt: metav1.NewTime(mpitest.Now.Add(11 * time.Second)), FinishedAt: metav1.NewTime(mpitest.Now.Add(39 * time.Second)),
				}
				if got := h.pass(time.Hour, seen, jobstate.Evidence{}).Status.RunningTime; got == nil || !got.Equal(new(metav1.NewTime(mpitest.Now.Add(11*time.Second)))) {
					h.t.Errorf("it ran first at %s", got)
				}
			},
			[]string{"00:01 Created", "00:01 PodsStarting", "00:03 PodsPlaced", "00:09 WorkersReady", "00:11 LauncherStarted", "00:49 LauncherRestarted", "00:00 ApplicationFailed", "00:00 Running"},
			map[string]int64{"Running": 0},
		},
		"first seen when it was over, with idle workers": {
			func(h *history) {
				seen := ended(pods(h.job, corev1.PodSucceeded, time.Second, ran(9*time.Second, 48*time.Second), placed), h.job, batchv1.JobComplete, 49*time.Second)
				seen.LauncherPods[0].Status.ContainerStatuses[0].State.Terminated.Message = ""
				h.pass(time.Hour, seen, jobstate.Evidence{})
			},
			[]string{"00:01 Created", "00:01 PodsStarting", "00:03 PodsPlaced", "00:09 LauncherStarted", "00:09 Running", "00:49 WorkersIdle", "00:49 Succeeded"},
			map[string]int64{"Running": 40, "Succeeded": 0},
		},
		"first seen when it was over": {
			func(h *history) {
				seen := ended(pods(h.job, corev1.PodSucceeded, time.Second, ran(9*time.Second, 48*time.Second), placed), h.job, batchv1.JobComplete, 49*time.Second)
				h.pass(time.Hour, seen, jobstate.Evidence{})
			},
			[]string{"00:01 Created", "00:01 PodsStarting", "00:03 PodsPlaced", "00:09 LauncherStarted", "00:09 Running", "00:49 Succeeded"},
			map[string]int64{"Running": 40, "Succeeded": 0},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			h := &history{t: t, job: job(2)}
			test.play(h)
			if diff := cmp.Diff(test.want, h.events()); diff != "" {
				t.Errorf("timeline differs (-want +got)\n%s", diff)
			}
			phases := map[string]int64{}
			for _, p := range h.last.Status.PhaseTimes {
				phases[string(p.Phase)] = p.Seconds
			}
			if diff := cmp.Diff(test.phases, phases); diff != "" {
				t.Errorf("phases differ (-want +got)\n%s", diff)
			}
		})
	}
}

func TestWaitForAPlace(t *testing.T) {
	free := func(gpus string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("16"), corev1.ResourceMemory: resource.MustParse("64Gi"), "nvidia.com/gpu": resource.MustParse(gpus)}
	}
	evidence := jobstate.Evidence{Nodes: []jobstate.Node{{Name: "a", Ready: true, Free: free("0")}, {Name: "b", Ready: true, Free: free("4")}, {Name: "c", Free: free("4")}}}
	h := &history{t: t, job: job(2)}
	seen := pods(h.job, corev1.PodPending, 0)
	seen.Workers[1].Pod.Spec.NodeName = ""
	first := h.pass(time.Second, seen, evidence)
	mpitest.Golden(t, "waits", first.Status.Scheduling)
	if soon := h.pass(31*time.Second, seen, evidence); report.Changed(first, *soon) || report.Outdated(first, *soon) {
		t.Error("that a wait goes on is written after 30 s")
	}
	if placed := h.pass(40*time.Second, pods(h.job, corev1.PodPending, 0), jobstate.Evidence{}); placed.Status.Scheduling != nil {
		t.Errorf("all pods have a place, and the job waits for one: %+v", placed.Status.Scheduling)
	}
	held := &history{t: t, job: job(2, func(j *mpi.Job) { j.Launcher.AfterWorkers = true })}
	seen = pods(held.job, corev1.PodPending, 0)
	seen.Launcher, seen.LauncherPods = nil, nil
	if r := held.pass(0, seen, jobstate.Evidence{}); r.Status.Scheduling != nil {
		t.Errorf("a launcher that is held back waits for a place: %+v", r.Status.Scheduling)
	}
}

func TestRecordOfADeletedJobIsClosed(t *testing.T) {
	h := &history{t: t, job: job(2)}
	h.pass(0, pods(h.job, corev1.PodRunning, 0), jobstate.Evidence{})
	closed := report.Closed(*h.last, mpitest.Now.Add(30*time.Second))
	mpitest.Golden(t, "deleted", closed)
	again := report.Closed(closed, mpitest.Now.Add(time.Hour))
	if report.Changed(&closed, again) {
		t.Error("a record that is closed is closed again")
	}
	h.pass(40*time.Second, ended(pods(h.job, corev1.PodRunning, 0), h.job, batchv1.JobComplete, 35*time.Second), jobstate.Evidence{})
	if over := report.Closed(*h.last, mpitest.Now.Add(time.Hour)); over.Status.Phase != v1alpha1.PhaseSucceeded {
		t.Errorf("a job that had ended is %s when it is deleted", over.Status.Phase)
	}
}

func TestNamesOfRecordsFit(t *testing.T) {
	for name, want := range map[string]string{
		"train":                                 "train-01234567",
		strings.Repeat("a", 253):                strings.Repeat("a", 244) + "-01234567",
		strings.Repeat("a", 243) + ".bcdefghij": strings.Repeat("a", 243) + "-01234567",
	} {
		h := &history{t: t, job: job(1, func(j *mpi.Job) { j.Name = name })}
		r := h.pass(0, jobstate.Observed{}, jobstate.Evidence{})
		if label := r.Labels[mpi.LabelReportJob]; r.Name != want || len(label) > 63 || !strings.HasPrefix(name, label) {
			t.Errorf("the record is named %q, labelled %q", r.Name, label)
		}
	}
}

// A thousand pods have room whatever their nodes are called: those that are well are told of in brief.
func TestLongNamesLeaveNoPodOut(t *testing.T) {
	h := &history{t: t, job: job(1000, func(j *mpi.Job) { j.Name = strings.Repeat("j", 44) })}
	seen := pods(h.job, corev1.PodRunning, 0, func(pod *corev1.Pod) { pod.Spec.NodeName = strings.Repeat("n", 253) })
	lines := make([]string, jobstate.MaxLogLines)
	for i := range lines {
		lines[i] = strings.Repeat("<&>", 1000)
	}
	logs := map[string]jobstate.Log{seen.LauncherPods[0].Name: {Lines: lines}}
	for i := range 8 {
		seen.Workers[i].Pod.Status.Phase = corev1.PodFailed
		mpitest.Exited(137, "OOMKilled")(seen.Workers[i].Pod)
		logs[seen.Workers[i].Pod.Name] = jobstate.Log{Lines: lines}
	}
	mpitest.Exited(1, "Error")(seen.LauncherPods[0])
	r := h.pass(time.Minute, ended(seen, h.job, batchv1.JobFailed, time.Minute), jobstate.Evidence{Logs: logs})
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if r.Status.PodsOmitted > 0 || len(data) > report.MaxSize {
		t.Errorf("%d pods are left out of %d bytes", r.Status.PodsOmitted, len(data))
	}
	if failed := r.Status.Pods[1]; failed.Node == "" || failed.Ranks == "" {
		t.Errorf("a pod that failed is told of in brief: %s", fmt.Sprintf("%+v", failed))
	}
	if next := h.pass(time.Minute+time.Second, ended(seen, h.job, batchv1.JobFailed, time.Minute), jobstate.Evidence{Logs: logs}); report.Changed(r, *next) {
		t.Error("the record changed although nothing has happened")
	}
}

// TestClockSetBack: a clock that is set back by an hour neither stops the count of what a job uses, nor keeps a waiting job's record
// from being updated until the clock has caught up.
func TestClockSetBack(t *testing.T) {
	h := &history{t: t, job: job(2)}
	running := pods(h.job, corev1.PodRunning, -2*time.Hour)
	h.pass(-2*time.Hour, jobstate.Observed{}, jobstate.Evidence{})
	before := h.pass(0, running, jobstate.Evidence{})
	back := h.pass(-time.Hour, running, jobstate.Evidence{})
	if !report.Changed(before, *back) {
		t.Error("the record after the clock was set back is not written, so that counting does not go on from it")
	}
	later := h.pass(-time.Hour+100*time.Second, running, jobstate.Evidence{})
	if got := later.Status.Consumption.CPUCoreSeconds - before.Status.Consumption.CPUCoreSeconds; got != 450 {
		t.Errorf("100 s after the clock was set back, %d core seconds of 450 are counted", got)
	}
	for _, phase := range later.Status.PhaseTimes {
		if phase.Seconds < 0 {
			t.Errorf("phase %s lasted %d s", phase.Phase, phase.Seconds)
		}
	}

	waiting := &history{t: t, job: job(2)}
	gang := jobstate.Observed{Gang: &jobstate.GangState{Backend: "embedded", Wanted: 3}}
	old := waiting.pass(0, gang, jobstate.Evidence{})
	if now := waiting.pass(-time.Hour, gang, jobstate.Evidence{}); old.Status.Scheduling == nil || !report.Outdated(old, *now) {
		t.Errorf("the record of a waiting job, %+v, is not updated after the clock was set back", old.Status.Scheduling)
	}
}
