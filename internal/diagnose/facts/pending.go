package facts

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/podstatus"
)

// Group gathers the pods that share a trouble.
type Group struct {
	Pods   []Pod
	Status corev1.ContainerStatus
	Lines  []string
}

// Waiting gathers pods of which a container waits because of an obstacle; nil if there are none.
func (f *Facts) Waiting(obstacle podstatus.Obstacle) *Group {
	var g *Group
	for _, pod := range f.Pods {
		if pod.DeletionTimestamp != nil || !pod.Latest {
			continue
		}
		for _, c := range ContainersOf(pod) {
			if podstatus.ObstacleOf(c) != obstacle {
				continue
			}
			if g == nil {
				g = &Group{Status: c}
			}
			g.Pods = append(g.Pods, pod)
			g.Lines = append(g.Lines, fmt.Sprintf("Pod %s, container %s: %s: %s", pod.Name, c.Name, c.State.Waiting.Reason, steady(c.State.Waiting.Message)))
			break
		}
	}
	return g
}

// steady cuts what the kubelet adds while it waits to try again, so that a finding stays the same.
func steady(message string) string {
	if strings.HasPrefix(message, "back-off ") {
		return "restarted with increasing delay"
	}
	return podstatus.PullError(message)
}

// Unschedulable returns the message of the scheduler about a pod without a node; "" if there is none, or if it is about the gang.
func Unschedulable(p Pod) string {
	if message, is := podstatus.Unschedulable(p.Pod); is && !jobstate.IsOfGang(message) {
		return message
	}
	return ""
}

// notTried reports whether no scheduler has tried to place a pod: it has no node, and no condition PodScheduled.
func notTried(pod Pod) bool {
	return pod.Spec.NodeName == "" && podstatus.NotScheduled(pod.Pod) == nil && podstatus.ScheduledAt(pod.Pod).IsZero()
}

// IsGated reports whether a scheduling gate holds a pod.
func IsGated(pod Pod) bool {
	condition := podstatus.NotScheduled(pod.Pod)
	return condition != nil && condition.Reason == corev1.PodReasonSchedulingGated && pod.Spec.NodeName == ""
}

// IsIgnored reports whether no scheduler has tried to place a pod that names another scheduler than the default one.
func (f *Facts) IsIgnored(pod Pod) bool {
	name := f.Template(pod.Role).SchedulerName
	return name != "" && name != corev1.DefaultSchedulerName && notTried(pod)
}

// WaitsForClaims reports whether the scheduler has not looked at a pod that requests devices by ResourceClaims: it does so when they
// exist (k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources, PreEnqueue).
func (f *Facts) WaitsForClaims(pod Pod) bool {
	return len(f.Template(pod.Role).ResourceClaims) > 0 && notTried(pod)
}
