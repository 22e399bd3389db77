// Package codes names what can be wrong with a job. A code is the same word in findings, events, metrics and status messages.
package codes

// Code names what is wrong with a job, for programs. Codes are part of our interfaces: metrics, reports and scripts
// compare them. Agents' codes (launch.Code) are spelled the same.
type Code = string

// The API server does not take the job or what it needs.
const (
	JobInvalid            Code = "JobInvalid"
	InvalidChange         Code = "InvalidChange"
	NameTaken             Code = "NameTaken"
	EarlierJobLeaving     Code = "EarlierJobLeaving"
	QuotaExceeded         Code = "QuotaExceeded"
	QuotaTooSmall         Code = "QuotaTooSmall"
	QuotaExhausted        Code = "QuotaExhausted"
	PodSecurityDenied     Code = "PodSecurityDenied"
	SecurityContextDenied Code = "SecurityContextDenied"
	AdmissionDenied       Code = "AdmissionDenied"
	WebhookUnreachable    Code = "WebhookUnreachable"
	ObjectRefused         Code = "ObjectRefused"
	KeyGenerationFailed   Code = "KeyGenerationFailed"
)

// A queue holds the job back.
const (
	QueueNeverFits       Code = "QueueNeverFits"
	QueueLacksResource   Code = "QueueLacksResource"
	QueueNeedsRequests   Code = "QueueNeedsRequests"
	QueueLacksNodes      Code = "QueueLacksNodes"
	QueueUnusable        Code = "QueueUnusable"
	QueuePriorityMissing Code = "QueuePriorityMissing"
	WorkloadMissing      Code = "WorkloadMissing"
	QueueGaveUp          Code = "QueueGaveUp"
)

// The pods are to be placed together, and are not.
const (
	GangTimeout    Code = "GangTimeout"
	GangImpossible Code = "GangImpossible"
	GangNeverFits  Code = "GangNeverFits"
)

// Pods were taken away.
const (
	Evicted             Code = "Evicted"
	Preempted           Code = "Preempted"
	NodeLost            Code = "NodeLost"
	NodeMissing         Code = "NodeMissing"
	PodRejected         Code = "PodRejected"
	LauncherDeleted     Code = "LauncherDeleted"
	WorkerDeleted       Code = "WorkerDeleted"
	ProbeFailed         Code = "ProbeFailed"
	RestartedTooOften   Code = "RestartedTooOften"
	DeadlineExceeded    Code = "DeadlineExceeded"
	PodDeadlineExceeded Code = "PodDeadlineExceeded"
	DeadlineNear        Code = "DeadlineNear"
	QueueEndsJob        Code = "QueueEndsJob"
	NodeCordoned        Code = "NodeCordoned"
)

// Pods find no node, or do not start.
const (
	InsufficientResources Code = "InsufficientResources"
	NoMatchingNode        Code = "NoMatchingNode"
	Unschedulable         Code = "Unschedulable"
	SchedulingGated       Code = "SchedulingGated"
	NoScheduler           Code = "NoScheduler"
	RDMANotOffered        Code = "RDMANotOffered"
	RDMAFallback          Code = "RDMAFallback"
	NetworkMissing        Code = "NetworkMissing"
	VolumeClaimPending    Code = "VolumeClaimPending"
	MountFailed           Code = "MountFailed"
	InvalidImageName      Code = "InvalidImageName"
	ImagePullFailed       Code = "ImagePullFailed"
	MissingReference      Code = "MissingReference"
	ContainerCreateFailed Code = "ContainerCreateFailed"
	CrashLoop             Code = "CrashLoop"
	SlowStart             Code = "SlowStart"
	SlowStartupStep       Code = "SlowStartupStep"
	ProfileMissing        Code = "ProfileMissing"
	WorkerEnded           Code = "WorkerEnded"
	WorkersNotReady       Code = "WorkersNotReady"
	SidecarFailed         Code = "SidecarFailed"
	SidecarRunning        Code = "SidecarRunning"
	ServiceMesh           Code = "ServiceMesh"
	ClockSkew             Code = "ClockSkew"
)

// The launcher does not reach the workers.
const (
	NameUnresolved         Code = "NameUnresolved"
	LauncherNameUnresolved Code = "LauncherNameUnresolved"
	ConnectionRefused      Code = "ConnectionRefused"
	ConnectionTimedOut     Code = "ConnectionTimedOut"
	WorkerUnreachable      Code = "WorkerUnreachable"
	KeyRefused             Code = "KeyRefused"
	KeyUnprotected         Code = "KeyUnprotected"
	KeyFileModes           Code = "KeyFileModes"
	NoUserEntry            Code = "NoUserEntry"
	NoHostKeys             Code = "NoHostKeys"
	SSHDOverloaded         Code = "SSHDOverloaded"
	UnknownHost            Code = "UnknownHost"
	HostKeyMismatch        Code = "HostKeyMismatch"
	ShortHostNames         Code = "ShortHostNames"
	SSHFailed              Code = "SSHFailed"
	SSHMissing             Code = "SSHMissing"
	RemoteCommandFailed    Code = "RemoteCommandFailed"
	DaemonsNotStarted      Code = "DaemonsNotStarted"
	DaemonUnroutable       Code = "DaemonUnroutable"
	ConnectionLost         Code = "ConnectionLost"
	PortInUse              Code = "PortInUse"
)

