package mpi

import (
	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/launch"
)

// AnnotationLaunch says, on a job, who starts ranks on its workers: LaunchAgent or LaunchSSHD.
const AnnotationLaunch = Group + "/launch"

// Who starts ranks.
const (
	// LaunchAgent is our own agent, in any image. It is the default where the worker names no command of its own.
	LaunchAgent = "agent"
	// LaunchSSHD is the image's own OpenSSH, as with mpi-operator.
	LaunchSSHD = "sshd"
)

// SummaryOf reads the agent's summary of a pod's first container, from its latest run that has ended; false where
// there is none.
func SummaryOf(pod *corev1.Pod) (launch.Summary, bool) {
	if len(pod.Spec.Containers) == 0 {
		return launch.Summary{}, false
	}
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name != pod.Spec.Containers[0].Name {
			continue
		}
		for _, ended := range []*corev1.ContainerStateTerminated{c.State.Terminated, c.LastTerminationState.Terminated} {
			if ended == nil {
				continue
			}
			return launch.ParseSummary(ended.Message)
		}
	}
	return launch.Summary{}, false
}
