package mpijob

import (
	"fmt"
	"slices"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/kinds"
)

// Reasons of conditions and events, which Kueue, SDKs and scripts compare (mpi-operator v0.8.2,
// pkg/controller/mpi_job_controller_status.go).
const (
	reasonCreated   = "MPIJobCreated"
	reasonRunning   = "MPIJobRunning"
	reasonSuspended = "MPIJobSuspended"
	reasonResumed   = "MPIJobResumed"
	reasonSucceeded = "MPIJobSucceeded"
	reasonFailed    = "MPIJobFailed"
)

// status writes an outcome in the same form as mpi-operator, into a copy of the job. It returns nil if nothing changes.
// In addition, a job that does not run yet has the condition Running with status False, whose reason and message explain
// what it waits for. The status of a finished job is final.
func status(from *kubeflow.MPIJob, out jobstate.Outcome, now time.Time) (client.Object, []kinds.Event) {
	if past(from).Finish != nil {
		return nil, nil
	}
	next := *from
	next.Status = *from.Status.DeepCopy()
	w := statusWriter{job: &next, now: metav1.NewTime(now.Truncate(time.Second))}
	w.write(out)
	if equality.Semantic.DeepEqual(from.Status, next.Status) {
		return nil, nil
	}
	return &next, w.events
}

// statusWriter changes a job's status and collects the events for the changes.
type statusWriter struct {
	job    *kubeflow.MPIJob
	now    metav1.Time
	events []kinds.Event
}

func (w *statusWriter) write(out jobstate.Outcome) {
	if out.Reason == codes.ValidationError && out.Launcher == nil && out.Workers == (jobstate.Tally{}) {
		// It was never started.
		w.notRunning(out)
		return
	}
	if len(w.job.Status.Conditions) == 0 || condition(w.job.Status.Conditions, kubeflow.JobCreated) == nil {
		w.set(kubeflow.JobCreated, corev1.ConditionTrue, reasonCreated, w.text("MPIJob %s/%s is created."))
		w.event(reasonCreated, w.text("MPIJob %s/%s is created."))
	}
	w.suspension(out)
	if w.job.Status.StartTime == nil && !out.Suspended() {
		w.job.Status.StartTime = &w.now
	}
	w.replicas(out)
	switch out.Phase {
	case v1alpha1.PhaseSucceeded, v1alpha1.PhaseFailed:
		w.finished(out)
	case v1alpha1.PhaseSuspended, v1alpha1.PhaseQueued:
		w.set(kubeflow.JobRunning, corev1.ConditionFalse, reasonSuspended, w.text("MPIJob %s/%s is suspended."))
	case v1alpha1.PhaseRunning:
		if w.set(kubeflow.JobRunning, corev1.ConditionTrue, reasonRunning, w.text("MPIJob %s/%s is running.")) {
			w.event(reasonRunning, w.text("MPIJob %s/%s is running"))
		}
	default:
		w.notRunning(out)
	}
}

// suspension writes the condition Suspended. A job that was never suspended does not have it.
func (w *statusWriter) suspension(out jobstate.Outcome) {
	was := condition(w.job.Status.Conditions, kubeflow.JobSuspended)
	switch {
	case out.Suspended():
		if w.set(kubeflow.JobSuspended, corev1.ConditionTrue, reasonSuspended, "MPIJob suspended") {
			w.event(reasonSuspended, "MPIJob suspended")
		}
	case was != nil && was.Status == corev1.ConditionTrue && out.Finish == nil:
		w.set(kubeflow.JobSuspended, corev1.ConditionFalse, reasonResumed, "MPIJob resumed")
		w.event(reasonResumed, "MPIJob resumed")
		w.job.Status.StartTime = &w.now
	}
}

// notRunning writes what the job waits for, and a warning event for each reason that needs a user's action.
func (w *statusWriter) notRunning(out jobstate.Outcome) {
	was := condition(w.job.Status.Conditions, kubeflow.JobRunning)
	news := was == nil || was.Reason != out.Reason
	w.set(kubeflow.JobRunning, corev1.ConditionFalse, out.Reason, out.Message)
	if news && out.NeedsAction {
		w.events = append(w.events, kinds.Event{Warning: true, Reason: out.Reason, Message: out.Message})
	}
}

