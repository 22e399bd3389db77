// Package cluster is the core path's way to the API server: it observes what exists of a job, and makes a plan
// come true.
package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/gang"
	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/mpi"
)

// Indexes by which pods of one job are found among those of a namespace: all of them, and those that are on their
// way up.
const (
	podsByJob     = "job"
	startingByJob = "starting"
)

// CacheOptions restrict a cache to objects of jobs, and to those of their fields that anybody reads.
// Objects come out of it without being copied: whoever reads them must not change them. The masker takes secrets out of
// what pods' status says before it is kept.
func CacheOptions(masker logs.Masker) cache.Options {
	ours := labels.SelectorFromSet(labels.Set{mpi.LabelOperator: mpi.OperatorName})
	only := func(transform func(any) (any, error)) cache.ByObject {
		return cache.ByObject{Label: ours, Transform: transform, UnsafeDisableDeepCopy: new(true)}
	}
	return cache.Options{
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}:       only(masked(masker, trimPod)),
			&batchv1.Job{}:      only(trimLauncher),
			&corev1.Service{}:   only(cache.TransformStripManagedFields()),
			&corev1.ConfigMap{}: only(cache.TransformStripManagedFields()),
			secretMeta():        only(cache.TransformStripManagedFields()),

			&networkingv1.NetworkPolicy{}: only(cache.TransformStripManagedFields()),
			NamespaceMeta():               {Transform: trimNamespace, UnsafeDisableDeepCopy: new(true)},
		},
		DefaultTransform: cache.TransformStripManagedFields(),
	}
}

// ByJobSet is the index by which what a JobSet has made is found by the JobSet's name.
const ByJobSet = "jobset"

// JobSetCacheOptions restrict a cache to what JobSets have made, which carries a label, and to those fields of it that
// anybody reads; of JobSets to their metadata and status. As with CacheOptions, pods and Jobs come out of it uncopied.
func JobSetCacheOptions(masker logs.Masker, label string, jobSet schema.GroupVersionKind) cache.Options {
	has, err := labels.NewRequirement(label, selection.Exists, nil)
	utilruntime.Must(err)
	theirs := labels.NewSelector().Add(*has)
	of := &unstructured.Unstructured{}
	of.SetGroupVersionKind(jobSet)
	return cache.Options{
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}:  {Label: theirs, Transform: masked(masker, trimPod), UnsafeDisableDeepCopy: new(true)},
			&batchv1.Job{}: {Label: theirs, Transform: trimLauncher, UnsafeDisableDeepCopy: new(true)},
			of:             {Transform: trimJobSet},
		},
		DefaultTransform: cache.TransformStripManagedFields(),
	}
}

// AddJobSetIndexes adds ByJobSet to a cache. Call it once, before the cache starts.
func AddJobSetIndexes(ctx context.Context, indexer client.FieldIndexer, label string) error {
	byLabel := func(object client.Object) []string { return []string{object.GetLabels()[label]} }
	for _, object := range []client.Object{&corev1.Pod{}, &batchv1.Job{}} {
		if err := indexer.IndexField(ctx, object, ByJobSet, byLabel); err != nil {
			return fmt.Errorf("index %T by JobSet: %w", object, err)
		}
	}
	return nil
}

// ByOwner is the index by which objects are found by the UID of their controller.
const ByOwner = "owner"

// WorkloadCacheOptions restrict a cache to Workloads of Kueue's, to what is read of them. As with CacheOptions, they come
// out of it uncopied: thousands of them are read twice a minute.
func WorkloadCacheOptions(workload schema.GroupVersionKind) cache.Options {
	of := &unstructured.Unstructured{}
	of.SetGroupVersionKind(workload)
	return cache.Options{ByObject: map[client.Object]cache.ByObject{of: {Transform: trimWorkload, UnsafeDisableDeepCopy: new(true)}}}
}

// AddOwnerIndex adds ByOwner to a cache for one kind. Call it once, before the cache starts.
func AddOwnerIndex(ctx context.Context, indexer client.FieldIndexer, of client.Object) error {
	byOwner := func(object client.Object) []string {
		if owner := metav1.GetControllerOfNoCopy(object); owner != nil {
			return []string{string(owner.UID)}
		}
		return nil
	}
	if err := indexer.IndexField(ctx, of, ByOwner, byOwner); err != nil {
		return fmt.Errorf("index %s by owner: %w", of.GetObjectKind().GroupVersionKind().Kind, err)
	}
	return nil
}

