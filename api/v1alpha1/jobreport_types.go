package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// JobReport reports the state of one MPI job: its phase, its pods, its problems and how to fix them. The operator
// writes it. The job does not own it: it is kept after the job is deleted, until its retention expires.
//
// It has no status subresource: only the operator writes it, and writes metadata, spec and status in one request.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=jobreports,singular=jobreport,shortName=jr,categories=odh
// +kubebuilder:printcolumn:name="Job",type=string,JSONPath=`.spec.jobRef.name`,description="The job's name."
// +kubebuilder:printcolumn:name="Kind",type=string,JSONPath=`.spec.jobRef.kind`,description="The job's kind."
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`,description="The phase of the job."
// +kubebuilder:printcolumn:name="Why",type=string,JSONPath=`.status.findings[0].code`,description="The code of the job's first finding; empty if there is none."
// +kubebuilder:printcolumn:name="Workers",type=string,JSONPath=`.status.workers.summary`,description="The ready and the wanted number of workers; of a finished job the number of its workers."
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`,description="The explanation of the phase."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.reason`,description="The reason of the phase."
// +kubebuilder:printcolumn:name="Severity",type=string,priority=1,JSONPath=`.status.findings[0].severity`,description="The severity of the job's first finding; empty if there is none."
// +kubebuilder:printcolumn:name="Queue",type=string,priority=1,JSONPath=`.status.scheduling.queue`,description="The queue of the job."
// +kubebuilder:printcolumn:name="Position",type=string,priority=1,JSONPath=`.status.scheduling.position`,description="The position of the job in its queue."
// +kubebuilder:printcolumn:name="MPI",type=string,priority=1,JSONPath=`.status.mpi.implementation`,description="The MPI implementation."
// +kubebuilder:printcolumn:name="Ranks",type=string,priority=1,JSONPath=`.status.mpi.ranks`,description="The number of ranks."
// +kubebuilder:printcolumn:name="Started",type=string,priority=1,JSONPath=`.status.startTime`,description="When the job was first seen."
// +kubebuilder:printcolumn:name="Running",type=string,priority=1,JSONPath=`.status.runningTime`,description="When the job first ran."
// +kubebuilder:printcolumn:name="Ended",type=string,priority=1,JSONPath=`.status.completionTime`,description="When the job ended."
// +kubebuilder:printcolumn:name="UID",type=string,priority=1,JSONPath=`.spec.jobRef.uid`,description="The job's UID."
type JobReport struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec identifies the job.
	Spec JobReportSpec `json:"spec"`
	// status is the state of the job as the operator observed it.
	// +optional
	Status JobReportStatus `json:"status,omitempty"`
}

// JobReportList is a list of reports.
//
// +kubebuilder:object:root=true
type JobReportList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []JobReport `json:"items"`
}

// JobReportSpec identifies the job of a report.
type JobReportSpec struct {
	// jobRef identifies the job, which may have been deleted. A later job of the same name has another uid and its
	// own report.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="jobRef is immutable: it identifies the job of this report"
	JobRef JobReference `json:"jobRef"`
}

// JobReference identifies a job by name and uid.
type JobReference struct {
	// apiVersion of the job, such as kubeflow.org/v2beta1.
	APIVersion string `json:"apiVersion"`
	// kind of the job: MPIJob or TrainJob.
	Kind string `json:"kind"`
	// name of the job. It is in the namespace of the report.
	Name string `json:"name"`
	// uid of the job.
	UID types.UID `json:"uid"`
}

// Phase is the step of its life that a job is in.
// +kubebuilder:validation:Enum=Pending;Queued;GangScheduling;Initializing;Running;Suspended;Succeeded;Failed
type Phase string

// The phases, in the order in which a job passes through them.
const (
	PhasePending        Phase = "Pending"
	PhaseQueued         Phase = "Queued"
	PhaseGangScheduling Phase = "GangScheduling"
	PhaseInitializing   Phase = "Initializing"
	PhaseRunning        Phase = "Running"
	PhaseSuspended      Phase = "Suspended"
	PhaseSucceeded      Phase = "Succeeded"
	PhaseFailed         Phase = "Failed"
)

// Severity is how serious a finding is.
// +kubebuilder:validation:Enum=Error;Warning;Info
type Severity string

// The severities.
const (
	// SeverityError means that the job failed because of the problem, or cannot continue until a user acts.
	SeverityError Severity = "Error"
	// SeverityWarning means that the job may continue without action, or is slower than it could be.
	SeverityWarning Severity = "Warning"
	// SeverityInfo means that the finding is a consequence of another one, or only informs.
	SeverityInfo Severity = "Info"
)

// Link is a link to a page about a job.
type Link struct {
	// title names the page, such as MLflow.
	// +kubebuilder:validation:MaxLength=20
	Title string `json:"title"`
	// url is the address of the page, with http or https.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^https?://`
	URL string `json:"url"`
}

