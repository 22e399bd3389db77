package controller

import (
	"context"
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/cluster"
	"opendatahub.io/mpijob/internal/kinds"
	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/podstatus"
)

// watchRunner reconciles jobs that another controller runs, from when that is installed, which may be later.
func (r *reconciler) watchRunner(m manager.Manager, config *rest.Config, masker logs.Masker, namespaces []string, decisions source.Source) error {
	runner := r.kind.Runner()
	err := m.Add(whenInstalled(m, runner.Name, runner.Requires, func(ctx context.Context) error {
		return r.startRunner(ctx, m, config, masker, namespaces, decisions)
	}))
	if err != nil {
		return fmt.Errorf("add %ss: %w", r.kind.Name(), err)
	}
	return nil
}

// startRunner watches the jobs that another controller runs, and what it creates for them. decisions are those of the embedded
// scheduler. These objects have a cache of their own: the operator's other cache contains its own objects.
func (r *reconciler) startRunner(ctx context.Context, m manager.Manager, config *rest.Config, masker logs.Masker, namespaces []string, decisions source.Source) error {
	name, runner := r.kind.Name(), r.kind.Runner()
	runnerCache, err := cacheBeside(m, config, cluster.RunnerCacheOptions(masker, runner.Label, runner.Creates), namespaces)
	if err != nil {
		return fmt.Errorf("read %ss: %w", name, err)
	}
	if err := cluster.AddLabelIndexes(ctx, runnerCache.GetFieldIndexer(), runner.Label); err != nil {
		return fmt.Errorf("read %ss: %w", name, err)
	}
	if err := m.Add(runnerCache); err != nil {
		return fmt.Errorf("add cache of %ss: %w", name, err)
	}
	r.readers = kinds.Readers{Cached: runnerCache.GetClient(), Live: m.GetAPIReader()}
	created := &unstructured.Unstructured{}
	created.SetGroupVersionKind(runner.Creates)
	jobChanged := func(before, after *unstructured.Unstructured) bool {
		return leaving(before, after) || runner.Changed(before, after)
	}
	gateChanged := func(before, after client.Object) bool {
		return leaving(before, after) || before.GetAnnotations()[mpi.AnnotationGate] != after.GetAnnotations()[mpi.AnnotationGate]
	}
	from, options := runnerCache.GetCache(), controllerOptions()
	// A manager counts the controllers of a name, and this one may be added when it runs.
	options.SkipNameValidation = new(true)
	b := builder.ControllerManagedBy(m).
		Named(strings.ToLower(name)).
		WatchesRawSource(source.Kind(from, r.kind.New(), namedEvents(client.Object.GetName, 0), updated(jobChanged))).
		WatchesRawSource(source.Kind[client.Object](from, created, namedEvents(client.Object.GetName, 0), updated(gateChanged))).
		WatchesRawSource(source.Kind[client.Object](from, &batchv1.Job{}, namedEvents(byLabel(runner.Label), batchDelay), updated(launcherChanged))).
		WatchesRawSource(source.Kind[client.Object](from, &corev1.Pod{}, namedEvents(byLabel(runner.Label), batchDelay), updated(podChanged))).
		WatchesRawSource(r.queues.source(name)).
		WatchesRawSource(decisions).
		Watches(&corev1.ResourceQuota{}, r.quotas.eventHandler(name, r.inNamespace)).
		Watches(&networkingv1.NetworkPolicy{}, namedEvents(r.isolatedJob, batchDelay), builder.WithPredicates(updated(changed))).
		WatchesMetadata(&corev1.Namespace{}, namespaceEvents(m.GetClient(), requestFor(r.isolatedJob))).
		WithOptions(options)
	if err := r.reporter.WatchPods(ctx, from); err != nil {
		return fmt.Errorf("read %ss: %w", name, err)
	}
	if r.reporter != nil {
		b = b.Watches(&v1alpha1.JobReport{}, reportEvents(name))
	}
	if err := b.Complete(r); err != nil {
		return fmt.Errorf("watch %ss: %w", name, err)
	}
	return nil
}

// namedEvents enqueues the job of an object by its name: after a delay if more objects of its kind are likely to follow,
// but at once if a pod has ended, because it may be deleted with its log in a moment.
func namedEvents(name func(client.Object) string, delay time.Duration) handler.EventHandler {
	request := requestFor(name)
	add := func(q queue, object client.Object, delay time.Duration) {
		for _, job := range request(object) {
			enqueue(q, job, delay)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { add(q, e.Object, delay) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			if pod, ok := e.ObjectNew.(*corev1.Pod); ok && podstatus.HasEnded(pod) {
				add(q, pod, 0)
				return
			}
			add(q, e.ObjectNew, delay)
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { add(q, e.Object, delay) },
	}
}

// requestFor returns a function that returns the request for the job of an object, or nothing if name returns "".
func requestFor(name func(client.Object) string) func(client.Object) []reconcile.Request {
	return func(object client.Object) []reconcile.Request {
		if name := name(object); name != "" {
			return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: name}}}
		}
		return nil
	}
}

// isolatedJob returns the name of the job that owns a NetworkPolicy, or "" if it is of another kind.
func (r *reconciler) isolatedJob(object client.Object) string {
	if labels := object.GetLabels(); labels[mpi.LabelReportKind] == r.kind.Name() {
		return labels[mpi.LabelReportJob]
	}
	return ""
}

// byLabel returns a function that returns a label of an object.
func byLabel(label string) func(client.Object) string {
	return func(object client.Object) string { return object.GetLabels()[label] }
}
