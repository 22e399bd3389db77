package mpi

import (
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Phase is where a job is in its life. Every interface shows these words.
type Phase string

// The phases, in the order in which a job passes through them.
const (
	PhasePending        Phase = "Pending"
	PhaseQueued         Phase = "Queued"
	PhaseGangScheduling Phase = "GangScheduling"
	PhaseInitializing   Phase = "Initializing"
	PhaseRunning        Phase = "Running"
	PhaseSuspended      Phase = "Suspended"
	PhaseSucceeded      Phase = "Succeeded"
	PhaseFailed         Phase = "Failed"
)

// Reasons of an Outcome, for programs. A failed launcher's reason is that of its batch Job.
const (
	ReasonInvalid          = "ValidationError"
	ReasonNameTaken        = "ErrResourceExists"
	ReasonRefused          = "ObjectRefused"
	ReasonPodsStarting     = "PodsStarting"
	ReasonWaitingForWorker = "WaitingForWorkers"
	ReasonEarlierJob       = "WaitingForEarlierJob"
	ReasonUnschedulable    = "Unschedulable"
	ReasonImagePull        = "ImagePullFailed"
	ReasonContainerCreate  = "ContainerCreateFailed"
	ReasonCrashLoop        = "CrashLoop"
	ReasonWorkerFailed     = "WorkerFailed"
	ReasonEvicted          = "MPIJobEvicted"
	ReasonRunning          = "Running"
	ReasonSuspended        = "Suspended"
	ReasonQueued           = "Queued"
	ReasonQuota            = "WaitingForQuota"
	ReasonGang             = "WaitingForPlaces"
	ReasonGangTimeout      = "GangTimeout"
	ReasonSucceeded        = "Succeeded"
	ReasonFailed           = "Failed"
)

// Outcome is the judgement of a job: where it is, why, and what may happen next.
type Outcome struct {
	Phase Phase
	// Reason is one word in CamelCase for programs; Message is a sentence or two for people.
	Reason, Message string
	// Trouble is set where somebody has to act: waiting alone will not help the job on.
	Trouble bool

	// Launcher is nil where there is no launcher and none may be made yet. One that is about to be made counts, so
	// that its coming is no news.
	Launcher *Tally
	Workers  Tally
	// PodsMayStart is false while pods of an earlier job of the same name are there, and while the job waits for its turn
	// to have all of its pods placed.
	PodsMayStart bool
	// LauncherMayStart is false while the launcher is withheld: until the workers are ready where the job wants
	// that, and while a worker's host name still leads to a pod on its way out. The launcher would try to reach
	// that one and not its successor.
	LauncherMayStart bool
	// Finish is set once the job has finished.
	Finish *Finish
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

// Judge tells where a job is from what was observed of it.
func Judge(j Job, o Observed) Outcome { return judge(j, o, finished(j, o)) }

// Follow tells where a job is that another controller runs, Kubeflow Trainer. It has ended when its own record says so:
// what pods and Jobs fail of may be tried again.
func Follow(j Job, o Observed) Outcome { return judge(j, o, j.Past.Finish) }

func judge(j Job, o Observed, finish *Finish) Outcome {
	out := Outcome{Workers: tallyWorkers(j, o), Launcher: tallyLauncher(o)}
	out.PodsMayStart = len(o.Earlier) == 0 && !j.heldByQuota(o) && (o.Gang == nil || !o.Gang.Hold && !o.Gang.Evict)
	out.LauncherMayStart = out.PodsMayStart && !workerLeaving(j, o) && (!j.Launcher.AfterWorkers || out.Workers.Ready >= out.Workers.Wanted)
	switch {
	case finish != nil:
		out.finish(*finish)
		return out
	case j.Lifecycle.Suspended && o.Queue != nil && o.Queue.Stopped:
		out.Phase, out.Reason, out.Message = PhaseSuspended, ReasonSuspended, o.Queue.stopped(j.Name)
	case j.Lifecycle.Suspended && o.Queue != nil && !o.Queue.Admitted:
		out.Phase, out.Reason, out.Message, out.Trouble = PhaseQueued, ReasonQueued, o.Queue.text(), o.Queue.Never
	case j.Lifecycle.Suspended:
		out.Phase, out.Reason, out.Message = PhaseSuspended, ReasonSuspended, "The job is suspended; its pods are removed until it is resumed."
	case j.Launcher.None && out.Workers.Running > 0 && out.Workers.Running+out.Workers.Succeeded >= out.Workers.Wanted:
		out.Phase, out.Reason, out.Message = PhaseRunning, ReasonRunning, fmt.Sprintf("%d of %s run.", out.Workers.Running, count(out.Workers.Wanted, "worker"))
	case launcherUp(o) && out.Workers.Running >= out.Workers.Wanted, launcherDone(o):
		out.Phase, out.Reason, out.Message = PhaseRunning, ReasonRunning, fmt.Sprintf("The launcher and %s run.", count(out.Workers.Wanted, "worker"))
	default:
		out.wait(j, o)
	}
	// A suspended launcher is made at once: it has no pod.
	if out.Launcher == nil && !j.Launcher.None && (out.LauncherMayStart || out.PodsMayStart && j.Lifecycle.Suspended) {
		out.Launcher = &Tally{Wanted: 1}
	}
	return out
}

// Suspended tells whether the job has no pods on purpose: its user suspends it, or a queue holds it back.
func (o Outcome) Suspended() bool { return o.Phase == PhaseSuspended || o.Phase == PhaseQueued }

// Invalid is the outcome of a job that cannot be run as it is written.
func Invalid(errs field.ErrorList) Outcome {
	texts := make([]string, len(errs))
	for i, err := range errs {
		texts[i] = err.Error()
	}
	return Outcome{
		Phase: PhasePending, Reason: ReasonInvalid, Trouble: true,
		Message: fmt.Sprintf("The job cannot run as it is written (%s): %s", count(int32(len(errs)), "error"), strings.Join(texts, "; ")),
	}
}

// Refused is the outcome when the API server did not take some of what the job needs. A finished or
// suspended job stays what it is.
func (o Outcome) Refused(refusals []Refusal) Outcome {
	if len(refusals) == 0 || o.Finish != nil || o.Suspended() {
		return o
	}
	first := refusals[0]
	o.Trouble = true
	switch {
	case first.Taken && first.Leaving:
		o.Reason, o.Trouble = ReasonNameTaken, false
		o.Message = fmt.Sprintf("Waiting for %s %q of an earlier job to be gone.", first.Kind, first.Name)
	case first.Taken:
		o.Reason = ReasonNameTaken
		o.Message = fmt.Sprintf("Resource %q of Kind %q already exists and is not managed by MPIJob. It was left as it is; "+
			"delete or rename it, or give the job another name.", first.Name, first.Kind)
	default:
		o.Reason = ReasonRefused
		o.Message = fmt.Sprintf("The API server refuses %s %q: %s", first.Kind, first.Name, first.Message)
	}
	if more := len(refusals) - 1; more > 0 {
		o.Message += fmt.Sprintf(" (And %s more.)", count(int32(more), "object"))
	}
	return o
}

func (o *Outcome) finish(f Finish) {
	o.Phase, o.Finish, o.Reason, o.Message = PhaseFailed, &f, f.Reason, f.Message
	if f.Succeeded {
		o.Phase = PhaseSucceeded
	}
	// What a finished job leaves running is waiting to be cleaned up, not working.
	o.Workers = Tally{Wanted: o.Workers.Wanted}
	if o.Launcher != nil {
		o.Launcher.Active, o.Launcher.Running, o.Launcher.Ready = 0, 0, 0
	}
}

// wait says what a job that has neither started nor finished is waiting for.
func (o *Outcome) wait(j Job, seen Observed) {
	o.Phase = PhaseInitializing
	if len(seen.Workers) == 0 && len(seen.LauncherPods) == 0 {
		o.Phase = PhasePending
	}
	if n := len(seen.Earlier); n > 0 {
		first := seen.Earlier[0]
		o.Reason = ReasonEarlierJob
		o.Message = fmt.Sprintf("Waiting for %s of an earlier job of the same name to be gone: %s", count(int32(n), "pod"), first.Name)
		if first.Spec.NodeName != "" {
			o.Message += " on node " + first.Spec.NodeName
		}
		if n > 1 {
			o.Message += " and others"
		}
		o.Message += "."
		return
	}
	if j.heldByQuota(seen) {
		o.Reason, o.Message, o.Trouble = ReasonQuota, quotaText(j, seen.Shortages), anyNever(seen.Shortages)
		return
	}
	stuck := stuckPods(j, seen)
	if seen.Gang.Waits() && !launcherUp(seen) && (stuck == nil || stuck.reason == ReasonUnschedulable) {
		o.Phase, o.Reason, o.Message, o.Trouble = PhaseGangScheduling, ReasonGang, seen.Gang.text(), seen.Gang.Never
		return
	}
	if stuck != nil {
		o.Reason, o.Message, o.Trouble = stuck.reason, stuck.message, true
		return
	}
	o.Reason = ReasonPodsStarting
	o.Message = fmt.Sprintf("%d of %s run", o.Workers.Running, count(o.Workers.Wanted, "worker"))
	switch {
	case j.Launcher.None:
		o.Message += "."
	case launcherUp(seen):
		o.Message += "; the launcher runs."
	case j.Launcher.AfterWorkers && seen.Launcher == nil:
		o.Reason = ReasonWaitingForWorker
		o.Message += fmt.Sprintf(", %d of them ready; the launcher is started when all are.", o.Workers.Ready)
	default:
		o.Message += "; the launcher has not started."
	}
}

// finished tells whether and how the job has ended: what its record says is final, then its launcher decides,
// then workers that are lost for good.
func finished(j Job, o Observed) *Finish {
	if j.Past.Finish != nil {
		return j.Past.Finish
	}
	finish := launcherFinished(j, o)
	switch {
	case finish != nil:
		return finish
	case o.Gang != nil && o.Gang.GaveUp:
		return &Finish{Reason: ReasonGangTimeout, Message: o.Gang.gaveUp(), At: o.Now}
	case j.Lifecycle.Suspended:
		return nil
	}
	return workersFailed(j, o)
}

// launcherFinished tells how the launcher's Job has ended, which decides on the job.
func launcherFinished(j Job, o Observed) *Finish {
	if o.Launcher == nil {
		return nil
	}
	if done := jobCondition(o.Launcher, batchv1.JobComplete); done != nil {
		at := done.LastTransitionTime.Time
		if o.Launcher.Status.CompletionTime != nil {
			at = o.Launcher.Status.CompletionTime.Time
		}
		return &Finish{
			Succeeded: true, Reason: ReasonSucceeded, At: orNow(at, o.Now),
			Message: fmt.Sprintf("MPIJob %s/%s successfully completed.", j.Namespace, j.Name),
		}
	}
	if failed := jobCondition(o.Launcher, batchv1.JobFailed); failed != nil {
		reason, message := launcherFailure(j, failed, o.LauncherPods)
		return &Finish{Reason: reason, Message: message, At: orNow(failed.LastTransitionTime.Time, o.Now)}
	}
	return nil
}

// workersFailed ends a job whose workers are lost for good. One that was evicted ends it at once, as with
// mpi-operator. Any other that failed ends it when the launcher has failed after it: the worker is not started
// again, so that the launcher's further tries, minutes apart, could only fail as well. A launcher that goes on
// without the worker, as elastic programs do, is left alone.
func workersFailed(j Job, o Observed) *Finish {
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
		if lost == nil && launcherFailedSince(o, endedAt(worker.Pod)) {
			lost = worker
		}
	}
	switch {
	case evicted > 0:
		return &Finish{Reason: ReasonEvicted, At: o.Now, Message: fmt.Sprintf("%d/%d workers are evicted", evicted, j.Workers.Count)}
	case lost != nil:
		return &Finish{Reason: ReasonWorkerFailed, At: o.Now, Message: fmt.Sprintf("Worker %d %s Then the launcher failed too; "+
			"trying again would not help, since a failed worker is not started again.", lost.Index, failedText(lost.Pod))}
	}
	return nil
}

// launcherFailedSince tells whether a try of the launcher has failed at or after a time.
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

// endedAt is when the last container of a pod ended.
func endedAt(pod *corev1.Pod) time.Time {
	var last time.Time
	for _, c := range pod.Status.ContainerStatuses {
		if ended := c.State.Terminated; ended != nil && ended.FinishedAt.After(last) {
			last = ended.FinishedAt.Time
		}
	}
	return last
}

// HasFinished tells whether a launcher's Job has come to its end, well or not.
func HasFinished(launcher *batchv1.Job) bool {
	return jobCondition(launcher, batchv1.JobComplete) != nil || jobCondition(launcher, batchv1.JobFailed) != nil
}

// launcherFailure tells why the launcher failed, in mpi-operator's form: after the last try the failed
// pod's own reason and message follow the Job's.
func launcherFailure(j Job, failed *batchv1.JobCondition, tries []*corev1.Pod) (reason, message string) {
	reason, message = failed.Reason, failed.Message
	if reason == "" {
		reason = ReasonFailed
	}
	if message == "" {
		message = fmt.Sprintf("MPIJob %s/%s has failed", j.Namespace, j.Name)
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

func tallyWorkers(j Job, o Observed) Tally {
	tally := Tally{Wanted: j.Workers.Count}
	for _, worker := range o.Workers {
		tally.add(worker.Pod)
	}
	return tally
}

// tallyLauncher counts failures as the batch Job does: its pods may be gone.
func tallyLauncher(o Observed) *Tally {
	if o.Launcher == nil {
		return nil
	}
	tally := Tally{Wanted: 1}
	for _, pod := range o.LauncherPods {
		tally.add(pod)
	}
	tally.Failed = o.Launcher.Status.Failed
	tally.Succeeded = min(o.Launcher.Status.Succeeded, 1)
	if jobCondition(o.Launcher, batchv1.JobComplete) != nil {
		tally.Succeeded = 1
	}
	return &tally
}

func (t *Tally) add(pod *corev1.Pod) {
	switch pod.Status.Phase {
	case corev1.PodRunning:
		t.Active++
		if IsRunning(pod) {
			t.Running++
		}
		if IsReady(pod) {
			t.Ready++
		}
	case corev1.PodSucceeded:
		t.Succeeded++
	case corev1.PodFailed:
		t.Failed++
	}
}

// launcherUp tells whether the launcher runs, or has run to its end and its Job is about to say so.
func launcherUp(o Observed) bool {
	for _, pod := range o.LauncherPods {
		if IsRunning(pod) || pod.Status.Phase == corev1.PodSucceeded {
			return true
		}
	}
	return false
}

// launcherDone tells whether the launcher's latest try has run to its end well. Workers may be gone by then.
func launcherDone(o Observed) bool {
	n := len(o.LauncherPods)
	return n > 0 && o.LauncherPods[n-1].Status.Phase == corev1.PodSucceeded
}

// workerLeaving tells whether a worker that the job wants is on its way out.
func workerLeaving(j Job, o Observed) bool {
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

// count says a number of things: "1 worker", "4 workers".
func count(n int32, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
