// Package jobstate decides the state of a job: Judge turns what was observed (Observed) into an Outcome with phase,
// reason, message and what may happen next. All of it is pure.
package jobstate

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/phrase"
	"opendatahub.io/mpijob/internal/podstatus"
	"opendatahub.io/mpijob/internal/quota"
	"opendatahub.io/mpijob/internal/times"
)

// Outcome is the judgement of a job: where it is, why, and what may happen next.
type Outcome struct {
	Phase v1alpha1.Phase
	// Reason is one word in CamelCase for programs; Message is a sentence or two for people.
	Reason, Message string
	// NeedsAction is set if a user has to act: the job does not progress by waiting.
	NeedsAction bool

	// Launcher is nil if there is no launcher and none may be created yet. One that is about to be created counts, so
	// that its creation is no change.
	Launcher *Tally
	Workers  Tally
	// PodsMayStart is false while pods of an earlier job of the same name are there, and while the job waits for its turn
	// to have all of its pods placed.
	PodsMayStart bool
	// LauncherMayStart is false until the workers are ready, if the job requires that, and while the host name of a
	// worker still belongs to a terminating pod, which the launcher would try to connect to.
	LauncherMayStart bool
	// Finish is set once the job has finished.
	Finish *mpi.Finish
}

// Tally counts the pods of one role.
type Tally struct {
	// Wanted is how many the job asks for.
	Wanted int32
	// Active have running containers, those on their way out included: they still use their node.
	Active int32
	// Running is Active less those on their way out; Ready of them say that they can serve.
	Running, Ready    int32
	Succeeded, Failed int32
}

// Judge returns the state of a job, derived from what was observed.
func Judge(j mpi.Job, o Observed) Outcome {
	finish := finished(j, o)
	out := Outcome{Workers: tallyWorkers(j, o), Launcher: tallyLauncher(o)}
	out.PodsMayStart = len(o.Earlier) == 0 && !heldByQuota(j, o) && (o.Gang == nil || !o.Gang.Hold && !o.Gang.Evict)
	out.LauncherMayStart = out.PodsMayStart && !workerLeaving(j, o) && (!j.Launcher.AfterWorkers || out.Workers.Ready >= out.Workers.Wanted)
	switch {
	case finish != nil:
		out.finish(*finish)
		return out
	case j.Lifecycle.Suspended && o.Queue != nil && o.Queue.Stopped:
		out.Phase, out.Reason, out.Message = v1alpha1.PhaseSuspended, codes.Suspended, codes.Status(codes.Suspended, map[string]string{"message": o.Queue.stopped(j.Name)})
	case j.Lifecycle.Suspended && o.Queue != nil && !o.Queue.Admitted:
		out.Phase, out.Reason, out.Message, out.NeedsAction = v1alpha1.PhaseQueued, codes.Queued, o.Queue.text(), o.Queue.Never
	case j.Lifecycle.Suspended:
		out.Phase, out.Reason, out.Message = v1alpha1.PhaseSuspended, codes.Suspended, codes.Status(codes.Suspended, nil)
	case j.Launcher.None && out.Workers.Running > 0 && out.Workers.Running+out.Workers.Succeeded >= out.Workers.Wanted:
		out.Phase, out.Reason, out.Message = v1alpha1.PhaseRunning, codes.Running, codes.Status(codes.Running, map[string]string{"workers": fmt.Sprintf("%d of %s", out.Workers.Running, phrase.Count(out.Workers.Wanted, "worker"))})
	case launcherUp(o) && out.Workers.Running >= out.Workers.Wanted, launcherDone(o):
		out.Phase, out.Reason, out.Message = v1alpha1.PhaseRunning, codes.Running, codes.Status(codes.Running, runningFigures(j, o))
	default:
		out.wait(j, o)
	}
	if j.IsFrozen() {
		out.freeze(j)
		return out
	}
	// A suspended launcher is made at once: it has no pod.
	if out.Launcher == nil && !j.Launcher.None && (out.LauncherMayStart || out.PodsMayStart && j.Lifecycle.Suspended) {
		out.Launcher = &Tally{Wanted: 1}
	}
	return out
}

