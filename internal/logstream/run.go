package logstream

import (
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// run is one run of a container: from its start to its end. A container that is started again has another one.
type run struct {
	pod, container string
	place          Place
	// over is closed when it has ended, or cannot be read any more.
	over chan struct{}

	mu sync.Mutex
	// previous is set once another run has followed it; lost once two have, or its pod is gone.
	previous, lost bool
	ended          bool
}

func (r *run) isPrevious() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.previous
}

func (r *run) isLost() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lost
}

func (r *run) isOver() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ended
}

// become takes note of what the run is now. What has ended does not go on.
func (r *run) become(previous, lost, ended bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.previous, r.lost = previous, r.lost || lost
	if ended && !r.ended {
		r.ended = true
		close(r.over)
	}
}

// seen holds the keys of the current and the previous run of a container, from the pod's status; empty if there is
// none.
type seen struct {
	now, before string
	// ended is set where the present run has.
	ended bool
	// waits is why there is no present one.
	waits string
}

// look reads a pod's runs.
func look(pod *corev1.Pod, container string) seen {
	var s seen
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name != container {
			continue
		}
		key := func(id string, restarts int32) string {
			if id == "" {
				return fmt.Sprintf("%s/%d", pod.UID, restarts)
			}
			return id
		}
		switch state := status.State; {
		case state.Running != nil:
			s.now = key(status.ContainerID, status.RestartCount)
		case state.Terminated != nil && (state.Terminated.ContainerID != "" || !state.Terminated.StartedAt.IsZero()):
			s.now, s.ended = key(state.Terminated.ContainerID, status.RestartCount), true
		}
		if last := status.LastTerminationState.Terminated; last != nil {
			s.before = key(last.ContainerID, status.RestartCount-1)
		}
	}
	if pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
		s.ended = true
	}
	if s.now == "" {
		s.waits = reason(pod, container)
	}
	return s
}

// reason returns why a container does not run, as text.
func reason(pod *corev1.Pod, container string) string {
	for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, status := range list {
			waiting := status.State.Waiting
			if waiting == nil || waiting.Reason == "" || waiting.Reason == "PodInitializing" {
				continue
			}
			if status.Name == container || waiting.Reason != "ContainerCreating" {
				return waiting.Reason
			}
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Reason
		}
	}
	if pod.Status.Reason != "" {
		return pod.Status.Reason
	}
	return string(pod.Status.Phase)
}

// containerOf is the container whose log is read: the one that was named, or the pod's main one.
func containerOf(pod *corev1.Pod, named string) string {
	if named != "" {
		return named
	}
	if main := pod.Annotations["kubectl.kubernetes.io/default-container"]; main != "" {
		return main
	}
	if len(pod.Spec.Containers) > 0 {
		return pod.Spec.Containers[0].Name
	}
	return ""
}

// Reason is why a pod's main container does not run, in a word.
func Reason(pod *corev1.Pod) string { return reason(pod, containerOf(pod, "")) }

// Container is the container of a pod that is meant by a name; by none, the main one.
func Container(pod *corev1.Pod, named string) string { return containerOf(pod, named) }
