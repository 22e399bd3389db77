// Package cluster reads the objects of jobs from the API server, and applies plans.
package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/plan"
	"opendatahub.io/mpijob/internal/podspec"
	"opendatahub.io/mpijob/internal/podstatus"
)

// Indexes of the pods of a job: all pods, and those that are starting.
const (
	podsByJob     = "job"
	startingByJob = "starting"
)

// CacheOptions limit a cache to objects of jobs, and to the fields that are read. Reads return objects without
// copying; callers must not change them. The masker removes secrets from the status of pods before they are cached.
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
			&corev1.Node{}:                {Transform: trimNode, UnsafeDisableDeepCopy: new(true)},
		},
		// JobReports have no entry above: a cache refuses those of a kind that is not installed.
		DefaultTransform: trimReport,
	}
}

// RestrictTo restricts a cache to namespaces, unless there are none, and makes its watches reconnect quickly after the
// API server was away.
func RestrictTo(caches *cache.Options, namespaces []string) {
	caches.NewInformer = NewInformer
	for _, namespace := range namespaces {
		if caches.DefaultNamespaces == nil {
			caches.DefaultNamespaces = map[string]cache.Config{}
		}
		caches.DefaultNamespaces[namespace] = cache.Config{}
	}
}

// RunnerCacheOptions limit a cache to the Jobs and pods with a label, which another controller created for jobs, and to the
// fields that are read. The object that it created for a job as a whole, of kind created, only has metadata and status. As
// with CacheOptions, pods and Jobs are not copied.
func RunnerCacheOptions(masker logs.Masker, label string, created schema.GroupVersionKind) cache.Options {
	has, err := labels.NewRequirement(label, selection.Exists, nil)
	utilruntime.Must(err)
	theirs := labels.NewSelector().Add(*has)
	of := &unstructured.Unstructured{}
	of.SetGroupVersionKind(created)
	return cache.Options{
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}:  {Label: theirs, Transform: masked(masker, trimPod), UnsafeDisableDeepCopy: new(true)},
			&batchv1.Job{}: {Label: theirs, Transform: trimLauncher, UnsafeDisableDeepCopy: new(true)},
			of:             {Transform: trimSpec},
		},
		DefaultTransform: cache.TransformStripManagedFields(),
	}
}

// AddLabelIndexes adds an index of pods and Jobs by a label to a cache. The index has the name of the label. Call it once
// before the cache starts.
func AddLabelIndexes(ctx context.Context, indexer client.FieldIndexer, label string) error {
	byLabel := func(object client.Object) []string { return []string{object.GetLabels()[label]} }
	for _, object := range []client.Object{&corev1.Pod{}, &batchv1.Job{}} {
		if err := indexer.IndexField(ctx, object, label, byLabel); err != nil {
			return fmt.Errorf("index %T by label %s: %w", object, label, err)
		}
	}
	return nil
}

// ByOwner is the index of objects by the UID of their controller.
const ByOwner = "owner"

// WorkloadCacheOptions limit a cache to Kueue's Workloads, and to the fields that are read. As with CacheOptions,
// they are not copied: thousands are read twice a minute.
func WorkloadCacheOptions(workload schema.GroupVersionKind) cache.Options {
	of := &unstructured.Unstructured{}
	of.SetGroupVersionKind(workload)
	return cache.Options{ByObject: map[client.Object]cache.ByObject{of: {Transform: trimWorkload, UnsafeDisableDeepCopy: new(true)}}}
}

// AddOwnerIndex adds ByOwner to a cache for one kind. Call it once before the cache starts.
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

// AddIndexes adds the indexes that Observe uses to a cache. Call it once before the cache starts.
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

// Starting reports whether a pod is starting: it is not ready yet, has not ended, and is not being deleted.
func Starting(pod *corev1.Pod) bool {
	up := podstatus.IsRunning(pod) && podstatus.IsReady(pod)
	return !up && !podstatus.HasEnded(pod) && pod.DeletionTimestamp == nil
}

// AnyStarting reports whether any pod of a job is starting, according to the cache. It is fast even for jobs with
// many pods.
func (c *Cluster) AnyStarting(ctx context.Context, job types.NamespacedName) (bool, error) {
	var one corev1.PodList
	err := c.client.List(ctx, &one, client.InNamespace(job.Namespace), client.MatchingFields{startingByJob: job.Name}, client.Limit(1), withoutReadYourWrites)
	if err != nil {
		return false, fmt.Errorf("list starting pods of %s: %w", job, err)
	}
	return len(one.Items) > 0, nil
}

// WritesWait reports whether more is to be written to the API server than may be at once, as while hundreds of jobs start.
func (c *Cluster) WritesWait() bool { return c.gate.isBusy() }

// secretMeta is the type of Secrets whose metadata is read only: keys are not kept in the operator's memory.
func secretMeta() *metav1.PartialObjectMetadata {
	meta := &metav1.PartialObjectMetadata{}
	meta.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	return meta
}

