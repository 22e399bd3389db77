package operator

import (
	"context"
	"fmt"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"opendatahub.io/mpijob/internal/cluster"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/plan"
)

// trainJobs keeps the records of TrainJobs, those that Kubeflow Trainer runs, and isolates those of MPI. It never writes
// anything of theirs.
type trainJobs struct {
	// cached reads TrainJobs, and what JobSets have made, from a cache of their own: the operator's other one holds
	// what MPIJobs have made. live reads what is read once for a job.
	cached, live client.Reader
	clock        clock.PassiveClock
	reporter     *reporter
	queues       *queues
	gangs        *gangs
	quotas       *quotas
	// cluster writes NetworkPolicies.
	cluster  *cluster.Cluster
	settings plan.Settings

	mu sync.Mutex
	// runtimes are those that jobs run with, by the job's UID; they are dropped with the job.
	runtimes map[types.NamespacedName]usedRuntime
}

// usedRuntime is the runtime that a job of a UID runs with.
type usedRuntime struct {
	job     types.UID
	runtime trainjob.Runtime
}

// addTrainJobs has TrainJobs isolated and their records kept from when Kubeflow Trainer is there, which may be later.
func addTrainJobs(m manager.Manager, config *rest.Config, options Options, t *trainJobs) error {
	err := m.Add(whenInstalled(m, "Kubeflow Trainer", trainerKinds, func(ctx context.Context) error {
		return t.start(ctx, m, config, options)
	}))
	if err != nil {
		return fmt.Errorf("add records of TrainJobs: %w", err)
	}
	return nil
}

// trainerKinds are those without which there is no Kubeflow Trainer.
var trainerKinds = []schema.GroupVersionKind{trainjob.GroupVersion.WithKind(trainjob.Kind), trainjob.JobSetKind}

// hasTrainer tells whether Kubeflow Trainer is installed.
func hasTrainer(ctx context.Context, mapper meta.RESTMapper) bool {
	return installed(ctx, mapper, "Kubeflow Trainer", trainerKinds)
}

// start watches TrainJobs and what is made of them.
func (t *trainJobs) start(ctx context.Context, m manager.Manager, config *rest.Config, options Options) error {
	masker, err := logs.NewMasker(options.MaskPatterns)
	if err != nil {
		return fmt.Errorf("patterns to mask: %w", err)
	}
	theirs, err := cacheBeside(m, config, cluster.JobSetCacheOptions(masker, trainjob.LabelJobSet, trainjob.JobSetKind), options)
	if err != nil {
		return fmt.Errorf("read TrainJobs: %w", err)
	}
	if err := cluster.AddJobSetIndexes(ctx, theirs.GetFieldIndexer(), trainjob.LabelJobSet); err != nil {
		return err
	}
	if err := m.Add(theirs); err != nil {
		return fmt.Errorf("add cache of TrainJobs: %w", err)
	}
	t.cached = theirs.GetClient()
	jobSet := &unstructured.Unstructured{}
	jobSet.SetGroupVersionKind(trainjob.JobSetKind)
	from := theirs.GetCache()
	err = builder.ControllerManagedBy(m).
		Named("trainjob").
		WatchesRawSource(source.Kind[client.Object](from, trainjob.New(), ofTrainJob(sameName, 0), updated(trainJobChanged))).
		WatchesRawSource(source.Kind[client.Object](from, jobSet, ofTrainJob(sameName, 0), updated(leavingOnly))).
		WatchesRawSource(source.Kind[client.Object](from, &batchv1.Job{}, ofTrainJob(byJobSet, soon), updated(launcherChanged))).
		WatchesRawSource(source.Kind[client.Object](from, &corev1.Pod{}, ofTrainJob(byJobSet, soon), updated(podChanged))).
		WatchesRawSource(t.queues.source(trainjob.Kind)).
		Watches(&corev1.ResourceQuota{}, t.quotas.events(trainjob.Kind, t.inNamespace)).
		Watches(&networkingv1.NetworkPolicy{}, ofTrainJob(isolated, soon), builder.WithPredicates(updated(changed))).
		WatchesMetadata(&corev1.Namespace{}, namespaceEvents(m.GetClient(), requestFor(isolated))).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: concurrent,
			SkipNameValidation:      new(true),
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](50*time.Millisecond, time.Minute),
		}).
		Complete(t)
	if err != nil {
		return fmt.Errorf("watch TrainJobs: %w", err)
	}
	return nil
}

