package report

import (
	"time"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/phrase"
)

// Closed returns the record of a job that was deleted. If the job had not ended, it ends now: otherwise the record
// would show a running job forever, and never expire.
func Closed(previous v1alpha1.JobReport, now time.Time) v1alpha1.JobReport {
	report := *previous.DeepCopy()
	status := &report.Status
	if status.CompletionTime != nil {
		// Its pods are deleted with it.
		adaptRemedies(&report, nil)
		status.Consumption = maker{before: previous.Status, now: second(now)}.closedConsumption()
		return report
	}
	m := maker{before: previous.Status, now: second(now), outcome: jobstate.Outcome{Phase: v1alpha1.PhaseFailed, Finish: &mpi.Finish{At: now}}}
	t := timeline{entries: status.Timeline, now: m.now}
	who := ""
	if asked := t.last(codes.DeletionRequested); asked != nil {
		who = " by " + byUser(asked.Detail)
	}
	status.Message = phrase.Limit(codes.Status(codes.JobDeleted, map[string]string{"by": who, "state": string(status.Phase)}), maxMessage)
	status.Phase, status.Reason = v1alpha1.PhaseFailed, codes.JobDeleted
	m.times(status)
	status.Consumption = m.closedConsumption()
	status.Findings, status.Scheduling = nil, nil
	status.Pods = m.pods()
	status.Workers = v1alpha1.WorkersStatus{
		Summary: finishedWorkers(status.Workers.Wanted), Wanted: status.Workers.Wanted, Succeeded: status.Workers.Succeeded, Failed: status.Workers.Failed,
	}
	t.add(m.now, codes.JobDeleted, status.Message)
	status.Timeline = t.entries
	return report
}

// DeletionRequested returns a job's record after a user requested the job's deletion, and whether it changed: users may
// repeat the request. When the job is gone, the record names the last user.
func DeletionRequested(previous v1alpha1.JobReport, user string, now time.Time) (v1alpha1.JobReport, bool) {
	report := *previous.DeepCopy()
	status := &report.Status
	t := timeline{entries: status.Timeline, now: second(now)}
	detail := phrase.Limit(by(user), maxDetail)
	if n := len(t.entries); n > 0 && t.entries[n-1].Event == codes.DeletionRequested && t.entries[n-1].Detail == detail {
		return report, false
	}
	t.add(t.now, codes.DeletionRequested, detail)
	status.Timeline = t.entries
	omitted := status.PodsOmitted
	fit(status)
	status.PodsOmitted += omitted
	return report, true
}
