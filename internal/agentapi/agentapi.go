// Package agentapi defines the interface between the operator and the agent: paths, ports, environment variables, and
// the summary that the agent reports. It is pure and small, because it is the only package of the operator that the
// agent contains.
package agentapi

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Paths and ports of the agent in a pod.
const (
	Container = "mpi-agent"
	// Logger marks the agent's lines in the logs of pods.
	Logger    = "mpi-agent"
	Volume    = "mpi-agent"
	RunVolume = "mpi-agent-run"
	Path      = "/opt/mpi-agent"
	Binary    = Path + "/mpi-agent"
	// Shim is the agent under the name ssh, which MPI libraries and tools call to start processes on another host.
	Shim      = Path + "/bin/ssh"
	KeyVolume = "mpi-agent-key"
	KeyPath   = "/etc/mpi-agent"
	KeyFile   = KeyPath + "/ssh-privatekey"
	// Run is the folder in which the launcher's agent keeps its records. Any user of the pod can write to it.
	Run = Path + "/run"
	// ExchangeLibrary is a part of the agent's image. The test of a runtime preloads it to measure MPI messages.
	ExchangeLibrary = Path + "/lib/libmpi-exchange.so"
	// GPULibrary is a part of the agent's image. The agent preloads it into the image's shell, where it reads the GPUs of NVIDIA.
	GPULibrary = Path + "/lib/libmpi-gpus.so"
	// TerminationFile is Kubernetes' default for a container's terminationMessagePath.
	TerminationFile = "/dev/termination-log"
	// Hostfile is the job's hostfile, in the format of its MPI library.
	Hostfile = "/etc/mpi/hostfile"

	// Port is the port of a worker's agent for SSH connections. StatusPort is the port of every agent for /healthz,
	// /status and /metrics, read-only.
	Port       = 2222
	StatusPort = 2223
)

// Environment variables by which the operator configures the agent.
const (
	// EnvWait is how long a launcher waits until a worker's host is reachable, as a Go duration.
	EnvWait = "MPI_AGENT_WAIT"
	// EnvAddressWait is how long a launcher waits for a worker's host that has no address, such as that of a pod without a node, as a Go
	// duration. The operator sets it. EnvWait takes precedence.
	EnvAddressWait = "MPI_AGENT_ADDRESS_WAIT"
	// EnvKey is a file with the job's private key, instead of KeyFile.
	EnvKey = "MPI_AGENT_KEY"
	// EnvRun is a folder, instead of Run.
	EnvRun = "MPI_AGENT_RUN"
	// EnvTermination is the file of the termination message, instead of TerminationFile.
	EnvTermination = "MPI_AGENT_TERMINATION"
	// EnvEndAfter is how long, as a Go duration, MPI's launcher may run after a rank failed whom others wait for, or after a
	// host was lost, until the launcher's agent ends it; "never" disables it.
	EnvEndAfter = "MPI_AGENT_END_AFTER"
	// EnvGrace is the pod's grace period, as a Go duration: how long ranks may continue after SIGTERM. DefaultGrace is that of
	// Kubernetes, and the value if it is not set.
	EnvGrace = "MPI_AGENT_GRACE"
	// EnvExitDisrupted is the exit code of a launcher that failed after one of the workers was requested to end: its pod was
	// evicted, preempted or deleted. It distinguishes this from a failure of the program for the podFailurePolicy of a batch Job: a
	// program's own exit code of this value becomes 1, and Summary.ExitCode keeps it. If it is not set, the exit code is the program's.
	EnvExitDisrupted = "MPI_AGENT_EXIT_DISRUPTED"
	// EnvRestart is how often JobSet has started the job again, and EnvMaxRestarts how often it may: a launcher that was started again more
	// often fails without running its command. JobSet counts the restarts of disrupted jobs, but does not limit them.
	EnvRestart     = "MPI_AGENT_RESTART"
	EnvMaxRestarts = "MPI_AGENT_MAX_RESTARTS"
	// EnvHostfileFormat with the value FormatHydra makes the launcher's agent write a hostfile in the format of
	// Hydra.
	EnvHostfileFormat = "MPI_AGENT_HOSTFILE_FORMAT"
	FormatHydra       = "hydra"
	// EnvMeasure with the value false keeps the agent from measuring what its container uses over time.
	EnvMeasure = "MPI_AGENT_MEASURE"
	// EnvMeasureGPUs with the value false keeps the agent from measuring GPUs. The operator sets it for pods that request none.
	EnvMeasureGPUs = "MPI_AGENT_MEASURE_GPUS"
	// EnvForeign with the value true lets ssh -o StrictHostKeyChecking=no connect to hosts that are not in the job's
	// hostfile without checking their host keys. Hosts of the job are always checked.
	EnvForeign = "MPI_AGENT_FOREIGN_HOSTS"
)