// JobReportStatus is the state of a job. All lists are bounded, so that a report has at most 296 KiB.
type JobReportStatus struct {
	// phase is the step of its life that the job is in: Pending (nothing started), Queued (waits in a queue),
	// GangScheduling (waits until all pods fit), Initializing (pods start), Running, Suspended, Succeeded or Failed.
	// +optional
	Phase Phase `json:"phase,omitempty"`
	// reason is the cause of the phase as an identifier for programs.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Reason string `json:"reason,omitempty"`
	// message explains the phase to users.
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	Message string `json:"message,omitempty"`

	// observedGeneration is the generation of the job that the report describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// startTime is when the operator first saw the job.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// runningTime is when the launcher and all workers were running for the first time.
	// +optional
	RunningTime *metav1.Time `json:"runningTime,omitempty"`
	// completionTime is when the job succeeded or failed.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// phaseTimes are the times that the job spent in each phase, in the order in which it first entered them.
	// +kubebuilder:validation:MaxItems=8
	// +listType=atomic
	// +optional
	PhaseTimes []PhaseTime `json:"phaseTimes,omitempty"`

	// specification is the job as its user wrote it, with secrets masked. It is kept when the job is deleted.
	// +optional
	Specification *Specification `json:"specification,omitempty"`
	// run is what the job runs, and who created it. It is kept when the job is deleted.
	// +optional
	Run *Run `json:"run,omitempty"`
	// mpi describes the MPI library of the job, its slots, and its startup times.
	// +optional
	MPI MPIStatus `json:"mpi,omitempty"`
	// startup is how long the parts of the job's latest start took. It is set when all pods have started.
	// +optional
	Startup *Startup `json:"startup,omitempty"`
	// trace identifies the job's trace. It is unset if the operator sends no traces, or the trace of the job's caller is
	// not sampled.
	// +optional
	Trace *Trace `json:"trace,omitempty"`
	// encryption is whether the cluster's network encrypted the traffic between the job's pods when they last started to run. It is unset
	// before that, for a job of one pod, and if it was not looked up.
	// +optional
	Encryption *Encryption `json:"encryption,omitempty"`
	// workers counts the job's worker pods.
	// +optional
	Workers WorkersStatus `json:"workers,omitempty"`
	// pods are the latest attempts of the launcher, and the workers. If there are too many, those with problems are
	// listed first.
	// +kubebuilder:validation:MaxItems=2048
	// +listType=atomic
	// +optional
	Pods []PodStatus `json:"pods,omitempty"`
	// podsOmitted is the number of pods that are not listed in pods.
	// +optional
	PodsOmitted int32 `json:"podsOmitted,omitempty"`
	// scheduling describes what the job waits for before its pods can be placed. It is unset when the job does not
	// wait.
	// +optional
	Scheduling *SchedulingStatus `json:"scheduling,omitempty"`
	// waited is how long the job waited until it was first admitted.
	// +optional
	Waited *Waited `json:"waited,omitempty"`

	// findings are the problems of the job: first the cause, then its consequences and other problems. A healthy job
	// has none.
	// +kubebuilder:validation:MaxItems=8
	// +listType=atomic
	// +optional
	Findings []Finding `json:"findings,omitempty"`
	// failure describes where and how the job failed, with the end of its log.
	// +optional
	Failure *Failure `json:"failure,omitempty"`
	// logs contains the ends of the logs of all pods of a finished job. It is unset if none of them has run, or the operator keeps no logs.
	// +optional
	Logs *Logs `json:"logs,omitempty"`
	// completeLogs is where the complete logs of all pods of a finished job are, in the bucket of the cluster's administrator. It is unset if
	// there is no such bucket, or the logs are not written yet.
	// +optional
	CompleteLogs *CompleteLogs `json:"completeLogs,omitempty"`
	// logsLink is the address of the complete logs of the job in the log store of the cluster. It is unset if the administrator has set no
	// log store.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	LogsLink string `json:"logsLink,omitempty"`
	// links are pages about the job, such as that of its run in MLflow: those that its user or the administrator wrote, and what its
	// variables name.
	// +kubebuilder:validation:MaxItems=4
	// +listType=map
	// +listMapKey=title
	// +optional
	Links []Link `json:"links,omitempty"`
	// timeline lists the events of the job, oldest first.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	Timeline []TimelineEntry `json:"timeline,omitempty"`

	// consumption is the resources that the job's pods have reserved so far: their requests, multiplied by the time that they held
	// them. What they used is in usage.
	// +optional
	Consumption *Consumption `json:"consumption,omitempty"`
	// usage is what the job's pods used over time, as their agents measured it, with at most 120 points per metric. It is unset if no agent measured it.
	// +optional
	Usage *Usage `json:"usage,omitempty"`
	// profile is where the time of the job's ranks went: in functions of MPI, and in which. It is unset unless the job asks for it.
	// +optional
	Profile *Profile `json:"profile,omitempty"`
	// training is the last progress that the program printed, as JSON or key=value lines.
	// +optional
	Training *Training `json:"training,omitempty"`
	// endEstimate is when a running job is expected to end, by the progress that its program printed. It is unset if the program printed
	// no share of its work, and while the job does not run.
	// +optional
	EndEstimate *EndEstimate `json:"endEstimate,omitempty"`
	// curves are the figures that the program printed over time, such as its loss, with at most 120 points each.
	// +optional
	Curves *TrainingCurves `json:"curves,omitempty"`
}

