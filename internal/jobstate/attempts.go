package jobstate

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/podstatus"
	"opendatahub.io/mpijob/internal/times"
)

// defaultBackoffLimit is that of batch Jobs.
const defaultBackoffLimit = 6

// Attempts counts the runs of a launcher's container.
type Attempts struct {
	// Number is that of the latest attempt, from 1 on; 0 if there was none. It exceeds Limit if the Job controller is about
	// to delete a container that was restarted once more.
	Number int32
	// Limit is the number of attempts until the job fails.
	Limit int32
}

// CountAttempts counts the attempts of a launcher as the Job controller does (k8s.io/kubernetes/pkg/controller/job,
// pastBackoffLimitOnFailure): with restartPolicy OnFailure, a restart in place counts, and the one that reaches the limit is
// the job's end; otherwise each failed pod counts. Attempts before a restart of the whole job count as one each. Those of launchers' Jobs
// that were replaced come before.
func CountAttempts(job mpi.Job, seen Observed) Attempts {
	if seen.Launcher == nil || len(seen.LauncherPods) == 0 {
		return Attempts{}
	}
	limit := backoffLimit(job, seen)
	latest := seen.LauncherPods[len(seen.LauncherPods)-1]
	failed := int32(0)
	for _, pod := range seen.LauncherPods[:len(seen.LauncherPods)-1] {
		failed += podstatus.Restarts(pod) + 1
	}
	attempts := Attempts{Number: max(failed, earlierFailures(seen.Launcher, latest)) + podstatus.Restarts(latest) + 1, Limit: sum(limit, 1)}
	if restartsInPlace(job, seen) {
		attempts.Limit = max(1, limit)
	}
	earlier := EarlierAttempts(seen)
	attempts.Number += seen.Restarts + earlier
	// A restart beyond the limit was none of a failure of the program.
	attempts.Limit = sum(attempts.Limit, max(job.Lifecycle.MaxRestarts, seen.Restarts), earlier)
	return attempts
}

// Forgive returns what AnnotationDisrupted and backoffLimit of the launcher's Job become if attempts do not count because a pod of the job
// was disrupted (podstatus.Disruption). It returns false if the Job has these attempts already, or fails: a higher limit no longer helps.
func Forgive(job mpi.Job, seen Observed) (disrupted string, limit int32, changed bool) {
	missing := unforgiven(job, seen)
	if len(missing) == 0 || IsEnding(seen.Launcher) {
		return "", 0, false
	}
	limit = backoffLimit(job, seen)
	has := attemptsIn(seen.Launcher.Annotations[mpi.AnnotationDisrupted])
	if restartsInPlace(job, seen) {
		// 0 and 1 both allow one attempt (see CountAttempts).
		limit = max(1, limit)
	}
	return attemptsText(append(has, missing...)), sum(limit, int32(len(missing))), true
}

// IsLauncherReplaced reports whether the launcher's Job has failed although its last attempt does not count, and is therefore deleted and
// created again: the Job was not to be changed in time, for example because a webhook did not answer.
func IsLauncherReplaced(job mpi.Job, seen Observed) bool {
	if seen.Launcher == nil || job.External || job.Recorded.Finish != nil || IsOverdue(job, seen) {
		return false
	}
	failed := jobCondition(seen.Launcher, batchv1.JobFailed)
	return failed != nil && failed.Reason == batchv1.JobReasonBackoffLimitExceeded && len(unforgiven(job, seen)) > 0
}

// IsForgiven reports whether an attempt of the launcher does not count.
func IsForgiven(seen Observed, attempt int32) bool {
	return slices.Contains(recordedDisruptions(seen), attempt)
}

// RemainingRetries returns the backoffLimit of a new Job of the launcher: what the attempts that count have left of the job's.
func RemainingRetries(job mpi.Job, seen Observed) *int32 {
	earlier := EarlierAttempts(seen)
	if earlier == 0 {
		return job.Lifecycle.BackoffLimit
	}
	counted := earlier - forgivenUntil(seen, earlier)
	return new(max(0, ptr.Deref(job.Lifecycle.BackoffLimit, defaultBackoffLimit)-counted))
}

// earlierFailedPods returns how many pods of launchers' Jobs that were replaced have failed. Of restarts in place only those are known
// that Kubernetes caused.
func earlierFailedPods(job mpi.Job, seen Observed) int32 {
	earlier := EarlierAttempts(seen)
	if job.Launcher.RestartPolicy == corev1.RestartPolicyOnFailure {
		return forgivenUntil(seen, earlier)
	}
	return earlier
}

// forgivenUntil returns how many of the first attempts do not count.
func forgivenUntil(seen Observed, last int32) (count int32) {
	for _, attempt := range recordedDisruptions(seen) {
		if attempt <= last {
			count++
		}
	}
	return count
}

// attemptsOfJob returns the number of the last attempt of a launcher's Job that has failed.
func attemptsOfJob(job mpi.Job, seen Observed) int32 {
	attempts := CountAttempts(job, seen)
	last := max(EarlierAttempts(seen)+seen.Launcher.Status.Failed, min(attempts.Number, attempts.Limit))
	if listed := disruptedAttempts(job, seen); len(listed) > 0 {
		last = max(last, listed[len(listed)-1])
	}
	return last
}

