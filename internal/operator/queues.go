package operator

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
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
	"opendatahub.io/mpijob/internal/gang"
	"opendatahub.io/mpijob/internal/mpi"
)

const (
	// placesFor is how long places in a queue are taken as they were read: they are asked for per queue, not per job.
	placesFor = 15 * time.Second
	// placesAnew is how long they are taken so by a job that is not among them: it came since.
	placesAnew = 2 * time.Second
	// placesKept is how long they are kept though nobody asks.
	placesKept = time.Hour
	// placesWithin is how long Kueue may take to tell them; a job's place is then not known.
	placesWithin = 2 * time.Second
)

// queues tells what Kueue says of jobs, from when it is installed.
type queues struct {
	// client writes Workloads.
	client client.Client
	// workloads reads Workloads from a cache; nil until there is Kueue.
	workloads atomic.Pointer[client.Reader]
	// news are objects of Workloads that changed, by the kind of their job.
	news map[string]chan event.GenericEvent
	// places asks Kueue for those of a queue.
	places func(ctx context.Context, queue types.NamespacedName) (map[string]gang.Place, error)

	mu    sync.Mutex
	known map[types.NamespacedName]*knownPlaces
}

// knownPlaces are those of a queue's Workloads by name, as they were at a time.
type knownPlaces struct {
	mu     sync.Mutex
	at     time.Time
	places map[string]gang.Place
}

// addQueues reads Kueue's word on jobs of some kinds from when it is there, which may be later.
func addQueues(m manager.Manager, config *rest.Config, options Options, kinds ...string) (*queues, error) {
	q := &queues{client: m.GetClient(), news: map[string]chan event.GenericEvent{}, known: map[types.NamespacedName]*knownPlaces{}}
	for _, kind := range kinds {
		q.news[kind] = make(chan event.GenericEvent, 1024)
	}
	core, err := typedcore.NewForConfigAndClient(config, m.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("set up asking Kueue for places: %w", err)
	}
	q.places = func(ctx context.Context, queue types.NamespacedName) (map[string]gang.Place, error) {
		return placesIn(ctx, core.RESTClient(), queue)
	}
	err = m.Add(whenInstalled(m, "Kueue", []schema.GroupVersionKind{gang.WorkloadKind}, func(ctx context.Context) error {
		return q.start(ctx, m, config, options)
	}))
	if err != nil {
		return nil, fmt.Errorf("add reading of Kueue's Workloads: %w", err)
	}
	return q, nil
}

func (q *queues) start(ctx context.Context, m manager.Manager, config *rest.Config, options Options) error {
	reader, err := follow(ctx, m, config, gang.WorkloadKind, cluster.WorkloadCacheOptions(gang.WorkloadKind), options, q.tell)
	if reader == nil || err != nil {
		return err
	}
	q.workloads.Store(&reader)
	return nil
}

// tell passes on that a job's Workload has changed.
func (q *queues) tell(ctx context.Context, object any) {
	workload, ok := object.(*unstructured.Unstructured)
	if !ok {
		return
	}
	owner := metav1.GetControllerOfNoCopy(workload)
	if owner == nil || q.news[owner.Kind] == nil {
		return
	}
	job := &metav1.PartialObjectMetadata{}
	job.Namespace, job.Name = workload.GetNamespace(), owner.Name
	select {
	case q.news[owner.Kind] <- event.GenericEvent{Object: job}:
	case <-ctx.Done():
	}
}

// source has a pass follow over jobs of a kind whose Workloads change.
func (q *queues) source(kind string) source.Source {
	return source.Channel(q.news[kind], handler.Funcs{
		GenericFunc: func(_ context.Context, e event.GenericEvent, into queue) {
			into.AddAfter(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(e.Object)}, soon)
		},
	})
}

// of is what the job's queue says of it; nil for one that is in none, and where there is no Kueue.
func (q *queues) of(ctx context.Context, job mpi.Job, now time.Time) (*mpi.QueueState, error) {
	if q.workloads.Load() == nil || job.Queue == "" || job.Past.Finish != nil {
		return nil, nil
	}
	workload, err := q.workload(ctx, job)
	if err != nil {
		return nil, err
	}
	state := gang.FromKueue(job.Queue, workload, nil)
	if workload != nil && !state.Admitted && !state.Never {
		queue := types.NamespacedName{Namespace: job.Namespace, Name: state.Name}
		state = gang.FromKueue(job.Queue, workload, q.place(ctx, queue, workload.Name, now))
	}
	return &state, nil
}

// workload is what Kueue has made of a job; nil where it has made nothing yet.
func (q *queues) workload(ctx context.Context, job mpi.Job) (*gang.Workload, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gang.WorkloadKind.GroupVersion().WithKind(gang.WorkloadKind.Kind + "List"))
	if err := (*q.workloads.Load()).List(ctx, list, client.InNamespace(job.Namespace), client.MatchingFields{cluster.ByOwner: string(job.UID)}); err != nil {
		return nil, fmt.Errorf("list Workloads of %s %s: %w", job.Kind, job.Key(), err)
	}
	if len(list.Items) == 0 {
		return nil, nil
	}
	workload := &gang.Workload{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[0].Object, workload); err != nil {
		return nil, fmt.Errorf("read Workload of %s %s: %w", job.Kind, job.Key(), err)
	}
	return workload, nil
}