// AddIndexes adds to a cache the indexes that Observe reads by. Call it once, before the cache starts.
func AddIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	byJob := func(object client.Object) []string { return []string{object.GetLabels()[mpi.LabelJob]} }
	if err := indexer.IndexField(ctx, &corev1.Pod{}, podsByJob, byJob); err != nil {
		return fmt.Errorf("index pods by job: %w", err)
	}
	startingOf := func(object client.Object) []string {
		if pod, ok := object.(*corev1.Pod); ok && Starting(pod) {
			return byJob(object)
		}
		return nil
	}
	if err := indexer.IndexField(ctx, &corev1.Pod{}, startingByJob, startingOf); err != nil {
		return fmt.Errorf("index starting pods by job: %w", err)
	}
	return nil
}

// Starting tells whether a pod is on its way up: it neither runs and is ready, nor has ended, nor is being deleted.
func Starting(pod *corev1.Pod) bool {
	up := mpi.IsRunning(pod) && mpi.IsReady(pod)
	return !up && !mpi.HasEnded(pod) && pod.DeletionTimestamp == nil
}

// AnyStarting tells whether any pod of a job is on its way up, as far as the cache knows. It is quick, also for jobs
// of many pods.
func (c *Cluster) AnyStarting(ctx context.Context, job types.NamespacedName) (bool, error) {
	var one corev1.PodList
	err := c.client.List(ctx, &one, client.InNamespace(job.Namespace), client.MatchingFields{startingByJob: job.Name}, client.Limit(1), unawaited)
	if err != nil {
		return false, fmt.Errorf("list starting pods of %s: %w", job, err)
	}
	return len(one.Items) > 0, nil
}

// secretMeta stands for Secrets of which only the metadata is read: the keys stay out of the operator's memory.
func secretMeta() *metav1.PartialObjectMetadata {
	meta := &metav1.PartialObjectMetadata{}
	meta.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	return meta
}

// NamespaceMeta stands for Namespaces of which only the metadata is read.
func NamespaceMeta() *metav1.PartialObjectMetadata {
	meta := &metav1.PartialObjectMetadata{}
	meta.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return meta
}

// trimNamespace leaves the one annotation of a namespace that is read.
func trimNamespace(object any) (any, error) {
	namespace, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return object, nil
	}
	namespace.ManagedFields, namespace.Labels = nil, nil
	maps.DeleteFunc(namespace.Annotations, func(key, _ string) bool { return key != mpi.AnnotationAllowEgress })
	return namespace, nil
}

// trimPod drops what nobody reads of a pod: with a thousand pods of a job in memory, its specification is
// nine tenths of them.
func trimPod(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	pod.ManagedFields, pod.Annotations = nil, nil
	pod.Spec = corev1.PodSpec{NodeName: pod.Spec.NodeName}
	pod.Status.PodIPs, pod.Status.HostIPs, pod.Status.EphemeralContainerStatuses = nil, nil, nil
	return pod, nil
}

// trimJobSet drops the pod templates of a JobSet.
func trimJobSet(object any) (any, error) {
	if jobSet, ok := object.(*unstructured.Unstructured); ok {
		jobSet.SetManagedFields(nil)
		delete(jobSet.Object, "spec")
	}
	return object, nil
}

// trimWorkload leaves of a Workload what is read (gang.Workload).
func trimWorkload(object any) (any, error) {
	workload, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object, nil
	}
	workload.SetManagedFields(nil)
	workload.SetLabels(nil)
	if timeouts, set := workload.GetAnnotations()[gang.AnnotationTimeouts]; set {
		workload.SetAnnotations(map[string]string{gang.AnnotationTimeouts: timeouts})
	} else {
		workload.SetAnnotations(nil)
	}
	for part, read := range map[string][]string{"spec": {"queueName", "active"}, "status": {"conditions", "requeueState"}} {
		if fields, ok := workload.Object[part].(map[string]any); ok {
			maps.DeleteFunc(fields, func(name string, _ any) bool { return !slices.Contains(read, name) })
		}
	}
	return workload, nil
}

// trimLauncher drops the pod template of a launcher's Job.
func trimLauncher(object any) (any, error) {
	job, ok := object.(*batchv1.Job)
	if !ok {
		return object, nil
	}
	job.ManagedFields = nil
	maps.DeleteFunc(job.Annotations, func(key, _ string) bool { return key != mpi.AnnotationTemplate })
	job.Spec = batchv1.JobSpec{Suspend: job.Spec.Suspend}
	return job, nil
}