// PhaseTime is the time that a job spent in a phase.
type PhaseTime struct {
	// phase is the name of the phase.
	Phase Phase `json:"phase"`
	// since is when the job last entered the phase.
	Since metav1.Time `json:"since"`
	// seconds is how long the job was in the phase. For the current phase, add the time since it was entered.
	Seconds int64 `json:"seconds"`
}

// Specification is a job as its user wrote it. It is updated until the job ends.
type Specification struct {
	// manifest is the job as YAML: its labels, annotations and spec, without what the cluster has added. **** replaces
	// secrets. It is empty if it is too large; see omitted.
	// +kubebuilder:validation:MaxLength=32768
	// +optional
	Manifest string `json:"manifest,omitempty"`
	// omitted is why there is no manifest.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Omitted string `json:"omitted,omitempty"`
	// size is the size of the manifest in bytes.
	// +optional
	Size int32 `json:"size,omitempty"`
	// masked is the number of values in which secrets were masked.
	// +optional
	Masked int32 `json:"masked,omitempty"`
	// version identifies the generation, labels and annotations of the job that the manifest has.
	// +kubebuilder:validation:MaxLength=128
	Version string `json:"version"`
	// runtimeVersion identifies the runtime of a TrainJob when the job was first seen: its UID and generation.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	RuntimeVersion string `json:"runtimeVersion,omitempty"`
}

// Run is what a job runs, by its specification and its runtime.
type Run struct {
	// image is the image of the workers, and launcherImage that of the launcher if it is another one.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Image string `json:"image,omitempty"`
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	LauncherImage string `json:"launcherImage,omitempty"`
	// command is the command with its arguments, quoted as for a shell, with secrets masked. It is the launcher's, or
	// that of the nodes of a TrainJob without MPI. It is empty if it is only defined in the image, and cut if it is long.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Command string `json:"command,omitempty"`
	// requests and limits are the resources of the main container of each worker.
	// +kubebuilder:validation:MaxProperties=32
	// +optional
	Requests corev1.ResourceList `json:"requests,omitempty"`
	// +kubebuilder:validation:MaxProperties=32
	// +optional
	Limits corev1.ResourceList `json:"limits,omitempty"`
	// runtime is the name of the TrainJob's runtime.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Runtime string `json:"runtime,omitempty"`
	// creator is the user who created the job, if the admission webhook recorded it.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Creator string `json:"creator,omitempty"`
	// fieldManager is the field manager of the request that created the job, if its creator was not recorded because no
	// operator answered. It names a program, such as kubectl-create. The client chooses this name, so that it does not prove
	// who created the job.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	FieldManager string `json:"fieldManager,omitempty"`
	// attempts is how often the launcher's container was started. It is 0 before the first start, and for jobs without
	// a launcher.
	// +optional
	Attempts int32 `json:"attempts,omitempty"`
	// mpiVersions are the MPI libraries that ran, with their versions, such as "Open MPI 5.0.7". The launcher's agent asks
	// mpirun or mpiexec, and reports them when the launcher ends. It is empty if they are unknown.
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:items:MaxLength=64
	// +listType=atomic
	// +optional
	MPIVersions []string `json:"mpiVersions,omitempty"`
}