// finished writes the end of the job. The condition Running keeps the time at which the job started to run, from
// which tools compute its duration; if it never ran, that is the time of its end.
func (w *statusWriter) finished(out jobstate.Outcome) {
	end := metav1.NewTime(out.Finish.At.Truncate(time.Second))
	w.job.Status.CompletionTime = &end
	running := condition(w.job.Status.Conditions, kubeflow.JobRunning)
	if running == nil || running.Reason != reasonRunning {
		w.set(kubeflow.JobRunning, corev1.ConditionFalse, reasonRunning, w.text("MPIJob %s/%s is finished but Running condition was never set."))
		running = condition(w.job.Status.Conditions, kubeflow.JobRunning)
		running.LastUpdateTime, running.LastTransitionTime = end, end
	}
	running.Status = corev1.ConditionFalse

	if out.Finish.Succeeded {
		w.set(kubeflow.JobSucceeded, corev1.ConditionTrue, reasonSucceeded, out.Message)
		w.event(reasonSucceeded, out.Message)
		return
	}
	reason := out.Reason
	if reason == codes.Failed {
		reason = reasonFailed
	}
	w.set(kubeflow.JobFailed, corev1.ConditionTrue, reason, out.Message)
	w.events = append(w.events, kinds.Event{Warning: true, Reason: reason, Message: out.Message})
}

// replicas writes the counts of pods. The launcher's are only written once it exists, and none while the job waits for places:
// clients of mpi-operator take a count of workers, also 0, as a sign that their pods were created.
func (w *statusWriter) replicas(out jobstate.Outcome) {
	if out.Reason == codes.WaitingForPlaces && out.Workers == (jobstate.Tally{Wanted: out.Workers.Wanted}) && out.Launcher == nil {
		w.job.Status.ReplicaStatuses = nil
		return
	}
	counts := map[kubeflow.MPIReplicaType]*kubeflow.ReplicaStatus{kubeflow.MPIReplicaTypeWorker: replicaStatus(out.Workers)}
	if out.Launcher != nil {
		counts[kubeflow.MPIReplicaTypeLauncher] = replicaStatus(*out.Launcher)
	}
	w.job.Status.ReplicaStatuses = counts
}

func replicaStatus(t jobstate.Tally) *kubeflow.ReplicaStatus {
	return &kubeflow.ReplicaStatus{Active: t.Active, Succeeded: t.Succeeded, Failed: t.Failed}
}

// set writes a condition and reports whether its status or reason changed. lastTransitionTime only changes with the
// status. The condition that changed last is the last one in the list, as in mpi-operator.
func (w *statusWriter) set(kind kubeflow.JobConditionType, status corev1.ConditionStatus, reason, message string) bool {
	next := kubeflow.JobCondition{
		Type: kind, Status: status, Reason: reason, Message: message,
		LastUpdateTime: w.now, LastTransitionTime: w.now,
	}
	have := condition(w.job.Status.Conditions, kind)
	if have == nil {
		w.job.Status.Conditions = append(w.job.Status.Conditions, next)
		return true
	}
	changed := have.Status != status || have.Reason != reason
	if !changed && have.Message == message {
		return false
	}
	if have.Status == status {
		next.LastTransitionTime = have.LastTransitionTime
	}
	if changed {
		w.job.Status.Conditions = append(slices.DeleteFunc(w.job.Status.Conditions, func(c kubeflow.JobCondition) bool { return c.Type == kind }), next)
	} else {
		*have = next
	}
	return changed
}

func (w *statusWriter) event(reason, message string) {
	w.events = append(w.events, kinds.Event{Reason: reason, Message: message})
}

// text formats a text with the job's namespace and name.
func (w *statusWriter) text(format string) string {
	return fmt.Sprintf(format, w.job.Namespace, w.job.Name)
}

// condition returns a condition of a type in the list, or nil.
func condition(conditions []kubeflow.JobCondition, kind kubeflow.JobConditionType) *kubeflow.JobCondition {
	for i := range conditions {
		if conditions[i].Type == kind {
			return &conditions[i]
		}
	}
	return nil
}