// ClockFormat is how agents write a time of the day in what they report, in UTC (time.Layout).
const ClockFormat = "15:04:05 UTC"

// NoAddress is the part of the messages about hosts that have no address.
const NoAddress = "its pod has no address yet"

// DefaultWait is how long a worker that has an address may take to be reachable: a pod that has its image and volumes still to get. A host
// without an address is waited for at least so long.
const DefaultWait = 2 * time.Minute

// DefaultGrace is the grace period of pods that set none.
const DefaultGrace = 30 * time.Second

// Values of Summary.Role.
const (
	RoleLauncher = "launcher"
	RoleWorker   = "worker"
)

// Summary is the agent's report about a run of its container. It is written to the termination message as one line of
// JSON. Kubernetes limits termination messages to 4096 bytes; lists are shortened to fit.
type Summary struct {
	// Role is RoleLauncher or RoleWorker.
	Role string `json:"role"`
	// Code identifies the problem that the agent found for programs, or is empty. Message explains it to users.
	Code    Code   `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
	// ExitCode is the exit code of the launcher's command; nil for a worker, or if the command has not ended. Signal
	// is the signal that ended it, or 0.
	ExitCode *int32 `json:"exitCode,omitempty"`
	Signal   int32  `json:"signal,omitempty"`
	// HostsExpected and SlotsExpected are those of the hostfile. HostsReached is the number of its hosts on which the
	// launcher started a process, and SlotsFound is the number of their slots. Only launchers report them.
	HostsExpected int32 `json:"hostsExpected,omitempty"`
	SlotsExpected int32 `json:"slotsExpected,omitempty"`
	HostsReached  int32 `json:"hostsReached,omitempty"`
	SlotsFound    int32 `json:"slotsFound,omitempty"`
	// HostsIdle is the number of hosts of the hostfile on which no rank ran, although ranks ran on others or nothing was
	// started on any; 0 as well if that is not certain. Only launchers whose command succeeded report it.
	HostsIdle int32 `json:"hostsIdle,omitempty"`
	// Launches is the number of runs of mpirun and mpiexec that were observed; 0 as well if none was. Only launchers report it,
	// when their command has ended.
	Launches int32 `json:"launches,omitempty"`
	// MPISucceeded is set if the command failed although each of its runs of mpirun and mpiexec had ended with exit code 0 before. Only
	// launchers report it.
	MPISucceeded bool `json:"mpiSucceeded,omitempty"`
	// LaterSucceeded is set if ranks of a run of mpirun or mpiexec failed, and the command went on, ran MPI again, and its last run ended with exit code
	// 0 and without such a rank. Only launchers whose command succeeded report it.
	LaterSucceeded bool `json:"laterSucceeded,omitempty"`
	// LeftRunning is the MPI launcher, such as mpirun, that still ran when the launcher's command had ended with exit code 0; "" if none
	// did. Only launchers report it.
	LeftRunning string `json:"leftRunning,omitempty"`
	// MPIVersions are the MPI libraries whose launchers were observed, with their versions, such as "Open MPI 5.0.7" (see
	// IsMPIVersion). Only launchers report them.
	MPIVersions []string `json:"mpiVersions,omitempty"`
	// Through are the hosts on which processes of a session on this worker started processes, and those behind them: above 64
	// hosts, Open MPI's daemons start others. Only workers report it. It is not part of termination messages.
	Through []HostUse `json:"through,omitempty"`
	// Started is when the launcher's command was started, in milliseconds since 1970; 0 if that is unknown. Only launchers report it.
	Started int64 `json:"started,omitempty"`
	// ConnectSeconds is the time from the first attempt to connect to a host until all hosts that MPI uses were
	// connected; 0 if they never were. Only launchers report it.
	ConnectSeconds float64 `json:"connectSeconds,omitempty"`
	// InitSeconds is the time from the start of a command on a worker until the first process of a rank ran there. A
	// launcher reports that of the slowest worker. 0 means that no rank was observed.
	InitSeconds float64 `json:"initSeconds,omitempty"`
	// Sessions are the launcher's sessions on its hosts; nil if there was none. Only launchers report them.
	Sessions *Sessions `json:"sessions,omitempty"`
	// Hosts are the hosts that could not be connected or were lost, at most 8, in the order of time. A worker reports those behind it
	// (see Through) to the launcher; they are not part of its termination message.
	Hosts []HostTrouble `json:"hosts,omitempty"`
	// RanksSeen is the number of processes of ranks that were observed in this container. Short-lived processes can
	// be missed.
	RanksSeen int32 `json:"ranksSeen,omitempty"`
	// Ranks are the ranks that failed, in order of time, at most 8.
	Ranks []RankEnd `json:"ranks,omitempty"`
	// OOMKills is the number of processes of this container that the kernel killed because of lack of memory.
	// MemoryLimit and MemoryPeak are in bytes, 0 if unknown or unlimited.
	OOMKills    int64 `json:"oomKills,omitempty"`
	MemoryLimit int64 `json:"memoryLimit,omitempty"`
	MemoryPeak  int64 `json:"memoryPeak,omitempty"`
	// CPUSeconds is the CPU time of the containers with ranks, and ThrottledSeconds the time for which the kernel stopped
	// them because of their CPU limit. Launchers report the sums over all hosts.
	CPUSeconds       float64 `json:"cpuSeconds,omitempty"`
	ThrottledSeconds float64 `json:"throttledSeconds,omitempty"`
	// NoInterface is a setting by which ranks use none of their pod's network interfaces; nil if there is none. A launcher's is that
	// of all pods with ranks.
	NoInterface *InterfaceSetting `json:"noInterface,omitempty"`
	// Binding is how ranks are bound to cores; nil if it is unknown. A launcher's is that of the job.
	Binding *Binding `json:"binding,omitempty"`
	// Usage is what the containers used over time: a launcher's is that of the job. In a termination message, it has fewer points.
	Usage *Usage `json:"usage,omitempty"`
	// Activity is what the ranks of a worker do, while they run. It is not part of termination messages.
	Activity *Activity `json:"activity,omitempty"`
	// Refused is the number of connections that were not authenticated with the job's key. Only workers report it.
	Refused int64 `json:"refused,omitempty"`
	// Ending is set if the worker's pod is about to end. Ranks then does not contain those that ended because of it.
	// It is not part of termination messages.
	Ending bool `json:"ending,omitempty"`
}

// InterfaceSetting is a setting that selects network interfaces, of which a pod has none.
type InterfaceSetting struct {
	// Name is that of the variable, or of the parameter of Open MPI.
	Name  string `json:"name"`
	Value string `json:"value"`
	// Has are the names of the pod's interfaces.
	Has []string `json:"has"`
}

// String describes the setting in a line of the launcher's agent, such as "btl_tcp_if_include selects ib0, pods have lo, eth0".
func (s InterfaceSetting) String() string {
	return fmt.Sprintf("%s selects %s, pods have %s", s.Name, s.Value, strings.Join(s.Has, ", "))
}

// Activity is what the ranks of a container do.
type Activity struct {
	// Ranks are those that run, by number.
	Ranks []RankActivity `json:"ranks"`
	// StillSince is the time, in seconds since 1970, since which the pod has hardly sent or received anything; 0 if it does.
	StillSince int64 `json:"stillSince,omitempty"`
	// Unanswered is a connection that the pod tries to open, without an answer so far; nil if there is none.
	Unanswered *Unanswered `json:"unanswered,omitempty"`
	// Slow is what slows the pod's ranks down; nil if nothing does.
	Slow *Slowness `json:"slow,omitempty"`
}

// Slowness is what slowed the ranks of a pod down in the last minute. Figures below those that matter are 0, and others are rounded down.
type Slowness struct {
	// Since is the time, in seconds since 1970, since which something has slowed them down.
	Since int64 `json:"since"`
	// Throttled is the share of the time, in percent, in which the CPU limit stopped processes.
	Throttled int32 `json:"throttled,omitempty"`
	// Faults is the number of page faults per second that read from a disk.
	Faults int32 `json:"faults,omitempty"`
	// Queued is the share of the time, in percent, for which ranks that use a CPU waited for it.
	Queued int32 `json:"queued,omitempty"`
}

// Unanswered is an attempt to connect that gets no answer: neither a connection nor a refusal.
type Unanswered struct {
	// Address is what was called, such as "10.0.0.7:443".
	Address string `json:"address"`
	// Since is the time, in seconds since 1970, since which it is tried.
	Since int64 `json:"since"`
}

// QuietSince is the time, in seconds since 1970, since which no rank has computed or transferred data; 0 if one does, or uses a
// device: what the device does is unknown.
func (a Activity) QuietSince() int64 {
	since := a.StillSince
	for _, r := range a.Ranks {
		if r.Since == 0 || r.Device {
			return 0
		}
		since = max(since, r.Since)
	}
	if a.StillSince == 0 || len(a.Ranks) == 0 {
		return 0
	}
	return since
}

// RankActivity is what a rank does.
type RankActivity struct {
	Rank  int32 `json:"rank"`
	Doing Doing `json:"doing"`
	// Since is the time, in seconds since 1970, since which the rank has not been busy; 0 if it is.
	Since int64 `json:"since,omitempty"`
	// For is what the rank waits for, such as "the lock of /data/index.lock"; "" if the kernel does not show it.
	For string `json:"for,omitempty"`
	// Device is whether the rank has a GPU or another accelerator open: what it waits for may run there.
	Device bool `json:"device,omitempty"`
	// Waits is whether the rank was not busy in most samples of the last minute.
	Waits bool `json:"waits,omitempty"`
	// GPUIdleSince and GPUBusySince are the times, in seconds since 1970, since which all GPUs that the rank has open have been idle, or have computed
	// for half of the time or more; 0 if they have not, or that is not measured.
	GPUIdleSince int64 `json:"gpuIdleSince,omitempty"`
	GPUBusySince int64 `json:"gpuBusySince,omitempty"`
}

// Doing is what a process does.
type Doing string

// The values of Doing.
const (
	// Busy means that the process computes or transfers data.
	Busy Doing = "busy"
	// Polling means that the process looks for messages in a loop.
	Polling Doing = "polling"
	// Blocked means that the process sleeps in the kernel until something happens.
	Blocked Doing = "blocked"
	// Sleeping means that the process sleeps for a time that it has chosen.
	Sleeping Doing = "sleeping"
)

// Values of RankActivity.For of ranks that wait for files: for a server such as that of NFS, or for a disk or another file system.
const (
	ForFileServer = "a file server"
	ForStorage    = "storage"
)

// LockHolder is the format of what follows the file in RankActivity.For of a rank that waits for its lock, with the rank that holds it.
const LockHolder = ", which rank %d holds"

// WaitsForStorage reports whether the rank waits for files, as when it writes a checkpoint.
func (a RankActivity) WaitsForStorage() bool { return a.For == ForFileServer || a.For == ForStorage }

// LinePrefix begins the lines that agents write into the log of a launcher. The others are those of its command.
const LinePrefix = "mpi-agent: "

// StallPrefix begins the lines of a launcher's agent about ranks that make no progress. Such a line is
// StallPrefix and one of
//
//	all 4 ranks wait, since 10:00:00 UTC; sleeping: 1; polling: 0, 2, 3
//	all 4 ranks are idle, since 10:00:00 UTC; sleeping: 0, 1, 2, 3
//	3 of 4 ranks wait for rank 1, since 10:00:00 UTC; busy: 1; polling: 0, 2, 3
//	2 of 4 ranks wait for ranks 2, 3 (slower: pi-worker-1 is throttled 40 % of the time), since 10:00:00 UTC; busy: 2, 3; polling: 0, 1
//	4 of 8 ranks wait for ranks 2, 3 (slower: the ranks of pi-worker-1, pi-worker-2 wait for a CPU 60 % or more of the time), since 10:00:00 UTC; busy: 2, 3
//	Rank 1 (train) ended by signal 11 (SIGSEGV), but 3 other ranks still run, since 10:00:00 UTC
//	the GPU of rank 1 is idle while those of 3 other ranks are busy, since 10:00:00 UTC; busy: 0, 2, 3; blocked: 1
//	mpirun ended with exit code 0, but the launcher's command continues and is idle, since 10:00:00 UTC
//
// All but the last two may end with "; rank 0 waits for the lock of /data/index.lock", "; btl_tcp_if_include selects ib0, pods have lo, eth0" and "; pi-worker-1 gets no answer from 10.0.0.7:80".
// When they continue it is StallPrefix + StallOver.
const (
	StallPrefix = LinePrefix + "no progress: "
	StallOver   = "over"
)

// Code identifies a problem that an agent found.
type Code string

// The codes of agents.
const (
	// HostfileIgnored means that all ranks ran in the launcher's pod and none on the workers.
	HostfileIgnored Code = "HostfileIgnored"
	// Unreachable means that a worker could not be connected in time, because of its name, address or port.
	Unreachable Code = "WorkerUnreachable"
	// UnknownHost means that a host which MPI's command names is none of the job's, and that its name cannot be resolved.
	UnknownHost Code = "UnknownHost"
	// KeyRefused means that a worker did not accept this job's key.
	KeyRefused Code = "KeyRefused"
	// HostKeyMismatch means that the host at a worker's address is not a worker of this job.
	HostKeyMismatch Code = "HostKeyMismatch"
	// ConnectionLost means that the connection to a worker was lost.
	ConnectionLost Code = "ConnectionLost"
	// OutOfMemory means that the kernel killed a process of this container because of lack of memory.
	OutOfMemory Code = "OutOfMemory"
	// RankFailed means that a rank exited with an error or was ended by a signal.
	RankFailed Code = "RankFailed"
	// ProgramMissing means that the launcher's command is not in the image, or cannot be started.
	ProgramMissing Code = "ProgramMissing"
	// WindowsLineEnds means that the launcher's command is a script whose interpreter was not found because of them.
	WindowsLineEnds Code = "WindowsLineEnds"
	// RestartedTooOften means that the launcher's command was not run, because the job was started again more often than it may be.
	RestartedTooOften Code = "RestartedTooOften"
)

// UnknownFormat describes a program that the kernel does not execute because it does not know its format (ENOEXEC of execve(2)).
const UnknownFormat = "it is a script whose first line is not #! and an interpreter, such as #!/bin/sh, or a program for another CPU architecture"

// HostTrouble describes a host that the launcher could not use.
type HostTrouble struct {
	Host string `json:"host"`
	Code Code   `json:"code"`
	// Message is the last error, such as "connection refused".
	Message string `json:"message,omitempty"`
	// Seconds is how long the launcher tried to connect, or how long the connection lasted.
	Seconds int32 `json:"seconds,omitempty"`
	// At is when the host was lost or given up, in milliseconds since 1970. Only workers report it.
	At int64 `json:"at,omitempty"`
}

// HostUse is a host on which a process was started, with the number of ranks that were observed there.
type HostUse struct {
	Host      string `json:"host"`
	RanksSeen int32  `json:"ranksSeen,omitempty"`
}

// RankEnd describes how a rank's process ended.
type RankEnd struct {
	Rank int32 `json:"rank"`
	// Of is the number of ranks of the MPI program, by the environment of the process; 0 if unknown.
	Of int32 `json:"of,omitempty"`
	// ExitCode is -1 if unknown. Signal is the signal that ended the process, or 0.
	ExitCode int32 `json:"exitCode"`
	Signal   int32 `json:"signal,omitempty"`
	// At is when the agent observed the end, in milliseconds since 1970, by the clock of its node; 0 if unknown.
	At int64 `json:"at,omitempty"`
	// OOM is whether the kernel killed the process because of lack of memory.
	OOM     bool   `json:"oom,omitempty"`
	Program string `json:"program,omitempty"`
}

// MaxMPIVersion is the length of the longest text of IsMPIVersion, in bytes.
const MaxMPIVersion = 48

// IsMPIVersion reports whether a text is the name of an MPI library and a version, such as "Open MPI 5.0.7" or
// "Intel MPI 2021.13". The job's image determines what an agent reports, and may contain anything.
func IsMPIVersion(text string) bool {
	const allowed = ".+-_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	if len(text) > MaxMPIVersion {
		return false
	}
	for _, name := range []string{"Open MPI ", "MPICH ", "Intel MPI "} {
		if version, is := strings.CutPrefix(text, name); is {
			return version != "" && version[0] >= '0' && version[0] <= '9' && strings.Trim(version, allowed) == ""
		}
	}
	return false
}

// ParseSummary parses a termination message. It returns false if an agent did not write it.
func ParseSummary(message string) (Summary, bool) {
	message = strings.TrimSpace(message)
	var summary Summary
	if !strings.HasPrefix(message, `{"role":`) || json.Unmarshal([]byte(message), &summary) != nil {
		return Summary{}, false
	}
	return summary, true
}