// MPIStatus describes the MPI library of a job, its slots, and its startup times.
type MPIStatus struct {
	// implementation is OpenMPI, Intel or MPICH.
	// +optional
	Implementation string `json:"implementation,omitempty"`
	// slotsPerWorker is the number of ranks (processes of the program) per worker.
	// +optional
	SlotsPerWorker int32 `json:"slotsPerWorker,omitempty"`
	// ranks is the number of ranks if every slot of the job is used.
	// +optional
	Ranks int64 `json:"ranks,omitempty"`
	// slotsExpected is the number of slots of the workers in the hostfile. This field and the following ones are
	// reported by the agent at the end of the launcher's latest run.
	// +optional
	SlotsExpected int32 `json:"slotsExpected,omitempty"`
	// slotsFound is the number of slots of the workers on which the launcher started processes. A program with fewer
	// ranks than slots may not need all workers.
	// +optional
	SlotsFound int32 `json:"slotsFound,omitempty"`
	// connectMilliseconds is the time from the first attempt to connect to a worker until all workers were connected.
	// +optional
	ConnectMilliseconds int64 `json:"connectMilliseconds,omitempty"`
	// initMilliseconds is the time from the first command on a worker until a rank's process started there, for the
	// slowest worker.
	// +optional
	InitMilliseconds int64 `json:"initMilliseconds,omitempty"`
	// binding is how ranks are bound to cores, such as "none, cores are shared", "each rank to a core of its pod" or
	// "as set: --bind-to core". It is empty if that is unknown, as with sshd.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Binding string `json:"binding,omitempty"`
}

// EncryptionState is whether the traffic between the pods of a job is encrypted.
// +kubebuilder:validation:Enum=Encrypted;NotEncrypted;Unknown
type EncryptionState string

// The states of encryption.
const (
	// Encrypted means that the traffic between pods on different nodes is encrypted.
	Encrypted EncryptionState = "Encrypted"
	// NotEncrypted means that nothing is known to encrypt it, or that pods communicate past what does.
	NotEncrypted EncryptionState = "NotEncrypted"
	// EncryptionUnknown means that it could not be found out.
	EncryptionUnknown EncryptionState = "Unknown"
)

// Encryption is how the traffic between the pods of a job is encrypted, by what network plug-ins publish.
type Encryption struct {
	// state is Encrypted, NotEncrypted (nothing is known to encrypt the traffic, or pods communicate past what does) or Unknown.
	State EncryptionState `json:"state"`
	// by is what encrypts the traffic between pods on different nodes, such as Cilium.
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:items:MaxLength=64
	// +listType=atomic
	// +optional
	By []string `json:"by,omitempty"`
	// message explains why the traffic is not encrypted, or why that is unknown.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Message string `json:"message,omitempty"`
}

// Trace identifies the spans of a job in OpenTelemetry.
type Trace struct {
	// id is the trace ID in hexadecimal: that of the annotation mpi.opendatahub.io/traceparent, or the UID of the job
	// without hyphens.
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{32}$`
	ID string `json:"id"`
	// parent is the ID of the span that the job is a part of, from the same annotation.
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{16}$`
	// +optional
	Parent string `json:"parent,omitempty"`
}

// Startup is how long the parts of a start took. Kubernetes reports the times of pods in whole seconds. Those of Launch, Connected,
// MPIInit and FirstLine are exact, once the launcher has ended.
type Startup struct {
	// since is when the first of the pods was created.
	Since metav1.Time `json:"since"`
	// milliseconds is the time from then until the containers of all pods had started, or until the first line of output if
	// that is known.
	Milliseconds int64 `json:"milliseconds"`
	// steps are the parts, in the order in which they happen. Unknown parts are left out. Steps of different
	// pods overlap.
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	Steps []StartupStep `json:"steps,omitempty"`
}

// StartupStep is how long a part of a start took.
type StartupStep struct {
	// name is the part.
	Name StartupStepName `json:"name"`
	// startMilliseconds is the time from since until the part began, in the slowest pod. It is negative for Admission, which
	// ends at since.
	// +optional
	StartMilliseconds int64 `json:"startMilliseconds,omitempty"`
	// milliseconds is how long it took, in the slowest pod.
	Milliseconds int64 `json:"milliseconds"`
	// medianMilliseconds is the median of all pods. It is unset if the step is not one of each pod.
	// +optional
	MedianMilliseconds int64 `json:"medianMilliseconds,omitempty"`
	// pod is the slowest pod, and node is where it runs. They are unset if the step is not one of a pod.
	// +optional
	Pod string `json:"pod,omitempty"`
	// +optional
	Node string `json:"node,omitempty"`
}

