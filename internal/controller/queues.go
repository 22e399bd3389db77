package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"opendatahub.io/mpijob/internal/cluster"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/kinds"
	"opendatahub.io/mpijob/internal/kueue"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/waiting"
)

// queues reads the Workloads of jobs, from when Kueue is installed.
type queues struct {
	// client writes Workloads.
	client client.Client
	// workloads reads Workloads from a cache; it is there once filled is closed.
	workloads client.Reader
	filled    chan struct{}
	// known is set if Kueue was installed when the operator started: jobs in queues then wait until filled or overdue is closed, so
	// that none is judged before its Workload is read.
	known   bool
	overdue chan struct{}
	// changes are objects of Workloads that changed, by the kind of their job.
	changes   map[string]chan event.GenericEvent
	positions *positions
	// starts are when the jobs in queues are expected to start; nil estimates nothing.
	starts *queueStarts
	// priorities are Kueue's priority classes, and without has since when a job has no Workload.
	priorities *priorities
	without    *jobTimes
	// unfit has since when a job does not fit although it should, because its pods request nothing.
	unfit *jobTimes
}

// addQueues reads the Workloads of jobs of some kinds from when Kueue is installed, which may be later.
func addQueues(ctx context.Context, m manager.Manager, config *rest.Config, namespaces []string, jobKinds []kinds.Kind, describeRun func(mpi.ID) waiting.Job) (*queues, error) {
	workloadKinds := []schema.GroupVersionKind{kueue.WorkloadKind}
	q := &queues{
		client: m.GetClient(), changes: map[string]chan event.GenericEvent{}, filled: make(chan struct{}), overdue: make(chan struct{}),
		known: installed(ctx, m.GetRESTMapper(), "Kueue", workloadKinds),
	}
	for _, kind := range jobKinds {
		q.changes[kind.Name()] = make(chan event.GenericEvent, 1024)
	}
	core, err := typedcore.NewForConfigAndClient(config, m.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("set up asking Kueue for positions: %w", err)
	}
	q.positions, q.priorities, q.without, q.unfit = newPositions(core.RESTClient()), &priorities{live: m.GetAPIReader()}, &jobTimes{}, &jobTimes{}
	q.starts = &queueStarts{
		workloads: q.all, live: m.GetAPIReader(), namespaces: namespaces, describe: describeRun, clock: time.Now,
		isJob: func(kind string) bool { return q.changes[kind] != nil },
	}
	err = m.Add(whenInstalled(m, "Kueue", workloadKinds, func(ctx context.Context) error {
		time.AfterFunc(cacheTimeout, func() { close(q.overdue) })
		return q.start(ctx, m, config, namespaces)
	}))
	if err != nil {
		return nil, fmt.Errorf("add reading of Kueue's Workloads: %w", err)
	}
	return q, nil
}

func (q *queues) start(ctx context.Context, m manager.Manager, config *rest.Config, namespaces []string) error {
	reader, err := startCache(ctx, m, config, kueue.WorkloadKind, cluster.WorkloadCacheOptions(kueue.WorkloadKind), namespaces, q.enqueue)
	if reader == nil || err != nil {
		return err
	}
	q.workloads = reader
	close(q.filled)
	return nil
}

// isReady reports whether Workloads can be read. If Kueue was installed when the operator started, it waits until their cache is
// filled, but no longer than cacheTimeout after the start.
func (q *queues) isReady(ctx context.Context) bool {
	if q.known {
		select {
		case <-q.filled:
		case <-q.overdue:
		case <-ctx.Done():
		}
	}
	select {
	case <-q.filled:
		return true
	default:
		return false
	}
}

// enqueue passes on that a job's Workload has changed.
func (q *queues) enqueue(ctx context.Context, object any) {
	workload, ok := object.(*unstructured.Unstructured)
	if !ok {
		return
	}
	owner := metav1.GetControllerOfNoCopy(workload)
	if owner == nil || q.changes[owner.Kind] == nil {
		return
	}
	job := &metav1.PartialObjectMetadata{}
	job.Namespace, job.Name = workload.GetNamespace(), owner.Name
	select {
	case q.changes[owner.Kind] <- event.GenericEvent{Object: job}:
	case <-ctx.Done():
	}
}

// source has a pass follow over jobs of a kind whose Workloads change.
func (q *queues) source(kind string) source.Source {
	return source.Channel(q.changes[kind], handler.Funcs{
		GenericFunc: func(_ context.Context, e event.GenericEvent, into queue) {
			into.AddAfter(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(e.Object)}, batchDelay)
		},
	})
}

