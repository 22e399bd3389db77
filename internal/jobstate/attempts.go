package jobstate

import (
	"cmp"
	"fmt"

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
// the job's end; otherwise each failed pod counts.
func CountAttempts(job mpi.Job, seen Observed) Attempts {
	if seen.Launcher == nil || len(seen.LauncherPods) == 0 {
		return Attempts{}
	}
	spec, limit := seen.Launcher.Spec, backoffLimit(job, seen)
	latest := seen.LauncherPods[len(seen.LauncherPods)-1]
	failed := int32(0)
	for _, pod := range seen.LauncherPods[:len(seen.LauncherPods)-1] {
		failed += podstatus.Restarts(pod) + 1
	}
	attempts := Attempts{Number: max(failed, earlierFailures(seen.Launcher, latest)) + podstatus.Restarts(latest) + 1, Limit: limit + 1}
	if cmp.Or(spec.Template.Spec.RestartPolicy, job.Launcher.RestartPolicy) == corev1.RestartPolicyOnFailure {
		attempts.Limit = max(1, limit)
	}
	return attempts
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
		if waiting := c.State.Waiting; waiting != nil && waiting.Reason == crashLoop {
			return true
		}
	}
	return false
}