// StartupStepName is a part of a start. Admission lasts until the first pod was created, and PodsCreated until the last one
// was. Steps of each pod are Scheduled (until it has a node), Volumes (until its volumes are mounted and its network is set
// up), InitContainers, Containers (until images are pulled and the main container has started), and Ready. Launch is the time from
// the start of the launcher's command until MPI begins to connect to workers. Connected lasts
// until the launcher is connected to all workers, and MPIInit until the first rank runs on the slowest worker. FirstLine is
// the time from the start of the launcher's container until its first line of output.
// +kubebuilder:validation:Enum=Admission;PodsCreated;Scheduled;Volumes;InitContainers;Containers;Ready;Launch;Connected;MPIInit;FirstLine
type StartupStepName string

// The parts of a start.
const (
	StepAdmission      StartupStepName = "Admission"
	StepPodsCreated    StartupStepName = "PodsCreated"
	StepScheduled      StartupStepName = "Scheduled"
	StepVolumes        StartupStepName = "Volumes"
	StepInitContainers StartupStepName = "InitContainers"
	StepContainers     StartupStepName = "Containers"
	StepReady          StartupStepName = "Ready"
	StepLaunch         StartupStepName = "Launch"
	StepConnected      StartupStepName = "Connected"
	StepMPIInit        StartupStepName = "MPIInit"
	StepFirstLine      StartupStepName = "FirstLine"
)

// WorkersStatus counts the worker pods of a job.
type WorkersStatus struct {
	// summary is the ready and the wanted number of workers, such as 7/8. For a finished job, whose pods are not ready any more, it is
	// the wanted number, such as 8.
	// +optional
	Summary string `json:"summary,omitempty"`
	// wanted is the number of workers in the job's specification.
	Wanted int32 `json:"wanted"`
	// ready is the number of workers whose pod is ready.
	Ready int32 `json:"ready"`
	// running is the number of workers whose pod is running, ready or not.
	Running int32 `json:"running"`
	// succeeded is the number of workers whose pod succeeded.
	Succeeded int32 `json:"succeeded"`
	// failed is the number of workers whose pod failed.
	Failed int32 `json:"failed"`
}

// PodStatus describes one pod of a job.
type PodStatus struct {
	// role is launcher or worker.
	Role string `json:"role"`
	// index is the number of the worker, from 0, or of the launcher's attempt.
	Index int32 `json:"index"`
	// name of the pod.
	Name string `json:"name"`
	// node is the node that the pod is bound to.
	// +optional
	Node string `json:"node,omitempty"`
	// phase is Pending, Running, Succeeded, Failed or Unknown; Terminating while the pod is being deleted; or Gone if
	// the pod of a finished job was deleted.
	// +optional
	Phase string `json:"phase,omitempty"`
	// ready is whether the pod is ready.
	// +optional
	Ready bool `json:"ready,omitempty"`
	// reason is the cause of the phase, such as ImagePullBackOff or OOMKilled.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Reason string `json:"reason,omitempty"`
	// restarts is how often containers of the pod were restarted.
	// +optional
	Restarts int32 `json:"restarts,omitempty"`
	// exitCode is the exit code of the first container that failed.
	// +optional
	ExitCode *int32 `json:"exitCode,omitempty"`
	// ranks are the ranks that run in the pod, such as 8-15.
	// +optional
	Ranks string `json:"ranks,omitempty"`
}

