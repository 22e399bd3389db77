package jobstate_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

// TestForgive: an attempt that Kubernetes ended does not count, once, and only that one.
func TestForgive(t *testing.T) {
	t.Parallel()
	never := corev1.RestartPolicyNever
	removed := func(reason string, at time.Time) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
				Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: reason, LastTransitionTime: metav1.NewTime(at),
			})
		}
	}
	preempted := removed(corev1.PodReasonPreemptionByScheduler, mpitest.Now)
	// A kubelet sets the reason with the condition (k8s.io/kubernetes/pkg/kubelet/nodeshutdown, eviction).
	byKubelet := func(reason string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			removed(corev1.PodReasonTerminationByKubelet, mpitest.Now)(p)
			p.Status.Phase, p.Status.Reason = corev1.PodFailed, reason
		}
	}
	byKueue := func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodFailed
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
			Type: "TerminatedByKueue", Status: corev1.ConditionTrue, Reason: "UnschedulableOnAssignedNode", LastTransitionTime: metav1.NewTime(mpitest.Now),
		})
	}
	runs := func(p *corev1.Pod) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
			Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(mpitest.Now.Add(-time.Minute))},
		}}}
	}
	tests := map[string]struct {
		policy           corev1.RestartPolicy
		limit            int32
		worker, launcher func(*corev1.Pod)
		listed           string
		condition        batchv1.JobConditionType
		disrupted        string
		raised           int32
	}{
		"nothing happened":            {policy: never},
		"a worker is preempted":       {policy: never, worker: preempted, disrupted: "1", raised: 1},
		"the launcher is preempted":   {policy: never, limit: 3, launcher: preempted, disrupted: "1", raised: 4},
		"a node is drained":           {policy: never, worker: removed("EvictionByEvictionAPI", mpitest.Now), disrupted: "1", raised: 1},
		"a node is lost":              {policy: never, worker: removed("DeletionByTaintManager", mpitest.Now), disrupted: "1", raised: 1},
		"the kubelet evicts a worker": {policy: never, worker: byKubelet("Evicted")},
		"a node shuts down":           {policy: never, worker: byKubelet("Terminated"), disrupted: "1", raised: 1},
		"Kueue fails a worker":        {policy: never, worker: byKueue, disrupted: "1", raised: 1},
		"restarted in its pod":        {policy: corev1.RestartPolicyOnFailure, worker: preempted, disrupted: "1", raised: 2},
		"restarted in its pod, twice": {policy: corev1.RestartPolicyOnFailure, limit: 2, worker: preempted, disrupted: "1", raised: 3},
		"entered before":              {policy: never, limit: 1, worker: preempted, listed: "1"},
		"of an earlier attempt":       {policy: never, limit: 1, worker: removed("EvictionByEvictionAPI", mpitest.Now.Add(-time.Hour))},
		"the Job has failed":          {policy: never, worker: preempted, condition: batchv1.JobFailed},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := mpitest.Job(2, func(j *mpi.Job) { j.Launcher.RestartPolicy, j.Lifecycle.BackoffLimit = test.policy, &test.limit })
			launcher := mpitest.Launcher(job)
			if test.condition != "" {
				launcher = mpitest.Launcher(job, test.condition)
			}
			launcher.Spec.BackoffLimit, launcher.Spec.Template.Spec.RestartPolicy = &test.limit, test.policy
			launcher.Annotations = map[string]string{mpi.AnnotationDisrupted: test.listed}
			change := func(f func(*corev1.Pod)) func(*corev1.Pod) {
				if f == nil {
					return func(*corev1.Pod) {}
				}
				return f
			}
			seen := jobstate.Observed{
				Now: mpitest.Now, Launcher: launcher,
				LauncherPods: []*corev1.Pod{mpitest.LauncherPod(job, 0, corev1.PodRunning, runs, change(test.launcher))},
				Workers:      []jobstate.Worker{mpitest.Worker(job, 0, corev1.PodRunning), mpitest.Worker(job, 1, corev1.PodRunning, change(test.worker))},
			}
			disrupted, raised, changed := jobstate.Forgive(job, seen)
			if disrupted != test.disrupted || raised != test.raised || changed != (test.disrupted != "") {
				t.Errorf("got %q, limit %d, %t; want %q, limit %d", disrupted, raised, changed, test.disrupted, test.raised)
			}
		})
	}
}

// TestRestartsOfTheWholeJobAreAttempts: JobSet starts a TrainJob's pods anew.
func TestRestartsOfTheWholeJobAreAttempts(t *testing.T) {
	t.Parallel()
	job := mpitest.Job(2, func(j *mpi.Job) {
		j.External, j.Lifecycle.MaxRestarts, j.Lifecycle.BackoffLimit, j.Launcher.RestartPolicy = true, 3, new(int32), corev1.RestartPolicyNever
	})
	launcher := mpitest.Launcher(job)
	launcher.Spec.BackoffLimit, launcher.Spec.Template.Spec.RestartPolicy = new(int32), corev1.RestartPolicyNever
	seen := jobstate.Observed{Now: mpitest.Now, Launcher: launcher, LauncherPods: []*corev1.Pod{mpitest.LauncherPod(job, 0, corev1.PodRunning)}, Restarts: 2}
	if got := jobstate.CountAttempts(job, seen).String(); got != "attempt 3 of 4" {
		t.Errorf("it is %s", got)
	}
}
