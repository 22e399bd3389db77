package mpi

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Job is one MPI job: a launcher that runs mpirun, and workers that its ranks run on.
// Every value is set: what the user left out has its default (see New).
type Job struct {
	// APIVersion, Kind, Namespace, Name and UID say which object the job was written as.
	APIVersion, Kind, Namespace, Name string
	UID                               types.UID
	// Generation counts the changes of its specification, and Authors are who made them.
	Generation int64
	Authors    Authors
	// Names are what the job's objects are called.
	Names Names

	Implementation Implementation
	// SlotsPerWorker is how many ranks a host takes, 0 or more.
	SlotsPerWorker int32
	Launcher       Launcher
	Workers        Workers
	// SSHMountPath is the folder in which pods find the job's keys, absolute.
	SSHMountPath string

	// Launch says who starts ranks, LaunchAgent or LaunchSSHD; empty leaves it to UsesAgent.
	Launch    string
	Lifecycle Lifecycle
	// Connections name the Secrets whose keys the main containers of launcher and workers get as variables; of two that
	// have the same key the later one's counts.
	Connections []string
	// Gang is how the job's pods are to be placed together.
	Gang Gang
	// Queue names the queue that the job is to wait in; empty: none.
	Queue string
	// WaitForQuota has the job wait where its namespace's quota has no room for all of its pods (see WaitsForQuota).
	WaitForQuota bool
	// Topology is where the pods are to be together.
	Topology Topology
	// ManagedBy names another controller that runs this job, such as MultiKueue; empty: it is ours.
	ManagedBy string
	// AllowEgress is where the job's runtime lets its pods connect to, as ParseEgress reads it.
	AllowEgress string
	// Past is what the job's own record says of earlier passes.
	Past Past
	// Fields tells where the user wrote each value.
	Fields Fields
}

// Launcher is the pod that runs mpirun.
type Launcher struct {
	// None is set for a job without one: a TrainJob of another framework than MPI.
	None          bool
	Template      corev1.PodTemplateSpec
	RestartPolicy corev1.RestartPolicy
	// RunsRanks makes the launcher the first host of the job (MPIJob: runLauncherAsWorker).
	RunsRanks bool
	// AfterWorkers withholds the launcher until every worker is ready
	// (MPIJob: launcherCreationPolicy: WaitForWorkersReady).
	AfterWorkers bool
}

// Workers are the pods that ranks run on, all from one template.
type Workers struct {
	// Count is how many there are, 0 or more; 0 is a job of its launcher alone.
	Count         int32
	Template      corev1.PodTemplateSpec
	RestartPolicy corev1.RestartPolicy
}

// Implementation is an MPI library with its launcher.
type Implementation string

// The implementations; the values are those of MPIJob's mpiImplementation.
const (
	OpenMPI  Implementation = "OpenMPI"
	IntelMPI Implementation = "Intel"
	MPICH    Implementation = "MPICH"
)

// Implementations are all of them, the default first.
var Implementations = []Implementation{OpenMPI, IntelMPI, MPICH}

// CleanPods says which worker pods go when the job has finished.
type CleanPods string

// The policies; the values are those of MPIJob's cleanPodPolicy.
const (
	CleanNone    CleanPods = "None"
	CleanRunning CleanPods = "Running"
	CleanAll     CleanPods = "All"
)

// CleanPolicies are all of them, the default first.
var CleanPolicies = []CleanPods{CleanNone, CleanRunning, CleanAll}

// Lifecycle is how long a job lives and what is left of it.
type Lifecycle struct {
	Suspended bool
	// Deleting is set once the object's deletion was asked for.
	Deleting  bool
	CleanPods CleanPods
	// TTL removes the whole job so long after it finished; nil: never.
	TTL *time.Duration
	// Deadline ends the launcher so many seconds after it started; nil: never.
	Deadline *int64
	// BackoffLimit is how often a failed launcher is tried again; nil: batch Job's default, 6.
	BackoffLimit *int32
	// SilentAfter is how long the program of a running job may say nothing until that is worth a word.
	SilentAfter time.Duration
}

// Past is what a job's record says already.
type Past struct {
	// Finish is set once the job has finished. It is final: nothing observed later changes it.
	Finish *Finish
}

// Finish is the end of a job.
type Finish struct {
	Succeeded       bool
	Reason, Message string
	At              time.Time
}

// Fields are the paths, in the user's object, of the values of a Job. They differ from one kind of job to
// another; errors name them, so that users find in their own text what is wrong.
type Fields struct {
	Name, Slots, SSHMountPath                     *field.Path
	LauncherTemplate, WorkerCount, WorkerTemplate *field.Path
	TTL, Deadline, BackoffLimit, Gang, Launch     *field.Path
}

// New returns a job with every default in place. The defaults are those of mpi-operator v0.8.2
// (pkg/apis/kubeflow/v2beta1/default.go); a kind overwrites what its user has set.
func New() Job {
	return Job{
		Names:          mpiJobNames,
		Implementation: OpenMPI,
		SlotsPerWorker: 1,
		Launcher:       Launcher{RestartPolicy: corev1.RestartPolicyOnFailure},
		Workers:        Workers{RestartPolicy: corev1.RestartPolicyNever},
		SSHMountPath:   DefaultSSHPath,
		Gang:           Gang{Timeout: gangTimeout, Requeues: RequeueLimit},
		Lifecycle:      Lifecycle{CleanPods: CleanNone, SilentAfter: silentAfter},
	}
}

// Owner is the reference by which the job owns its objects: they go when it goes.
func (j Job) Owner() metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: j.APIVersion, Kind: j.Kind, Name: j.Name, UID: j.UID,
		Controller: new(true), BlockOwnerDeletion: new(true),
	}
}

// Owns tells whether an object is controlled by this very job, not by another of the same name.
func (j Job) Owns(object metav1.Object) bool {
	owner := metav1.GetControllerOfNoCopy(object)
	return owner != nil && owner.UID == j.UID
}
