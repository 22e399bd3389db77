package operator

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
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
	// placesWithin is how long Kueue may take to tell them; a job's place is then not known.
	placesWithin = 2 * time.Second
)

// queues tells what Kueue says of jobs, from when it is installed.
type queues struct {
	// workloads reads Workloads from a cache; nil until there is Kueue.
	workloads atomic.Pointer[client.Reader]
	// news are objects of Workloads that changed, by the kind of their job.
	news map[string]chan event.GenericEvent
	// places asks Kueue for those of a queue.
	places func(ctx context.Context, queue types.NamespacedName) (map[string]gang.Place, error)

	mu    sync.Mutex
	known map[types.NamespacedName]knownPlaces
}

// knownPlaces are those of a queue's Workloads by name, as they were at a time.
type knownPlaces struct {
	at     time.Time
	places map[string]gang.Place
}

// addQueues reads Kueue's word on jobs of some kinds from when it is there, which may be later.
func addQueues(m manager.Manager, config *rest.Config, options Options, kinds ...string) (*queues, error) {
	q := &queues{news: map[string]chan event.GenericEvent{}, known: map[types.NamespacedName]knownPlaces{}}
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
	workload := &unstructured.Unstructured{}
	workload.SetGroupVersionKind(gang.WorkloadKind)
	theirs, err := cacheBeside(m, config, cluster.WorkloadCacheOptions(gang.WorkloadKind), options)
	if err != nil {
		return fmt.Errorf("read Workloads: %w", err)
	}
	if err := cluster.AddOwnerIndex(ctx, theirs.GetFieldIndexer(), workload); err != nil {
		return err
	}
	if err := m.Add(theirs); err != nil {
		return fmt.Errorf("add cache of Workloads: %w", err)
	}
	informer, err := theirs.GetCache().GetInformer(ctx, workload)
	if err != nil {
		return fmt.Errorf("watch Workloads: %w", err)
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { q.tell(ctx, object) },
		UpdateFunc: func(_, object any) { q.tell(ctx, object) },
		DeleteFunc: func(object any) {
			if last, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
				object = last.Obj
			}
			q.tell(ctx, object)
		},
	})
	if err != nil {
		return fmt.Errorf("watch Workloads: %w", err)
	}
	if !theirs.GetCache().WaitForCacheSync(ctx) {
		return nil
	}
	reader := client.Reader(theirs.GetClient())
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
	workloads := q.workloads.Load()
	if workloads == nil || job.Queue == "" || job.Past.Finish != nil {
		return nil, nil
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gang.WorkloadKind.GroupVersion().WithKind(gang.WorkloadKind.Kind + "List"))
	if err := (*workloads).List(ctx, list, client.InNamespace(job.Namespace), client.MatchingFields{cluster.ByOwner: string(job.UID)}); err != nil {
		return nil, fmt.Errorf("list Workloads of %s %s: %w", job.Kind, job.Key(), err)
	}
	if len(list.Items) == 0 {
		state := gang.FromKueue(job.Queue, nil, nil)
		return &state, nil
	}
	var workload gang.Workload
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[0].Object, &workload); err != nil {
		return nil, fmt.Errorf("read Workload of %s %s: %w", job.Kind, job.Key(), err)
	}
	state := gang.FromKueue(job.Queue, &workload, nil)
	if !state.Admitted && !state.Never {
		state = gang.FromKueue(job.Queue, &workload, q.place(ctx, types.NamespacedName{Namespace: job.Namespace, Name: state.Name}, workload.Name, now))
	}
	return &state, nil
}

// place is a Workload's in its queue; nil where Kueue does not tell.
func (q *queues) place(ctx context.Context, queue types.NamespacedName, workload string, now time.Time) *gang.Place {
	q.mu.Lock()
	defer q.mu.Unlock()
	known, found := q.known[queue]
	if !found || now.Sub(known.at) >= placesFor || now.Before(known.at) {
		ctx, cancel := context.WithTimeout(ctx, placesWithin)
		defer cancel()
		places, err := q.places(ctx, queue)
		if err != nil {
			log.FromContext(ctx).V(1).Info("places in a queue are not known", "queue", queue, "error", err.Error())
		}
		known = knownPlaces{at: now, places: places}
		q.known[queue] = known
	}
	if place, found := known.places[workload]; found {
		return &place
	}
	return nil
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