// turn keeps the clock of a job that waits in a queue: it puts the job out whose pods do not all find a node in time, and
// has it tried again later. That one was given up is added to what was seen. It returns after what time to look again. It
// is an error of conflict if the Workload has changed meanwhile.
func (r *reconciler) turn(ctx context.Context, object client.Object, job mpi.Job, seen *mpi.Observed) (time.Duration, error) {
	if seen.Queue == nil || !job.Gang.TimeoutSet && seen.Queue.Reason != gang.ReasonTimeout {
		return 0, nil
	}
	workload, err := r.queues.workload(ctx, job)
	if err != nil {
		return 0, err
	}
	turn := gang.TurnOf(job, *seen, workload)
	if turn.GaveUp {
		seen.Gang = &mpi.GangState{Backend: gang.Kueue, Wanted: job.GangSize(), GaveUp: true, Attempts: turn.Attempts, EvictedAt: turn.EvictedAt}
	}
	if err := r.queues.take(ctx, workload, turn); err != nil {
		return 0, err
	}
	if turn.Says != "" && r.reporter != nil {
		r.reporter.events.Event(object, corev1.EventTypeWarning, gang.ReasonTimeout, turn.Says)
	}
	return turn.Again, nil
}

// take has a job's Workload become what its clock says. It is an error of conflict if the Workload has changed since.
func (q *queues) take(ctx context.Context, workload *gang.Workload, turn gang.Turn) error {
	if turn.Active == nil {
		return nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": workload.ResourceVersion, "annotations": map[string]string{gang.AnnotationTimeouts: turn.Timeouts}},
		"spec":     map[string]any{"active": *turn.Active},
	})
	if err != nil {
		return fmt.Errorf("change Workload %s/%s: %w", workload.Namespace, workload.Name, err)
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(gang.WorkloadKind)
	object.SetNamespace(workload.Namespace)
	object.SetName(workload.Name)
	if err := q.client.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("change Workload %s/%s: %w", workload.Namespace, workload.Name, err)
	}
	return nil
}

// place is a Workload's in its queue; nil where Kueue does not tell. Who asks for another queue's does not wait for it.
func (q *queues) place(ctx context.Context, queue types.NamespacedName, workload string, now time.Time) *gang.Place {
	known := q.placesOf(queue, now)
	known.mu.Lock()
	defer known.mu.Unlock()
	_, found := known.places[workload]
	if known.old(now, found) {
		ctx, cancel := context.WithTimeout(ctx, placesWithin)
		defer cancel()
		places, err := q.places(ctx, queue)
		if err != nil {
			log.FromContext(ctx).V(1).Info("places in a queue are not known", "queue", queue, "error", err.Error())
		}
		known.at, known.places = now, places
	}
	if place, found := known.places[workload]; found {
		return &place
	}
	return nil
}

// placesOf is what is known of a queue. With a new one those are dropped that nobody asks for any more.
func (q *queues) placesOf(queue types.NamespacedName, now time.Time) *knownPlaces {
	q.mu.Lock()
	defer q.mu.Unlock()
	known, found := q.known[queue]
	if !found {
		for other, of := range q.known {
			if of.mu.TryLock() {
				if !of.at.IsZero() && now.Sub(of.at) > placesKept {
					delete(q.known, other)
				}
				of.mu.Unlock()
			}
		}
		known = &knownPlaces{}
		q.known[queue] = known
	}
	return known
}

// old tells whether places are to be asked for again, by a job that is among them or is not.
func (k *knownPlaces) old(now time.Time, found bool) bool {
	age := now.Sub(k.at)
	return k.at.IsZero() || age >= placesFor || age < 0 || !found && age >= placesAnew
}

// placesIn asks Kueue's visibility API for those that wait in a queue.
func placesIn(ctx context.Context, raw rest.Interface, queue types.NamespacedName) (map[string]gang.Place, error) {
	const most = "1000"
	data, err := raw.Get().AbsPath("/apis/visibility.kueue.x-k8s.io/v1beta2/namespaces", queue.Namespace, "localqueues", queue.Name, "pendingworkloads").
		Param("limit", most).Do(ctx).Raw()
	if err != nil {
		return nil, fmt.Errorf("ask for the Workloads that wait in %s: %w", queue, err)
	}
	var waiting struct {
		Items []struct {
			Metadata   metav1.ObjectMeta `json:"metadata"`
			gang.Place `json:",inline"`
		} `json:"items"`
	}
	if err := json.Unmarshal(data, &waiting); err != nil {
		return nil, fmt.Errorf("read the Workloads that wait in %s: %w", queue, err)
	}
	places := make(map[string]gang.Place, len(waiting.Items))
	for _, item := range waiting.Items {
		places[item.Metadata.Name] = item.Place
	}
	return places, nil
}
