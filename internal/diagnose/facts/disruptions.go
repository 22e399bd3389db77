package facts

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/podstatus"
)

// Removal is why Kubernetes or Kueue removes a pod.
type Removal struct {
	Code codes.Code
	// reason is the reason of the pod's condition podstatus.Removal, "" if it has none.
	Reason, Message string
}

// RemovalOf returns why Kubernetes or Kueue removes a pod; nil if neither does.
func (f *Facts) RemovalOf(pod Pod) *Removal {
	reason, message := pod.disruption()
	code := codes.Evicted
	switch {
	case reason == "PreemptionByScheduler" || strings.HasPrefix(pod.Status.Reason, "Preempt"):
		code = codes.Preempted
	case reason == "DeletionByTaintManager" || reason == "DeletionByPodGC" || pod.Status.Reason == "NodeLost" || f.nodeDown(pod):
		code = codes.NodeLost
		missing := f.nodeMissing(pod)
		if name := f.Template(pod.Role).NodeName; name != "" && name == pod.Spec.NodeName && len(pod.Status.ContainerStatuses) == 0 && (missing || reason == "DeletionByPodGC") {
			// No kubelet ever reported the pod.
			code = codes.NodeMissing
		}
		if message == "" && missing {
			message = "node " + pod.Spec.NodeName + " does not exist"
		}
	case reason == corev1.PodReasonTerminationByKubelet || reason == "" && pod.Status.Reason == "Evicted":
		return &Removal{code, reason, cmp.Or(pod.Status.Message, message)}
	case reason == "":
		if message = f.evictionOf(pod); message == "" {
			return nil
		}
		return &Removal{code, reason, message}
	default:
		// Other controllers name their own reasons.
		return &Removal{code, reason, cmp.Or(message, reason)}
	}
	return &Removal{code, reason, cmp.Or(message, pod.Status.Message, "node "+pod.Spec.NodeName+" is not ready")}
}

// evictionOf is the message of the kubelet's event about the eviction of a pod, "" if there is none. The pod's status shows it
// only when its containers have ended, and never if the pod is deleted before
// (k8s.io/kubernetes/pkg/kubelet/eviction/eviction_manager.go).
func (f *Facts) evictionOf(pod Pod) string {
	found := f.Events("Pod", func(e jobstate.Event) bool {
		return e.Reason == "Evicted" && e.Name == pod.Name && !e.Last.Before(pod.CreationTimestamp.Time)
	})
	if len(found) == 0 {
		return ""
	}
	return found[len(found)-1].Message
}

// nodeDown reports whether a pod that had not ended sits on a node that does not answer.
func (f *Facts) nodeDown(pod Pod) bool {
	if pod.Spec.NodeName == "" || podstatus.HasEnded(pod.Pod) || f.ranksEnded() {
		return false
	}
	for _, node := range f.Evidence.Nodes {
		if node.Name == pod.Spec.NodeName {
			return !node.Ready
		}
	}
	return false
}

// nodeMissing reports whether the node that a pod is to run on does not exist.
func (f *Facts) nodeMissing(pod Pod) bool {
	return slices.ContainsFunc(f.Evidence.Nodes, func(node jobstate.Node) bool { return node.Missing && node.Name == pod.Spec.NodeName })
}
