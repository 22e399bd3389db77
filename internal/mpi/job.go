package mpi

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Job is an MPI job: a launcher that runs mpirun, and workers that run its ranks. All defaults are set (see New).
type Job struct {
	// APIVersion, Kind, Namespace, Name and UID identify the object of the job.
	APIVersion, Kind, Namespace, Name string
	UID                               types.UID
	// Generation is the generation of the object, Created is when it was created, and Authors are the users who changed it.
	Generation int64
	Created    time.Time
	Authors    Authors
	// Names are the suffixes and labels by which the job's objects are named.
	Names Names
	// External is set if another controller creates the job's pods, as Kubeflow Trainer does for TrainJobs: the operator
	// observes, isolates and reports the job.
	External bool
	// Gated is set if the operator decides when the pods of an External job are created (see AnnotationGate).
	Gated bool

	Implementation Implementation
	// SlotsPerWorker is the number of ranks per host, 0 or more.
	SlotsPerWorker int32
	Launcher       Launcher
	Workers        Workers
	// SSHMountPath is the absolute path of the folder with the job's keys in its pods.
	SSHMountPath string

	// Launch selects what starts ranks: LaunchAgent, LaunchSSHD, or "" for the default (see UsesAgent).
	Launch    string
	Lifecycle Lifecycle
	// Connections are the names of the Secrets whose keys the main containers of launcher and workers get as
	// environment variables. If two have the same key, the last one is used.
	Connections []string
	// Gang describes how the job's pods are scheduled together.
	Gang Gang
	// Runtime is the name of the runtime that the job uses, or "" for a job without one.
	Runtime string
	// RuntimeVersion is the UID and the generation of the runtime when the job was read first, or "" if they are unknown.
	RuntimeVersion string
	// Queue is the name of the job's Kueue LocalQueue, or "".
	Queue string
	// QueuePriority is the name of the job's WorkloadPriorityClass of Kueue, or "".
	QueuePriority string
	// WaitForQuota is whether the job waits if its namespace's quota has no room for all of its pods (see
	// WaitsForQuota).
	WaitForQuota bool
	// Links are the links to pages about the job that its user wrote.
	Links []Link
	// Profile is whether the calls of MPI in each rank are counted and timed.
	Profile bool
	// SuspendedInQueue is whether the job's user keeps it out of its queue (AnnotationSuspendInQueue).
	SuspendedInQueue bool
	// RDMA describes the use of RDMA.
	RDMA RDMA
	// Topology describes which nodes the pods must share.
	Topology Topology
	// TraceParent is the span that the job is a part of.
	TraceParent TraceParent
	// ManagedBy names the controller that runs this job, such as MultiKueue, or "" if this operator runs it.
	ManagedBy string
	// AllowEgress lists the destinations that the job's runtime allows, in the format of isolation.ParseEgress.
	AllowEgress string
	// Ignored are the errors of a job that became invalid after it had been started. It goes on: defaults replace its
	// invalid annotations, and nothing new is created by other invalid fields (see IsFrozen).
	Ignored field.ErrorList
	// Recorded is what the job's status already contains.
	Recorded Recorded
	// Fields are the paths of the user's fields.
	Fields Fields
}

// Launcher describes the pod that runs mpirun.
type Launcher struct {
	// None is whether the job has no launcher: a TrainJob of another framework than MPI.
	None          bool
	Template      corev1.PodTemplateSpec
	RestartPolicy corev1.RestartPolicy
	// RunsRanks makes the launcher the first host of the job (MPIJob: runLauncherAsWorker).
	RunsRanks bool
	// AfterWorkers delays the launcher until all workers are ready (MPIJob: launcherCreationPolicy:
	// WaitForWorkersReady).
	AfterWorkers bool
}

// Workers describes the pods that run ranks. They share one template.
type Workers struct {
	// Count is the number of workers. 0 is a job that only has a launcher.
	Count         int32
	Template      corev1.PodTemplateSpec
	RestartPolicy corev1.RestartPolicy
}

// Replaced reports whether a worker that failed gets a new pod, as with the restart policy OnFailure.
func (w Workers) Replaced() bool { return w.RestartPolicy == corev1.RestartPolicyOnFailure }

// Implementation is an MPI library with its launcher.
type Implementation string

// The implementations. Their values are those of MPIJob's mpiImplementation.
const (
	OpenMPI  Implementation = "OpenMPI"
	IntelMPI Implementation = "Intel"
	MPICH    Implementation = "MPICH"
)