// unforgiven returns the attempts of the launcher's Job that do not count, and for which its backoffLimit was not raised.
func unforgiven(job mpi.Job, seen Observed) []int32 {
	if seen.Launcher == nil {
		return nil
	}
	earlier, has := EarlierAttempts(seen), attemptsIn(seen.Launcher.Annotations[mpi.AnnotationDisrupted])
	return slices.DeleteFunc(disruptedAttempts(job, seen), func(attempt int32) bool {
		return attempt <= earlier || slices.Contains(has, attempt)
	})
}

// MostDisrupted is how many disrupted attempts do not count. Any more do, so that no job is tried indefinitely.
const MostDisrupted = 100

// disruptedAttempts returns the numbers of the attempts that do not count, in order: those that are recorded, and the current one if a pod
// was disrupted since it started.
func disruptedAttempts(job mpi.Job, seen Observed) []int32 {
	listed := recordedDisruptions(seen)
	attempts := CountAttempts(job, seen)
	switch {
	case job.External, attempts.Number == 0, len(listed) >= MostDisrupted, slices.Contains(listed, attempts.Number):
		return listed
	case jobCondition(seen.Launcher, batchv1.JobComplete) != nil, HasFinished(seen.Launcher) && attempts.Exhausted(), !isDisrupted(seen):
		return listed
	}
	listed = append(listed, attempts.Number)
	slices.Sort(listed)
	return listed
}

// sum adds numbers, at most to the largest one.
func sum(numbers ...int32) int32 {
	total := int64(0)
	for _, number := range numbers {
		total += int64(number)
	}
	return int32(min(total, math.MaxInt32))
}

// isDisrupted reports whether a pod of the job was disrupted since the launcher's attempt started, and before its Job failed. Pods of
// earlier attempts may still exist. The launcher has a pod.
func isDisrupted(seen Observed) bool {
	latest := seen.LauncherPods[len(seen.LauncherPods)-1]
	since, until := attemptStart(latest), time.Time{}
	if failed := cmp.Or(jobCondition(seen.Launcher, batchv1.JobFailureTarget), jobCondition(seen.Launcher, batchv1.JobFailed)); failed != nil {
		until = failed.LastTransitionTime.Time
	}
	removed := func(pod *corev1.Pod) bool {
		c := podstatus.Disruption(pod)
		return c != nil && !c.LastTransitionTime.Time.Before(since) && (until.IsZero() || !c.LastTransitionTime.After(until))
	}
	return removed(latest) || slices.ContainsFunc(seen.Workers, func(w Worker) bool { return removed(w.Pod) })
}

// attemptStart returns when the latest attempt in a launcher's pod started, or the pod was created if none has. A restart of any container is
// an attempt (see CountAttempts).
func attemptStart(pod *corev1.Pod) time.Time {
	latest := pod.CreationTimestamp.Time
	for _, c := range pod.Status.ContainerStatuses {
		switch ended := c.LastTerminationState.Terminated; {
		case c.State.Running != nil:
			latest = times.Later(latest, c.State.Running.StartedAt.Time)
		case c.State.Terminated != nil:
			latest = times.Later(latest, c.State.Terminated.StartedAt.Time)
		case ended != nil && podstatus.ObstacleOf(c) == podstatus.NoObstacle:
			// The container of the next attempt is being created.
			latest = times.Later(latest, ended.FinishedAt.Time)
		case ended != nil:
			latest = times.Later(latest, ended.StartedAt.Time)
		}
	}
	return latest
}

// restartsInPlace reports whether the launcher's container is started again in its pod.
func restartsInPlace(job mpi.Job, seen Observed) bool {
	return cmp.Or(seen.Launcher.Spec.Template.Spec.RestartPolicy, job.Launcher.RestartPolicy) == corev1.RestartPolicyOnFailure
}

// backoffLimit returns how often a failed launcher is started again.
func backoffLimit(job mpi.Job, seen Observed) int32 {
	return ptr.Deref(cmp.Or(seen.Launcher.Spec.BackoffLimit, job.Lifecycle.BackoffLimit), defaultBackoffLimit)
}

// earlierFailures returns how many pods failed before a launcher's latest, as its Job counts them.
func earlierFailures(launcher *batchv1.Job, latest *corev1.Pod) int32 {
	if latest.Status.Phase == corev1.PodFailed {
		return max(0, launcher.Status.Failed-1)
	}
	return launcher.Status.Failed
}

// Exhausted reports whether the launcher was started more often than it may be.
func (a Attempts) Exhausted() bool { return a.Number > a.Limit }

// String returns "attempt 3 of 7".
func (a Attempts) String() string {
	return fmt.Sprintf("attempt %d of %d", min(a.Number, a.Limit), a.Limit)
}

// inBackoff reports whether a container of a pod ended and is not started again before some time.
func inBackoff(pod *corev1.Pod) bool {
	for _, c := range pod.Status.ContainerStatuses {
		if podstatus.ObstacleOf(c) == podstatus.CrashLoop {
			return true
		}
	}
	return false
}
