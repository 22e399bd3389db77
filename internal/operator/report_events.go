package operator

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/kinds/mpijob"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/report"
)

// announce tells as events of the job what its new record says beyond the one before, which must have been written: so
// each is told once, also by an operator that starts anew.
func (r *reporter) announce(job mpi.Job, previous *v1alpha1.JobReport, next v1alpha1.JobReport) {
	// Events live for an hour. What is older is told by the record of a job that was there before records were kept.
	const lifetime = time.Hour
	about := &corev1.ObjectReference{APIVersion: job.APIVersion, Kind: job.Kind, Namespace: job.Namespace, Name: job.Name, UID: job.UID}
	for _, entry := range report.News(previous, next) {
		if toldByStatus(job.Kind, next.Status.Reason, entry) || r.clock.Since(entry.Time.Time) > lifetime {
			continue
		}
		kind, message := corev1.EventTypeNormal, entry.Detail
		if report.IsTrouble(entry) {
			kind = corev1.EventTypeWarning
		}
		if message == "" {
			message = "The job is " + entry.Event + "."
		}
		r.events.Event(about, kind, entry.Event, eventMessage(message))
	}
}

// toldByStatus tells whether an event that goes with a job's status says it already: a transition in mpi-operator's
// words, or trouble for a reason that means the same. TrainJobs' statuses are not ours.
func toldByStatus(kind, reason string, entry v1alpha1.TimelineEntry) bool {
	if kind != (mpijob.Kind{}).Name() {
		return false
	}
	transitions := []string{
		report.EventCreated, report.EventResumed,
		string(mpi.PhaseRunning), string(mpi.PhaseSuspended), string(mpi.PhaseSucceeded), string(mpi.PhaseFailed),
	}
	same := map[string]mpi.Code{mpi.ReasonInvalid: mpi.CodeInvalid, mpi.ReasonNameTaken: mpi.CodeNameTaken, mpi.ReasonEvicted: mpi.CodeEvicted}
	return slices.Contains(transitions, entry.Event) || report.IsTrouble(entry) && (entry.Event == reason || entry.Event == string(same[reason]))
}
