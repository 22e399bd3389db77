package facts

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/diagnose/loglines"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/podstatus"
)

// Pod is a pod of the job.
type Pod struct {
	*corev1.Pod
	Role  mpi.Role
	Index int
	// main is the name of the container that runs MPI, as the pod template has it; "" if the template is unknown.
	main string
	// Latest is set for workers, and for the launcher's last try.
	Latest bool
	// stopped is set for a launcher that its batch Job stops: how its present run ends does not count.
	stopped bool
	// Deleted is set for a launcher or worker that something else deleted while it ran: how it ends does not count.
	Deleted bool
	// Summary is what the pod's agent has left; nil where there is none.
	Summary *agentapi.Summary
	Log     jobstate.Log
	// messages are the messages of Open MPI in the log.
	messages []loglines.Message
}

// Initializers returns the latest pods of a TrainJob's initializers. Their roles are the names of their jobs.
func (f *Facts) Initializers() (pods []Pod) {
	for _, object := range f.Seen.Initializers {
		pods = append(pods, Pod{Pod: object, Role: mpi.Role(object.Labels[mpi.LabelJobSetJob]), Latest: true, Log: f.Evidence.Logs[object.Name]})
	}
	return pods
}

// OfPendingInitializers returns the facts with the initializers that have not started in place of the job's other pods; nil if there are none.
func (f *Facts) OfPendingInitializers() *Facts {
	pods := slices.DeleteFunc(f.Initializers(), func(pod Pod) bool { return pod.Status.Phase != corev1.PodPending || pod.DeletionTimestamp != nil })
	if len(pods) == 0 {
		return nil
	}
	preparing := *f
	preparing.Pods, preparing.Signs, preparing.DeletedWorkers = pods, nil, nil
	// The gang is that of the other pods.
	preparing.Seen.Gang = nil
	return &preparing
}

// MainStatus is the status of the container that runs MPI; nil if it has none, or the container is unknown.
func (p Pod) MainStatus() *corev1.ContainerStatus {
	for i := range p.Status.ContainerStatuses {
		if c := &p.Status.ContainerStatuses[i]; c.Name == p.main && p.main != "" {
			return c
		}
	}
	return nil
}

// IsSidecar reports whether a container is another than the one that runs MPI, once this has started: how it ends is another matter.
// Init containers have ended well by then, unless they are sidecars.
func (p Pod) IsSidecar(name string) bool {
	main := p.MainStatus()
	if main == nil || name == p.main {
		return false
	}
	if IsInit(p, name) {
		return main.State.Waiting == nil || main.LastTerminationState.Terminated != nil
	}
	return true
}

// IsInit reports whether a container of a pod is an init container.
func IsInit(pod Pod, container string) bool {
	return slices.ContainsFunc(pod.Status.InitContainerStatuses, func(c corev1.ContainerStatus) bool { return c.Name == container })
}

// End is how the first container that ended badly has ended, in its present run or the one before; nil where none did. Sidecars
// of the container that runs MPI do not count, nor does the end of a run whose pod was deleted before.
func (p Pod) End() *corev1.ContainerStateTerminated {
	for _, previous := range []bool{false, true} {
		for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
			for _, c := range list {
				ended := c.State.Terminated
				if previous {
					ended = c.LastTerminationState.Terminated
				}
				if ended != nil && ended.ExitCode != 0 && (previous || p.counts(c)) && !p.IsSidecar(c.Name) {
					return ended
				}
			}
		}
	}
	return nil
}

// counts reports whether it matters how the present run of a container ends.
func (p Pod) counts(c corev1.ContainerStatus) bool {
	return !p.Deleted && (!p.stopped || c.LastTerminationState.Terminated == nil)
}

// ExitCode is that of the command of the container that End returns; nil where there is none. The agent of a launcher ends with another
// one, to tell disruptions from failures of the program (agentapi.EnvExitDisrupted).
func (p Pod) ExitCode() *int32 {
	end := p.End()
	if end == nil {
		return nil
	}
	if s, is := agentapi.ParseSummary(end.Message); is && s.Role == agentapi.RoleLauncher && ptr.Deref(s.ExitCode, 0) != 0 {
		return s.ExitCode
	}
	return &end.ExitCode
}