// MPI and the libraries around it.
const (
	LaunchRefused       Code = "LaunchRefused"
	NotEnoughSlots      Code = "NotEnoughSlots"
	HostfileIgnored     Code = "HostfileIgnored"
	HostfileMissing     Code = "HostfileMissing"
	TooFewCores         Code = "TooFewCores"
	MixedMPI            Code = "MixedMPI"
	WrongInterface      Code = "WrongInterface"
	NoTransport         Code = "NoTransport"
	NotFinalized        Code = "NotFinalized"
	CountOverflow       Code = "CountOverflow"
	DataTypeUnsupported Code = "DataTypeUnsupported"
	LockedMemoryLimit   Code = "LockedMemoryLimit"
	RDMANotUsed         Code = "RDMANotUsed"
	CollectiveTimeout   Code = "CollectiveTimeout"
	NCCLSystemError     Code = "NCCLSystemError"
	RootRefused         Code = "RootRefused"
)

// Memory, and how programs end.
const (
	OutOfMemory        Code = "OutOfMemory"
	GPUOutOfMemory     Code = "GPUOutOfMemory"
	GPUIdle            Code = "GPUIdle"
	NoGPUVisible       Code = "NoGPUVisible"
	MoreSlotsThanGPUs  Code = "MoreSlotsThanGPUs"
	WrongGPU           Code = "WrongGPU"
	Killed             Code = "Killed"
	SegmentationFault  Code = "SegmentationFault"
	BusError           Code = "BusError"
	IllegalInstruction Code = "IllegalInstruction"
	Aborted            Code = "Aborted"
	Terminated         Code = "Terminated"
	TimeLimitExceeded  Code = "TimeLimitExceeded"
	ProgramMissing     Code = "ProgramMissing"
	WindowsLineEnds    Code = "WindowsLineEnds"
	MPINotInPath       Code = "MPINotInPath"
	LibraryMissing     Code = "LibraryMissing"
	ApplicationFailed  Code = "ApplicationFailed"
	RankFailed         Code = "RankFailed"
	RankGone           Code = "RankGone"
	RanksWaiting       Code = "RanksWaiting"
	RanksIdle          Code = "RanksIdle"
	NoAnswer           Code = "NoAnswer"
	Straggler          Code = "Straggler"
	CPUThrottled       Code = "CPUThrottled"
	RanksShareCores    Code = "RanksShareCores"
	WorkersShareNodes  Code = "WorkersShareNodes"
	MemoryGrowing      Code = "MemoryGrowing"
	TrainingDiverged   Code = "TrainingDiverged"
	FigureConstant     Code = "FigureConstant"
	MPINotAwaited      Code = "MPINotAwaited"
	WorkersIdle        Code = "WorkersIdle"
	ResultsNotKept     Code = "ResultsNotKept"
	NoOutput           Code = "NoOutput"
	Unknown            Code = "Unknown"
)

// Reasons of a job's status that are no findings: the job makes progress, has ended, or mpi-operator's word for it is kept.
// A failed launcher's reason is that of its batch Job.
const (
	ValidationError      Code = "ValidationError"
	ErrResourceExists    Code = "ErrResourceExists"
	PodsStarting         Code = "PodsStarting"
	WaitingForWorkers    Code = "WaitingForWorkers"
	WaitingForEarlierJob Code = "WaitingForEarlierJob"
	WaitingForQuota      Code = "WaitingForQuota"
	WaitingForPlaces     Code = "WaitingForPlaces"
	WorkerFailed         Code = "WorkerFailed"
	MPIJobEvicted        Code = "MPIJobEvicted"
	Queued               Code = "Queued"
	Suspended            Code = "Suspended"
	Running              Code = "Running"
	Succeeded            Code = "Succeeded"
	Failed               Code = "Failed"
)

// Why a gang waits for places: details of WaitingForPlaces. GangImpossible, GangNeverFits, NoMatchingNode and Preempted are
// reasons, too.
const (
	CapacityUnknown      Code = "CapacityUnknown"
	InsufficientCapacity Code = "InsufficientCapacity"
	LauncherUnplaced     Code = "LauncherUnplaced"
	TopologyFull         Code = "TopologyFull"
	CapacityReserved     Code = "CapacityReserved"
	Preempting           Code = "Preempting"
	NoNodes              Code = "NoNodes"
	PodGroupPending      Code = "PodGroupPending"
	PodGroupIncomplete   Code = "PodGroupIncomplete"
)

// Steps of a job on its timeline that are neither phases nor findings.
const (
	Created           Code = "Created"
	PodsPlaced        Code = "PodsPlaced"
	WorkersReady      Code = "WorkersReady"
	LauncherStarted   Code = "LauncherStarted"
	WorkersFound      Code = "WorkersFound"
	MPIInitialized    Code = "MPIInitialized"
	TrainingStarted   Code = "TrainingStarted"
	LauncherRestarted Code = "LauncherRestarted"
	PutBack           Code = "PutBack"
	Resumed           Code = "Resumed"
	Changed           Code = "Changed"
	DeletionRequested Code = "DeletionRequested"
	JobDeleted        Code = "JobDeleted"
)