// Implementations lists all implementations, the default first.
var Implementations = []Implementation{OpenMPI, IntelMPI, MPICH}

// CleanPods selects the worker pods that are deleted when the job has finished.
type CleanPods string

// The policies. Their values are those of MPIJob's cleanPodPolicy.
const (
	CleanNone    CleanPods = "None"
	CleanRunning CleanPods = "Running"
	CleanAll     CleanPods = "All"
)

// CleanPolicies lists all policies, the default first.
var CleanPolicies = []CleanPods{CleanNone, CleanRunning, CleanAll}

// Lifecycle describes how long a job runs and what is kept after it finishes.
type Lifecycle struct {
	Suspended bool
	// Deleting is whether the object has a deletion timestamp, and Orphaning whether its deletion leaves its objects.
	Deleting, Orphaning bool
	CleanPods           CleanPods
	// TTL is the time after which the finished job is deleted; nil means never.
	TTL *time.Duration
	// Deadline is the number of seconds after which a started launcher is stopped; nil means never.
	Deadline *int64
	// DeadlineFrom is when the deadline began to count; zero: when the launcher's Job started.
	DeadlineFrom time.Time
	// BackoffLimit is how often a failed launcher is restarted; nil means the default of batch Jobs, 6.
	BackoffLimit *int32
	// MaxRestarts is how often the whole job is started again: new pods for the launcher and all workers. It is 0 for
	// MPIJobs, in which BackoffLimit restarts the launcher.
	MaxRestarts int32
	// SilentAfter is how long the program of a running job may print nothing before the report warns.
	SilentAfter time.Duration
}

// Recorded is what a job's status already contains.
type Recorded struct {
	// Finish is set once the job has finished. It is final: later observations do not change it.
	Finish *Finish
}

// Finish is the end of a job.
type Finish struct {
	Succeeded       bool
	Reason, Message string
	At              time.Time
}

// Fields are the paths of a job's values in the user's object. They differ between the kinds of jobs. Validation
// errors use them.
type Fields struct {
	Name, Slots, SSHMountPath                     *field.Path
	LauncherTemplate, WorkerCount, WorkerTemplate *field.Path
	TTL, Deadline, BackoffLimit, Launch           *field.Path
	Gang, GangTimeout, ManagedBy                  *field.Path
}

// New returns a job with all defaults. They are those of mpi-operator v0.8.2 (pkg/apis/kubeflow/v2beta1/default.go).
// A kind overwrites the values that the user set.
func New() Job {
	return Job{
		Names:          mpiJobNames,
		Implementation: OpenMPI,
		SlotsPerWorker: 1,
		Launcher:       Launcher{RestartPolicy: corev1.RestartPolicyOnFailure},
		Workers:        Workers{RestartPolicy: corev1.RestartPolicyNever},
		SSHMountPath:   DefaultSSHPath,
		Gang:           Gang{Timeout: defaultGangTimeout, Requeues: RequeueLimit},
		RDMA:           RDMA{Optional: true},
		Lifecycle:      Lifecycle{CleanPods: CleanNone, SilentAfter: defaultSilence},
	}
}

// DeletesWhenFinished reports whether a worker's pod is deleted once the job has finished. Pending pods count as running, because they
// may start. JobSet deletes those of a TrainJob that still run.
func (j Job) DeletesWhenFinished(hasEnded bool) bool {
	if j.External {
		return !hasEnded
	}
	return j.Lifecycle.CleanPods == CleanAll || j.Lifecycle.CleanPods == CleanRunning && !hasEnded
}

// ControlsPods reports whether the operator decides when the job's pods are created: it creates them itself, or opens their gate.
func (j Job) ControlsPods() bool { return !j.External || j.Gated }

// IsFrozen reports whether the job has become invalid after it had been started, so that its pods go on as they are and no
// others are created.
func (j Job) IsFrozen() bool {
	if len(j.Ignored) == 0 || j.External {
		return false
	}
	_, others := SplitIgnorable(j.Ignored)
	return len(others) > 0
}

// Owner returns the owner reference that the job's objects get, so that they are deleted with the job.
func (j Job) Owner() metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: j.APIVersion, Kind: j.Kind, Name: j.Name, UID: j.UID,
		Controller: new(true), BlockOwnerDeletion: new(true),
	}
}

// Owns reports whether the job controls an object. It compares the UID, so that it is false for the objects of
// another job of the same name.
func (j Job) Owns(object metav1.Object) bool {
	owner := metav1.GetControllerOfNoCopy(object)
	return owner != nil && owner.UID == j.UID
}
