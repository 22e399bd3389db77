package trainjob

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/kinds"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/podstatus"
)

// Labels of a TrainJob's pods (jobset/api/jobset/v1alpha2, k8s.io/api/batch/v1).
const (
	// LabelJobSet holds the JobSet's name, which is the TrainJob's.
	LabelJobSet = mpi.LabelJobSet

	labelJob     = mpi.LabelJobSetJob
	labelJobPart = "jobset.sigs.k8s.io/job-index"
	labelRestart = "jobset.sigs.k8s.io/restart-attempt"
	labelIndex   = "batch.kubernetes.io/job-completion-index"
)

// Job is a TrainJob as it was read, with its runtime and the objects that Trainer and JobSet created for it. It implements
// kinds.Job.
type Job struct {
	TrainJob
	Runtime Runtime
	// JobSet is nil before Trainer has created it.
	JobSet metav1.Object
	// Jobs and Pods have the label of the JobSet; some may belong to an earlier job of the same name.
	Jobs []*batchv1.Job
	Pods []*corev1.Pod

	object *unstructured.Unstructured
}

var _ kinds.Job = Job{}

// Object returns the TrainJob as the API server has it.
func (j Job) Object() client.Object { return j.object }

// Convert returns the job that Trainer runs. It returns no errors: Trainer decides which TrainJobs it runs. Invalid annotations
// are ignored.
func (j Job) Convert() (mpi.Job, field.ErrorList) {
	job := Convert(j.TrainJob, j.Runtime)
	// A JobSet without a gate was created while the operator did not place TrainJobs.
	job.Gated = job.Gated && (j.JobSet == nil || j.gate() != nil)
	if j.JobSet != nil && j.JobSet.GetLabels()[mpi.LabelWithoutRDMA] != "" {
		job = job.WithoutRDMA()
	}
	job.Ignored = checkJobAnnotations(j.TrainJob, j.Runtime)
	return job, nil
}

// gate returns the gate of the job's pods, which is its JobSet; nil if it has none.
func (j Job) gate() *jobstate.Gate {
	state := j.JobSet.GetAnnotations()[mpi.AnnotationGate]
	if state == "" {
		return nil
	}
	return &jobstate.Gate{
		Kind: JobSetKind, Name: j.JobSet.GetName(), UID: j.JobSet.GetUID(), Closed: state != mpi.GateOpen, Suspended: state == mpi.GateSuspended,
	}
}

// Status returns nil: Trainer writes the status of TrainJobs.
func (Job) Status(jobstate.Outcome, time.Time) (client.Object, []kinds.Event) { return nil, nil }

// Observe adds the Jobs and pods of the job's JobSet, without those of an earlier TrainJob of the same name and without
// pods that are being stopped.
func (j Job) Observe(seen jobstate.Observed) jobstate.Observed {
	if j.JobSet == nil {
		return seen
	}
	seen.Gate = j.gate()
	mine := map[types.UID]*batchv1.Job{}
	for _, job := range j.Jobs {
		if !metav1.IsControlledBy(job, j.JobSet) {
			continue
		}
		mine[job.UID] = job
		switch role(j.Runtime, job.Labels[labelJob]) {
		case mpi.RoleLauncher:
			seen.Launcher = job
		case mpi.RoleWorker:
			seen.WorkerJob = job
		}
	}
	pods := slices.DeleteFunc(slices.Clone(j.Pods), func(pod *corev1.Pod) bool {
		owner := metav1.GetControllerOfNoCopy(pod)
		return owner == nil || mine[owner.UID] == nil || podstatus.IsStopped(mine[owner.UID], pod)
	})
	seen.LauncherPods, seen.Workers = Pods(j.Runtime, pods)
	seen.Replaced = replacedPods(j.Runtime, pods, seen.Workers)
	seen.Initializers = initializerPods(pods)
	seen.Restarts = int32(min(restartAttempt(pods), math.MaxInt16))
	return seen
}