// runningFigures returns the values of the message of a job whose launcher runs.
func runningFigures(j mpi.Job, o Observed) map[string]string {
	values := map[string]string{"launcher": "Launcher and ", "workers": phrase.Count(j.Workers.Count, "worker")}
	if j.Workers.Count == 0 {
		values["launcher"], values["workers"] = "Launcher", ""
	}
	if attempts := CountAttempts(j, o); attempts.Number > 1 {
		values["attempt"] = " " + phrase.Capital(attempts.String()) + "."
	}
	return values
}

// Suspended reports whether the job has no pods on purpose: its user suspends it, or a queue holds it back.
func (o Outcome) Suspended() bool {
	return o.Phase == v1alpha1.PhaseSuspended || o.Phase == v1alpha1.PhaseQueued
}

// Invalid is the outcome of a job that cannot be run as it is written.
func Invalid(errs field.ErrorList) Outcome {
	texts := make([]string, len(errs))
	for i, err := range errs {
		texts[i] = err.Error()
	}
	return Outcome{
		Phase: v1alpha1.PhasePending, Reason: codes.ValidationError, NeedsAction: true,
		Message: codes.Status(codes.ValidationError, map[string]string{"errors": phrase.Count(int32(len(errs)), "error"), "message": strings.Join(texts, "; ")}),
	}
}

// freeze has the outcome of a job that became invalid after it had been started allow nothing new. If the job needs new pods to
// progress, its errors are the reason.
func (o *Outcome) freeze(j mpi.Job) {
	o.PodsMayStart, o.LauncherMayStart = false, false
	if o.Phase == v1alpha1.PhaseRunning || o.Suspended() {
		return
	}
	invalid := Invalid(j.Ignored)
	o.Reason, o.Message, o.NeedsAction = invalid.Reason, invalid.Message, invalid.NeedsAction
}

// Refused returns the outcome after the API server refused objects of the job. It does not change for a job that has
// finished, is suspended, or is run by another controller, whose pods do not depend on these objects.
func (o Outcome) Refused(j mpi.Job, refusals []Refusal) Outcome {
	if len(refusals) == 0 || o.Finish != nil || o.Suspended() || j.External {
		return o
	}
	first := refusals[0]
	object := map[string]string{"object": first.Kind, "kind": strconv.Quote(first.Kind), "name": strconv.Quote(first.Name), "message": first.Message}
	o.NeedsAction = true
	switch {
	case first.Taken && first.Leaving:
		o.Reason, o.NeedsAction = codes.ErrResourceExists, false
		o.Message = codes.Status(codes.EarlierJobLeaving, object)
	case first.Taken:
		o.Reason = codes.ErrResourceExists
		o.Message = codes.Status(codes.ErrResourceExists, object)
	default:
		o.Reason = codes.ObjectRefused
		o.Message = codes.Status(codes.ObjectRefused, object)
	}
	if more := len(refusals) - 1; more > 0 {
		o.Message += fmt.Sprintf(" (and %s)", phrase.Count(int32(more), "more object"))
	}
	return o
}

func (o *Outcome) finish(f mpi.Finish) {
	o.Phase, o.Finish, o.Reason, o.Message = v1alpha1.PhaseFailed, &f, f.Reason, f.Message
	if f.Succeeded {
		o.Phase = v1alpha1.PhaseSucceeded
	}
	// What a finished job leaves running is waiting to be cleaned up, not working.
	o.Workers = Tally{Wanted: o.Workers.Wanted}
	if o.Launcher != nil {
		o.Launcher.Active, o.Launcher.Running, o.Launcher.Ready = 0, 0, 0
	}
}

