package reporting

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/report"
)

// EventMessage cuts a message to what an event holds (k8s.io/kubernetes/pkg/apis/core/validation/events.go).
func EventMessage(message string) string {
	const most = 1024
	if len(message) > most {
		return strings.ToValidUTF8(message[:most-len("...")], "") + "..."
	}
	return message
}

// emitEvents records events for what is new in a job's report compared with the previous one. The report must have been
// written, so that each event is recorded once, also by an operator that restarts.
func (r *Reporter) emitEvents(job mpi.Job, previous *v1alpha1.JobReport, next v1alpha1.JobReport) {
	// Events live for an hour. Older entries are those of a job that existed before reports were written.
	const lifetime = time.Hour
	about := &corev1.ObjectReference{APIVersion: job.APIVersion, Kind: job.Kind, Namespace: job.Namespace, Name: job.Name, UID: job.UID}
	for _, entry := range report.NewEntries(previous, next) {
		if !job.External && isReportedByStatus(next.Status.Reason, entry) || r.clock.Since(entry.Time.Time) > lifetime {
			continue
		}
		kind, message := corev1.EventTypeNormal, entry.Detail
		if report.IsWarning(entry, next.Status) {
			kind = corev1.EventTypeWarning
		}
		if message == "" {
			message = "The job is " + entry.Event + "."
		}
		r.Events.Event(about, kind, entry.Event, EventMessage(message))
	}
}

// isReportedByStatus reports whether an entry already has an event that goes with the job's status: a transition in
// mpi-operator's words, or trouble for an equal reason. It does not apply to jobs whose status another controller writes.
func isReportedByStatus(reason string, entry v1alpha1.TimelineEntry) bool {
	transitions := []string{
		codes.Created, codes.Resumed,
		string(v1alpha1.PhaseRunning), string(v1alpha1.PhaseSuspended), string(v1alpha1.PhaseSucceeded), string(v1alpha1.PhaseFailed),
	}
	same := map[string]codes.Code{codes.ValidationError: codes.JobInvalid, codes.ErrResourceExists: codes.NameTaken, codes.MPIJobEvicted: codes.Evicted}
	return slices.Contains(transitions, entry.Event) || report.NeedsAction(entry) && (entry.Event == reason || entry.Event == same[reason])
}