// SchedulingStatus describes what a job waits for before its pods can be placed.
type SchedulingStatus struct {
	// backend is what admits or schedules the job: kueue, podgroup, coscheduling, volcano or embedded.
	// +optional
	Backend string `json:"backend,omitempty"`
	// queue is the queue that the job waits in.
	// +optional
	Queue string `json:"queue,omitempty"`
	// position is the position of the job in the queue. The next job has position 1.
	// +optional
	Position *int32 `json:"position,omitempty"`
	// positionScope names the queue or the set of jobs that position counts.
	// +optional
	PositionScope string `json:"positionScope,omitempty"`
	// estimate is when the job is expected to start, or why that is unknown. It is unset if waiting does not help.
	// +optional
	Estimate *StartEstimate `json:"estimate,omitempty"`
	// since is when the job started to wait.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
	// waitedSeconds is how long the job had waited at observedAt.
	// +optional
	WaitedSeconds int64 `json:"waitedSeconds,omitempty"`
	// waitP50 is the median wait in seconds of comparable jobs: those of the same queue with half to twice as many
	// pods. waitP50 and waitP90 are unset if fewer than ten such jobs are known.
	// +optional
	WaitP50 *int64 `json:"waitP50,omitempty"`
	// waitP90 is the 90th percentile of the wait in seconds of comparable jobs.
	// +optional
	WaitP90 *int64 `json:"waitP90,omitempty"`
	// samples is the number of jobs that waitP50 and waitP90 are based on.
	// +optional
	Samples int32 `json:"samples,omitempty"`
	// placed is the number of pods that are bound to a node.
	// +optional
	Placed int32 `json:"placed,omitempty"`
	// wanted is the number of pods that need a node.
	// +optional
	Wanted int32 `json:"wanted,omitempty"`
	// nodesFit is the number of nodes that have room for a pod of this job now.
	// +optional
	NodesFit *int32 `json:"nodesFit,omitempty"`
	// nodesNeeded is the number of nodes that the job needs.
	// +optional
	NodesNeeded *int32 `json:"nodesNeeded,omitempty"`
	// nodesTotal is the number of nodes of the cluster.
	// +optional
	NodesTotal *int32 `json:"nodesTotal,omitempty"`
	// podsFit is how many of the pods that need a node could be placed now.
	// +optional
	PodsFit *int32 `json:"podsFit,omitempty"`
	// attempts is how often the job was requeued because not all of its pods could be placed in time.
	// +optional
	Attempts int32 `json:"attempts,omitempty"`
	// evictedAt is when the job was last requeued. Pods created before are deleted.
	// +optional
	EvictedAt *metav1.Time `json:"evictedAt,omitempty"`
	// nextTry is when the job is retried after it was requeued.
	// +optional
	NextTry *metav1.Time `json:"nextTry,omitempty"`
	// message explains to users what the job waits for.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`
	// observedAt is when these values were written. The operator compares them every 30 s, and writes those that
	// changed; if none changed, it confirms them about every 5 minutes.
	// +optional
	ObservedAt *metav1.Time `json:"observedAt,omitempty"`
}

// StartEstimate is when a waiting job is expected to start. It assumes that no job starts before those ahead of it, and
// that no jobs of a higher priority are created.
type StartEstimate struct {
	// from is when the jobs before it have ended if they take their usual time. It is unset if they may end at any time.
	// +optional
	From *metav1.Time `json:"from,omitempty"`
	// by is when they have ended if they take as long as nine in ten similar jobs, or until their deadlines. It is unset
	// if there is no estimate.
	// +optional
	By *metav1.Time `json:"by,omitempty"`
	// basis is what the estimate follows from: the deadlines of the jobs before it (Deadlines), the durations of similar
	// jobs that succeeded (Durations), both (DeadlinesAndDurations), or how long other jobs waited (PastWaits).
	// +kubebuilder:validation:Enum=Deadlines;Durations;DeadlinesAndDurations;PastWaits
	// +optional
	Basis string `json:"basis,omitempty"`
	// reason is why there is no estimate: NoDeadline, Overdue, PodsStay, NotReleased, NoneAhead, Autoscaled, FewSamples or
	// WaitedLonger.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Reason string `json:"reason,omitempty"`
	// message is the estimate, or why there is none, in one sentence.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Message string `json:"message,omitempty"`
}

// EndEstimate is when a running job is expected to end if it goes on at its average pace since the first progress that was read. The
// shares of work are in millionths.
type EndEstimate struct {
	// from and by limit the time at which the job is expected to end. They are unset if there is no estimate.
	// +optional
	From *metav1.Time `json:"from,omitempty"`
	// +optional
	By *metav1.Time `json:"by,omitempty"`
	// reason is why there is no estimate: TooEarly, StandsStill, or WentBack if the program printed less than before, so that
	// what it prints is not the share of the whole job.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Reason string `json:"reason,omitempty"`
	// message is the estimate, or why there is none, in one sentence.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Message string `json:"message,omitempty"`
	// first is the completed share of the work when it was first read, and firstAt is when that was.
	First   int32       `json:"first"`
	FirstAt metav1.Time `json:"firstAt"`
	// reached is the completed share that was read last, and reachedAt is when it was reached.
	Reached   int32       `json:"reached"`
	ReachedAt metav1.Time `json:"reachedAt"`
	// steps is how often the share has grown, and longestStepSeconds is the longest time that this took.
	// +optional
	Steps int32 `json:"steps,omitempty"`
	// +optional
	LongestStepSeconds int64 `json:"longestStepSeconds,omitempty"`
	// attempt is the attempt of the launcher that the progress is of.
	// +optional
	Attempt int32 `json:"attempt,omitempty"`
}

// Waited is how long a job waited until it was admitted.
type Waited struct {
	// backend is what admitted the job: kueue, podgroup, coscheduling, volcano or embedded.
	Backend string `json:"backend"`
	// queue is the queue that the job waited in.
	// +optional
	Queue string `json:"queue,omitempty"`
	// pods is the number of pods of the job.
	Pods int32 `json:"pods"`
	// seconds is how long the job waited.
	Seconds int64 `json:"seconds"`
	// until is when the job was admitted.
	Until metav1.Time `json:"until"`
}