// wait says what a job that has neither started nor finished is waiting for.
func (o *Outcome) wait(j mpi.Job, seen Observed) {
	o.Phase = v1alpha1.PhaseInitializing
	if len(seen.Workers) == 0 && len(seen.LauncherPods) == 0 {
		o.Phase = v1alpha1.PhasePending
	}
	if n := len(seen.Earlier); n > 0 {
		first := seen.Earlier[0]
		o.Reason = codes.WaitingForEarlierJob
		values := map[string]string{"pods": phrase.Count(int32(n), "pod"), "name": first.Name}
		if first.Spec.NodeName != "" {
			values["node"] = " on node " + first.Spec.NodeName
		}
		if n > 1 {
			values["more"] = fmt.Sprintf(" and %d more", n-1)
		}
		o.Message = codes.Status(codes.WaitingForEarlierJob, values)
		return
	}
	if heldByQuota(j, seen) {
		o.Reason, o.NeedsAction = codes.WaitingForQuota, quota.AnyNever(seen.Shortages)
		o.Message = codes.Status(codes.WaitingForQuota, map[string]string{"namespace": j.Namespace, "figures": quota.ShortageText(seen.Shortages)})
		return
	}
	stuck := stuckPods(j, seen)
	if seen.Gang.Waits() && seen.Gang.Refused == nil && !launcherUp(seen) && (stuck == nil || stuck.reason == codes.Unschedulable) {
		o.Phase, o.Reason, o.Message, o.NeedsAction = v1alpha1.PhaseGangScheduling, codes.WaitingForPlaces, seen.Gang.text(), seen.Gang.Never
		return
	}
	if stuck != nil {
		o.Reason, o.Message, o.NeedsAction = stuck.reason, stuck.message, true
		return
	}
	o.Reason = codes.PodsStarting
	values := map[string]string{
		"running": strconv.Itoa(int(o.Workers.Running)), "ready": strconv.Itoa(int(o.Workers.Ready)), "workers": phrase.Count(o.Workers.Wanted, "worker"),
	}
	switch {
	case j.Launcher.None:
	case launcherUp(seen):
		values["launcher"] = ", launcher running"
	case j.Launcher.AfterWorkers && seen.Launcher == nil:
		o.Reason = codes.WaitingForWorkers
	case launcherFailed(seen) != "":
		values["launcher"] = fmt.Sprintf(", launcher %s in %s", launcherFailed(seen), CountAttempts(j, seen))
	default:
		values["launcher"] = ", launcher not started"
	}
	o.Message = codes.Status(o.Reason, values)
}

// finished returns whether and how the job has ended. Its recorded end is final; then its launcher decides, then
// workers that are lost for good. For a job that another controller runs only the recorded end counts: that controller
// may retry what failed.
func finished(j mpi.Job, o Observed) *mpi.Finish {
	if j.Recorded.Finish != nil || j.External {
		return j.Recorded.Finish
	}
	finish := launcherFinished(j, o)
	switch {
	case finish != nil:
		return finish
	case o.Gang != nil && o.Gang.GaveUp:
		return &mpi.Finish{Reason: codes.GangTimeout, Message: o.Gang.gaveUp(), At: o.Now}
	case j.Lifecycle.Suspended:
		return nil
	}
	return workersFailed(j, o)
}

// launcherFinished returns how the launcher's Job ended, which decides on the job.
func launcherFinished(j mpi.Job, o Observed) *mpi.Finish {
	if o.Launcher == nil {
		return nil
	}
	if done := jobCondition(o.Launcher, batchv1.JobComplete); done != nil {
		at := done.LastTransitionTime.Time
		if o.Launcher.Status.CompletionTime != nil {
			at = o.Launcher.Status.CompletionTime.Time
		}
		return &mpi.Finish{
			Succeeded: true, Reason: codes.Succeeded, At: orNow(at, o.Now),
			Message: codes.Status(codes.Succeeded, map[string]string{"namespace": j.Namespace, "job": j.Name}),
		}
	}
	if failed := jobCondition(o.Launcher, batchv1.JobFailed); failed != nil {
		reason, message := launcherFailure(j, failed, o.LauncherPods)
		return &mpi.Finish{Reason: reason, Message: message, At: orNow(failed.LastTransitionTime.Time, o.Now)}
	}
	return launcherPodFinished(j, o)
}

