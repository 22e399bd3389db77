package mpi

import (
	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/launch"
)

// AnnotationLaunch says, on a job, who starts ranks on its workers: LaunchAgent or LaunchSSHD.
const AnnotationLaunch = Group + "/launch"

// Who starts ranks on workers.
const (
	// LaunchAgent is our own agent, in any image. It is the default where the worker names no command of its own.
	LaunchAgent = "agent"
	// LaunchSSHD is the image's own OpenSSH, as with mpi-operator.
	LaunchSSHD = "sshd"
)

// UsesAgent tells whether the agent starts the job's ranks: where its user says so, and where the worker is given no
// command. A worker with a command of its own runs that; its user may call the agent from there.
func (j Job) UsesAgent() bool {
	return j.Workers.Count > 0 && (j.Launch == LaunchAgent || j.Launch == "" && !j.Workers.HasCommand())
}

// HasCommand tells whether the worker's template says what to run.
func (w Workers) HasCommand() bool {
	containers := w.Template.Spec.Containers
	return len(containers) > 0 && (len(containers[0].Command) > 0 || len(containers[0].Args) > 0)
}

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