// Finding is a problem of a job.
type Finding struct {
	// code identifies the kind of problem for programs, such as OutOfMemory.
	// +kubebuilder:validation:MaxLength=64
	Code string `json:"code"`
	// severity is Error (the job failed because of it, or cannot continue), Warning (it may resolve without action)
	// or Info (a consequence of another finding).
	Severity Severity `json:"severity"`
	// summary describes the problem in one or two sentences.
	// +kubebuilder:validation:MaxLength=1024
	Summary string `json:"summary"`
	// evidence lists the observations that the finding is based on: log lines, events, figures.
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=512
	// +listType=atomic
	// +optional
	Evidence []string `json:"evidence,omitempty"`
	// pod is the pod in which the problem began, if it is known.
	// +optional
	Pod string `json:"pod,omitempty"`
	// rank is the rank in which the problem began, if it is known.
	// +optional
	Rank *int32 `json:"rank,omitempty"`
	// exitCode is the exit code of the program in that pod. Values over 128 are 128 plus the number of a signal.
	// +optional
	ExitCode *int32 `json:"exitCode,omitempty"`
	// affected lists the names of the pods or objects that have the problem.
	// +kubebuilder:validation:MaxItems=17
	// +listType=atomic
	// +optional
	Affected []string `json:"affected,omitempty"`
	// remedies are suggested fixes, the most likely first.
	// +kubebuilder:validation:MaxItems=5
	// +listType=atomic
	// +optional
	Remedies []Remedy `json:"remedies,omitempty"`
}

// Remedy is a suggested fix.
type Remedy struct {
	// text describes the fix to users.
	// +kubebuilder:validation:MaxLength=512
	Text string `json:"text"`
	// action is a command to run, or a field of the job and its new value, if there is one.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Action string `json:"action,omitempty"`
	// rerun is whether clients can apply the fix: by a copy of the job, with the changes below if there are any.
	// +optional
	Rerun bool `json:"rerun,omitempty"`
	// changes are fields of the job to set in the copy, in this order.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Changes []FieldChange `json:"changes,omitempty"`
}

// FieldChange sets a field of a job.
type FieldChange struct {
	// field is the path of the field, with the index of a list entry or a name with dots in brackets, such as
	// spec.trainer.resourcesPerNode.limits[nvidia.com/gpu]; or env.NAME for a variable of every rank.
	// +kubebuilder:validation:MaxLength=512
	Field string `json:"field"`
	// value is the new value: that of a path in YAML, that of a variable as it is, or empty to remove it.
	// +kubebuilder:validation:MaxLength=512
	Value string `json:"value"`
}

// Failure describes where and how a job failed.
type Failure struct {
	// code is the code of the first finding.
	// +kubebuilder:validation:MaxLength=64
	Code string `json:"code"`
	// pod is the pod that failed first.
	// +optional
	Pod string `json:"pod,omitempty"`
	// rank is the rank that failed first.
	// +optional
	Rank *int32 `json:"rank,omitempty"`
	// exitCode is the exit code of the program in that pod. Values over 128 are 128 plus the number of a signal.
	// +optional
	ExitCode *int32 `json:"exitCode,omitempty"`
	// logTail contains the last log lines of the launcher and of the failed pods, with secrets masked. Each line
	// starts with the name of its pod in brackets.
	// +kubebuilder:validation:MaxItems=200
	// +kubebuilder:validation:items:MaxLength=1024
	// +listType=atomic
	// +optional
	LogTail []string `json:"logTail,omitempty"`
}

// Logs contains the ends of the logs of a job's pods, as they were when the job ended.
type Logs struct {
	// data is the text of the logs, compressed with gzip: one line for each line of a log, in the order of time. It is the time, the name
	// of the pod in brackets, and the text, with secrets masked and without control characters. If it is empty, see omitted.
	// +kubebuilder:validation:MaxLength=700000
	// +optional
	Data []byte `json:"data,omitempty"`
	// size is the size of the compressed data in bytes.
	// +optional
	Size int32 `json:"size,omitempty"`
	// lines is the number of lines.
	// +optional
	Lines int32 `json:"lines,omitempty"`
	// pods is the number of pods whose logs were read.
	// +optional
	Pods int32 `json:"pods,omitempty"`
	// podsCut is the number of pods of whose logs only the last lines are contained.
	// +optional
	PodsCut int32 `json:"podsCut,omitempty"`
	// podsUnread is the number of pods whose logs could not be read.
	// +optional
	PodsUnread int32 `json:"podsUnread,omitempty"`
	// omitted is why the logs of pods could not be read, or why there is no data any more.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Omitted string `json:"omitted,omitempty"`
}

