package trainjob_test

import (
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
)

func jobSet(uid types.UID) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(trainjob.JobSetKind)
	object.SetName("pi")
	object.SetUID(uid)
	return object
}

func ownedBy(kind, name string, uid types.UID) []metav1.OwnerReference {
	return []metav1.OwnerReference{{Kind: kind, Name: name, UID: uid, Controller: new(true)}}
}

// jobOf is one of the JobSet's Jobs.
func jobOf(set types.UID, name string) *batchv1.Job {
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Name: "pi-" + name + "-0", UID: set + types.UID(name), OwnerReferences: ownedBy("JobSet", "pi", set),
		Labels: map[string]string{"jobset.sigs.k8s.io/replicatedjob-name": name},
	}}
}

// podOf is a pod of one of the JobSet's Jobs, in a phase.
func podOf(set types.UID, name string, index, attempt, age int, phase corev1.PodPhase) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("pi-%s-0-%d-%s%d", name, index, set, age), OwnerReferences: ownedBy("Job", "pi-"+name+"-0", set+types.UID(name)),
			CreationTimestamp: metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 100-age, 0, time.UTC)),
			Labels: map[string]string{
				"jobset.sigs.k8s.io/replicatedjob-name": name, "jobset.sigs.k8s.io/restart-attempt": fmt.Sprint(attempt),
				"batch.kubernetes.io/job-completion-index": fmt.Sprint(index),
			},
		},
		Status: corev1.PodStatus{Phase: phase},
	}
}

func TestObserve(t *testing.T) {
	jobs := []*batchv1.Job{jobOf("new", "node"), jobOf("new", "launcher"), jobOf("old", "launcher")}
	pods := []*corev1.Pod{
		podOf("old", "launcher", 0, 0, 90, corev1.PodRunning),
		podOf("new", "launcher", 0, 1, 10, corev1.PodRunning),
		podOf("new", "launcher", 0, 1, 20, corev1.PodFailed),
		podOf("new", "node", 1, 1, 5, corev1.PodPending),
		podOf("new", "node", 0, 1, 5, corev1.PodRunning),
		podOf("new", "node", 1, 1, 30, corev1.PodFailed),
		podOf("new", "node", 2, 0, 60, corev1.PodFailed),
	}
	seen := trainjob.Job{Runtime: base(t), JobSet: jobSet("new"), Jobs: jobs, Pods: pods}.Observe(jobstate.Observed{})
	if seen.Launcher != jobs[1] || seen.WorkerJob != jobs[0] {
		t.Errorf("the launcher's Job is %v, the workers' is %v", seen.Launcher, seen.WorkerJob)
	}
	if len(seen.LauncherPods) != 2 || seen.LauncherPods[0] != pods[2] || seen.LauncherPods[1] != pods[1] {
		t.Errorf("the launcher's tries are %v", seen.LauncherPods)
	}
	if len(seen.Workers) != 2 || seen.Workers[0].Pod != pods[4] || seen.Workers[1].Pod != pods[3] {
		t.Errorf("the workers are %v", seen.Workers)
	}
	if len(seen.Replaced) != 1 || seen.Replaced[0].Pod != pods[5] || seen.Replaced[0].Index != 1 {
		t.Errorf("the replaced workers are %v", seen.Replaced)
	}
	prepare := []*corev1.Pod{
		podOf("new", "dataset-initializer", 0, 1, 40, corev1.PodFailed), podOf("new", "dataset-initializer", 0, 1, 35, corev1.PodFailed),
		podOf("new", "model-initializer", 0, 0, 60, corev1.PodFailed), podOf("new", "other-initializer", 0, 1, 35, corev1.PodFailed),
	}
	preparing := trainjob.Job{Runtime: base(t), JobSet: jobSet("new"), Jobs: []*batchv1.Job{jobOf("new", "dataset-initializer"), jobOf("new", "model-initializer")}, Pods: prepare}.Observe(jobstate.Observed{})
	if len(preparing.Initializers) != 1 || preparing.Initializers[0] != prepare[1] || len(preparing.Workers) > 0 {
		t.Errorf("the initializers' pods are %v, the workers %v", preparing.Initializers, preparing.Workers)
	}
	workers := jobs[0].DeepCopy()
	workers.Spec.Suspend = new(true)
	leaving := pods[3].DeepCopy()
	leaving.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	seen = trainjob.Job{Runtime: base(t), JobSet: jobSet("new"), Jobs: []*batchv1.Job{workers, jobs[1]}, Pods: append(pods[:3:3], leaving, pods[4])}.Observe(jobstate.Observed{})
	if len(seen.LauncherPods) != 2 || len(seen.Workers) != 1 || seen.Workers[0].Pod != leaving {
		t.Errorf("while the workers' Job is suspended the workers are %v, the launcher's tries %v", seen.Workers, seen.LauncherPods)
	}
	if nothing := (trainjob.Job{Runtime: base(t), Jobs: jobs, Pods: pods}).Observe(jobstate.Observed{}); nothing.Launcher != nil || len(nothing.Workers) > 0 {
		t.Errorf("without a JobSet there is %v", nothing)
	}
}

