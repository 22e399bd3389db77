package jobstate

import (
	"fmt"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/podstatus"
	"opendatahub.io/mpijob/internal/times"
)

// finished returns whether and how the job has ended. Its recorded end is final; then its launcher decides, then
// workers that are lost for good. For a job that another controller runs only the recorded end counts: that controller
// may retry what failed.
func finished(j mpi.Job, o Observed) *mpi.Finish {
	if j.Recorded.Finish != nil || j.External {
		return j.Recorded.Finish
	}
	finish := launcherFinished(j, o)
	switch {
	case finish != nil:
		return finish
	case o.Gang != nil && o.Gang.GaveUp:
		return &mpi.Finish{Reason: o.Gang.failure(), Message: o.Gang.gaveUp(), At: o.Now}
	case j.Lifecycle.Suspended:
		return nil
	case o.Launcher == nil && IsOverdue(j, o):
		// No batch Job watches the time while the launcher's is replaced.
		return &mpi.Finish{Reason: batchv1.JobReasonDeadlineExceeded, Message: "Job was active longer than specified deadline", At: o.Now}
	}
	return workersFailed(j, o)
}

func (o *Outcome) finish(f mpi.Finish) {
	o.Phase, o.Finish, o.Reason, o.Message = v1alpha1.PhaseFailed, &f, f.Reason, f.Message
	if f.Succeeded {
		o.Phase = v1alpha1.PhaseSucceeded
	}
	// What a finished job leaves running is waiting to be cleaned up, not working.
	o.Workers = Tally{Wanted: o.Workers.Wanted}
	if o.Launcher != nil {
		o.Launcher.Active, o.Launcher.Running, o.Launcher.Ready = 0, 0, 0
	}
}

// launcherFinished returns how the launcher's Job ended, which decides on the job.
func launcherFinished(j mpi.Job, o Observed) *mpi.Finish {
	if o.Launcher == nil {
		return nil
	}
	if done := jobCondition(o.Launcher, batchv1.JobComplete); done != nil {
		at := done.LastTransitionTime.Time
		if o.Launcher.Status.CompletionTime != nil {
			at = o.Launcher.Status.CompletionTime.Time
		}
		return &mpi.Finish{
			Succeeded: true, Reason: codes.Succeeded, At: orNow(at, o.Now),
			Message: codes.Status(codes.Succeeded, map[string]string{"namespace": j.Namespace, "job": j.Name}),
		}
	}
	if failed := jobCondition(o.Launcher, batchv1.JobFailed); failed != nil {
		if IsLauncherReplaced(j, o) {
			return nil
		}
		reason, message := launcherFailure(j, failed, o.LauncherPods)
		return &mpi.Finish{Reason: reason, Message: message, At: orNow(failed.LastTransitionTime.Time, o.Now)}
	}
	return launcherPodFinished(j, o)
}

// launcherPodFinished returns how the launcher's last pod ended, before its batch Job has the condition, which takes a
// second or two. It returns nil if the Job may start another pod.
func launcherPodFinished(j mpi.Job, o Observed) *mpi.Finish {
	n := len(o.LauncherPods)
	if n == 0 || o.Launcher == nil || o.Launcher.DeletionTimestamp != nil || ptr.Deref(o.Launcher.Spec.Suspend, false) {
		return nil
	}
	last := o.LauncherPods[n-1]
	if last.DeletionTimestamp != nil || len(unforgiven(j, o)) > 0 {
		return nil
	}
	// The clock of the node may differ from the API server's.
	at := times.Earlier(o.Now, times.Later(podstatus.EndedAt(last), last.CreationTimestamp.Time))
	if podstatus.EndedAt(last).IsZero() {
		at = o.Now
	}
	switch tally := tallyLauncher(o); {
	case last.Status.Phase == corev1.PodSucceeded:
		return &mpi.Finish{
			Succeeded: true, Reason: codes.Succeeded, At: at,
			Message: codes.Status(codes.Succeeded, map[string]string{"namespace": j.Namespace, "job": j.Name}),
		}
	case last.Status.Phase == corev1.PodFailed && tally.Failed > backoffLimit(j, o):
		// As the Job controller writes it (k8s.io/kubernetes/pkg/controller/job).
		reason, message := launcherFailure(j, &batchv1.JobCondition{
			Reason: batchv1.JobReasonBackoffLimitExceeded, Message: "Job has reached the specified backoff limit",
		}, o.LauncherPods)
		return &mpi.Finish{Reason: reason, Message: message, At: at}
	}
	return nil
}