// launcherPodFinished returns how the launcher's last pod ended, before its batch Job has the condition, which takes a
// second or two. It returns nil if the Job may start another pod.
func launcherPodFinished(j mpi.Job, o Observed) *mpi.Finish {
	n := len(o.LauncherPods)
	if n == 0 || o.Launcher == nil || o.Launcher.DeletionTimestamp != nil || ptr.Deref(o.Launcher.Spec.Suspend, false) {
		return nil
	}
	last := o.LauncherPods[n-1]
	if _, _, forgiven := Forgive(j, o); last.DeletionTimestamp != nil || forgiven {
		return nil
	}
	// The clock of the node may differ from the API server's.
	at := times.Earlier(o.Now, times.Later(podstatus.EndedAt(last), last.CreationTimestamp.Time))
	if podstatus.EndedAt(last).IsZero() {
		at = o.Now
	}
	switch tally := tallyLauncher(o); {
	case last.Status.Phase == corev1.PodSucceeded:
		return &mpi.Finish{
			Succeeded: true, Reason: codes.Succeeded, At: at,
			Message: codes.Status(codes.Succeeded, map[string]string{"namespace": j.Namespace, "job": j.Name}),
		}
	case last.Status.Phase == corev1.PodFailed && tally.Failed > backoffLimit(j, o):
		// As the Job controller writes it (k8s.io/kubernetes/pkg/controller/job).
		reason, message := launcherFailure(j, &batchv1.JobCondition{
			Reason: batchv1.JobReasonBackoffLimitExceeded, Message: "Job has reached the specified backoff limit",
		}, o.LauncherPods)
		return &mpi.Finish{Reason: reason, Message: message, At: at}
	}
	return nil
}

// LauncherHasFinished reports whether the launcher has come to its end, well or not: its Job has, or will start no other
// pod.
func LauncherHasFinished(j mpi.Job, o Observed) bool {
	return o.Launcher != nil && launcherFinished(j, o) != nil
}

// workersFailed ends a job whose workers are lost for good, unless they are replaced. One that was evicted ends it at once,
// as with mpi-operator. Any other that failed ends it when the launcher has failed after it: the worker is not started
// again, so that the launcher's further tries, minutes apart, could only fail as well. A launcher that goes on
// without the worker, as elastic programs do, is left alone.
func workersFailed(j mpi.Job, o Observed) *mpi.Finish {
	if j.Workers.Replaced() {
		return nil
	}
	evicted := 0
	var lost *Worker
	for i := range o.Workers {
		worker := &o.Workers[i]
		if worker.Index >= int(j.Workers.Count) || worker.Pod.DeletionTimestamp != nil || worker.Pod.Status.Phase != corev1.PodFailed {
			continue
		}
		if worker.Pod.Status.Reason == "Evicted" {
			evicted++
		}
		if lost == nil && launcherFailedSince(o, podstatus.EndedAt(worker.Pod)) {
			lost = worker
		}
	}
	switch {
	case evicted > 0:
		return &mpi.Finish{Reason: codes.MPIJobEvicted, At: o.Now, Message: codes.Status(codes.MPIJobEvicted, map[string]string{"evicted": strconv.Itoa(evicted), "wanted": strconv.Itoa(int(j.Workers.Count))})}
	case lost != nil:
		return &mpi.Finish{Reason: codes.WorkerFailed, At: o.Now, Message: codes.Status(codes.WorkerFailed, map[string]string{
			"who":  fmt.Sprintf("Worker %d", lost.Index),
			"exit": failedText(lost.Pod) + " The launcher then failed. Retries do not help, since failed workers are not replaced: their restartPolicy is not OnFailure.",
		})}
	}
	return nil
}

