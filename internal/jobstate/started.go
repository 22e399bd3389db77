package jobstate

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"opendatahub.io/mpijob/internal/mpi"
)

// IsStarted reports whether anything of a job was started: it has pods, or a launcher that creates some.
func (o Observed) IsStarted() bool {
	return o.Launcher != nil || len(o.Workers) > 0 || len(o.LauncherPods) > 0
}

// Communicates reports whether there may be traffic between pods of a job: two of them exist and are not terminating. The launcher's
// counts if its batch Job may create it.
func (o Observed) Communicates() bool {
	var pods int
	if o.Launcher != nil && o.Launcher.DeletionTimestamp == nil && !ptr.Deref(o.Launcher.Spec.Suspend, false) {
		pods++
	}
	for _, worker := range o.Workers {
		if worker.Pod.DeletionTimestamp == nil {
			pods++
		}
	}
	return pods > 1
}

// KeepStarted returns a job that became invalid after it had been started as it goes on. Its errors are in Ignored.
func KeepStarted(job mpi.Job, errs field.ErrorList, seen Observed) mpi.Job {
	job.Ignored = errs
	isWrong := func(at *field.Path) bool {
		return slices.ContainsFunc(errs, func(err *field.Error) bool { return err.Field == at.String() })
	}
	if isWrong(job.Fields.WorkerCount) {
		job.Workers.Count = 0
		for _, worker := range seen.Workers {
			job.Workers.Count = max(job.Workers.Count, int32(worker.Index)+1)
		}
	}
	if isWrong(job.Fields.TTL) {
		job.Lifecycle.TTL = nil
	}
	return job
}