// Reconcile brings one TrainJob's NetworkPolicy and record up to date.
func (t *trainJobs) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	job, err := trainjob.LoadJob(ctx, t.cached, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	if job == nil {
		t.forget(request.NamespacedName)
		t.quotas.forgetJob(trainjob.Kind, request.NamespacedName)
		return again(nil, t.reporter.close(ctx, trainjob.Kind, request.NamespacedName, ""))
	}
	if job.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	jobSet, jobs, pods, err := t.observe(ctx, *job)
	if err != nil {
		return reconcile.Result{}, err
	}
	used, err := t.runtimeOf(ctx, *job, jobSet != nil)
	if err != nil {
		return reconcile.Result{}, err
	}
	converted := trainjob.Convert(*job, used)
	if converted.ManagedBy != "" {
		return reconcile.Result{}, nil
	}
	var made client.Object
	if jobSet != nil {
		made = jobSet
	}
	seen := trainjob.Observe(used, made, jobs, pods, t.clock.Now())
	if seen.Queue, err = t.queues.of(ctx, converted, seen.Now); err != nil {
		return reconcile.Result{}, err
	}
	seen.Shortages = t.quotas.of(ctx, converted, seen)
	// The webhook tells it when the job is created, unless no operator answered then.
	_, wrong := trainjob.Connections(*job, used)
	if err := t.gangs.follow(ctx, converted, &seen); err != nil {
		return reconcile.Result{}, err
	}
	out := trainjob.Follow(converted, seen, jobSet != nil, wrong)
	refusals, err := t.isolate(ctx, converted, &seen, out)
	if err != nil {
		return again(err, nil)
	}
	next, err := t.reporter.tell(ctx, converted, seen, refusals, out)
	if err != nil {
		return again(nil, err)
	}
	if len(refusals) > 0 {
		next = sooner(next, askAgain)
	}
	return reconcile.Result{RequeueAfter: next}, nil
}

// inNamespace asks for a pass over each TrainJob of a namespace.
func (t *trainJobs) inNamespace(ctx context.Context, namespace string) ([]reconcile.Request, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(trainjob.GroupVersion.WithKind(trainjob.Kind + "List"))
	if err := t.cached.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list TrainJobs of namespace %s: %w", namespace, err)
	}
	requests := make([]reconcile.Request, len(list.Items))
	for i := range list.Items {
		requests[i].NamespacedName = client.ObjectKeyFromObject(&list.Items[i])
	}
	return requests, nil
}

// isolate gives a job the NetworkPolicy that it is to have, or takes it away. It returns what the API server refuses.
func (t *trainJobs) isolate(ctx context.Context, job mpi.Job, seen *mpi.Observed, out mpi.Outcome) ([]mpi.Refusal, error) {
	if err := t.cluster.ObserveIsolation(ctx, job, seen); err != nil {
		return nil, err
	}
	return t.cluster.Apply(ctx, job, plan.Isolate(job, *seen, out, t.settings))
}