// FailedInit is the name of the init container that failed, so that the pod's other containers did not start; "" if none did.
func (p Pod) FailedInit() string {
	for _, c := range p.Status.InitContainerStatuses {
		for _, ended := range []*corev1.ContainerStateTerminated{c.State.Terminated, c.LastTerminationState.Terminated} {
			if ended != nil && ended.ExitCode != 0 && !c.Ready {
				return c.Name
			}
		}
	}
	return ""
}

// lastSummary is what the agent of the pod's previous run has left, or of its present one where that is the first.
func (p Pod) lastSummary() *agentapi.Summary {
	for _, c := range p.Status.ContainerStatuses {
		if last := c.LastTerminationState.Terminated; last != nil {
			if summary, is := agentapi.ParseSummary(last.Message); is {
				return &summary
			}
		}
	}
	return p.Summary
}

// disruption is the reason for which Kubernetes or Kueue takes a pod away; empty where neither does.
func (p Pod) disruption() (reason, message string) {
	if c := podstatus.Removal(p.Pod); c != nil {
		return c.Reason, c.Message
	}
	return "", ""
}

// Title returns what a pod is in the job, as the beginning of a sentence.
func (p Pod) Title() string {
	switch p.Role {
	case mpi.RoleLauncher:
		return "The launcher"
	case mpi.RoleWorker:
		return fmt.Sprintf("Worker %d", p.Index)
	}
	return "The " + string(p.Role)
}

// ContainersOf returns the statuses of the init containers and the containers of a pod.
func ContainersOf(p Pod) []corev1.ContainerStatus {
	return append(append([]corev1.ContainerStatus(nil), p.Status.InitContainerStatuses...), p.Status.ContainerStatuses...)
}

// HasVolumes reports whether a pod that starts has got its volumes: a container of it has got beyond them.
func HasVolumes(pod Pod) bool {
	return slices.ContainsFunc(ContainersOf(pod), func(c corev1.ContainerStatus) bool {
		return c.State.Running != nil || c.State.Terminated != nil ||
			podstatus.ObstacleOf(c) != podstatus.NoObstacle
	})
}

// HasWaiting reports whether a container of a pod waits because of an error.
func HasWaiting(pod Pod) bool {
	return slices.ContainsFunc(ContainersOf(pod), func(c corev1.ContainerStatus) bool {
		return c.State.Waiting != nil && strings.Contains(c.State.Waiting.Reason, "Error")
	})
}

// InitAt returns the init container of a pod that had not ended at a time, with its start; "" if there is none. It may have been ended
// since, with its pod.
func InitAt(pod Pod, at time.Time) (name string, started time.Time) {
	if c := podstatus.RunningInit(pod.Pod); c != nil {
		return c.Name, c.State.Running.StartedAt.Time
	}
	for _, c := range pod.Status.InitContainerStatuses {
		if end := c.State.Terminated; end != nil && !podstatus.IsRestartedAlways(pod.Pod, c.Name) && !end.StartedAt.After(at) && !end.FinishedAt.Time.Before(at) {
			return c.Name, end.StartedAt.Time
		}
	}
	return "", time.Time{}
}

// DeletedAt returns when the deletion of a pod was requested. Its deletion timestamp is when its grace period is over.
func DeletedAt(pod *corev1.Pod) time.Time {
	grace := ptr.Deref(pod.DeletionGracePeriodSeconds, 0)
	return pod.DeletionTimestamp.Add(-time.Duration(grace) * time.Second)
}

// IsPastDeadline reports whether a kubelet stopped a pod because of the activeDeadlineSeconds of the pod itself
// (k8s.io/kubernetes/pkg/kubelet/active_deadline.go). The deadline of a Job deletes its pods.
func IsPastDeadline(pod Pod) bool {
	return pod.Status.Phase == corev1.PodFailed && pod.Status.Reason == "DeadlineExceeded"
}

// StartError is the kubelet's reason for a container that did not start.
const StartError = "StartError"
