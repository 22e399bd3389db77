package jobstate

import (
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/quota"
)

// Observed is all that the judgement of a job rests on: what exists of it, and when this was seen. Objects
// are shared with a cache: read them, never change them.
type Observed struct {
	// Now is the time of the observation.
	Now time.Time

	// Service, Config, Secret, Isolation and Launcher are nil where there is none of this job's.
	Service *corev1.Service
	Config  *corev1.ConfigMap
	// Secret is the metadata alone: nobody but the job's pods needs the keys again.
	Secret    *metav1.PartialObjectMetadata
	Isolation *networkingv1.NetworkPolicy
	Launcher  *batchv1.Job
	// WorkerJob is the batch Job that makes a TrainJob's workers; nil for MPIJobs.
	WorkerJob *batchv1.Job
	// LauncherPods are the launcher's tries, the oldest first, without those that are stopped (IsStopped).
	LauncherPods []*corev1.Pod
	// Restarts is how often all pods of the job were replaced by new ones before these, as JobSet counts it.
	Restarts int32
	// Workers are the worker pods by index, without those that are stopped; pods left from a larger job are among them.
	Workers []Worker

	// Replaced are earlier pods of workers that have a newer one, as far as they still exist. MPIJobs have none: a worker keeps its name.
	Replaced []Worker

	// Initializers are the latest pods of the jobs that prepare the data and model of a TrainJob: its other pods start after them.
	Initializers []*corev1.Pod

	// Queue is the state of the job in its queue; nil if it is in none.
	Queue *QueueState

	// Gang is the state of the job in the back end that places its pods together; nil if there is none.
	Gang *GangState
	// PodGroups are the job's own, at most one of each API. They define which pods are scheduled together.
	PodGroups []*unstructured.Unstructured

	// Gate is what holds back the pods of a job that another controller runs; nil if nothing does.
	Gate *Gate

	// Shortages are what quotas of the namespace lack for a job that has no pods yet; empty if all fit, or if that is
	// unknown.
	Shortages []quota.Shortage
	// QuotaTurn is the job's place among those that wait for quota; nil if it waits for none.
	QuotaTurn *Turn

	// Earlier are pods that an earlier job of the same name has left, or a launcher's Job of this job that was replaced (see EarlierIsOwn).
	// While they are there, this job's host names lead to them.
	Earlier []*corev1.Pod

	// AllowEgress is where the job's namespace lets pods connect to (AnnotationAllowEgress).
	AllowEgress string
	// Endpoints are the destinations of the job's data connections that are known (isolation.Endpoints, as text), and
	// EndpointsMissing is whether some are not yet.
	Endpoints        string
	EndpointsMissing bool
}

// Gate is an object without whose permission another controller creates no pods of a job (mpi.AnnotationGate).
type Gate struct {
	Kind schema.GroupVersionKind
	Name string
	UID  types.UID
	// Closed is set while no pods may be created, Suspended while the job's controller, and not the operator, prevents that.
	Closed, Suspended bool
}

// Worker is a worker's pod with its place.
type Worker struct {
	// Index counts from 0, as in the pod's name.
	Index int
	Pod   *corev1.Pod
}

// IsUncalledWebhook reports whether a message of the API server is that it could not call a webhook without which it accepts nothing
// (k8s.io/apiserver/pkg/admission/plugin/webhook/errors).
func IsUncalledWebhook(message string) bool {
	return strings.Contains(message, "failed calling webhook \"")
}

// Refusal is the API server's no to an object that the job needs.
type Refusal struct {
	// Kind and Name say which object.
	Kind, Name string
	// Taken is set if an object of that name exists and belongs to another owner.
	Taken bool
	// Leaving is set with Taken where that object is being deleted, so that waiting is enough.
	Leaving bool
	// Message is the API server's own, empty with Taken.
	Message string
}

// EarlierIsOwn reports whether all of the pods in Earlier are of the job itself: they were created after it.
func (o Observed) EarlierIsOwn(j mpi.Job) bool {
	return !j.Created.IsZero() && !slices.ContainsFunc(o.Earlier, func(pod *corev1.Pod) bool { return pod.CreationTimestamp.Time.Before(j.Created) })
}

// AllPods returns the launcher's pods, the oldest first, and the workers by index.
func (o Observed) AllPods() []*corev1.Pod {
	pods := slices.Clone(o.LauncherPods)
	for _, worker := range o.Workers {
		pods = append(pods, worker.Pod)
	}
	return pods
}

// AllPodsAndInitializers returns AllPods and the latest pods of the initializers.
func (o Observed) AllPodsAndInitializers() []*corev1.Pod {
	return append(o.AllPods(), o.Initializers...)
}

// CurrentPods returns the launcher's latest pod and the workers that a job of so many workers has.
func (o Observed) CurrentPods(workers int32) []*corev1.Pod {
	pods := slices.Clone(o.LauncherPods[max(0, len(o.LauncherPods)-1):])
	for _, worker := range o.Workers {
		if worker.Index < int(workers) {
			pods = append(pods, worker.Pod)
		}
	}
	return pods
}
