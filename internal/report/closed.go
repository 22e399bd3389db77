package report

import (
	"fmt"
	"time"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/mpi"
)

// ReasonDeleted is the reason of a record whose job was deleted before it had ended.
const ReasonDeleted = "JobDeleted"

// Closed is what becomes of the record of a job that is gone: one that had ended stays as it is, any other ends now.
// Without that it would say for good that the job runs, and never expire.
func Closed(previous v1alpha1.JobReport, now time.Time) v1alpha1.JobReport {
	report := *previous.DeepCopy()
	status := &report.Status
	if status.CompletionTime != nil {
		return report
	}
	m := maker{before: previous.Status, now: second(now), outcome: mpi.Outcome{Phase: mpi.PhaseFailed, Finish: &mpi.Finish{At: now}}}
	t := timeline{entries: status.Timeline, now: m.now}
	who := ""
	if asked := t.last(EventDeletionRequested); asked != nil {
		who = " by " + byUser(asked.Detail)
	}
	status.Message = cut(fmt.Sprintf("The job was deleted%s before it had ended. It was %s.", who, status.Phase), maxMessage)
	status.Phase, status.Reason = v1alpha1.Phase(mpi.PhaseFailed), ReasonDeleted
	m.times(status)
	status.Findings, status.Scheduling = nil, nil
	status.Pods = m.pods()
	status.Workers = v1alpha1.WorkersStatus{
		Summary: fmt.Sprintf("0/%d", status.Workers.Wanted), Wanted: status.Workers.Wanted, Succeeded: status.Workers.Succeeded, Failed: status.Workers.Failed,
	}
	t.add(m.now, ReasonDeleted, status.Message)
	status.Timeline = t.entries
	return report
}

// DeletionRequested is what becomes of a job's record when a user asks for the job's deletion, and whether that is
// worth a write: he may have asked before. He is named as the last who asked when the job is gone.
func DeletionRequested(previous v1alpha1.JobReport, user string, now time.Time) (v1alpha1.JobReport, bool) {
	report := *previous.DeepCopy()
	status := &report.Status
	t := timeline{entries: status.Timeline, now: second(now)}
	detail := cut(by(user), maxDetail)
	if n := len(t.entries); n > 0 && t.entries[n-1].Event == EventDeletionRequested && t.entries[n-1].Detail == detail {
		return report, false
	}
	t.add(t.now, EventDeletionRequested, detail)
	status.Timeline = t.entries
	omitted := status.PodsOmitted
	fit(status)
	status.PodsOmitted += omitted
	return report, true
}