// observe reads what there is of a TrainJob: its JobSet, nil where there is none, and all that carries its label.
func (t *trainJobs) observe(ctx context.Context, job trainjob.TrainJob) (*unstructured.Unstructured, []*batchv1.Job, []*corev1.Pod, error) {
	jobSet := &unstructured.Unstructured{}
	jobSet.SetGroupVersionKind(trainjob.JobSetKind)
	key := types.NamespacedName{Namespace: job.Namespace, Name: job.Name}
	switch err := t.cached.Get(ctx, key, jobSet); {
	case client.IgnoreNotFound(err) != nil:
		return nil, nil, nil, fmt.Errorf("read JobSet %s: %w", key, err)
	case err != nil, !metav1.IsControlledBy(jobSet, &job):
		return nil, nil, nil, nil
	}
	var jobs batchv1.JobList
	var pods corev1.PodList
	for _, list := range []client.ObjectList{&jobs, &pods} {
		if err := t.cached.List(ctx, list, client.InNamespace(job.Namespace), client.MatchingFields{cluster.ByJobSet: job.Name}); err != nil {
			return nil, nil, nil, fmt.Errorf("list %T of TrainJob %s: %w", list, key, err)
		}
	}
	return jobSet, pointers(jobs.Items), pointers(pods.Items), nil
}

func pointers[T any](items []T) []*T {
	all := make([]*T, len(items))
	for i := range items {
		all[i] = &items[i]
	}
	return all
}

// runtimeOf is the runtime that a job runs with. It is read until the job has a JobSet, and kept from then on: what is
// changed in it later is not the job's.
func (t *trainJobs) runtimeOf(ctx context.Context, job trainjob.TrainJob, made bool) (trainjob.Runtime, error) {
	key := types.NamespacedName{Namespace: job.Namespace, Name: job.Name}
	t.mu.Lock()
	known, found := t.runtimes[key]
	t.mu.Unlock()
	if found && known.job == job.UID {
		return known.runtime, nil
	}
	used, err := trainjob.RuntimeOf(ctx, t.live, job)
	switch {
	case err != nil:
		return trainjob.Runtime{}, err
	case used == nil:
		// Trainer refuses jobs that name none; this one's was deleted since.
		used = &trainjob.Runtime{}
	}
	if made {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.runtimes[key] = usedRuntime{job: job.UID, runtime: *used}
	}
	return *used, nil
}

func (t *trainJobs) forget(job types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.runtimes, job)
}

// ofTrainJob asks for a pass over the TrainJob of an object: after a while where more of its kind are likely to follow,
// but at once where a pod has ended: it may be removed with its log in a moment.
func ofTrainJob(name func(client.Object) string, wait time.Duration) handler.EventHandler {
	request := requestFor(name)
	add := func(q queue, object client.Object, wait time.Duration) {
		for _, job := range request(object) {
			q.AddAfter(job, wait)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { add(q, e.Object, wait) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			if pod, ok := e.ObjectNew.(*corev1.Pod); ok && mpi.HasEnded(pod) {
				add(q, pod, 0)
				return
			}
			add(q, e.ObjectNew, wait)
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { add(q, e.Object, wait) },
	}
}

// requestFor asks for a pass over the TrainJob of an object, if it is one's.
func requestFor(name func(client.Object) string) func(client.Object) []reconcile.Request {
	return func(object client.Object) []reconcile.Request {
		if name := name(object); name != "" {
			return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: name}}}
		}
		return nil
	}
}

// isolated is the TrainJob's name for its NetworkPolicy; those of MPIJobs have none.
func isolated(object client.Object) string {
	if labels := object.GetLabels(); labels[mpi.LabelReportKind] == trainjob.Kind {
		return labels[mpi.LabelReportJob]
	}
	return ""
}

// sameName is the TrainJob's name for itself and its JobSet.
func sameName(object client.Object) string { return object.GetName() }

// byJobSet is the TrainJob's name for what its JobSet has made.
func byJobSet(object client.Object) string { return object.GetLabels()[trainjob.LabelJobSet] }

// trainJobChanged compares what is read of a TrainJob. Trainer's counts in its status are not.
func trainJobChanged(before, after *unstructured.Unstructured) bool {
	was, _, _ := unstructured.NestedSlice(before.Object, "status", "conditions")
	is, _, _ := unstructured.NestedSlice(after.Object, "status", "conditions")
	return leaving(before, after) || before.GetGeneration() != after.GetGeneration() || !equality.Semantic.DeepEqual(was, is)
}

// leavingOnly takes from a JobSet no more than that it comes and goes.
func leavingOnly(before, after client.Object) bool { return leaving(before, after) }
