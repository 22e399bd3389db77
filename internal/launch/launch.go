// Package launch is what the operator and the agent agree on: where pods find the agent, how it is reached, what it
// is told and what it tells. It is pure and small: the agent, which goes into every pod, holds nothing else of ours.
package launch

import (
	"encoding/json"
	"strings"
)

// Where pods find the agent, the key that it proves itself with, and how it is reached.
const (
	Container = "mpi-agent"
	Volume    = "mpi-agent"
	Path      = "/opt/mpi-agent"
	Binary    = Path + "/mpi-agent"
	// Shim is the agent under the name by which MPI libraries and tools start a rank's host: ssh.
	Shim      = Path + "/bin/ssh"
	KeyVolume = "mpi-agent-key"
	KeyPath   = "/etc/mpi-agent"
	KeyFile   = KeyPath + "/ssh-privatekey"
	// Run is where a launcher's agent keeps what is going on; any user of the pod may write there.
	Run = Path + "/run"
	// Hostfile is the job's list of hosts, as its MPI reads it.
	Hostfile = "/etc/mpi/hostfile"

	// Port is where a worker's agent takes SSH connections; StatusPort is where any agent serves
	// /healthz, /status and /metrics, read only.
	Port       = 2222
	StatusPort = 2223
)

// Variables by which the operator tells the agent what it cannot know by itself.
const (
	// EnvWait is how long a launcher waits for a worker's host, as a Go duration.
	EnvWait = "MPI_AGENT_WAIT"
	// EnvKey names another file with the job's private key than KeyFile.
	EnvKey = "MPI_AGENT_KEY"
	// EnvRun names another folder than Run.
	EnvRun = "MPI_AGENT_RUN"
	// EnvHostfileFormat, set to FormatHydra, has a launcher's agent give Hydra a list of hosts that it can read.
	EnvHostfileFormat = "MPI_AGENT_HOSTFILE_FORMAT"
	FormatHydra       = "hydra"
)

// Whose summary it is.
const (
	RoleLauncher = "launcher"
	RoleWorker   = "worker"
)

// Summary is what an agent tells of a container's run in its termination message, as one line of JSON. A
// Kubernetes termination message holds 4096 bytes; lists are cut to fit.
type Summary struct {
	// Role is RoleLauncher or RoleWorker.
	Role string `json:"role"`
	// Code is the agent's own finding, for programs; empty if nothing is wrong as far as the agent knows.
	// Message says it for people.
	Code    Code   `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
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
	// ConnectSeconds is how long it took from the first attempt to connect to a host until all were reached that MPI
	// asked for; 0 where they were not. Launchers only.
	ConnectSeconds float64 `json:"connectSeconds,omitempty"`
	// InitSeconds is how long it took from a command's start on a worker until the first rank's process ran there; a
	// launcher tells the slowest worker's. 0: none was seen.
	InitSeconds float64 `json:"initSeconds,omitempty"`
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
}

// Code names what an agent found wrong.
type Code string

// What agents find.
const (
	// HostfileIgnored: every rank ran beside the launcher and none on the workers.
	HostfileIgnored Code = "HostfileIgnored"
	// Unreachable: a worker could not be reached in time, by name, address or port.
	Unreachable Code = "WorkerUnreachable"
	// KeyRefused: a worker did not accept this job's key.
	KeyRefused Code = "KeyRefused"
	// HostKeyMismatch: what answered at a worker's address is not this job's worker.
	HostKeyMismatch Code = "HostKeyMismatch"
	// ConnectionLost: a worker was reached, then lost.
	ConnectionLost Code = "ConnectionLost"
	// OutOfMemory: the kernel killed a process of this container for lack of memory.
	OutOfMemory Code = "OutOfMemory"
	// RankFailed: a rank ended with a code or by a signal.
	RankFailed Code = "RankFailed"
	// ProgramMissing: the launcher's own command is not in the image.
	ProgramMissing Code = "ProgramMissing"
)

// HostTrouble is a host that the launcher could not use.
type HostTrouble struct {
	Host string `json:"host"`
	Code Code   `json:"code"`
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

// ParseSummary reads a termination message that may be an agent's.
func ParseSummary(message string) (Summary, bool) {
	message = strings.TrimSpace(message)
	var summary Summary
	if !strings.HasPrefix(message, `{"role":`) || json.Unmarshal([]byte(message), &summary) != nil {
		return Summary{}, false
	}
	return summary, true
}
