// Package podstatus answers questions about a pod's status.
package podstatus

import (
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// IsRunning reports whether a pod's containers have started and not ended.
func IsRunning(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil
}

// IsReady reports whether a pod is ready and not being deleted.
func IsReady(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp != nil {
		return false
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// RunningInit returns the init container that a pod waits for while it runs; nil if there is none. A sidecar of Kubernetes, an init
// container that is restarted always, is waited for until it has started.
func RunningInit(pod *corev1.Pod) *corev1.ContainerStatus {
	for i := range pod.Status.InitContainerStatuses {
		c := &pod.Status.InitContainerStatuses[i]
		if c.State.Running != nil && (!IsRestartedAlways(pod, c.Name) || !ptr.Deref(c.Started, false)) {
			return c
		}
	}
	return nil
}

// IsRestartedAlways reports whether an init container is a sidecar by its specification.
func IsRestartedAlways(pod *corev1.Pod, name string) bool {
	return slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool {
		return c.Name == name && ptr.Deref(c.RestartPolicy, "") == corev1.ContainerRestartPolicyAlways
	})
}

// HasEnded reports whether a pod has succeeded or failed.
func HasEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// EffectivePhase returns the phase of a pod that follows from the statuses of its containers. The kubelet writes it about a
// second after these, when it has cleaned up (k8s.io/kubernetes/pkg/kubelet, getPhase). It needs the specification.
func EffectivePhase(pod *corev1.Pod) corev1.PodPhase {
	phase, ended := pod.Status.Phase, pod.Status.ContainerStatuses
	if phase != corev1.PodRunning || pod.DeletionTimestamp != nil || len(ended) == 0 || len(ended) < len(pod.Spec.Containers) {
		return phase
	}
	policy := pod.Spec.RestartPolicy
	if policy != corev1.RestartPolicyNever && policy != corev1.RestartPolicyOnFailure {
		return phase
	}
	for i := range pod.Spec.Containers {
		if c := &pod.Spec.Containers[i]; c.RestartPolicy != nil || len(c.RestartPolicyRules) > 0 {
			// It may be restarted against the policy of the pod.
			return phase
		}
	}
	succeeded := true
	for i := range ended {
		end := ended[i].State.Terminated
		if end == nil {
			return phase
		}
		succeeded = succeeded && end.ExitCode == 0
	}
	switch {
	case succeeded:
		return corev1.PodSucceeded
	case policy == corev1.RestartPolicyNever:
		return corev1.PodFailed
	}
	return phase
}

// EndedAt returns when the last container of a pod ended, or zero if none has.
func EndedAt(pod *corev1.Pod) time.Time {
	var last time.Time
	for i := range pod.Status.ContainerStatuses {
		if end := pod.Status.ContainerStatuses[i].State.Terminated; end != nil && end.FinishedAt.After(last) {
			last = end.FinishedAt.Time
		}
	}
	return last
}

// Restarts returns how often containers of a pod were started again.
func Restarts(pod *corev1.Pod) (count int32) {
	for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, c := range list {
			count += c.RestartCount
		}
	}
	return count
}

// IsStopped reports whether a running pod belongs to a suspended batch Job. The Job controller is about to delete it, or has
// deleted it already: Jobs and pods have different watches.
func IsStopped(job *batchv1.Job, pod *corev1.Pod) bool {
	return ptr.Deref(job.Spec.Suspend, false) && pod.DeletionTimestamp == nil && !HasEnded(pod)
}

// TerminatedByKueue is the type of the condition of a pod that Kueue has failed, because it may not stay on the node that Kueue had selected
// (sigs.k8s.io/kueue/pkg/controller/tas).
const TerminatedByKueue corev1.PodConditionType = "TerminatedByKueue"

// Removal returns the condition of a pod that Kubernetes or Kueue removes, nil if neither does.
func Removal(pod *corev1.Pod) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		c := &pod.Status.Conditions[i]
		if (c.Type == corev1.DisruptionTarget || c.Type == TerminatedByKueue) && c.Status == corev1.ConditionTrue {
			return c
		}
	}
	return nil
}

// Disruption returns the Removal of a pod that is not the cause itself: it makes room for one with a higher priority, or its node is drained,
// shut down or lost. It returns nil for a pod that its kubelet evicts because of what the pod uses
// (k8s.io/kubernetes/pkg/kubelet/eviction).
func Disruption(pod *corev1.Pod) *corev1.PodCondition {
	c := Removal(pod)
	if c != nil && c.Reason == corev1.PodReasonTerminationByKubelet && pod.Status.Reason == "Evicted" {
		return nil
	}
	return c
}

// NotScheduled returns the condition PodScheduled of a pod if it is false, else nil.
func NotScheduled(pod *corev1.Pod) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c
		}
	}
	return nil
}

// Unschedulable returns the scheduler's message about a pod that fits on no node, and whether there is one.
func Unschedulable(pod *corev1.Pod) (message string, is bool) {
	if c := NotScheduled(pod); c != nil && c.Reason == corev1.PodReasonUnschedulable {
		return c.Message, true
	}
	return "", false
}

// ScheduledAt returns when a pod was scheduled, or zero if it was not.
func ScheduledAt(pod *corev1.Pod) time.Time { return heldSince(pod, corev1.PodScheduled) }

// ReadyAt returns when a pod became ready, or zero if it is not.
func ReadyAt(pod *corev1.Pod) time.Time { return heldSince(pod, corev1.PodReady) }

// NetworkedAt returns when a pod's volumes were mounted and its network was set up, or zero if that is unknown.
func NetworkedAt(pod *corev1.Pod) time.Time { return heldSince(pod, corev1.PodReadyToStartContainers) }

// InitializedAt returns when the init containers of a pod had ended, or zero if they have not.
func InitializedAt(pod *corev1.Pod) time.Time { return heldSince(pod, corev1.PodInitialized) }

// StartedAt returns when the main container of a pod started, or zero if it has not, or was restarted. Like LatestStart and FirstStart it
// takes the first status for that of the main container, which caches put there (cluster.AsCached).
func StartedAt(pod *corev1.Pod) time.Time {
	if len(pod.Status.ContainerStatuses) == 0 || pod.Status.ContainerStatuses[0].RestartCount > 0 {
		return time.Time{}
	}
	return LatestStart(pod)
}

// LatestStart returns when the main container of a pod started last, or zero if it has not, or waits for its next start.
func LatestStart(pod *corev1.Pod) time.Time {
	if len(pod.Status.ContainerStatuses) == 0 {
		return time.Time{}
	}
	switch state := pod.Status.ContainerStatuses[0].State; {
	case state.Running != nil:
		return state.Running.StartedAt.Time
	case state.Terminated != nil:
		return state.Terminated.StartedAt.Time
	}
	return time.Time{}
}

// FirstStart returns when the main container of a pod started first, or zero if it has not. A pod has the last two starts of a container:
// of more, it returns the earlier one of these.
func FirstStart(pod *corev1.Pod) time.Time {
	if len(pod.Status.ContainerStatuses) > 0 {
		if before := pod.Status.ContainerStatuses[0].LastTerminationState.Terminated; before != nil && !before.StartedAt.IsZero() {
			return before.StartedAt.Time
		}
	}
	return LatestStart(pod)
}

func heldSince(pod *corev1.Pod, kind corev1.PodConditionType) time.Time {
	for _, c := range pod.Status.Conditions {
		if c.Type == kind && c.Status == corev1.ConditionTrue {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}