// launcherFailedSince reports whether a try of the launcher has failed at or after a time.
func launcherFailedSince(o Observed, since time.Time) bool {
	for _, pod := range o.LauncherPods {
		for _, c := range pod.Status.ContainerStatuses {
			for _, ended := range []*corev1.ContainerStateTerminated{c.State.Terminated, c.LastTerminationState.Terminated} {
				if ended != nil && ended.ExitCode != 0 && !ended.FinishedAt.Time.Before(since) {
					return true
				}
			}
		}
	}
	return false
}

// HasFinished reports whether a launcher's Job has come to its end, well or not.
func HasFinished(launcher *batchv1.Job) bool {
	return jobCondition(launcher, batchv1.JobComplete) != nil || jobCondition(launcher, batchv1.JobFailed) != nil
}

// launcherFailure returns why the launcher failed, in mpi-operator's form: after the last attempt, the failed pod's own
// reason and message follow the Job's.
func launcherFailure(j mpi.Job, failed *batchv1.JobCondition, tries []*corev1.Pod) (reason, message string) {
	reason, message = failed.Reason, failed.Message
	if reason == "" {
		reason = codes.Failed
	}
	if message == "" {
		message = codes.Status(codes.Failed, map[string]string{"namespace": j.Namespace, "job": j.Name})
	}
	var last *corev1.Pod
	for _, pod := range tries {
		if pod.Status.Phase == corev1.PodFailed {
			last = pod
		}
	}
	if last == nil {
		return reason, message
	}
	if reason == batchv1.JobReasonBackoffLimitExceeded && last.Status.Reason != "" {
		reason += "/" + last.Status.Reason
	}
	if last.Status.Message != "" {
		message += ": " + last.Status.Message
	}
	if exit := lastExit(last); exit != "" {
		message += ": the launcher " + exit
	}
	return reason, message
}

func tallyWorkers(j mpi.Job, o Observed) Tally {
	tally := Tally{Wanted: j.Workers.Count}
	for _, worker := range o.Workers {
		tally.add(worker.Pod)
	}
	return tally
}

// tallyLauncher counts failures as the batch Job does, because its pods may be deleted, but at least those of the pods,
// which the Job counts a little later.
func tallyLauncher(o Observed) *Tally {
	if o.Launcher == nil {
		return nil
	}
	tally := Tally{Wanted: 1}
	for _, pod := range o.LauncherPods {
		tally.add(pod)
	}
	tally.Failed = max(tally.Failed, o.Launcher.Status.Failed)
	tally.Succeeded = min(max(tally.Succeeded, o.Launcher.Status.Succeeded), 1)
	if jobCondition(o.Launcher, batchv1.JobComplete) != nil {
		tally.Succeeded = 1
	}
	return &tally
}

func (t *Tally) add(pod *corev1.Pod) {
	switch pod.Status.Phase {
	case corev1.PodRunning:
		t.Active++
		if podstatus.IsRunning(pod) {
			t.Running++
		}
		if podstatus.IsReady(pod) {
			t.Ready++
		}
	case corev1.PodSucceeded:
		t.Succeeded++
	case corev1.PodFailed:
		t.Failed++
	}
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

// workerLeaving reports whether a worker of the job is terminating.
func workerLeaving(j mpi.Job, o Observed) bool {
	for _, worker := range o.Workers {
		if worker.Index < int(j.Workers.Count) && worker.Pod.DeletionTimestamp != nil {
			return true
		}
	}
	return false
}

func jobCondition(job *batchv1.Job, kind batchv1.JobConditionType) *batchv1.JobCondition {
	for i := range job.Status.Conditions {
		if c := &job.Status.Conditions[i]; c.Type == kind && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

func orNow(at, now time.Time) time.Time {
	if at.IsZero() {
		return now
	}
	return at
}

// heldByQuota reports whether no pods of a job may be made now, since not all would be taken.
func heldByQuota(j mpi.Job, o Observed) bool {
	return len(o.Shortages) > 0 && !j.Lifecycle.Suspended && j.ControlsPods()
}
