package jobstate

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/podstatus"
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
// the job's end; otherwise each failed pod counts. Attempts before a restart of the whole job count as one each.
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
	attempts := Attempts{Number: max(failed, earlierFailures(seen.Launcher, latest)) + podstatus.Restarts(latest) + 1, Limit: limit + 1}
	if restartsInPlace(job, seen) {
		attempts.Limit = max(1, limit)
	}
	attempts.Number += seen.Restarts
	// A restart beyond the limit was none of a failure of the program.
	attempts.Limit += max(job.Lifecycle.MaxRestarts, seen.Restarts)
	return attempts
}

// mostDisrupted is how many disrupted attempts do not count. Any more do, so that no job is tried indefinitely.
const mostDisrupted = 100

// Forgive returns what AnnotationDisrupted and backoffLimit become if the launcher's attempt does not count because
// a pod of the job was disrupted (podstatus.Disruption). It returns false if the attempt counts, or was entered before.
func Forgive(job mpi.Job, seen Observed) (disrupted string, limit int32, changed bool) {
	if seen.Launcher == nil || HasFinished(seen.Launcher) || !isDisrupted(seen) {
		return "", 0, false
	}
	attempts := CountAttempts(job, seen)
	listed, number := disruptedAttempts(seen.Launcher), strconv.Itoa(int(attempts.Number))
	if attempts.Number == 0 || len(listed) >= mostDisrupted || slices.Contains(listed, number) {
		return "", 0, false
	}
	limit = backoffLimit(job, seen)
	if restartsInPlace(job, seen) {
		// 0 and 1 both allow one attempt (see CountAttempts).
		limit = max(1, limit)
	}
	return strings.Join(append(listed, number), ","), limit + 1, true
}

// IsForgiven reports whether an attempt of the launcher does not count.
func IsForgiven(launcher *batchv1.Job, attempt int32) bool {
	return slices.Contains(disruptedAttempts(launcher), strconv.Itoa(int(attempt)))
}

func disruptedAttempts(launcher *batchv1.Job) []string {
	listed := launcher.Annotations[mpi.AnnotationDisrupted]
	if listed == "" {
		return nil
	}
	return strings.Split(listed, ",")
}

// isDisrupted reports whether a pod of the job was disrupted since the launcher's attempt started.
func isDisrupted(seen Observed) bool {
	var since time.Time
	if n := len(seen.LauncherPods); n > 0 {
		since = podstatus.LatestStart(seen.LauncherPods[n-1])
	}
	removed := func(pod *corev1.Pod) bool {
		c := podstatus.Disruption(pod)
		return c != nil && !c.LastTransitionTime.Time.Before(since)
	}
	return slices.ContainsFunc(seen.LauncherPods, removed) ||
		slices.ContainsFunc(seen.Workers, func(w Worker) bool { return removed(w.Pod) })
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
