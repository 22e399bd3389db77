package reporting

import (
	"context"
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/podstatus"
)

// ofJob is a pod of a Job whose container ended with an exit code and was started again so often.
func ofJob(job *batchv1.Job, name string, exitCode, restarts int32) *corev1.Pod {
	pod := mpitest.LauncherPod(mpitest.Job(1), 0, corev1.PodRunning)
	pod.Name, pod.UID = name, types.UID(name)
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		RestartCount: restarts, LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: exitCode}},
	}}
	return pod
}

func TestLastPods(t *testing.T) {
	launcher := mpitest.Launcher(mpitest.Job(1))
	seen := jobstate.Observed{Now: mpitest.Now, Launcher: launcher}
	deleted := ofJob(launcher, "deleted", 7, 1)
	mpitest.Leaving(deleted)
	foreign := ofJob(launcher, "foreign", 7, 1)
	foreign.OwnerReferences[0].Kind = "MPIJob"
	for name, test := range map[string]struct {
		pods []*corev1.Pod
		want []string
	}{
		"failed and restarted":                 {[]*corev1.Pod{ofJob(launcher, "a", 7, 1)}, []string{"a"}},
		"its last state":                       {[]*corev1.Pod{ofJob(launcher, "a", 7, 1), ofJob(launcher, "a", 7, 2)}, []string{"a"}},
		"two attempts":                         {[]*corev1.Pod{ofJob(launcher, "b", 7, 0), ofJob(launcher, "a", 7, 0)}, []string{"a", "b"}},
		"no failure":                           {[]*corev1.Pod{ofJob(launcher, "a", 0, 1)}, nil},
		"failed after its deletion":            {[]*corev1.Pod{deleted}, nil},
		"a pod that no Job owns":               {[]*corev1.Pod{foreign}, nil},
		"a pod of another Job":                 {[]*corev1.Pod{ofJob(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{UID: "other"}}, "a", 7, 1)}, nil},
		"what it did when it was deleted last": {[]*corev1.Pod{ofJob(launcher, "deleted", 7, 1), deleted}, []string{"deleted"}},
	} {
		t.Run(name, func(t *testing.T) {
			last := newLastPods(nil, newLastLogs(), clocktesting.NewFakePassiveClock(mpitest.Now))
			for _, pod := range test.pods {
				last.see(pod)
			}
			var names []string
			for _, pod := range last.of(seen) {
				if names = append(names, pod.Name); pod.DeletionTimestamp != nil {
					t.Errorf("pod %s is kept as it was after its deletion", pod.Name)
				}
			}
			if fmt.Sprint(names) != fmt.Sprint(test.want) {
				t.Errorf("kept: %v, want %v", names, test.want)
			}
		})
	}
	if kept := newLastPods(nil, newLastLogs(), clocktesting.NewFakePassiveClock(mpitest.Now)).of(jobstate.Observed{}); kept != nil {
		t.Errorf("pods of a job without a launcher: %v", kept)
	}
}

// TestLastPodsAreBounded: pods that are old, and the oldest of too many, are dropped.
func TestLastPodsAreBounded(t *testing.T) {
	launcher := mpitest.Launcher(mpitest.Job(1))
	clock := clocktesting.NewFakePassiveClock(mpitest.Now)
	last := newLastPods(nil, newLastLogs(), clock)
	for i := range maxLastPods + 50 {
		clock.SetTime(clock.Now().Add(time.Millisecond))
		last.see(ofJob(launcher, fmt.Sprintf("pod-%04d", i), 7, 1))
	}
	if n := len(last.pods); n != maxLastPods {
		t.Errorf("%d pods are kept, want %d", n, maxLastPods)
	}
	if _, kept := last.pods["pod-0000"]; kept {
		t.Error("the oldest pod is kept")
	}
	clock.SetTime(clock.Now().Add(keepLastPods + time.Second))
	if last.see(ofJob(launcher, "new", 7, 1)); len(last.pods) != 1 {
		t.Errorf("%d pods are kept, want only the new one", len(last.pods))
	}
}

// TestLogIsReadWhenAPodIsRestarted: the log of a failed run is read once, and completes the evidence when the pod is gone.
func TestLogIsReadWhenAPodIsRestarted(t *testing.T) {
	job := mpitest.Job(1)
	launcher := mpitest.Launcher(job)
	read := make(chan string, 10)
	logs := newLastLogs()
	last := newLastPods(func(_ context.Context, pod *corev1.Pod) (jobstate.Log, error) {
		read <- fmt.Sprintf("%s %d", pod.Name, podstatus.Restarts(pod))
		return jobstate.Log{Lines: []string{"KeyError: 'x'"}}, nil
	}, logs, clocktesting.NewFakePassiveClock(mpitest.Now))
	ended := ofJob(launcher, "ended", 7, 0)
	ended.Status.Phase = corev1.PodFailed
	for _, pod := range []*corev1.Pod{ended, ofJob(launcher, "a", 7, 0), ofJob(launcher, "a", 7, 0), ofJob(launcher, "a", 7, 1)} {
		last.see(pod)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- last.run(ctx) }()
	got := map[string]bool{<-read: true, <-read: true}
	if !got["a 0"] || !got["a 1"] {
		t.Errorf("the logs that were read: %v", got)
	}
	cancel()
	if err := <-done; err != nil || len(read) > 0 {
		t.Errorf("%v; %d more logs were read", err, len(read))
	}
	var evidence jobstate.Evidence
	logs.complete(job, jobstate.Observed{Now: mpitest.Now, Launcher: launcher}, &evidence)
	if lines := evidence.Logs["a"].Lines; len(lines) != 1 {
		t.Errorf("the log of the pod that is gone: %q", lines)
	}
}
