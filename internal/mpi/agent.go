package mpi

import (
	"encoding/json"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// AnnotationLaunch, on a job, says who starts ranks on its workers: LaunchAgent or LaunchSSHD.
const AnnotationLaunch = Group + "/launch"

// Who starts ranks.
const (
	// LaunchAgent is our own agent, in any image. It is the default where the worker names no command of its own.
	LaunchAgent = "agent"
	// LaunchSSHD is the image's own OpenSSH, as with mpi-operator.
	LaunchSSHD = "sshd"
)

// Where pods find the agent, the key that it proves itself with, and how it is reached.
const (
	AgentContainer = "mpi-agent"
	AgentVolume    = "mpi-agent"
	AgentPath      = "/opt/mpi-agent"
	AgentBinary    = AgentPath + "/mpi-agent"
	// AgentShim is the agent under the name by which MPI libraries and tools start a rank's host: ssh.
	AgentShim      = AgentPath + "/bin/ssh"
	AgentKeyVolume = "mpi-agent-key"
	AgentKeyPath   = "/etc/mpi-agent"
	AgentKeyFile   = AgentKeyPath + "/" + corev1.SSHAuthPrivateKey

	// AgentPort is where a worker's agent takes SSH connections; AgentStatusPort is where any agent serves
	// /healthz, /status and /metrics, read only.
	AgentPort       = 2222
	AgentStatusPort = 2223
)

// Variables by which the operator tells the agent what it cannot know by itself.
const (
	// EnvAgentWait is how long a launcher waits for a worker's host, as a Go duration.
	EnvAgentWait = "MPI_AGENT_WAIT"
	// EnvAgentHosts is how many hosts the hostfile has, and EnvAgentSlots how many slots each of them has.
	EnvAgentHosts = "MPI_AGENT_HOSTS"
	EnvAgentSlots = "MPI_AGENT_SLOTS"
)

// Summary is what an agent tells of a container's run in its termination message, as one line of JSON. A
// Kubernetes termination message holds 4096 bytes; lists are cut to fit.
type Summary struct {
	Role Role `json:"role"`
	// Code is the agent's own finding, for programs; empty if nothing is wrong as far as the agent knows.
	// Message says it for people.
	Code    AgentCode `json:"code,omitempty"`
	Message string    `json:"message,omitempty"`
	// ExitCode is how the launcher's command ended; nil where it has not or where this is a worker. Signal is the
	// signal that ended it, or 0.
	ExitCode *int32 `json:"exitCode,omitempty"`
	Signal   int32  `json:"signal,omitempty"`
	// HostsExpected and SlotsExpected are the hostfile's. HostsReached is how many of its hosts the launcher
	// started anything on, and SlotsFound the slots of these. Launchers only.
	HostsExpected int32 `json:"hostsExpected,omitempty"`
	SlotsExpected int32 `json:"slotsExpected,omitempty"`
	HostsReached  int32 `json:"hostsReached,omitempty"`
	SlotsFound    int32 `json:"slotsFound,omitempty"`
	// Hosts are those that were not reached, or were lost, at most 8.
	Hosts []HostTrouble `json:"hosts,omitempty"`
	// RanksSeen is how many processes with a rank were seen in this container. Short ones can be missed.
	RanksSeen int32 `json:"ranksSeen,omitempty"`
	// Ranks are those that ended badly, the first one first, at most 8.
	Ranks []RankEnd `json:"ranks,omitempty"`
	// OOMKills counts the processes that the kernel killed in this container for lack of memory; MemoryLimit and
	// MemoryPeak are bytes, 0 where unknown or unlimited.
	OOMKills    int64 `json:"oomKills,omitempty"`
	MemoryLimit int64 `json:"memoryLimit,omitempty"`
	MemoryPeak  int64 `json:"memoryPeak,omitempty"`
	// Refused counts connections that did not prove that they belong to the job. Workers only.
	Refused int64 `json:"refused,omitempty"`
	// Version is the MPI library's name and version as far as it told, such as "Open MPI 4.1.4".
	Version string `json:"version,omitempty"`
}

// AgentCode names what an agent found wrong.
type AgentCode string

// What agents find.
const (
	// AgentHostfileIgnored: every rank ran beside the launcher and none on the workers.
	AgentHostfileIgnored AgentCode = "HostfileIgnored"
	// AgentUnreachable: a worker could not be reached in time, by name, address or port.
	AgentUnreachable AgentCode = "WorkerUnreachable"
	// AgentKeyRefused: a worker did not accept this job's key.
	AgentKeyRefused AgentCode = "KeyRefused"
	// AgentHostKeyMismatch: what answered at a worker's address is not this job's worker.
	AgentHostKeyMismatch AgentCode = "HostKeyMismatch"
	// AgentConnectionLost: a worker was reached, then lost.
	AgentConnectionLost AgentCode = "ConnectionLost"
	// AgentOutOfMemory: the kernel killed a process of this container for lack of memory.
	AgentOutOfMemory AgentCode = "OutOfMemory"
	// AgentRankFailed: a rank ended with a code or by a signal.
	AgentRankFailed AgentCode = "RankFailed"
	// AgentProgramMissing: the launcher's own command is not in the image.
	AgentProgramMissing AgentCode = "ProgramMissing"
)

// HostTrouble is a host that the launcher could not use.
type HostTrouble struct {
	Host string    `json:"host"`
	Code AgentCode `json:"code"`
	// Message is the last error, such as "connection refused".
	Message string `json:"message,omitempty"`
	// Seconds is how long the launcher tried, or how long the connection lasted.
	Seconds int32 `json:"seconds,omitempty"`
}

// RankEnd is how a rank's process ended.
type RankEnd struct {
	Rank int32 `json:"rank"`
	// ExitCode is -1 where the end was seen but not its code. Signal is the signal that ended it, or 0.
	ExitCode int32 `json:"exitCode"`
	Signal   int32 `json:"signal,omitempty"`
	// OOM is set where the kernel killed it for lack of memory.
	OOM     bool   `json:"oom,omitempty"`
	Program string `json:"program,omitempty"`
}

// SummaryOf reads the agent's summary of a pod's first container, from its latest run that has ended; false where
// there is none.
func SummaryOf(pod *corev1.Pod) (Summary, bool) {
	if len(pod.Spec.Containers) == 0 {
		return Summary{}, false
	}
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name != pod.Spec.Containers[0].Name {
			continue
		}
		for _, ended := range []*corev1.ContainerStateTerminated{c.State.Terminated, c.LastTerminationState.Terminated} {
			if ended == nil {
				continue
			}
			return ParseSummary(ended.Message)
		}
	}
	return Summary{}, false
}

// ParseSummary reads a termination message that may be an agent's.
func ParseSummary(message string) (Summary, bool) {
	message = strings.TrimSpace(message)
	var summary Summary
	if !strings.HasPrefix(message, `{"role":`) || json.Unmarshal([]byte(message), &summary) != nil {
		return Summary{}, false
	}
	return summary, true
}
