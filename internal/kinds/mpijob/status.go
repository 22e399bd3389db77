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

	"opendatahub.io/mpijob/internal/kinds"
	"opendatahub.io/mpijob/internal/mpi"
)

// Reasons of conditions and events, which Kueue, SDKs and scripts compare
// (mpi-operator v0.8.2, pkg/controller/mpi_job_controller_status.go).
const (
	reasonCreated   = "MPIJobCreated"
	reasonRunning   = "MPIJobRunning"
	reasonSuspended = "MPIJobSuspended"
	reasonResumed   = "MPIJobResumed"
	reasonSucceeded = "MPIJobSucceeded"
	reasonFailed    = "MPIJobFailed"
)

// Status writes an outcome as mpi-operator does. Beyond that, a job that does not run yet has the condition
// Running with status False, whose reason and message say what it waits for. A finished job's status is
// final.
func (Kind) Status(object client.Object, out mpi.Outcome, now time.Time) (client.Object, []kinds.Event) {
	from := object.(*kubeflow.MPIJob)
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

// statusWriter changes a job's status and notes the events that go with the changes.
type statusWriter struct {
	job    *kubeflow.MPIJob
	now    metav1.Time
	events []kinds.Event
}

func (w *statusWriter) write(out mpi.Outcome) {
	if out.Reason == mpi.ReasonInvalid {
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
	case mpi.PhaseSucceeded, mpi.PhaseFailed:
		w.finished(out)
	case mpi.PhaseSuspended, mpi.PhaseQueued:
		w.set(kubeflow.JobRunning, corev1.ConditionFalse, reasonSuspended, w.text("MPIJob %s/%s is suspended."))
	case mpi.PhaseRunning:
		if w.set(kubeflow.JobRunning, corev1.ConditionTrue, reasonRunning, w.text("MPIJob %s/%s is running.")) {
			w.event(reasonRunning, w.text("MPIJob %s/%s is running"))
		}
	default:
		w.notRunning(out)
	}
}

// suspension keeps the condition Suspended; a job never suspended has none.
func (w *statusWriter) suspension(out mpi.Outcome) {
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

// notRunning says what the job waits for, and warns once for each reason that needs somebody to act.
func (w *statusWriter) notRunning(out mpi.Outcome) {
	was := condition(w.job.Status.Conditions, kubeflow.JobRunning)
	news := was == nil || was.Reason != out.Reason
	w.set(kubeflow.JobRunning, corev1.ConditionFalse, out.Reason, out.Message)
	if news && out.Trouble {
		w.events = append(w.events, kinds.Event{Warning: true, Reason: out.Reason, Message: out.Message})
	}
}

// finished ends the job. The condition Running keeps the time since which the job ran, so that tools can
// compute how long that was; if it never ran, that is the time of its end.
func (w *statusWriter) finished(out mpi.Outcome) {
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
	if reason == mpi.ReasonFailed {
		reason = reasonFailed
	}
	w.set(kubeflow.JobFailed, corev1.ConditionTrue, reason, out.Message)
	w.events = append(w.events, kinds.Event{Warning: true, Reason: reason, Message: out.Message})
}

// replicas writes the counts of pods. The launcher has none until it exists.
func (w *statusWriter) replicas(out mpi.Outcome) {
	counts := map[kubeflow.MPIReplicaType]*kubeflow.ReplicaStatus{kubeflow.MPIReplicaTypeWorker: replicaStatus(out.Workers)}
	if out.Launcher != nil {
		counts[kubeflow.MPIReplicaTypeLauncher] = replicaStatus(*out.Launcher)
	}
	w.job.Status.ReplicaStatuses = counts
}

func replicaStatus(t mpi.Tally) *kubeflow.ReplicaStatus {
	return &kubeflow.ReplicaStatus{Active: t.Active, Succeeded: t.Succeeded, Failed: t.Failed}
}

// set writes a condition and tells whether its status or reason changed. Only a change of status is a
// transition. What changed last stands last, as with mpi-operator.
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

// text fills in the job's namespace and name.
func (w *statusWriter) text(format string) string {
	return fmt.Sprintf(format, w.job.Namespace, w.job.Name)
}

// condition finds a condition in place; nil if there is none of the type.
func condition(conditions []kubeflow.JobCondition, kind kubeflow.JobConditionType) *kubeflow.JobCondition {
	for i := range conditions {
		if conditions[i].Type == kind {
			return &conditions[i]
		}
	}
	return nil
}
