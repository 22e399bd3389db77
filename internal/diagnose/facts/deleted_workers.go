package facts

import (
	"slices"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/podstatus"
)

// DeletedWorker is a worker whose pod something else deleted while the launcher ran.
type DeletedWorker struct {
	Pod
	// At is when the deletion was requested. It is zero if the pod is gone: then Pod is the one that was created in its place.
	At time.Time
}

// findDeletedWorkers finds the workers that something else deleted while the launcher ran: those of the first deletion. How they end, and
// what their ranks do afterwards, follows from it and does not count.
func (f *Facts) findDeletedWorkers() {
	launcher := f.Launcher()
	if launcher == nil || f.Job.Lifecycle.Deleting || f.Job.Lifecycle.Suspended || f.PutBack() || f.stoppedInTime() {
		return
	}
	found := f.firstDeletions(*launcher)
	if len(found) == 0 {
		found = f.recreatedWorkers(*launcher)
	}
	f.DeletedWorkers = found
	for _, deleted := range found {
		for i := range f.Pods {
			if pod := &f.Pods[i]; pod.Pod == deleted.Pod.Pod && !deleted.At.IsZero() {
				pod.Deleted = true
				pod.Summary = summaryBefore(pod.Summary, deleted.At)
			}
		}
	}
}

// firstDeletions returns the workers that were deleted first, at a time when the launcher ran and nothing had failed.
func (f *Facts) firstDeletions(launcher Pod) (found []DeletedWorker) {
	for _, worker := range slices.Concat(f.workers(), f.replaced) {
		if worker.DeletionTimestamp == nil || podstatus.LatestStart(worker.Pod).IsZero() || f.RemovalOf(worker) != nil {
			continue
		}
		at := DeletedAt(worker.Pod)
		if endedBefore(worker, at) || !f.ranAt(launcher, worker, at) || f.failedBefore(at) {
			continue
		}
		if len(found) > 0 && at.Before(found[0].At) {
			found = nil
		}
		if len(found) == 0 || at.Equal(found[0].At) {
			found = append(found, DeletedWorker{worker, at})
		}
	}
	return found
}

// recreatedWorkers returns the workers that the launcher's agent lost and whose pods were created after the launcher had started, if they
// replace none that failed: their earlier pods were deleted.
func (f *Facts) recreatedWorkers(launcher Pod) (found []DeletedWorker) {
	began := podstatus.LatestStart(launcher.Pod)
	if launcher.Summary == nil || began.IsZero() || f.Job.Workers.Replaced() {
		return nil
	}
	for _, worker := range f.workers() {
		if worker.DeletionTimestamp != nil || !worker.CreationTimestamp.After(began) || !f.lost(launcher, worker) {
			continue
		}
		if failed := func(earlier Pod) bool { return earlier.Index == worker.Index }; !slices.ContainsFunc(f.replaced, failed) {
			found = append(found, DeletedWorker{Pod: worker})
		}
	}
	return found
}

// stoppedInTime reports whether the operator or Kubeflow Trainer ended or suspended the job as a whole, and with it its workers.
func (f *Facts) stoppedInTime() bool {
	if job := f.Seen.WorkerJob; job != nil && ptr.Deref(job.Spec.Suspend, false) {
		return true
	}
	return jobstate.IsOverdue(f.Job, f.Seen) || f.Outcome.Finish != nil && slices.Contains(endsOfJobs, f.Outcome.Finish.Reason)
}

// workers returns the workers' pods.
func (f *Facts) workers() (found []Pod) {
	for _, pod := range f.Pods {
		if pod.Role == mpi.RoleWorker {
			found = append(found, pod)
		}
	}
	return found
}

// together is within how much time the pods of a job are deleted if all of them are.
const together = 3 * time.Second

// ranAt reports whether the launcher ran when a worker was deleted. Times are in seconds: if it ended in the same one, its agent decides.
func (f *Facts) ranAt(launcher, worker Pod, at time.Time) bool {
	if began := podstatus.LatestStart(launcher.Pod); began.IsZero() || began.After(at) {
		return false
	}
	if launcher.DeletionTimestamp != nil && !DeletedAt(launcher.Pod).After(at.Add(together)) {
		return false
	}
	if !podstatus.HasEnded(launcher.Pod) {
		// If all workers are deleted, the launcher may be next.
		return f.Seen.Now.Sub(at) > together || slices.ContainsFunc(f.workers(), func(other Pod) bool { return other.DeletionTimestamp == nil })
	}
	end := podstatus.EndedAt(launcher.Pod)
	return end.After(at) || end.Equal(at) && f.lost(launcher, worker)
}

// failedBefore reports whether a worker, or a rank, had failed before a time.
func (f *Facts) failedBefore(at time.Time) bool {
	if rank, _ := f.FirstRank(); rank != nil && rank.At > 0 && rank.At < at.UnixMilli() {
		return true
	}
	return slices.ContainsFunc(slices.Concat(f.workers(), f.replaced), func(pod Pod) bool {
		return pod.End() != nil && endedBefore(pod, at)
	})
}

// endedBefore reports whether a pod had ended before a time.
func endedBefore(pod Pod, at time.Time) bool {
	end := podstatus.EndedAt(pod.Pod)
	return podstatus.HasEnded(pod.Pod) && (end.IsZero() || end.Before(at))
}

// lost reports whether the launcher's agent lost the connection to a worker.
func (f *Facts) lost(launcher, worker Pod) bool {
	return launcher.Summary != nil && slices.ContainsFunc(launcher.Summary.Hosts, func(trouble agentapi.HostTrouble) bool {
		return trouble.Code == agentapi.ConnectionLost && isHost(worker, trouble.Host)
	})
}

// OfHost returns the pod that a host of the job is; nil if it is unknown. Pods of Jobs have other names than their hosts.
func (f *Facts) OfHost(host string) *Pod {
	for i := range f.Pods {
		if isHost(f.Pods[i], host) {
			return &f.Pods[i]
		}
	}
	return nil
}

func isHost(pod Pod, host string) bool {
	name, _, _ := strings.Cut(host, ".")
	return name != "" && (pod.Name == name || pod.Spec.Hostname == name)
}
