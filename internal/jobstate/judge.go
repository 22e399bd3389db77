// Package jobstate decides the state of a job: Judge turns what was observed (Observed) into an Outcome with phase,
// reason, message and what may happen next, such as whether the launcher may start. All of it is pure.
package jobstate

import (
	"fmt"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/phrase"
	"opendatahub.io/mpijob/internal/podstatus"
	"opendatahub.io/mpijob/internal/quota"
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
	// PodsMayStart is false while pods of an earlier job of the same name are there, while the job waits for its turn
	// to have all of its pods placed, and while its user keeps it out of its queue.
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
	out.PodsMayStart = len(o.Earlier) == 0 && !heldByQuota(j, o) && !heldByUser(j, o) && (o.Gang == nil || !o.Gang.Hold && !o.Gang.Evict)
	out.LauncherMayStart = out.PodsMayStart && launcherMayStart(j, o, out.Workers)
	if earlier := earlierFailedPods(j, o); earlier > 0 {
		if out.Launcher == nil {
			out.Launcher = &Tally{Wanted: 1}
		}
		out.Launcher.Failed += earlier
	}
	switch {
	case finish != nil:
		out.finish(*finish)
		return out
	case j.Lifecycle.Suspended && o.Queue != nil && (o.Queue.Stopped || j.SuspendedInQueue):
		out.Phase, out.Reason, out.Message = v1alpha1.PhaseSuspended, codes.Suspended, codes.Status(codes.Suspended, map[string]string{"message": o.Queue.stopped(j)})
	case j.Lifecycle.Suspended && o.Queue != nil:
		// The queue resumes one that it has admitted.
		out.Phase, out.Reason, out.Message, out.NeedsAction = v1alpha1.PhaseQueued, codes.Queued, o.Queue.text(o.Now), o.Queue.Never || o.Queue.NeverFits != ""
	case j.Lifecycle.Suspended:
		out.Phase, out.Reason, out.Message = v1alpha1.PhaseSuspended, codes.Suspended, codes.Status(codes.Suspended, suspendedWithout(j))
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

// suspendedWithout returns the values of the message of a job that is suspended in no queue. One that names a queue waits for Kueue.
func suspendedWithout(j mpi.Job) map[string]string {
	if j.Queue == "" {
		suspend := "spec.runPolicy.suspend"
		if j.Kind == mpi.KindTrainJob {
			suspend = "spec.suspend"
		}
		since := ""
		if j.Generation == 1 {
			// The job was not changed since.
			since = " since its creation"
		}
		return map[string]string{"message": fmt.Sprintf("Suspended%s by its own field %s. The job names no queue that would resume it: to start it, run kubectl odh mpijob resume %s -n %s.", since, suspend, j.Name, j.Namespace)}
	}
	return map[string]string{"message": fmt.Sprintf("Suspended. The job names queue %s, but Kueue, which would resume it, was not found on the cluster.", j.Queue)}
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

// wait says what a job that has neither started nor finished is waiting for.
func (o *Outcome) wait(j mpi.Job, seen Observed) {
	o.Phase = v1alpha1.PhaseInitializing
	if len(seen.Workers) == 0 && len(seen.LauncherPods) == 0 {
		o.Phase = v1alpha1.PhasePending
	}
	// Its own pods are on their way out when it is put back, which its place in the queue explains.
	if n := len(seen.Earlier); n > 0 && (!seen.EarlierIsOwn(j) || !seen.Gang.Waits()) {
		first := seen.Earlier[0]
		o.Reason = codes.WaitingForEarlierJob
		values := map[string]string{"pods": phrase.Count(int32(n), "pod"), "name": first.Name}
		if first.Spec.NodeName != "" {
			values["node"] = " on node " + first.Spec.NodeName
		}
		if n > 1 {
			values["more"] = fmt.Sprintf(" and %d more", n-1)
		}
		if seen.EarlierIsOwn(j) {
			values["of"] = "an earlier attempt of the job"
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
	case IsLauncherReplaced(j, seen):
		values["launcher"] = ", launcher is started again because Kubernetes removed a pod"
	case launcherFailed(seen) != "":
		values["launcher"] = fmt.Sprintf(", launcher %s in %s", launcherFailed(seen), CountAttempts(j, seen))
	default:
		values["launcher"] = ", launcher not started"
	}
	o.Message = codes.Status(o.Reason, values)
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

// heldByQuota reports whether no pods of a job may be made now, since not all would be taken.
func heldByQuota(j mpi.Job, o Observed) bool {
	return len(o.Shortages) > 0 && !j.Lifecycle.Suspended && j.ControlsPods()
}

// heldByUser reports whether a job's user keeps it out of its queue, which may have admitted it before its Workload was deactivated.
func heldByUser(j mpi.Job, o Observed) bool { return j.SuspendedInQueue && o.Queue != nil }
