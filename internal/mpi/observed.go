package mpi

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
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
	// Workers are the worker pods by index, without those that are stopped; pods left from a larger job are among them.
	Workers []Worker

	// Queue is what the job's queue says of it; nil where it is in none.
	Queue *QueueState

	// Gang is what the back end that places the job as a whole says of it; nil where none does.
	Gang *GangState
	// PodGroups are the job's own, by which schedulers know what pods to place together; of each API that there is one at
	// most.
	PodGroups []*unstructured.Unstructured

	// Shortages are what quotas of the namespace lack for a job that has no pods yet; empty where all fit, or nobody knows.
	Shortages []Shortage

	// Earlier are pods that an earlier job of the same name has left. While they are there, this job's host names
	// lead to them.
	Earlier []*corev1.Pod

	// AllowEgress is where the job's namespace lets pods connect to (AnnotationAllowEgress).
	AllowEgress string

	// Keys are what a Secret is to be made of; set only when there is none.
	Keys *Keys
}

// Worker is a worker's pod with its place.
type Worker struct {
	// Index counts from 0, as in the pod's name.
	Index int
	Pod   *corev1.Pod
}

// Keys are a job's SSH keys.
type Keys struct {
	// Private is PEM; Public is a line of an authorized_keys file.
	Private, Public []byte
}

// Refusal is the API server's no to an object that the job needs.
type Refusal struct {
	// Kind and Name say which object.
	Kind, Name string
	// Taken is set where an object of that name is there already and belongs to somebody else.
	Taken bool
	// Leaving is set with Taken where that object is being deleted, so that waiting is enough.
	Leaving bool
	// Message is the API server's own, empty with Taken.
	Message string
}

// IsRunning tells whether a pod's containers have started and not ended.
func IsRunning(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil
}

// IsReady tells whether a pod says it can serve.
func IsReady(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp != nil {
		return false
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// HasEnded tells whether a pod has run to its end, well or not.
func HasEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// IsStopped tells of a pod of a batch Job that runs whether the Job is suspended, so that the pod is about to be deleted. It
// may be gone already: Jobs and pods are heard of by different ways.
func IsStopped(job *batchv1.Job, pod *corev1.Pod) bool {
	return ptr.Deref(job.Spec.Suspend, false) && pod.DeletionTimestamp == nil && !HasEnded(pod)
}
