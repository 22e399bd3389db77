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

// SummaryOf reads what an agent has left in whichever of a pod's containers it ran, from the latest run that has ended;
// false where there is none. It does not look into the pod's specification, which may have been dropped.
func SummaryOf(pod *corev1.Pod) (launch.Summary, bool) {
	for _, c := range pod.Status.ContainerStatuses {
		for _, ended := range []*corev1.ContainerStateTerminated{c.State.Terminated, c.LastTerminationState.Terminated} {
			if ended == nil {
				continue
			}
			if summary, is := launch.ParseSummary(ended.Message); is {
				return summary, true
			}
		}
	}
	return launch.Summary{}, false
}