// NamespaceMeta is the type of Namespaces whose metadata is read only.
func NamespaceMeta() *metav1.PartialObjectMetadata {
	meta := &metav1.PartialObjectMetadata{}
	meta.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return meta
}

// trimNamespace keeps the annotations of a namespace that are read.
func trimNamespace(object any) (any, error) {
	namespace, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return object, nil
	}
	namespace.ManagedFields, namespace.Labels = nil, nil
	maps.DeleteFunc(namespace.Annotations, func(key, _ string) bool { return !slices.Contains(mpi.NamespaceAnnotations(), key) })
	return namespace, nil
}

// trimReport drops the managed fields of an object, except for those of a job that tell who changed it, and of a JobReport the manifest
// of its job and the logs, which are only written. A report from the cache must be written as a patch.
func trimReport(object any) (any, error) {
	report, ok := object.(*v1alpha1.JobReport)
	if !ok {
		if job, ok := object.(client.Object); ok {
			mpi.TrimManagedFields(job)
		}
		return object, nil
	}
	report.ManagedFields = nil
	if report.Status.Specification != nil {
		report.Status.Specification.Manifest = ""
	}
	if report.Status.Logs != nil {
		report.Status.Logs.Data = nil
	}
	return report, nil
}

// trimPod drops the fields of a pod that are not read: the specification is nine tenths of the memory of cached pods. It
// sets the phase that follows from the containers' statuses, so that a pod has ended when its containers have, and puts the status of the
// main container first. What all containers
// together hold of the node is left in the pod's Resources (podspec.Held).
func trimPod(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	pod.ManagedFields, pod.Annotations = nil, nil
	pod.Status.Phase = podstatus.EffectivePhase(pod)
	putMainFirst(pod)
	kept := corev1.PodSpec{NodeName: pod.Spec.NodeName, HostNetwork: pod.Spec.HostNetwork, Hostname: pod.Spec.Hostname}
	if strings.HasSuffix(pod.Labels[mpi.LabelJobSetJob], "-initializer") {
		kept = startOf(pod.Spec)
	}
	if plan.RunsSSHD(pod.Spec) {
		kept.Containers = []corev1.Container{{Name: pod.Spec.Containers[0].Name, Command: pod.Spec.Containers[0].Command}}
	}
	for _, container := range pod.Spec.Containers {
		if i := slices.IndexFunc(container.Env, func(v corev1.EnvVar) bool { return v.Name == agentapi.EnvProfile }); i >= 0 {
			// Which reports need to say why a job has no profile.
			kept.Containers = append(kept.Containers, corev1.Container{Name: container.Name, Env: []corev1.EnvVar{container.Env[i]}})
		}
	}
	if held := podspec.Held(pod); len(held) > 0 {
		kept.Resources = sharedRequests.get(held)
	}
	pod.Spec = kept
	pod.Status.PodIPs, pod.Status.HostIPs, pod.Status.EphemeralContainerStatuses = nil, nil, nil
	return pod, nil
}

// putMainFirst puts the status of a pod's first container first, which is the one that runs MPI. Kubelets sort them by name.
func putMainFirst(pod *corev1.Pod) {
	if len(pod.Spec.Containers) == 0 {
		return
	}
	statuses, main := pod.Status.ContainerStatuses, pod.Spec.Containers[0].Name
	if i := slices.IndexFunc(statuses, func(c corev1.ContainerStatus) bool { return c.Name == main }); i > 0 {
		status := statuses[i]
		copy(statuses[1:], statuses[:i])
		statuses[0] = status
	}
}

// requestsPool holds one copy of equal requests: the pods of a job request the same, and a list takes 600 bytes.
type requestsPool struct {
	mu    sync.Mutex
	lists map[string]*corev1.ResourceRequirements
}

var sharedRequests requestsPool

// get returns requests that equal a list. They must not be changed.
func (p *requestsPool) get(list corev1.ResourceList) *corev1.ResourceRequirements {
	const most = 1000
	text := podspec.Text(list)
	p.mu.Lock()
	defer p.mu.Unlock()
	shared, found := p.lists[text]
	if !found {
		if p.lists == nil || len(p.lists) >= most {
			p.lists = map[string]*corev1.ResourceRequirements{}
		}
		shared = &corev1.ResourceRequirements{Requests: list}
		p.lists[text] = shared
	}
	return shared
}

// startOf leaves of a specification what decides whether a pod starts. The template of an initializer is not part of a job as it is known.
func startOf(spec corev1.PodSpec) corev1.PodSpec {
	kept := corev1.PodSpec{
		NodeName: spec.NodeName, HostNetwork: spec.HostNetwork, Hostname: spec.Hostname, SchedulerName: spec.SchedulerName, NodeSelector: spec.NodeSelector,
		Affinity: spec.Affinity, Tolerations: spec.Tolerations, ResourceClaims: spec.ResourceClaims, Volumes: spec.Volumes,
	}
	for _, container := range spec.Containers {
		kept.Containers = append(kept.Containers, corev1.Container{Name: container.Name, Image: container.Image, ImagePullPolicy: container.ImagePullPolicy, Resources: container.Resources})
	}
	return kept
}