func connected(job trainjob.TrainJob, connections string) trainjob.TrainJob {
	job.Annotations = map[string]string{mpi.AnnotationConnections: connections}
	return job
}

func TestFollow(t *testing.T) {
	const four = "{numNodes: 4}"
	workers := func(phase corev1.PodPhase) []*corev1.Pod {
		return []*corev1.Pod{podOf("u", "node", 0, 0, 5, phase), podOf("u", "node", 1, 0, 5, phase), podOf("u", "node", 2, 0, 5, phase)}
	}
	launcher := func(phase corev1.PodPhase) *corev1.Pod { return podOf("u", "launcher", 0, 0, 5, phase) }
	failed := "status: {conditions: [{type: Failed, status: 'True', reason: FailedJobs, message: jobset failed, lastTransitionTime: '2026-01-02T03:04:05Z'}]}"
	tests := map[string]struct {
		job      trainjob.TrainJob
		runtime  trainjob.Runtime
		noJobSet bool
		pods     []*corev1.Pod
		phase    v1alpha1.Phase
		reason   string
		finished bool
	}{
		"no JobSet yet":             {job: job(t, four), runtime: base(t), noJobSet: true, phase: v1alpha1.PhasePending, reason: trainjob.ReasonNoJobSet},
		"no JobSet ever":            {job: connected(job(t, four), "elsewhere/data"), runtime: base(t), noJobSet: true, phase: v1alpha1.PhasePending, reason: codes.ValidationError},
		"suspended":                 {job: job(t, four, "  suspend: true"), runtime: base(t), noJobSet: true, phase: v1alpha1.PhaseSuspended, reason: codes.Suspended},
		"pods start":                {job: job(t, four), runtime: base(t), pods: workers(corev1.PodPending), phase: v1alpha1.PhaseInitializing, reason: codes.PodsStarting},
		"runs":                      {job: job(t, four), runtime: base(t), pods: append(workers(corev1.PodRunning), launcher(corev1.PodRunning)), phase: v1alpha1.PhaseRunning, reason: codes.Running},
		"the launcher is done":      {job: job(t, four), runtime: base(t), pods: []*corev1.Pod{launcher(corev1.PodSucceeded)}, phase: v1alpha1.PhaseRunning, reason: codes.Running},
		"the launcher is tried":     {job: job(t, four), runtime: base(t), pods: append(workers(corev1.PodRunning), launcher(corev1.PodFailed)), phase: v1alpha1.PhaseInitializing, reason: codes.PodsStarting},
		"failed":                    {job: job(t, four, failed), runtime: base(t), phase: v1alpha1.PhaseFailed, reason: "FailedJobs", finished: true},
		"another framework runs":    {job: job(t, "{numNodes: 3}"), runtime: base(t, "    mpi:\n", "    torch:\n"), pods: workers(corev1.PodRunning), phase: v1alpha1.PhaseRunning, reason: codes.Running},
		"another framework waits":   {job: job(t, four), runtime: base(t, "    mpi:\n", "    torch:\n"), pods: workers(corev1.PodRunning), phase: v1alpha1.PhaseInitializing, reason: codes.PodsStarting},
		"one of its nodes is ready": {job: job(t, "{numNodes: 3}"), runtime: base(t, "    mpi:\n", "    torch:\n"), pods: append(workers(corev1.PodRunning)[:2], workers(corev1.PodSucceeded)[2]), phase: v1alpha1.PhaseRunning, reason: codes.Running},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			read := trainjob.Job{TrainJob: test.job, Runtime: test.runtime, Jobs: []*batchv1.Job{jobOf("u", "node"), jobOf("u", "launcher")}, Pods: test.pods}
			if !test.noJobSet {
				read.JobSet = jobSet("u")
			}
			converted, _ := read.Convert()
			out := read.Judge(converted, read.Observe(jobstate.Observed{Now: time.Now()}))
			t.Log(out.Message)
			if out.Phase != test.phase || out.Reason != test.reason || (out.Finish != nil) != test.finished {
				t.Errorf("it is %s (%s), finished %t", out.Phase, out.Reason, out.Finish != nil)
			}
		})
	}
}