// observe returns the Workload of a job and the state of its queue; nil for a job without a queue, and without Kueue.
func (q *queues) observe(ctx context.Context, job mpi.Job, now time.Time) (*kueue.Workload, *jobstate.QueueState, error) {
	if job.Queue == "" || job.Recorded.Finish != nil {
		return nil, nil, nil
	}
	switch {
	case q.isReady(ctx):
	case q.known:
		return nil, &jobstate.QueueState{Backend: kueue.Kueue, Name: job.Queue, Message: "The operator has not read Kueue's Workloads yet"}, nil
	default:
		return nil, nil, nil
	}
	workload, err := q.workload(ctx, job)
	if err != nil {
		return nil, nil, err
	}
	state := kueue.FromKueue(job.Queue, workload)
	q.doubt(job, &state, now)
	waits := workload == nil && job.Lifecycle.Suspended && !job.SuspendedInQueue
	if since := q.without.of(job.ID(), waits, now); waits && now.Sub(since) >= kueue.WorkloadTime {
		state = kueue.WithoutWorkload(job, since, q.priorities.names(ctx, now))
	}
	if workload != nil && workload.Standing() == kueue.Active && !state.Admitted && !state.Never {
		queue := types.NamespacedName{Namespace: job.Namespace, Name: state.Name}
		q.positions.positionOf(ctx, queue, workload.Name, now).AddTo(&state)
		if q.starts != nil {
			state.Start = q.starts.startOf(ctx, workload.UID, now)
		}
	}
	return workload, &state, nil
}

// doubt has a job wait for a while before its pods are said not to fit because they request nothing.
func (q *queues) doubt(job mpi.Job, state *jobstate.QueueState, now time.Time) {
	unfit := state.Reason == kueue.ReasonNeedsRequests
	if since := q.unfit.of(job.ID(), unfit, now); unfit && now.Sub(since) < kueue.UnfitTime {
		state.Reason, state.Why, state.Never = "", "", false
	}
}

// forget drops what is kept of a job that is gone.
func (q *queues) forget(job mpi.ID) {
	q.without.of(job, false, time.Time{})
	q.unfit.of(job, false, time.Time{})
}

// priorities are the names of Kueue's priority classes, as they were at a time.
type priorities struct {
	live client.Reader

	mu    sync.Mutex
	at    time.Time
	known []string
}

// prioritiesTTL is how long they are used as they were read.
const prioritiesTTL = 30 * time.Second

// names returns them; nil if they cannot be read.
func (p *priorities) names(ctx context.Context, now time.Time) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if age := now.Sub(p.at); p.at.IsZero() || age < 0 || age >= prioritiesTTL {
		ctx, cancel := context.WithTimeout(ctx, positionsTimeout)
		defer cancel()
		names, err := cluster.Names(ctx, p.live, kueue.PriorityClassListKind)
		if err != nil {
			log.FromContext(ctx).V(1).Info("Kueue's priority classes are unknown", "error", err.Error())
		}
		p.at, p.known = now, names
	}
	return p.known
}

// all returns all Workloads.
func (q *queues) all(ctx context.Context) ([]unstructured.Unstructured, error) {
	list := workloadList()
	if err := q.workloads.List(ctx, list); err != nil {
		return nil, fmt.Errorf("list Workloads: %w", err)
	}
	return list.Items, nil
}

func workloadList() *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kueue.WorkloadKind.GroupVersion().WithKind(kueue.WorkloadKind.Kind + "List"))
	return list
}

// workload returns the Workload that Kueue created for a job; nil if there is none yet.
func (q *queues) workload(ctx context.Context, job mpi.Job) (*kueue.Workload, error) {
	list := workloadList()
	if err := q.workloads.List(ctx, list, client.InNamespace(job.Namespace), client.MatchingFields{cluster.ByOwner: string(job.UID)}); err != nil {
		return nil, fmt.Errorf("list Workloads of %s %s: %w", job.Kind, job.Key(), err)
	}
	if len(list.Items) == 0 {
		return nil, nil
	}
	workload := &kueue.Workload{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[0].Object, workload); err != nil {
		return nil, fmt.Errorf("read Workload of %s %s: %w", job.Kind, job.Key(), err)
	}
	return workload, nil
}

// patchWorkload has a job's Workload become what its clock says. It is an error of conflict if the Workload has changed since.
func (q *queues) patchWorkload(ctx context.Context, workload *kueue.Workload, turn kueue.Turn) error {
	if turn.Active == nil {
		return nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": workload.ResourceVersion, "annotations": map[string]string{mpi.AnnotationGangTimeouts: turn.Timeouts}},
		"spec":     map[string]any{"active": *turn.Active},
	})
	if err != nil {
		return fmt.Errorf("change Workload %s/%s: %w", workload.Namespace, workload.Name, err)
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kueue.WorkloadKind)
	object.SetNamespace(workload.Namespace)
	object.SetName(workload.Name)
	if err := q.client.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("change Workload %s/%s: %w", workload.Namespace, workload.Name, err)
	}
	return nil
}