// LauncherHasFinished reports whether the launcher has come to its end, well or not: its Job has, or will start no other
// pod.
func LauncherHasFinished(j mpi.Job, o Observed) bool {
	return o.Launcher != nil && launcherFinished(j, o) != nil
}

// launcherFailure returns why the launcher failed, in mpi-operator's form: after the last attempt, the failed pod's own
// reason and message follow the Job's.
func launcherFailure(j mpi.Job, failed *batchv1.JobCondition, tries []*corev1.Pod) (reason, message string) {
	reason, message = failed.Reason, failed.Message
	if reason == "" {
		reason = codes.Failed
	}
	if message == "" {
		message = codes.Status(codes.Failed, map[string]string{"namespace": j.Namespace, "job": j.Name})
	}
	var last *corev1.Pod
	for _, pod := range tries {
		if pod.Status.Phase == corev1.PodFailed {
			last = pod
		}
	}
	if last == nil {
		return reason, message
	}
	if reason == batchv1.JobReasonBackoffLimitExceeded && last.Status.Reason != "" {
		reason += "/" + last.Status.Reason
	}
	if last.Status.Message != "" {
		message += ": " + last.Status.Message
	}
	if exit := lastExit(last); exit != "" {
		message += ": the launcher " + exit
	}
	return reason, message
}

// launcherFailedSince reports whether a try of the launcher has failed at or after a time.
func launcherFailedSince(o Observed, since time.Time) bool {
	for _, pod := range o.LauncherPods {
		for _, c := range pod.Status.ContainerStatuses {
			for _, ended := range []*corev1.ContainerStateTerminated{c.State.Terminated, c.LastTerminationState.Terminated} {
				if ended != nil && ended.ExitCode != 0 && !ended.FinishedAt.Time.Before(since) {
					return true
				}
			}
		}
	}
	return false
}

// IsReplaced reports whether a worker gets a new pod after it failed: with the workers' restart policy OnFailure, and if it was disrupted.
func IsReplaced(j mpi.Job, worker Worker) bool {
	return j.Workers.Replaced() || podstatus.Disruption(worker.Pod) != nil
}

// workersFailed ends a job whose workers are lost for good, unless they are replaced. One that was evicted ends it at once,
// as with mpi-operator. Any other that failed ends it when the launcher has failed after it: the worker is not started
// again, so that the launcher's further tries, minutes apart, could only fail as well. A launcher that goes on
// without the worker, as elastic programs do, is left alone.
func workersFailed(j mpi.Job, o Observed) *mpi.Finish {
	evicted := 0
	var lost *Worker
	for i := range o.Workers {
		worker := &o.Workers[i]
		if worker.Index >= int(j.Workers.Count) || worker.Pod.DeletionTimestamp != nil || worker.Pod.Status.Phase != corev1.PodFailed || IsReplaced(j, *worker) {
			continue
		}
		if worker.Pod.Status.Reason == "Evicted" {
			evicted++
		}
		if lost == nil && launcherFailedSince(o, podstatus.EndedAt(worker.Pod)) {
			lost = worker
		}
	}
	switch {
	case evicted > 0:
		return &mpi.Finish{Reason: codes.MPIJobEvicted, At: o.Now, Message: codes.Status(codes.MPIJobEvicted, map[string]string{"evicted": strconv.Itoa(evicted), "wanted": strconv.Itoa(int(j.Workers.Count))})}
	case lost != nil:
		return &mpi.Finish{Reason: codes.WorkerFailed, At: o.Now, Message: codes.Status(codes.WorkerFailed, map[string]string{
			"who":  fmt.Sprintf("Worker %d", lost.Index),
			"exit": failedText(lost.Pod) + " The launcher then failed. Retries do not help, since failed workers are not replaced: their restartPolicy is not OnFailure.",
		})}
	}
	return nil
}

// HasFinished reports whether a launcher's Job has come to its end, well or not.
func HasFinished(launcher *batchv1.Job) bool {
	return jobCondition(launcher, batchv1.JobComplete) != nil || jobCondition(launcher, batchv1.JobFailed) != nil
}

// IsEnding reports whether the Job controller has decided how a launcher's Job ends, or it has ended.
func IsEnding(launcher *batchv1.Job) bool {
	return HasFinished(launcher) || jobCondition(launcher, batchv1.JobFailureTarget) != nil || jobCondition(launcher, batchv1.JobSuccessCriteriaMet) != nil
}

func jobCondition(job *batchv1.Job, kind batchv1.JobConditionType) *batchv1.JobCondition {
	for i := range job.Status.Conditions {
		if c := &job.Status.Conditions[i]; c.Type == kind && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

func orNow(at, now time.Time) time.Time {
	if at.IsZero() {
		return now
	}
	return at
}
