package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// JobReport tells how one MPI job is doing: its phase and why, its pods, what is wrong with it and what to do about
// that. The operator writes it; it stays when the job is gone, until its retention is over. It is not owned by the job.
//
// There is no status subresource: nobody but the operator writes any of it, and so it is one write.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=jobreports,singular=jobreport,shortName=jr,categories=odh
// +kubebuilder:printcolumn:name="Job",type=string,JSONPath=`.spec.jobRef.name`,description="The job's name."
// +kubebuilder:printcolumn:name="Kind",type=string,JSONPath=`.spec.jobRef.kind`,description="The job's kind."
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`,description="Where the job is in its life."
// +kubebuilder:printcolumn:name="Why",type=string,JSONPath=`.status.findings[0].code`,description="What is wrong with the job, in one word; empty where nothing is."
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.workers.summary`,description="How many workers are ready, of those wanted."
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`,description="Why it is there, in words."
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type JobReport struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says which job this is about.
	Spec JobReportSpec `json:"spec"`
	// status is what the operator knows of the job.
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

// JobReportSpec says which job a report is about.
type JobReportSpec struct {
	// jobRef is the job. It may be gone; a later job of the same name has another uid, and a report of its own.
	JobRef JobReference `json:"jobRef"`
}

// JobReference names one very job.
type JobReference struct {
	// apiVersion of the job, such as kubeflow.org/v2beta1.
	APIVersion string `json:"apiVersion"`
	// kind of the job, such as MPIJob.
	Kind string `json:"kind"`
	// name of the job; its namespace is the report's.
	Name string `json:"name"`
	// uid of the job.
	UID types.UID `json:"uid"`
}

// Phase is where a job is in its life.
// +kubebuilder:validation:Enum=Pending;Queued;GangScheduling;Initializing;Running;Suspended;Succeeded;Failed
type Phase string

// Severity is how much a finding matters.
// +kubebuilder:validation:Enum=Error;Warning;Info
type Severity string

// The severities.
const (
	// SeverityError: the job failed because of it, or cannot go on until somebody acts.
	SeverityError Severity = "Error"
	// SeverityWarning: the job may still go on by itself, or runs worse than it could.
	SeverityWarning Severity = "Warning"
	// SeverityInfo: follows from another finding, or is worth knowing.
	SeverityInfo Severity = "Info"
)

// JobReportStatus is what is known of a job. Lists are bounded, so that a report is at most 256 KiB.
type JobReportStatus struct {
	// phase is where the job is in its life: Pending (nothing started), Queued (a queue holds it back), GangScheduling
	// (waiting until all pods find a place), Initializing (pods start), Running, Suspended, Succeeded or Failed.
	// +optional
	Phase Phase `json:"phase,omitempty"`
	// reason is why it is there, as one word for programs.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Reason string `json:"reason,omitempty"`
	// message is why it is there, in words.
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	Message string `json:"message,omitempty"`

	// observedGeneration is the generation of the job that this was made from.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// startTime is when the operator first saw the job.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// runningTime is when the launcher and all workers ran for the first time.
	// +optional
	RunningTime *metav1.Time `json:"runningTime,omitempty"`
	// completionTime is when the job ended, well or not.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// phaseTimes tell how long the job has been in each of its phases, in the order in which it first came to them.
	// +kubebuilder:validation:MaxItems=8
	// +listType=atomic
	// +optional
	PhaseTimes []PhaseTime `json:"phaseTimes,omitempty"`

	// mpi is how MPI runs in this job.
	// +optional
	MPI MPIStatus `json:"mpi,omitempty"`
	// workers counts the job's worker pods.
	// +optional
	Workers WorkersStatus `json:"workers,omitempty"`
	// pods are the launcher's latest tries and the workers. Those in trouble come first where not all have room.
	// +kubebuilder:validation:MaxItems=2048
	// +listType=atomic
	// +optional
	Pods []PodStatus `json:"pods,omitempty"`
	// podsOmitted is how many pods had no room in pods.
	// +optional
	PodsOmitted int32 `json:"podsOmitted,omitempty"`
	// scheduling is what the job waits for before its pods have a place.
	// +optional
	Scheduling *SchedulingStatus `json:"scheduling,omitempty"`
	// waited is how long the job waited until it was let in for the first time.
	// +optional
	Waited *Waited `json:"waited,omitempty"`

	// findings are what is wrong with the job: the cause first, then what follows from it or was seen besides. A job
	// that is well has none.
	// +kubebuilder:validation:MaxItems=8
	// +listType=atomic
	// +optional
	Findings []Finding `json:"findings,omitempty"`
	// failure is where and how the job failed, with the end of the log.
	// +optional
	Failure *Failure `json:"failure,omitempty"`
	// timeline is what has happened to the job, the oldest first.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	Timeline []TimelineEntry `json:"timeline,omitempty"`

	// consumption is what the job's pods have held so far.
	// +optional
	Consumption *Consumption `json:"consumption,omitempty"`
	// training is the last that the program has told of its progress, as JSON or key=value lines in its output.
	// +optional
	Training *Training `json:"training,omitempty"`
}

// PhaseTime is a phase that a job has been in.
type PhaseTime struct {
	// phase is its name.
	Phase Phase `json:"phase"`
	// since is when the job last came to it.
	Since metav1.Time `json:"since"`
	// seconds is how long the job was in it, less the time since it last came to the phase it is in now.
	Seconds int64 `json:"seconds"`
}

// MPIStatus is how MPI runs in a job.
type MPIStatus struct {
	// implementation is OpenMPI, Intel or MPICH.
	// +optional
	Implementation string `json:"implementation,omitempty"`
	// version of the implementation, where it is known.
	// +optional
	Version string `json:"version,omitempty"`
	// slotsPerWorker is how many ranks (processes of the program) a worker takes.
	// +optional
	SlotsPerWorker int32 `json:"slotsPerWorker,omitempty"`
	// ranks is how many ranks fill every slot of the job.
	// +optional
	Ranks int64 `json:"ranks,omitempty"`
	// slotsExpected is how many slots the workers have in the launcher's list of hosts. This and the following are what
	// the launcher's agent has told at the end of the launcher's latest run.
	// +optional
	SlotsExpected int32 `json:"slotsExpected,omitempty"`
	// slotsFound is how many slots those workers have that the launcher started anything on. A program that was started
	// with fewer ranks than there are slots may not need all of them.
	// +optional
	SlotsFound int32 `json:"slotsFound,omitempty"`
	// connectMilliseconds is how long it took from the first attempt to connect to a worker until all were reached.
	// +optional
	ConnectMilliseconds int64 `json:"connectMilliseconds,omitempty"`
	// initMilliseconds is how long MPI took on the slowest worker from its first command there until a rank's process ran.
	// +optional
	InitMilliseconds int64 `json:"initMilliseconds,omitempty"`
}

// WorkersStatus counts worker pods.
type WorkersStatus struct {
	// summary is ready of wanted, such as 7/8.
	// +optional
	Summary string `json:"summary,omitempty"`
	// wanted is how many workers the job asks for.
	Wanted int32 `json:"wanted"`
	// ready is how many can serve.
	Ready int32 `json:"ready"`
	// running is how many run, ready or not.
	Running int32 `json:"running"`
	// succeeded is how many have ended well.
	Succeeded int32 `json:"succeeded"`
	// failed is how many have ended badly.
	Failed int32 `json:"failed"`
}

// PodStatus is one pod of a job.
type PodStatus struct {
	// role is launcher or worker.
	Role string `json:"role"`
	// index is the worker's number, from 0, or the launcher's try.
	Index int32 `json:"index"`
	// name of the pod.
	Name string `json:"name"`
	// node is the machine that the pod is on.
	// +optional
	Node string `json:"node,omitempty"`
	// phase is Pending, Running, Succeeded, Failed, Unknown, or Terminating while it is being deleted; Gone where a
	// finished job's pod was removed.
	// +optional
	Phase string `json:"phase,omitempty"`
	// ready tells whether it can serve.
	// +optional
	Ready bool `json:"ready,omitempty"`
	// reason is why it is in that phase, such as ImagePullBackOff or OOMKilled.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Reason string `json:"reason,omitempty"`
	// restarts is how often its containers were started again.
	// +optional
	Restarts int32 `json:"restarts,omitempty"`
	// exitCode is how its first container that failed ended.
	// +optional
	ExitCode *int32 `json:"exitCode,omitempty"`
	// ranks are the ranks that have their slots there, such as 8-15.
	// +optional
	Ranks string `json:"ranks,omitempty"`
}

// SchedulingStatus is what a job waits for before its pods have a place.
type SchedulingStatus struct {
	// backend is what places the job: kueue, podgroup, coscheduling, volcano or embedded.
	// +optional
	Backend string `json:"backend,omitempty"`
	// queue is the queue that the job waits in.
	// +optional
	Queue string `json:"queue,omitempty"`
	// position is the job's place in the queue; 1 is next.
	// +optional
	Position *int32 `json:"position,omitempty"`
	// positionScope says among which jobs the position counts.
	// +optional
	PositionScope string `json:"positionScope,omitempty"`
	// since is when the job came to wait here.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
	// waitedSeconds is how long it has waited since, at the time of observedAt.
	// +optional
	WaitedSeconds int64 `json:"waitedSeconds,omitempty"`
	// waitP50 is how many seconds half of the comparable jobs have waited at most: those of this queue with half to twice
	// as many pods. It and waitP90 are not there where fewer than ten of them are known.
	// +optional
	WaitP50 *int64 `json:"waitP50,omitempty"`
	// waitP90 is how many seconds nine in ten of the comparable jobs have waited at most.
	// +optional
	WaitP90 *int64 `json:"waitP90,omitempty"`
	// samples is how many jobs waitP50 and waitP90 rest on.
	// +optional
	Samples int32 `json:"samples,omitempty"`
	// placed is how many pods have a node.
	// +optional
	Placed int32 `json:"placed,omitempty"`
	// wanted is how many pods need one.
	// +optional
	Wanted int32 `json:"wanted,omitempty"`
	// nodesFit is how many nodes could take a pod of this job now.
	// +optional
	NodesFit *int32 `json:"nodesFit,omitempty"`
	// nodesNeeded is how many nodes the job needs.
	// +optional
	NodesNeeded *int32 `json:"nodesNeeded,omitempty"`
	// nodesTotal is how many nodes the cluster has.
	// +optional
	NodesTotal *int32 `json:"nodesTotal,omitempty"`
	// podsFit is how many of the pods that need a node would find one now.
	// +optional
	PodsFit *int32 `json:"podsFit,omitempty"`
	// attempts is how often the job was put back because not all of its pods found a place in time.
	// +optional
	Attempts int32 `json:"attempts,omitempty"`
	// evictedAt is when that was last: pods from before are removed.
	// +optional
	EvictedAt *metav1.Time `json:"evictedAt,omitempty"`
	// nextTry is until when the job rests after that.
	// +optional
	NextTry *metav1.Time `json:"nextTry,omitempty"`
	// message says it in words.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`
	// observedAt is when this was so.
	// +optional
	ObservedAt *metav1.Time `json:"observedAt,omitempty"`
}

