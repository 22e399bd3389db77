package facts

import (
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/podstatus"
)

// ignoreDeleted marks the latest launcher if something else deleted it while it ran. What happens in it afterwards, such as
// a crash of mpirun while it cleans up, is a consequence: only ranks that had ended before count.
func (f *Facts) ignoreDeleted() {
	launcher := f.Launcher()
	if launcher == nil || launcher.DeletionTimestamp == nil || f.Job.Lifecycle.Deleting || f.PutBack() || f.StoppedByJob() {
		return
	}
	at := DeletedAt(launcher.Pod)
	if end := podstatus.EndedAt(launcher.Pod); podstatus.HasEnded(launcher.Pod) && end.IsZero() || !end.IsZero() && end.Before(at) {
		return
	}
	if f.RemovalOf(*launcher) != nil || f.Job.Workers.Count > 0 && !f.WorkersSince(at) {
		return
	}
	launcher.Deleted = true
	launcher.Summary = summaryBefore(launcher.Summary, at)
}

// summaryBefore returns what an agent's summary has of the time before a pod was deleted; nil if there is none.
func summaryBefore(summary *agentapi.Summary, at time.Time) *agentapi.Summary {
	if summary == nil {
		return nil
	}
	before := *summary
	before.Code, before.Message, before.Hosts = "", "", nil
	before.Ranks = slices.DeleteFunc(slices.Clone(before.Ranks), func(end agentapi.RankEnd) bool { return end.At == 0 || end.At >= at.UnixMilli() })
	return &before
}

// forgetEarlierTries leaves out the launcher's earlier tries once its latest one has failed by itself: what ended an earlier try,
// even if it explains more, did not end this one.
func (f *Facts) forgetEarlierTries() {
	launcher := f.Launcher()
	if launcher == nil || launcher.End() == nil || launcher.Deleted || launcher.stopped {
		return
	}
	f.Pods = slices.DeleteFunc(f.Pods, func(pod Pod) bool { return !pod.Latest })
}

// StoppedByJob reports whether the Job controller deletes the launcher's pod, as it does when the Job has ended
// (k8s.io/kubernetes/pkg/controller/job): of its own accord, or because the pod's containers were restarted too often.
// The conditions are written after the pod is deleted.
func (f *Facts) StoppedByJob() bool {
	job := f.Seen.Launcher
	if job == nil {
		return false
	}
	for _, c := range job.Status.Conditions {
		switch {
		case c.Status != corev1.ConditionTrue:
		case c.Type == batchv1.JobComplete || c.Type == batchv1.JobSuccessCriteriaMet:
			return true
		case c.Type == batchv1.JobFailed || c.Type == batchv1.JobFailureTarget:
			// A pod that was deleted counts as failed: then it was not the Job that deleted it.
			launcher := f.Launcher()
			return c.Reason != batchv1.JobReasonBackoffLimitExceeded || launcher == nil || podstatus.Restarts(launcher.Pod) > 0
		}
	}
	launcher := f.Launcher()
	return launcher != nil && podstatus.Restarts(launcher.Pod) > 0 && jobstate.CountAttempts(f.Job, f.Seen).Exhausted()
}

// PutBack reports whether the operator itself takes the job's pods away, since not all of them found a place.
func (f *Facts) PutBack() bool {
	gang := f.Seen.Gang
	return gang != nil && (gang.Hold || gang.Evict)
}

// WorkersSince reports whether a worker was there already at a time, and stays: one that was made later belongs to a new
// start, as after a suspension, which ends launchers and workers alike.
func (f *Facts) WorkersSince(at time.Time) bool {
	for _, pod := range f.Pods {
		if pod.Role == mpi.RoleWorker && pod.DeletionTimestamp == nil && pod.CreationTimestamp.Time.Before(at) {
			return true
		}
	}
	return false
}

// StoppedByController reports whether the operator, the Job controller or JobSet stops the launcher, because a worker failed, the
// time of the job is over, or the job has ended because of something else than its launcher. Conditions that state it are written
// later, or not at all.
func (f *Facts) StoppedByController() bool {
	if finish := f.Outcome.Finish; finish != nil && (finish.Reason == codes.WorkerFailed || slices.Contains(endsOfJobs, finish.Reason)) {
		return true
	}
	// The Job controller deletes the pod before the Job has a condition (k8s.io/kubernetes/pkg/controller/job).
	return jobstate.IsOverdue(f.Job, f.Seen) || f.Job.External && f.workerFailedFirst()
}

// endsOfJobs are the reasons for which the operator or Kubeflow Trainer ends a job as a whole.
var endsOfJobs = []string{codes.MPIJobEvicted, codes.GangTimeout, codes.DeadlineExceeded}

// workerFailedFirst reports whether a worker failed before the launcher was deleted. JobSet deletes the launcher's Job when that of
// the workers has failed.
func (f *Facts) workerFailedFirst() bool {
	if job := f.Seen.WorkerJob; job != nil && slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return (c.Type == batchv1.JobFailed || c.Type == batchv1.JobFailureTarget) && c.Status == corev1.ConditionTrue
	}) {
		return true
	}
	launcher := f.Launcher()
	return slices.ContainsFunc(f.Pods, func(pod Pod) bool {
		if pod.Role != mpi.RoleWorker || pod.Status.Phase != corev1.PodFailed {
			return false
		}
		return launcher == nil || launcher.DeletionTimestamp == nil || !podstatus.EndedAt(pod.Pod).After(DeletedAt(launcher.Pod).Add(time.Second))
	})
}
