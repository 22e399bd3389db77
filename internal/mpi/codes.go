package mpi

// Code names what is wrong with a job, for programs. Codes are part of our interfaces: metrics, reports and scripts
// compare them. Agents' codes (launch.Code) are spelled the same.
type Code string

// The API server does not take the job or what it needs.
const (
	CodeInvalid         Code = "JobInvalid"
	CodeNameTaken       Code = "NameTaken"
	CodeEarlierJob      Code = "EarlierJobLeaving"
	CodeQuotaExceeded   Code = "QuotaExceeded"
	CodeQuotaTooSmall   Code = "QuotaTooSmall"
	CodeQuotaExhausted  Code = "QuotaExhausted"
	CodePodSecurity     Code = "PodSecurityDenied"
	CodeSCCDenied       Code = "SecurityContextDenied"
	CodeAdmissionDenied Code = "AdmissionDenied"
	CodeRefused         Code = "ObjectRefused"
	CodeKeysFailed      Code = "KeyGenerationFailed"
)

// A queue holds the job back.
const (
	CodeQueueNeverFits Code = "QueueNeverFits"
	CodeQueueMissing   Code = "QueueUnusable"
	CodeDeactivated    Code = "QueueGaveUp"
)

// The pods are to be placed together, and are not.
const (
	CodeGangTimeout    Code = "GangTimeout"
	CodeGangImpossible Code = "GangImpossible"
	CodeGangNeverFits  Code = "GangNeverFits"
)

// Pods were taken away.
const (
	CodeEvicted         Code = "Evicted"
	CodePreempted       Code = "Preempted"
	CodeNodeLost        Code = "NodeLost"
	CodeLauncherDeleted Code = "LauncherDeleted"
	CodeDeadline        Code = "DeadlineExceeded"
)

// Pods find no node, or do not start.
const (
	CodeInsufficient     Code = "InsufficientResources"
	CodeNoMatchingNode   Code = "NoMatchingNode"
	CodeUnschedulable    Code = "Unschedulable"
	CodeRDMANotOffered   Code = "RDMANotOffered"
	CodeNetworkMissing   Code = "NetworkMissing"
	CodeClaimPending     Code = "VolumeClaimPending"
	CodeMountFailed      Code = "MountFailed"
	CodeImageName        Code = "InvalidImageName"
	CodeImagePull        Code = "ImagePullFailed"
	CodeMissingReference Code = "MissingReference"
	CodeContainerCreate  Code = "ContainerCreateFailed"
	CodeCrashLoop        Code = "CrashLoop"
	CodeSlowStart        Code = "SlowStart"
	CodeSidecar          Code = "SidecarRunning"
	CodeServiceMesh      Code = "ServiceMesh"
	CodeClockSkew        Code = "ClockSkew"
)

// The launcher does not reach the workers.
const (
	CodeNameUnresolved     Code = "NameUnresolved"
	CodeLauncherUnresolved Code = "LauncherNameUnresolved"
	CodeConnectionRefused  Code = "ConnectionRefused"
	CodeConnectionTimeout  Code = "ConnectionTimedOut"
	CodeUnreachable        Code = "WorkerUnreachable"
	CodeKeyRefused         Code = "KeyRefused"
	CodeKeyUnprotected     Code = "KeyUnprotected"
	CodeKeyModes           Code = "KeyFileModes"
	CodeNoUser             Code = "NoUserEntry"
	CodeNoHostKeys         Code = "NoHostKeys"
	CodeSSHDOverloaded     Code = "SSHDOverloaded"
	CodeHostKeyMismatch    Code = "HostKeyMismatch"
	CodeShortHostNames     Code = "ShortHostNames"
	CodeSSHFailed          Code = "SSHFailed"
	CodeRemoteCommand      Code = "RemoteCommandFailed"
	CodeDaemonsNotStarted  Code = "DaemonsNotStarted"
	CodeDaemonUnroutable   Code = "DaemonUnroutable"
	CodeConnectionLost     Code = "ConnectionLost"
)

// MPI and the libraries around it.
const (
	CodeNotEnoughSlots  Code = "NotEnoughSlots"
	CodeHostfileIgnored Code = "HostfileIgnored"
	CodeTooFewCores     Code = "TooFewCores"
	CodeMixedMPI        Code = "MixedMPI"
	CodeWrongInterface  Code = "WrongInterface"
	CodeCountOverflow   Code = "CountOverflow"
	CodeTypeUnsupported Code = "DataTypeUnsupported"
	CodeMemlock         Code = "LockedMemoryLimit"
	CodeRDMANotUsed     Code = "RDMANotUsed"
	CodeNCCLTimeout     Code = "CollectiveTimeout"
	CodeNCCLSystem      Code = "NCCLSystemError"
	CodeRootRefused     Code = "RootRefused"
)

// Memory, and how programs end.
const (
	CodeOutOfMemory        Code = "OutOfMemory"
	CodeGPUOutOfMemory     Code = "GPUOutOfMemory"
	CodeNoGPU              Code = "NoGPUVisible"
	CodeSharedGPUs         Code = "MoreSlotsThanGPUs"
	CodeKilled             Code = "Killed"
	CodeSegfault           Code = "SegmentationFault"
	CodeBusError           Code = "BusError"
	CodeIllegalInstruction Code = "IllegalInstruction"
	CodeAborted            Code = "Aborted"
	CodeTerminated         Code = "Terminated"
	CodeProgramMissing     Code = "ProgramMissing"
	CodeDaemonMissing      Code = "MPINotInPath"
	CodeLibraryMissing     Code = "LibraryMissing"
	CodeApplicationFailed  Code = "ApplicationFailed"
	CodeRankFailed         Code = "RankFailed"
	CodeNoOutput           Code = "NoOutput"
	CodeUnknown            Code = "Unknown"
)