// trimNode leaves of a node what decides on which pods it takes, how large they may be, and what runs them.
func trimNode(object any) (any, error) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return object, nil
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion, Labels: node.Labels},
		Spec:       corev1.NodeSpec{Taints: node.Spec.Taints},
		Status:     corev1.NodeStatus{Allocatable: node.Status.Allocatable, NodeInfo: corev1.NodeSystemInfo{KubeletVersion: node.Status.NodeInfo.KubeletVersion, ContainerRuntimeVersion: node.Status.NodeInfo.ContainerRuntimeVersion}},
	}, nil
}

// trimSpec drops the specification of an object, such as the pod templates of a JobSet.
func trimSpec(object any) (any, error) {
	if of, ok := object.(*unstructured.Unstructured); ok {
		of.SetManagedFields(nil)
		delete(of.Object, "spec")
	}
	return object, nil
}

// trimWorkload keeps the fields of a Workload that are read (kueue.Workload).
func trimWorkload(object any) (any, error) {
	workload, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object, nil
	}
	workload.SetManagedFields(nil)
	workload.SetLabels(nil)
	if timeouts, set := workload.GetAnnotations()[mpi.AnnotationGangTimeouts]; set {
		workload.SetAnnotations(map[string]string{mpi.AnnotationGangTimeouts: timeouts})
	} else {
		workload.SetAnnotations(nil)
	}
	addRequests(workload)
	status, _ := workload.Object["status"].(map[string]any)
	admission, _ := status["admission"].(map[string]any)
	// The nodes that Kueue assigned in a topology can be thousands.
	keepInEach(admission["podSetAssignments"], "flavors", "resourceUsage")
	spec, _ := workload.Object["spec"].(map[string]any)
	keepInEach(spec["podSets"], "name", "count")
	for part, read := range map[string][]string{
		"spec":   {"queueName", "active", "priority", "podSets", "maximumExecutionTimeSeconds"},
		"status": {"conditions", "admission", "resourceRequests", "requeueState", "accumulatedPastExecutionTimeSeconds"},
	} {
		if fields, ok := workload.Object[part].(map[string]any); ok {
			maps.DeleteFunc(fields, func(name string, _ any) bool { return !slices.Contains(read, name) })
		}
	}
	return workload, nil
}

// keepInEach keeps some fields of the objects in a list.
func keepInEach(list any, names ...string) {
	objects, _ := list.([]any)
	for _, object := range objects {
		if fields, ok := object.(map[string]any); ok {
			maps.DeleteFunc(fields, func(name string, _ any) bool { return !slices.Contains(names, name) })
		}
	}
}

// addRequests adds to a Workload that waits what its pods request, unless Kueue has. Kueue writes it when it first tries to admit the
// Workload: in a queue with the strategy StrictFIFO, when it is the first one. One whose pods cannot be read is left as it is.
func addRequests(workload *unstructured.Unstructured) {
	status, _ := workload.Object["status"].(map[string]any)
	if status["admission"] != nil || status["resourceRequests"] != nil {
		return
	}
	var read struct {
		Spec struct {
			PodSets []struct {
				Name     string                 `json:"name"`
				Count    int64                  `json:"count"`
				Template corev1.PodTemplateSpec `json:"template"`
			} `json:"podSets"`
		} `json:"spec"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(workload.Object, &read); err != nil || len(read.Spec.PodSets) == 0 {
		return
	}
	requests := make([]any, len(read.Spec.PodSets))
	for i, podSet := range read.Spec.PodSets {
		sum := corev1.ResourceList{}
		podspec.Add(sum, podspec.Held(podspec.PodOf(podSet.Template)), podSet.Count)
		resources := make(map[string]any, len(sum))
		for name, quantity := range sum {
			resources[string(name)] = quantity.String()
		}
		requests[i] = map[string]any{"name": podSet.Name, "resources": resources}
	}
	if status == nil {
		status = map[string]any{}
		workload.Object["status"] = status
	}
	status["resourceRequests"] = requests
}

// trimLauncher drops the pod template of a launcher's Job.
func trimLauncher(object any) (any, error) {
	job, ok := object.(*batchv1.Job)
	if !ok {
		return object, nil
	}
	job.ManagedFields = nil
	read := []string{mpi.AnnotationTemplate, mpi.AnnotationDisrupted, mpi.AnnotationEarlierAttempts}
	maps.DeleteFunc(job.Annotations, func(key, _ string) bool { return !slices.Contains(read, key) })
	job.Spec = batchv1.JobSpec{Suspend: job.Spec.Suspend, BackoffLimit: job.Spec.BackoffLimit, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: job.Spec.Template.Spec.RestartPolicy}}}
	return job, nil
}
