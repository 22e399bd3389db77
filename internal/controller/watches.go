package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/cluster"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/podstatus"
)

// concurrent is how many jobs are worked on at once: enough that a small job never waits for large ones, each
// of which mostly waits for the API server. Their writes share one gate (internal/cluster).
const concurrent = 32

// batchDelay is how long events are batched that follow one another, such as those of the pods of a job that start. Each
// would otherwise cause a write of the job's status, its report and discover_hosts.sh.
const batchDelay = time.Second

// maxBatchDelay is the longest batch of events of pods, for pods that have been starting for long, and maxBusyDelay while writes wait for one
// another: each tells the API server of all of the job's pods.
const (
	maxBatchDelay = 10 * time.Second
	maxBusyDelay  = 30 * time.Second
)

// priorityBatched is the priority of passes that wait for a batch of events to be complete, or for time to pass: they make room for jobs that
// are new, have changed or end (0), and for those of which the embedded scheduler has decided.
const priorityBatched = -10

// watch starts a reconcile whenever a job that the operator runs changes, or one of its objects, in a field that a
// reconcile reads. decisions are those of the embedded scheduler.
func (r *reconciler) watch(m manager.Manager, decisions source.Source) error {
	base := objectEvents()
	b := builder.ControllerManagedBy(m).
		Named(strings.ToLower(r.kind.Name())).
		For(r.kind.New(), builder.WithPredicates(updated(r.jobChanged))).
		Watches(&corev1.Pod{}, r.podEvents(), builder.WithPredicates(updated(podChanged))).
		Watches(&batchv1.Job{}, launcherEvents(), builder.WithPredicates(updated(launcherChanged))).
		Watches(&corev1.Service{}, base, builder.WithPredicates(updated(changed))).
		Watches(&corev1.ConfigMap{}, base, builder.WithPredicates(updated(changed))).
		WatchesMetadata(&corev1.Secret{}, base, builder.WithPredicates(updated(changed))).
		Watches(&networkingv1.NetworkPolicy{}, base, builder.WithPredicates(updated(changed))).
		WatchesMetadata(&corev1.Namespace{}, namespaceEvents(r.client, jobOf)).
		Watches(&corev1.ResourceQuota{}, r.quotas.eventHandler(r.kind.Name(), r.inNamespace)).
		WatchesRawSource(r.queues.source(r.kind.Name())).
		WatchesRawSource(decisions).
		WithOptions(controllerOptions())
	if r.reporter != nil {
		b = b.Watches(&v1alpha1.JobReport{}, reportEvents(r.kind.Name()))
	}
	if err := b.Complete(r); err != nil {
		return fmt.Errorf("watch %ss: %w", r.kind.Name(), err)
	}
	return nil
}

// jobChanged reports whether a user has changed a job of the operator's own kind.
func (r *reconciler) jobChanged(before, after client.Object) bool {
	return before.GetGeneration() != after.GetGeneration() || leaving(before, after) ||
		!mpi.SameAnnotations(r.kind.Name(), before.GetAnnotations(), after.GetAnnotations())
}

func controllerOptions() controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: concurrent,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](50*time.Millisecond, time.Minute),
	}
}

// inNamespace returns a request for each job of a namespace.
func (r *reconciler) inNamespace(ctx context.Context, namespace string) ([]reconcile.Request, error) {
	list := r.kind.NewList()
	if err := r.readers.Cached.List(ctx, list, client.InNamespace(namespace), client.DisableReadYourWritesConsistency); err != nil {
		return nil, fmt.Errorf("list %ss of namespace %s: %w", r.kind.Name(), namespace, err)
	}
	var requests []reconcile.Request
	err := apimeta.EachListItem(list, func(item runtime.Object) error {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(item.(client.Object))})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list %ss of namespace %s: %w", r.kind.Name(), namespace, err)
	}
	return requests, nil
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// objectEvents has a pass follow at once when an object is gone, and soon when it came or was changed: nearly always
// that was the operator itself, and there is nothing to do. The queue keeps the earliest time it was given, so that
// a pass never waits longer than soon, however many events follow.
func objectEvents() handler.Funcs {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { enqueueJobs(q, batchDelay, e.Object) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			enqueueJobs(q, batchDelay, e.ObjectOld, e.ObjectNew)
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { enqueueJobs(q, 0, e.Object) },
	}
}

// reportEvents reconciles a job of a kind whose report was deleted: it is written again, also if the job has ended.
func reportEvents(kind string) handler.Funcs {
	return handler.Funcs{DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
		report, is := e.Object.(*v1alpha1.JobReport)
		if is && report.Spec.JobRef.Kind == kind {
			q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: report.Namespace, Name: report.Spec.JobRef.Name}})
		}
	}}
}

// launcherEvents are objectEvents, except that changes are reconciled at once: they come from the batch Job controller.
func launcherEvents() handler.Funcs {
	events := objectEvents()
	events.UpdateFunc = func(_ context.Context, e event.UpdateEvent, q queue) { enqueueJobs(q, 0, e.ObjectOld, e.ObjectNew) }
	return events
}

// podEvents reconciles at once, unless a pod is starting and others of its job are too.
func (r *reconciler) podEvents() handler.Funcs {
	events := launcherEvents()
	events.UpdateFunc = func(ctx context.Context, e event.UpdateEvent, q queue) {
		wait := time.Duration(0)
		if r.oneOfManyStarting(ctx, e) {
			wait = batchDelay
			if !isStuck(e.ObjectNew) {
				wait = batchDelayFor(r.clock.Since(e.ObjectNew.GetCreationTimestamp().Time), r.cluster.WritesWait())
			}
		}
		enqueueJobs(q, wait, e.ObjectOld, e.ObjectNew)
	}
	return events
}