// Waited is how long a job waited until it was let in.
type Waited struct {
	// backend is what let it in: kueue, podgroup, coscheduling, volcano or embedded.
	Backend string `json:"backend"`
	// queue is the queue that it waited in.
	// +optional
	Queue string `json:"queue,omitempty"`
	// pods is how many pods it had.
	Pods int32 `json:"pods"`
	// seconds is how long it waited.
	Seconds int64 `json:"seconds"`
	// until is when it was let in.
	Until metav1.Time `json:"until"`
}

// Finding is something that is wrong with a job.
type Finding struct {
	// code names it for programs, such as OutOfMemory.
	// +kubebuilder:validation:MaxLength=64
	Code string `json:"code"`
	// severity is Error (the job failed of it or cannot go on), Warning (it may pass) or Info (it follows from another).
	Severity Severity `json:"severity"`
	// summary says what is wrong in a sentence or two.
	// +kubebuilder:validation:MaxLength=1024
	Summary string `json:"summary"`
	// evidence is what the finding rests on: lines of logs, events, figures.
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=512
	// +listType=atomic
	// +optional
	Evidence []string `json:"evidence,omitempty"`
	// affected are the pods or objects that it is about.
	// +kubebuilder:validation:MaxItems=17
	// +listType=atomic
	// +optional
	Affected []string `json:"affected,omitempty"`
	// remedies are what to do, the most promising first.
	// +kubebuilder:validation:MaxItems=5
	// +listType=atomic
	// +optional
	Remedies []Remedy `json:"remedies,omitempty"`
}