// CompleteLogs is where the complete logs of a job's pods are.
type CompleteLogs struct {
	// index is the signed address of a list of the objects with the logs. Anyone who has it can read the logs until it expires.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Index string `json:"index,omitempty"`
	// expires is when the address stops working, and the logs are deleted.
	// +optional
	Expires *metav1.Time `json:"expires,omitempty"`
	// lines is the number of lines.
	// +optional
	Lines int64 `json:"lines,omitempty"`
	// size is the size of the compressed logs in bytes.
	// +optional
	Size int64 `json:"size,omitempty"`
	// pods is the number of pods with logs.
	// +optional
	Pods int32 `json:"pods,omitempty"`
	// podsCut is the number of pods of whose logs lines may be missing.
	// +optional
	PodsCut int32 `json:"podsCut,omitempty"`
	// podsUnread is the number of pods whose logs could not be read.
	// +optional
	PodsUnread int32 `json:"podsUnread,omitempty"`
	// message is why logs could not be read, were cut, or are not written yet.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Message string `json:"message,omitempty"`
}

// TimelineEntry is an event of a job.
type TimelineEntry struct {
	// time is when the event happened, or when the operator observed it.
	Time metav1.Time `json:"time"`
	// event identifies the event, such as Created, PodsStarting, Running, LauncherRestarted or Failed.
	// +kubebuilder:validation:MaxLength=64
	Event string `json:"event"`
	// detail describes the event.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Detail string `json:"detail,omitempty"`
}

// Consumption is the resources that a job's pods requested, multiplied by the time that they held them.
type Consumption struct {
	// until is the time up to which consumption is counted.
	Until metav1.Time `json:"until"`
	// cpuCoreSeconds is the requested CPU cores multiplied by seconds.
	CPUCoreSeconds int64 `json:"cpuCoreSeconds"`
	// memoryGiBSeconds is the requested memory in GiB multiplied by seconds.
	MemoryGiBSeconds int64 `json:"memoryGiBSeconds"`
	// gpuSeconds is the requested devices multiplied by seconds, for each resource such as nvidia.com/gpu.
	// +kubebuilder:validation:MaxProperties=16
	// +optional
	GPUSeconds map[string]int64 `json:"gpuSeconds,omitempty"`
	// held is what the job's pods hold together at the time until. It is empty if they hold nothing.
	// +kubebuilder:validation:MaxProperties=18
	// +optional
	Held corev1.ResourceList `json:"held,omitempty"`
	// steps are the totals at the times at which the pods began to hold more or less, oldest first. Between two steps, and from
	// the last one to the time until, the totals grow evenly. If a job has too many steps, those are left out that change the
	// totals least.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	Steps []ConsumptionStep `json:"steps,omitempty"`
}

// ConsumptionStep is the consumption up to a time.
type ConsumptionStep struct {
	// time is the time up to which consumption is counted.
	Time metav1.Time `json:"time"`
	// cpuCoreSeconds is the requested CPU cores multiplied by seconds.
	CPUCoreSeconds int64 `json:"cpuCoreSeconds"`
	// memoryGiBSeconds is the requested memory in GiB multiplied by seconds.
	MemoryGiBSeconds int64 `json:"memoryGiBSeconds"`
	// gpuSeconds is the requested devices multiplied by seconds, for each resource such as nvidia.com/gpu.
	// +kubebuilder:validation:MaxProperties=16
	// +optional
	GPUSeconds map[string]int64 `json:"gpuSeconds,omitempty"`
}

// Training is the progress that the program printed. Numbers are kept as text, as printed.
type Training struct {
	// epoch is the current epoch.
	// +kubebuilder:validation:MaxLength=32
	// +optional
	Epoch string `json:"epoch,omitempty"`
	// step is the current step.
	// +kubebuilder:validation:MaxLength=32
	// +optional
	Step string `json:"step,omitempty"`
	// loss is the latest loss.
	// +kubebuilder:validation:MaxLength=32
	// +optional
	Loss string `json:"loss,omitempty"`
	// accuracy is the latest accuracy.
	// +kubebuilder:validation:MaxLength=32
	// +optional
	Accuracy string `json:"accuracy,omitempty"`
	// progress is the completed share of the work, as printed.
	// +kubebuilder:validation:MaxLength=32
	// +optional
	Progress string `json:"progress,omitempty"`
	// at is when the line was written, or when it was read if that is unknown.
	At metav1.Time `json:"at"`
}