// namespaceEvents have a pass follow over all isolated jobs of a namespace that lets pods connect elsewhere from now on.
func namespaceEvents(reader client.Reader, jobOf func(client.Object) []reconcile.Request) handler.Funcs {
	return handler.Funcs{UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
		if e.ObjectOld.GetAnnotations()[mpi.AnnotationAllowEgress] == e.ObjectNew.GetAnnotations()[mpi.AnnotationAllowEgress] {
			return
		}
		var policies networkingv1.NetworkPolicyList
		if err := reader.List(ctx, &policies, client.InNamespace(e.ObjectNew.GetName()), client.DisableReadYourWritesConsistency); err != nil {
			log.FromContext(ctx).Error(err, "jobs do not learn what their namespace allows from now on; touch its annotation again", "namespace", e.ObjectNew.GetName())
		}
		for i := range policies.Items {
			for _, job := range jobOf(&policies.Items[i]) {
				q.Add(job)
			}
		}
	}}
}

// batchDelayFor returns how long events are batched when one of many pods of an age has started. It is half of the age, so
// that progress is reported early, and pods that take minutes do not cause a write a second.
func batchDelayFor(age time.Duration, writesWait bool) time.Duration {
	longest := maxBatchDelay
	if writesWait {
		longest = maxBusyDelay
	}
	return min(max(batchDelay, age/2), longest)
}

// isStuck reports whether a pod does not start as it should, which is reported early.
func isStuck(object client.Object) bool {
	pod, ok := object.(*corev1.Pod)
	if !ok || scheduling(&pod.Status) != "" {
		return ok
	}
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if w := c.State.Waiting; w != nil && w.Reason != "" && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" {
			return true
		}
	}
	return false
}

func (r *reconciler) oneOfManyStarting(ctx context.Context, e event.UpdateEvent) bool {
	before, ok := e.ObjectOld.(*corev1.Pod)
	after, also := e.ObjectNew.(*corev1.Pod)
	if !ok || !also || !cluster.Starting(before) || after.DeletionTimestamp != nil || podstatus.HasEnded(after) {
		return false
	}
	for _, job := range jobOf(after) {
		if more, err := r.cluster.AnyStarting(ctx, job.NamespacedName); err == nil && more {
			return true
		}
	}
	return false
}

// enqueueJobs enqueues the job of an object, or both jobs if its label was changed.
func enqueueJobs(q queue, after time.Duration, objects ...client.Object) {
	for _, object := range objects {
		for _, job := range jobOf(object) {
			enqueue(q, job, after)
		}
	}
}

// enqueue enqueues a job at once, or after a time, and then behind those that are due at once.
func enqueue(q queue, job reconcile.Request, after time.Duration) {
	ordered, is := q.(priorityqueue.PriorityQueue[reconcile.Request])
	if after == 0 || !is {
		q.AddAfter(job, after)
		return
	}
	ordered.AddWithOpts(priorityqueue.AddOpts{After: after, Priority: new(priorityBatched)}, job)
}

// jobOf finds the job that an object belongs to by its label. The owner would do for the job's own objects, but
// not for a launcher's pod, nor for the object of an earlier job whose going makes room for this one's.
func jobOf(object client.Object) []reconcile.Request {
	name := object.GetLabels()[mpi.LabelJob]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: name}}}
}

// updated lets through every creation and deletion, and those updates that change something that is read.
func updated[T client.Object](differs func(before, after T) bool) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(T)
		after, also := e.ObjectNew.(T)
		return !ok || !also || differs(before, after)
	}}
}

func changed(before, after client.Object) bool {
	return before.GetResourceVersion() != after.GetResourceVersion()
}

func leaving(before, after metav1.Object) bool {
	return before.GetDeletionTimestamp().IsZero() != after.GetDeletionTimestamp().IsZero()
}

// podChanged compares what Judge and the plan read of a pod. Addresses, start times and probe times are not.
func podChanged(before, after *corev1.Pod) bool {
	was, is := &before.Status, &after.Status
	return leaving(before, after) || was.Phase != is.Phase || was.Reason != is.Reason ||
		podstatus.IsReady(before) != podstatus.IsReady(after) || scheduling(was) != scheduling(is) ||
		!sameContainers(was.InitContainerStatuses, is.InitContainerStatuses) ||
		!sameContainers(was.ContainerStatuses, is.ContainerStatuses)
}

// scheduling is the scheduler's word on a pod that it finds no node for.
func scheduling(status *corev1.PodStatus) string {
	for _, c := range status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Reason + c.Message
		}
	}
	return ""
}

func sameContainers(before, after []corev1.ContainerStatus) bool {
	if len(before) != len(after) {
		return false
	}
	for i := range before {
		was, is := before[i].State, after[i].State
		if !equality.Semantic.DeepEqual(was.Waiting, is.Waiting) || (was.Terminated == nil) != (is.Terminated == nil) || before[i].RestartCount != after[i].RestartCount {
			return false
		}
	}
	return true
}

// launcherChanged compares what Judge and the plan read of a launcher's Job. How many of its pods are active and ready
// they take from the pods.
func launcherChanged(before, after *batchv1.Job) bool {
	was, is := &before.Status, &after.Status
	return leaving(before, after) || was.Succeeded != is.Succeeded || was.Failed != is.Failed ||
		!equality.Semantic.DeepEqual(was.Conditions, is.Conditions) || !equality.Semantic.DeepEqual(was.CompletionTime, is.CompletionTime) ||
		!equality.Semantic.DeepEqual(before.Spec.Suspend, after.Spec.Suspend)
}