// Judge decides the state of the job. Before Trainer has created its JobSet, that is what the job waits for, or what the
// JobSet is refused for (Wire): the webhook reports it when the job is created, unless no operator answered then.
func (j Job) Judge(job mpi.Job, seen jobstate.Observed) jobstate.Outcome {
	out := jobstate.Judge(job, seen)
	if j.JobSet != nil || out.Phase != v1alpha1.PhasePending {
		return out
	}
	var wrong field.ErrorList
	if j.Runtime.ours() {
		wrong = append(checkWiring(j.TrainJob), CheckLimits(j.TrainJob, j.Runtime)...)
	}
	switch {
	case len(wrong) > 0:
		invalid := jobstate.Invalid(wrong)
		out.Reason, out.Message, out.NeedsAction = invalid.Reason, invalid.Message, true
	default:
		out.Reason = ReasonNoJobSet
		out.Message = "Waiting for Kubeflow Trainer to create the job's JobSet. If this takes longer than some seconds, Trainer's " +
			"controller does not run, or the API server refuses its requests: see its log."
	}
	return out
}

// ReasonNoJobSet is that of a job for which Trainer has made nothing yet.
const ReasonNoJobSet = "WaitingForJobSet"

// Pods returns the pods of a TrainJob's JobSet by their roles: the tries of the launcher, the oldest first, and the workers
// by index, with the latest pod of a worker that was recreated. Pods of an earlier restart of the whole JobSet are left out,
// and so are those of initializers.
func Pods(used Runtime, pods []*corev1.Pod) (launchers []*corev1.Pod, workers []jobstate.Worker) {
	attempt := restartAttempt(pods)
	latest := map[int]*corev1.Pod{}
	for _, pod := range pods {
		if number(pod, labelRestart) != attempt {
			continue
		}
		switch role(used, pod.Labels[labelJob]) {
		case mpi.RoleLauncher:
			launchers = append(launchers, pod)
		case mpi.RoleWorker:
			index := workerIndex(pod)
			if have := latest[index]; have == nil || older(have, pod) < 0 {
				latest[index] = pod
			}
		}
	}
	slices.SortFunc(launchers, older)
	for index, pod := range latest {
		workers = append(workers, jobstate.Worker{Index: index, Pod: pod})
	}
	slices.SortFunc(workers, func(a, b jobstate.Worker) int { return cmp.Compare(a.Index, b.Index) })
	return launchers, workers
}

// replacedPods returns the pods of workers that have a newer one, without those of an earlier restart of the whole JobSet.
func replacedPods(used Runtime, pods []*corev1.Pod, workers []jobstate.Worker) (replaced []jobstate.Worker) {
	attempt := restartAttempt(pods)
	for _, pod := range pods {
		isLatest := slices.ContainsFunc(workers, func(worker jobstate.Worker) bool { return worker.Pod == pod })
		if role(used, pod.Labels[labelJob]) == mpi.RoleWorker && number(pod, labelRestart) == attempt && !isLatest {
			replaced = append(replaced, jobstate.Worker{Index: workerIndex(pod), Pod: pod})
		}
	}
	slices.SortFunc(replaced, func(a, b jobstate.Worker) int { return cmp.Or(cmp.Compare(a.Index, b.Index), older(a.Pod, b.Pod)) })
	return replaced
}

// workerIndex returns the index of a worker.
func workerIndex(pod *corev1.Pod) int {
	return cmp.Or(number(pod, labelIndex), number(pod, labelJobPart))
}

// initializerPods returns the latest pod of each initializer, without those of an earlier restart of the whole JobSet.
func initializerPods(pods []*corev1.Pod) (found []*corev1.Pod) {
	attempt := restartAttempt(pods)
	for _, name := range initializers {
		var latest *corev1.Pod
		for _, pod := range pods {
			if pod.Labels[labelJob] == name && number(pod, labelRestart) == attempt && (latest == nil || older(latest, pod) < 0) {
				latest = pod
			}
		}
		if latest != nil {
			found = append(found, latest)
		}
	}
	return found
}

// restartAttempt is how often the whole JobSet was restarted before its latest pods were created.
func restartAttempt(pods []*corev1.Pod) int {
	attempt := 0
	for _, pod := range pods {
		attempt = max(attempt, number(pod, labelRestart))
	}
	return attempt
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
