package mpi

import (
	"path"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/agentapi"
)

// Values of AnnotationLaunch.
const (
	// LaunchAgent selects the agent, which works in any image. It is the default if the worker's template has no
	// command.
	LaunchAgent = "agent"
	// LaunchSSHD selects the OpenSSH server of the image, as with mpi-operator.
	LaunchSSHD = "sshd"
)

// UsesAgent reports whether the agent starts the job's ranks: if the user selected it, and by default if the worker's
// template has no command. A worker with a command runs that command; it may start the agent itself. In a job without
// workers, the agent monitors the ranks that start in the launcher, and stands for the ssh that MPI looks for.
func (j Job) UsesAgent() bool {
	return j.Launch == LaunchAgent || j.Launch == "" && !j.Workers.HasCommand()
}

// HasCommand reports whether the worker's template has a command or arguments.
func (w Workers) HasCommand() bool {
	containers := w.Template.Spec.Containers
	return len(containers) > 0 && (len(containers[0].Command) > 0 || len(containers[0].Args) > 0)
}

// HasOwnCommand reports whether the worker's template has a command that does not only serve ranks by the agent, as that of this
// project's runtimes does.
func (w Workers) HasOwnCommand() bool {
	if !w.HasCommand() {
		return false
	}
	command := slices.Concat(w.Template.Spec.Containers[0].Command, w.Template.Spec.Containers[0].Args)
	return !slices.Equal(command, []string{agentapi.Binary, "serve"})
}

var (
	// waitingPrograms are programs by which users keep a container running, or start ranks.
	waitingPrograms = regexp.MustCompile(`^(?:sleep|tail|cat|true|yes|watch|python[\d.]*|` + strings.Join(Launchers, "|") + `)$`)
	// mayServe is what a shell's script may start a server by: its name, or another script.
	mayServe = regexp.MustCompile(`sshd|mpi-agent|\.sh\b|/`)
)

// ServesNothing reports whether the worker's template has a command that certainly is no server that starts ranks.
func (w Workers) ServesNothing() bool {
	if !w.HasCommand() || len(w.Template.Spec.Containers[0].Command) == 0 {
		return false
	}
	words := slices.Concat(w.Template.Spec.Containers[0].Command, w.Template.Spec.Containers[0].Args)
	if isShell(words[0]) {
		return !mayServe.MatchString(strings.ReplaceAll(strings.Join(words[1:], " "), "/dev/null", ""))
	}
	return waitingPrograms.MatchString(path.Base(words[0]))
}

// AgentSummary returns the agent's summary from the latest terminated run of any container of a pod, and whether
// there is one. It only reads the pod's status: caches may drop the specification.
func AgentSummary(pod *corev1.Pod) (agentapi.Summary, bool) {
	for _, c := range pod.Status.ContainerStatuses {
		for _, ended := range []*corev1.ContainerStateTerminated{c.State.Terminated, c.LastTerminationState.Terminated} {
			if ended == nil {
				continue
			}
			if summary, is := agentapi.ParseSummary(ended.Message); is {
				return summary, true
			}
		}
	}
	return agentapi.Summary{}, false
}
