package trainjob

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"opendatahub.io/mpijob/internal/mpi"
)

// Labels of a TrainJob's pods (jobset/api/jobset/v1alpha2, k8s.io/api/batch/v1).
const (
	// LabelJobSet holds the JobSet's name, which is the TrainJob's.
	LabelJobSet = "jobset.sigs.k8s.io/jobset-name"

	labelJob     = "jobset.sigs.k8s.io/replicatedjob-name"
	labelJobPart = "jobset.sigs.k8s.io/job-index"
	labelRestart = "jobset.sigs.k8s.io/restart-attempt"
	labelIndex   = "batch.kubernetes.io/job-completion-index"
)

// Observe sorts what was seen of a job that Convert made: its JobSet, nil where there is none, and whatever Jobs and pods
// carry the JobSet's label. Those of an earlier TrainJob of the same name are left out, and pods that are stopped. Objects are
// taken as they are.
func Observe(used Runtime, jobSet metav1.Object, jobs []*batchv1.Job, pods []*corev1.Pod, now time.Time) mpi.Observed {
	seen := mpi.Observed{Now: now}
	if jobSet == nil {
		return seen
	}
	mine := map[types.UID]*batchv1.Job{}
	for _, job := range jobs {
		if !metav1.IsControlledBy(job, jobSet) {
			continue
		}
		mine[job.UID] = job
		switch role(used, job.Labels[labelJob]) {
		case mpi.RoleLauncher:
			seen.Launcher = job
		case mpi.RoleWorker:
			seen.WorkerJob = job
		}
	}
	pods = slices.DeleteFunc(slices.Clone(pods), func(pod *corev1.Pod) bool {
		owner := metav1.GetControllerOfNoCopy(pod)
		return owner == nil || mine[owner.UID] == nil || mpi.IsStopped(mine[owner.UID], pod)
	})
	seen.LauncherPods, seen.Workers = Pods(used, pods)
	return seen
}

// Follow tells where a job is that Convert made. Before Trainer has made its JobSet there is nothing of it but the
// TrainJob; wrong is for what Trainer's JobSet is refused (Wire), and is told meanwhile.
func Follow(job mpi.Job, seen mpi.Observed, hasJobSet bool, wrong field.ErrorList) mpi.Outcome {
	out := mpi.Follow(job, seen)
	switch {
	case hasJobSet || out.Phase != mpi.PhasePending:
	case len(wrong) > 0:
		invalid := mpi.Invalid(wrong)
		out.Reason, out.Message, out.Trouble = invalid.Reason, invalid.Message, true
	default:
		out.Reason = ReasonNoJobSet
		out.Message = "Waiting for Kubeflow Trainer to make the job's JobSet. If that takes longer than some seconds, Trainer's " +
			"controller does not run, or is refused what it asks for: its log says which."
	}
	return out
}

// ReasonNoJobSet is that of a job for which Trainer has made nothing yet.
const ReasonNoJobSet = "WaitingForJobSet"

// Pods tells the pods of a TrainJob's JobSet apart: the tries of the launcher, the oldest first, and the workers by
// index, where a worker that was made anew is seen once, as its latest pod. Pods of an earlier restart of the whole
// JobSet are left out, and so are those of initializers.
func Pods(used Runtime, pods []*corev1.Pod) (launchers []*corev1.Pod, workers []mpi.Worker) {
	attempt := 0
	for _, pod := range pods {
		attempt = max(attempt, number(pod, labelRestart))
	}
	latest := map[int]*corev1.Pod{}
	for _, pod := range pods {
		if number(pod, labelRestart) != attempt {
			continue
		}
		switch role(used, pod.Labels[labelJob]) {
		case mpi.RoleLauncher:
			launchers = append(launchers, pod)
		case mpi.RoleWorker:
			index := number(pod, labelIndex)
			if index == 0 {
				index = number(pod, labelJobPart)
			}
			if have := latest[index]; have == nil || older(have, pod) < 0 {
				latest[index] = pod
			}
		}
	}
	slices.SortFunc(launchers, older)
	for index, pod := range latest {
		workers = append(workers, mpi.Worker{Index: index, Pod: pod})
	}
	slices.SortFunc(workers, func(a, b mpi.Worker) int { return cmp.Compare(a.Index, b.Index) })
	return launchers, workers
}

// role is what the pods of one of the runtime's jobs do; empty for those that neither launch nor compute.
func role(used Runtime, job string) mpi.Role {
	trainer := used.trainer()
	switch {
	case used.IsMPI() && job == launcherName:
		return mpi.RoleLauncher
	case job == nodeName, trainer != nil && job == trainer.Name:
		return mpi.RoleWorker
	}
	return ""
}

func older(a, b *corev1.Pod) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

func number(pod *corev1.Pod, label string) int {
	n, _ := strconv.Atoi(pod.Labels[label])
	return n
}