// Remedy is something that may help.
type Remedy struct {
	// text says it for people.
	// +kubebuilder:validation:MaxLength=512
	Text string `json:"text"`
	// action is a command to run, or a field of the job and what to set it to, where there is one.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Action string `json:"action,omitempty"`
}

// Failure is where and how a job failed.
type Failure struct {
	// code is that of the first finding.
	// +kubebuilder:validation:MaxLength=64
	Code string `json:"code"`
	// pod is where it began.
	// +optional
	Pod string `json:"pod,omitempty"`
	// rank is the rank that it began with.
	// +optional
	Rank *int32 `json:"rank,omitempty"`
	// exitCode is how the program ended there; more than 128 is a signal.
	// +optional
	ExitCode *int32 `json:"exitCode,omitempty"`
	// logTail are the last lines of the logs of the launcher and of the pods that failed, with secrets masked; each
	// begins with its pod's name in brackets.
	// +kubebuilder:validation:MaxItems=200
	// +kubebuilder:validation:items:MaxLength=1024
	// +listType=atomic
	// +optional
	LogTail []string `json:"logTail,omitempty"`
}

// TimelineEntry is something that has happened to a job.
type TimelineEntry struct {
	// time is when it happened, or when the operator saw it.
	Time metav1.Time `json:"time"`
	// event names it, such as Created, PodsStarting, Running, LauncherRestarted, Failed.
	// +kubebuilder:validation:MaxLength=64
	Event string `json:"event"`
	// detail says more.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Detail string `json:"detail,omitempty"`
}

