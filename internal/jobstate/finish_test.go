package jobstate_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpitest"
)

func TestJudgeFinishTime(t *testing.T) {
	job := mpitest.Job(1)
	completed := metav1.NewTime(mpitest.Now.Add(-time.Hour))
	launcher := mpitest.Launcher(job, batchv1.JobComplete)
	launcher.Status.CompletionTime = &completed
	if at := jobstate.Judge(job, jobstate.Observed{Now: mpitest.Now, Launcher: launcher}).Finish.At; !at.Equal(completed.Time) {
		t.Errorf("finished at %s, want the launcher's completion %s", at, completed)
	}
	bare := mpitest.Launcher(job, batchv1.JobFailed)
	bare.Status.Conditions[0].LastTransitionTime = metav1.Time{}
	if at := jobstate.Judge(job, jobstate.Observed{Now: mpitest.Now, Launcher: bare}).Finish.At; !at.Equal(mpitest.Now) {
		t.Errorf("finished at %s, want now, %s: a finished job always has a time", at, mpitest.Now)
	}
}

// TestFinishTimeOfPods: the clock of a node may be ahead of or behind the API server's.
func TestFinishTimeOfPods(t *testing.T) {
	job := mpitest.Job(1)
	created, now := mpitest.Now, mpitest.Now.Add(time.Hour)
	for name, test := range map[string]struct{ ended, want time.Time }{
		"known":       {created.Add(time.Minute), created.Add(time.Minute)},
		"unknown":     {time.Time{}, now},
		"clock ahead": {now.Add(time.Minute), now},
		"clock late":  {created.Add(-time.Minute), created},
	} {
		t.Run(name, func(t *testing.T) {
			pod := mpitest.LauncherPod(job, 0, corev1.PodSucceeded, mpitest.Exited(0, "Completed"), endedOn(test.ended))
			out := jobstate.Judge(job, jobstate.Observed{Now: now, Launcher: mpitest.Launcher(job), LauncherPods: []*corev1.Pod{pod}})
			if out.Finish == nil || !out.Finish.At.Equal(test.want) {
				t.Errorf("it finished at %+v, want %s", out.Finish, test.want)
			}
			if out.Launcher.Succeeded != 1 || out.Launcher.Active != 0 {
				t.Errorf("launcher: %+v", *out.Launcher)
			}
		})
	}
}

func TestLauncherHasFinished(t *testing.T) {
	t.Parallel()
	job := mpitest.Job(1)
	for name, test := range map[string]struct {
		launcher *batchv1.Job
		want     bool
	}{
		"none": {nil, false}, "running": {mpitest.Launcher(job), false},
		"complete": {mpitest.Launcher(job, batchv1.JobComplete), true}, "failed": {mpitest.Launcher(job, batchv1.JobFailed), true},
	} {
		if got := jobstate.LauncherHasFinished(job, jobstate.Observed{Launcher: test.launcher}); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
		if test.launcher != nil && jobstate.HasFinished(test.launcher) != test.want {
			t.Errorf("the Job of %s", name)
		}
	}
}

// TestDisruptedWorkerIsReplaced: a worker that failed with its node does not end the job, as one does that its kubelet evicted.
func TestDisruptedWorkerIsReplaced(t *testing.T) {
	job := mpitest.Job(1)
	for reason, want := range map[string]string{"Terminated": "", "Evicted": codes.MPIJobEvicted} {
		worker := mpitest.Worker(job, 0, corev1.PodFailed, func(pod *corev1.Pod) {
			pod.Status.Reason = reason
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonTerminationByKubelet, LastTransitionTime: metav1.NewTime(mpitest.Now)}}
		})
		seen := jobstate.Observed{
			Now: mpitest.Now, Launcher: mpitest.Launcher(job), Workers: []jobstate.Worker{worker},
			LauncherPods: []*corev1.Pod{mpitest.LauncherPod(job, 0, corev1.PodFailed, mpitest.Exited(1, "Error"))},
		}
		got := ""
		if finish := jobstate.Judge(job, seen).Finish; finish != nil {
			got = finish.Reason
		}
		if got != want {
			t.Errorf("with a worker that is %s, the job ended with %q, want %q", reason, got, want)
		}
	}
}
