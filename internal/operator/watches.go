package operator

import (
	"context"
	"fmt"
	"slices"
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
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"opendatahub.io/mpijob/internal/cluster"
	"opendatahub.io/mpijob/internal/mpi"
)

// concurrent is how many jobs are worked on at once: enough that a small job never waits for large ones, each
// of which mostly waits for the API server. Their writes share one gate (internal/cluster).
const concurrent = 32

// soon is how long news may wait that come one by one and say more together, such as the pods of a job that come up.
// Each would else be a write of its own of the job's status, of its report and of discover_hosts.sh.
const soon = time.Second

// later is how long news of pods that come up may wait at most, when they have been coming up for long.
const later = 10 * time.Second

// launcherTold is how long the Job of a launcher that has succeeded may take to be complete, which is news of its own. The
// batch Job controller takes about a second, and says before that it will be.
const launcherTold = 2 * time.Second

// register starts passes over jobs whenever they or their objects change in what a pass reads.
func (r *reconciler) register(manager manager.Manager) error {
	base := ownWritesSoon()
	err := builder.ControllerManagedBy(manager).
		Named("mpijob").
		For(r.kind.New(), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&corev1.Pod{}, r.podEvents(), builder.WithPredicates(updated(podChanged))).
		Watches(&batchv1.Job{}, launcherEvents(), builder.WithPredicates(updated(launcherChanged))).
		Watches(&corev1.Service{}, base, builder.WithPredicates(updated(changed))).
		Watches(&corev1.ConfigMap{}, base, builder.WithPredicates(updated(changed))).
		WatchesMetadata(&corev1.Secret{}, base, builder.WithPredicates(updated(changed))).
		Watches(&networkingv1.NetworkPolicy{}, base, builder.WithPredicates(updated(changed))).
		WatchesMetadata(&corev1.Namespace{}, namespaceEvents(r.client, jobOf)).
		Watches(&corev1.ResourceQuota{}, r.quotas.events(r.kind.Name(), r.inNamespace)).
		WatchesRawSource(r.queues.source(r.kind.Name())).
		WatchesRawSource(r.line.source()).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: concurrent,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](50*time.Millisecond, time.Minute),
		}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("watch %ss: %w", r.kind.Name(), err)
	}
	return nil
}

// inNamespace asks for a pass over each job of a namespace.
func (r *reconciler) inNamespace(ctx context.Context, namespace string) ([]reconcile.Request, error) {
	gvk, err := apiutil.GVKForObject(r.kind.New(), r.client.Scheme())
	if err != nil {
		return nil, fmt.Errorf("list %ss: %w", r.kind.Name(), err)
	}
	object, err := r.client.Scheme().New(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err != nil {
		return nil, fmt.Errorf("list %ss: %w", r.kind.Name(), err)
	}
	list := object.(client.ObjectList)
	if err := r.client.List(ctx, list, client.InNamespace(namespace), client.DisableReadYourWritesConsistency); err != nil {
		return nil, fmt.Errorf("list %ss of namespace %s: %w", r.kind.Name(), namespace, err)
	}
	var requests []reconcile.Request
	err = apimeta.EachListItem(list, func(item runtime.Object) error {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(item.(client.Object))})
		return nil
	})
	return requests, err
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// ownWritesSoon has a pass follow at once when an object is gone, and soon when it came or was changed: nearly always
// that was the operator itself, and there is nothing to do. The queue keeps the earliest time it was given, so that
// a pass never waits longer than soon, however many events follow.
func ownWritesSoon() handler.Funcs {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { pass(q, soon, e.Object) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { pass(q, soon, e.ObjectOld, e.ObjectNew) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { pass(q, 0, e.Object) },
	}
}

// launcherEvents are ownWritesSoon, but for changes: these come from the batch Job controller.
func launcherEvents() handler.Funcs {
	events := ownWritesSoon()
	events.UpdateFunc = func(_ context.Context, e event.UpdateEvent, q queue) {
		wait := time.Duration(0)
		if launcherSucceeds(e) {
			wait = launcherTold
		}
		pass(q, wait, e.ObjectOld, e.ObjectNew)
	}
	return events
}

// launcherSucceeds tells of a launcher's Job that has succeeded and is not complete yet.
func launcherSucceeds(e event.UpdateEvent) bool {
	job, ok := e.ObjectNew.(*batchv1.Job)
	if !ok || job.DeletionTimestamp != nil {
		return false
	}
	succeeded := false
	for _, c := range job.Status.Conditions {
		if c.Status != corev1.ConditionTrue {
			continue
		}
		switch c.Type {
		case batchv1.JobComplete, batchv1.JobFailed:
			return false
		case batchv1.JobSuccessCriteriaMet:
			succeeded = true
		}
	}
	return succeeded
}

// podEvents has a pass follow at once, unless a pod is on its way up and others of its job are too, or it is a
// launcher's that has succeeded.
func (r *reconciler) podEvents() handler.Funcs {
	events := launcherEvents()
	events.UpdateFunc = func(ctx context.Context, e event.UpdateEvent, q queue) {
		wait := time.Duration(0)
		switch {
		case r.oneOfManyStarting(ctx, e):
			wait = soon
			if !hindered(e.ObjectNew) {
				wait = comingUp(r.clock.Since(e.ObjectNew.GetCreationTimestamp().Time))
			}
		case launcherSucceeded(e):
			wait = launcherTold
		}
		pass(q, wait, e.ObjectOld, e.ObjectNew)
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

// comingUp is how long the news that one of many pods has come up may wait, by the pod's age. Half of it: so that people
// learn early that there is progress, and pods that take minutes do not cost a write a second.
func comingUp(age time.Duration) time.Duration { return min(max(soon, age/2), later) }

// hindered tells of a pod that does not come up as it should, which people want to know soon.
func hindered(object client.Object) bool {
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
	if !ok || !also || !cluster.Starting(before) || after.DeletionTimestamp != nil || mpi.HasEnded(after) {
		return false
	}
	for _, job := range jobOf(after) {
		if more, err := r.cluster.AnyStarting(ctx, job.NamespacedName); err == nil && more {
			return true
		}
	}
	return false
}

func launcherSucceeded(e event.UpdateEvent) bool {
	after, ok := e.ObjectNew.(*corev1.Pod)
	return ok && after.Status.Phase == corev1.PodSucceeded && after.DeletionTimestamp == nil && after.Labels[batchv1.JobNameLabel] != ""
}

// pass asks for a pass over the job of an object, or over both where its label was changed.
func pass(q queue, after time.Duration, objects ...client.Object) {
	for _, object := range objects {
		for _, job := range jobOf(object) {
			if after == 0 {
				q.Add(job)
			} else {
				q.AddAfter(job, after)
			}
		}
	}
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
		mpi.IsReady(before) != mpi.IsReady(after) || scheduling(was) != scheduling(is) ||
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
		if !equality.Semantic.DeepEqual(was.Waiting, is.Waiting) || (was.Terminated == nil) != (is.Terminated == nil) {
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