// Consumption is what a job's pods have asked for, times how long they had it.
type Consumption struct {
	// until is the time up to which this is counted.
	Until metav1.Time `json:"until"`
	// cpuCoreSeconds are requested cores times seconds.
	CPUCoreSeconds int64 `json:"cpuCoreSeconds"`
	// memoryGiBSeconds are requested GiB of memory times seconds.
	MemoryGiBSeconds int64 `json:"memoryGiBSeconds"`
	// gpuSeconds are requested devices times seconds, by resource such as nvidia.com/gpu.
	// +kubebuilder:validation:MaxProperties=16
	// +optional
	GPUSeconds map[string]int64 `json:"gpuSeconds,omitempty"`
}

// Training is what the program tells of its progress. Numbers are text, as in the program's output.
type Training struct {
	// epoch is the pass over the data that it is in.
	// +kubebuilder:validation:MaxLength=32
	// +optional
	Epoch string `json:"epoch,omitempty"`
	// step is the step that it is at.
	// +kubebuilder:validation:MaxLength=32
	// +optional
	Step string `json:"step,omitempty"`
	// loss is the last loss.
	// +kubebuilder:validation:MaxLength=32
	// +optional
	Loss string `json:"loss,omitempty"`
	// accuracy is the last accuracy.
	// +kubebuilder:validation:MaxLength=32
	// +optional
	Accuracy string `json:"accuracy,omitempty"`
	// progress is how much is done, as the program says it.
	// +kubebuilder:validation:MaxLength=32
	// +optional
	Progress string `json:"progress,omitempty"`
	// at is when the line was written, or read where that is not known.
	At metav1.Time `json:"at"`
}
