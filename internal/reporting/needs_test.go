package reporting

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

// TestPodsThatAreNotCreated: why a job has no pods is asked for after some seconds, and in time.
func TestPodsThatAreNotCreated(t *testing.T) {
	t.Parallel()
	trainJob := func(j *mpi.Job) { j.External, j.Kind = true, mpi.KindTrainJob }
	ago := func(seconds int) metav1.Time {
		return metav1.NewTime(mpitest.Now.Add(-time.Duration(seconds) * time.Second))
	}
	made := func(seconds int) *batchv1.Job {
		job := mpitest.Launcher(mpitest.Job(2))
		job.CreationTimestamp = ago(seconds)
		return job
	}
	reported := func(seconds int) *v1alpha1.JobReport {
		return &v1alpha1.JobReport{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: ago(seconds)}}
	}
	suspended := made(60)
	suspended.Spec.Suspend = new(true)
	launcher := []*corev1.Pod{mpitest.LauncherPod(mpitest.Job(1), 0, corev1.PodRunning)}
	endedAgo := func(pod *corev1.Pod) {
		mpitest.Exited(0, "Completed")(pod)
		pod.Status.ContainerStatuses[0].State.Terminated.FinishedAt = ago(2)
	}
	failedInitializer := &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodFailed}}
	unready := func(pod *corev1.Pod) {
		pod.CreationTimestamp = ago(60)
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
	}
	unreadySince := func(seconds int) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { unready(pod); pod.CreationTimestamp = ago(seconds) }
	}
	workers := func(changes ...func(*corev1.Pod)) []jobstate.Worker {
		return []jobstate.Worker{mpitest.Worker(mpitest.Job(1, trainJob), 0, corev1.PodRunning, changes...)}
	}
	for name, test := range map[string]struct {
		job      mpi.Job
		seen     jobstate.Observed
		previous *v1alpha1.JobReport
		needs    bool
		// within is after how long it is looked at again at the latest; 0: not for this.
		within time.Duration
	}{
		"no JobSet, new":                       {mpitest.Job(2, trainJob), jobstate.Observed{}, nil, false, 6 * time.Second},
		"no JobSet, for some seconds":          {mpitest.Job(2, trainJob), jobstate.Observed{}, reported(5), true, 5 * time.Second},
		"no JobSet, for long":                  {mpitest.Job(2, trainJob), jobstate.Observed{}, reported(3600), true, 30 * time.Second},
		"the launcher's Job is refused":        {mpitest.Job(2, trainJob), jobstate.Observed{WorkerJob: suspended}, reported(60), true, 30 * time.Second},
		"a Job beside the workers' is refused": {mpitest.Job(1, trainJob), jobstate.Observed{WorkerJob: made(60), Workers: workers()}, reported(60), true, 30 * time.Second},
		"the launcher awaits ready workers":    {mpitest.Job(1, trainJob), jobstate.Observed{WorkerJob: made(10), Workers: workers(unreadySince(8))}, reported(10), false, 23 * time.Second},
		"its gate is closed":                   {mpitest.Job(2, trainJob), jobstate.Observed{Gate: &jobstate.Gate{Closed: true}}, reported(60), false, 0},
		"suspended":                            {mpitest.Job(2, trainJob, func(j *mpi.Job) { j.Lifecycle.Suspended = true }), jobstate.Observed{}, reported(60), false, 0},
		"no pod of the workers' Job":           {mpitest.Job(2, trainJob), jobstate.Observed{WorkerJob: made(5)}, reported(6), true, 5 * time.Second},
		"no launcher's pod":                    {mpitest.Job(0), jobstate.Observed{Launcher: made(5)}, reported(6), true, 5 * time.Second},
		"no launcher's pod yet":                {mpitest.Job(0), jobstate.Observed{Launcher: made(2)}, reported(2), false, 4 * time.Second},
		"the launcher's Job is suspended":      {mpitest.Job(0), jobstate.Observed{Launcher: suspended}, reported(60), false, 0},
		"the launcher has a pod":               {mpitest.Job(0), jobstate.Observed{Launcher: made(5), LauncherPods: []*corev1.Pod{mpitest.LauncherPod(mpitest.Job(0), 0, corev1.PodRunning)}}, reported(6), false, 0},
		"a worker has ended":                   {mpitest.Job(1), jobstate.Observed{Launcher: made(5), LauncherPods: launcher, Workers: []jobstate.Worker{mpitest.Worker(mpitest.Job(1), 0, corev1.PodSucceeded, endedAgo)}}, reported(6), true, 4 * time.Second},
		"an initializer failed":                {mpitest.Job(2, trainJob), jobstate.Observed{WorkerJob: suspended, Launcher: suspended, Initializers: []*corev1.Pod{failedInitializer}}, reported(1), true, 0},
		"a worker is not ready":                {mpitest.Job(1), jobstate.Observed{Workers: []jobstate.Worker{mpitest.Worker(mpitest.Job(1), 0, corev1.PodRunning, unready)}}, reported(60), true, 30 * time.Second},
		"an MPIJob that has no Job yet":        {mpitest.Job(0), jobstate.Observed{}, reported(60), false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.seen.Now = mpitest.Now
			out := jobstate.Judge(test.job, test.seen)
			if got := needsEvidence(test.job, test.seen, nil, out, test.previous); got != test.needs {
				t.Errorf("it needs evidence: %v, want %v", got, test.needs)
			}
			next := &v1alpha1.JobReport{}
			if test.previous != nil {
				next = test.previous
			}
			if got := nextUpdate(test.job, test.seen, out, next, 0, 0); test.within > 0 && (got == 0 || got > test.within) || test.within == 0 && got != 0 && got < time.Minute {
				t.Errorf("it is looked at again after %s, want %s", got, test.within)
			}
		})
	}
}

// TestFinishedJobsWhosePodsHoldResources: their reports are updated until the pods hold nothing.
func TestFinishedJobsWhosePodsHoldResources(t *testing.T) {
	t.Parallel()
	out := jobstate.Outcome{Phase: v1alpha1.PhaseSucceeded, Finish: &mpi.Finish{At: mpitest.Now, Succeeded: true}}
	next := &v1alpha1.JobReport{}
	for held, want := range map[string]time.Duration{"1": usageRefresh, "": 0} {
		next.Status.Consumption = &v1alpha1.Consumption{}
		if held != "" {
			next.Status.Consumption.Held = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(held)}
		}
		if got := nextUpdate(mpitest.Job(1), jobstate.Observed{Now: mpitest.Now}, out, next, 0, 0); got != want {
			t.Errorf("with %q cores, it is looked at again after %s, want %s", held, got, want)
		}
	}
}
