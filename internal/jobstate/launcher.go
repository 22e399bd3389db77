package jobstate

import (
	"cmp"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/podstatus"
)

// launcherMayStart reports whether the job's workers let its launcher start: none of them is terminating, one of them has a node if no
// node can hold them (GangState.WorkersFirst), and all of them are ready if the job sets launcherCreationPolicy: WaitForWorkersReady.
func launcherMayStart(j mpi.Job, o Observed, workers Tally) bool {
	if o.Gang != nil && o.Gang.WorkersFirst && !slices.ContainsFunc(o.Workers, func(worker Worker) bool { return worker.Pod.Spec.NodeName != "" }) {
		return false
	}
	return !workerLeaving(j, o) && (!j.Launcher.AfterWorkers || workers.Ready >= workers.Wanted)
}

// workerLeaving reports whether a worker of the job is terminating.
func workerLeaving(j mpi.Job, o Observed) bool {
	for _, worker := range o.Workers {
		if worker.Index < int(j.Workers.Count) && worker.Pod.DeletionTimestamp != nil {
			return true
		}
	}
	return false
}

// launcherUp reports whether the launcher runs, or has run to its end and its Job is about to say so. One that ended badly
// and is started again later does not run, whatever its pod's phase.
func launcherUp(o Observed) bool {
	for _, pod := range o.LauncherPods {
		if podstatus.IsRunning(pod) && !inBackoff(pod) || pod.Status.Phase == corev1.PodSucceeded {
			return true
		}
	}
	return false
}

// launcherFailed describes how the launcher's latest pod failed; "" if it did not.
func launcherFailed(o Observed) string {
	n := len(o.LauncherPods)
	if n == 0 || o.LauncherPods[n-1].Status.Phase != corev1.PodFailed {
		return ""
	}
	return cmp.Or(lastExit(o.LauncherPods[n-1]), "failed")
}

// launcherDone reports whether the launcher's latest try has run to its end well. Workers may be gone by then.
func launcherDone(o Observed) bool {
	n := len(o.LauncherPods)
	return n > 0 && o.LauncherPods[n-1].Status.Phase == corev1.PodSucceeded
}

// DeadlineFrom returns when the deadline of a job began to count (mpi.Lifecycle); zero if it does not count yet: the job is suspended, or
// its launcher's Job has not started. It continues to count if that Job is replaced, also over suspensions from then on.
func DeadlineFrom(j mpi.Job, o Observed) time.Time {
	since := activeSince(j, o)
	switch {
	case j.Lifecycle.Suspended:
		return time.Time{}
	case !j.Lifecycle.DeadlineFrom.IsZero():
		return j.Lifecycle.DeadlineFrom
	case !since.IsZero():
		return since
	case o.Launcher != nil && o.Launcher.Status.StartTime != nil && !isSuspended(o.Launcher):
		return o.Launcher.Status.StartTime.Add(-activeBefore(j, o))
	}
	return time.Time{}
}

// RemainingDeadline returns the activeDeadlineSeconds of a new or resumed Job of the launcher: what its earlier Jobs have left of the job's.
func RemainingDeadline(j mpi.Job, o Observed) *int64 {
	if j.Lifecycle.Deadline == nil || o.Launcher != nil && !isSuspended(o.Launcher) {
		return j.Lifecycle.Deadline
	}
	used := usedTime(j, o)
	if from := DeadlineFrom(j, o); !from.IsZero() {
		used = o.Now.Sub(from)
	}
	return new(max(1, *j.Lifecycle.Deadline-int64(used/time.Second)))
}

// isSuspended reports whether a launcher's Job is suspended.
func isSuspended(launcher *batchv1.Job) bool {
	return launcher != nil && ptr.Deref(launcher.Spec.Suspend, false)
}

// OverdueIn returns the time until a job without a launcher fails by its deadline; 0: it does not.
func OverdueIn(j mpi.Job, o Observed) time.Duration {
	from := DeadlineFrom(j, o)
	if j.Lifecycle.Deadline == nil || o.Launcher != nil || from.IsZero() || j.External {
		return 0
	}
	return max(time.Millisecond, from.Add(time.Duration(*j.Lifecycle.Deadline)*time.Second).Sub(o.Now))
}

// IsOverdue reports whether the deadline of a job has passed.
func IsOverdue(j mpi.Job, o Observed) bool {
	from := DeadlineFrom(j, o)
	return j.Lifecycle.Deadline != nil && !from.IsZero() && o.Now.Sub(from) >= time.Duration(*j.Lifecycle.Deadline)*time.Second
}
