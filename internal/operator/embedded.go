package operator

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/cluster"
	"opendatahub.io/mpijob/internal/gang"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/plan"
)

const (
	// betweenPasses is how long it takes at least from one pass over the queue to the next, and calm how much longer than
	// the pass itself, so that a long queue does not take the processor from everything else.
	betweenPasses = 200 * time.Millisecond
	calm          = 10
	// refreshed is how often places in line and figures are brought up to date if nothing happens.
	refreshed = 30 * time.Second
	// settling is how long after the start nobody is let in: until then not all jobs have been seen, and the first ones
	// that are may be the last in line.
	settling = 2 * time.Second
	// lettingIn is how long a job that was let in may have no pod at all. Then its room is others'.
	lettingIn = time.Minute
)

// embedded places jobs as a whole by itself: it has the pods of a job made when all of them have room, and says where
// they go. It keeps nothing but in memory: what runs is read from pods, and who waits comes again.
type embedded struct {
	nodes    *cluster.Nodes
	cluster  *cluster.Cluster
	settings plan.Settings
	clock    clock.WithTicker
	// needed is closed when the first job asks: until then nothing is watched.
	needed func()
	begun  chan struct{}
	// news are jobs of which something was decided, due is sent to when there is something to decide.
	news chan event.GenericEvent
	due  chan struct{}

	mu    sync.Mutex
	jobs  map[types.NamespacedName]*candidate
	usage gang.Usage
	// decided are jobs that are to be told of a decision.
	decided []types.NamespacedName
	// next is when the next pass may be.
	next time.Time
}

// candidate is a job as the queue sees it.
type candidate struct {
	uid        types.UID
	generation int64
	// whole is what all of its pods ask for.
	whole    gang.Request
	priority int32
	preempts bool
	// since is when it began to wait, admitted is when it was let in or its first pod came; zero while it waits. Passed is
	// set where others were before it then.
	since, admitted time.Time
	passed          bool

	// lacks are the pods to place; pins are where pods go that are not there yet, by their names, and free are those that
	// the scheduler may place as it can.
	lacks lack
	pins  map[string]string
	free  map[string]bool

	// held is what the last pass said of it, nil where there was none. evicted is why it has to go, and told is why it went
	// the last time.
	held    *gang.Held
	evicted *gang.Eviction
	told    string
}

// lack are pods that are to be placed: the launcher, and workers by their index.
type lack struct {
	launcher bool
	workers  []int
}

func (l lack) none() bool { return !l.launcher && len(l.workers) == 0 }

// addEmbedded adds what places jobs; it does nothing until the first one asks.
func addEmbedded(m manager.Manager, config *rest.Config, c *cluster.Cluster, settings plan.Settings) (*embedded, error) {
	config = rest.CopyConfig(config)
	config.AcceptContentTypes, config.ContentType = "application/vnd.kubernetes.protobuf,application/json", "application/vnd.kubernetes.protobuf"
	core, err := v1.NewForConfigAndClient(config, m.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("set up reading nodes: %w", err)
	}
	begun := make(chan struct{})
	e := &embedded{
		nodes: cluster.NewNodes(core), cluster: c, settings: settings, clock: clock.RealClock{},
		needed: sync.OnceFunc(func() { close(begun) }), begun: begun,
		news: make(chan event.GenericEvent, 1024), due: make(chan struct{}, 1), jobs: map[types.NamespacedName]*candidate{},
	}
	if err := m.Add(manager.RunnableFunc(e.run)); err != nil {
		return nil, fmt.Errorf("add the queue of jobs to be placed: %w", err)
	}
	return e, nil
}

// source has a pass follow over jobs of which something was decided.
func (e *embedded) source() source.Source {
	return source.Channel(e.news, handler.Funcs{
		GenericFunc: func(_ context.Context, e event.GenericEvent, into queue) {
			into.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(e.Object)})
		},
	})
}

// run decides whenever something has changed, until the context ends.
func (e *embedded) run(ctx context.Context) error {
	e.mu.Lock()
	e.next = e.clock.Now().Add(settling)
	e.mu.Unlock()
	select {
	case <-ctx.Done():
		return nil
	case <-e.begun:
	}
	log.FromContext(ctx).Info("jobs are placed by the operator itself: nodes and pods of the whole cluster are watched")
	var watching sync.WaitGroup
	defer watching.Wait()
	watching.Go(func() { e.nodes.Run(ctx) })
	refresh := e.clock.NewTicker(refreshed)
	defer refresh.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-e.nodes.Changed():
		case <-e.due:
		case <-refresh.C():
		}
		wait := e.tell(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-e.clock.After(wait):
		}
		e.mu.Lock()
		e.decide()
		e.mu.Unlock()
		e.tell(ctx)
	}
}

// tell has passes follow over jobs of which something was decided. It returns how long the next decision has to wait.
func (e *embedded) tell(ctx context.Context) time.Duration {
	e.mu.Lock()
	decided, wait := e.decided, e.next.Sub(e.clock.Now())
	e.decided = nil
	e.mu.Unlock()
	for _, job := range decided {
		about := &metav1.PartialObjectMetadata{}
		about.Namespace, about.Name = job.Namespace, job.Name
		select {
		case <-ctx.Done():
		case e.news <- event.GenericEvent{Object: about}:
		}
	}
	return wait
}

func (e *embedded) wake() {
	select {
	case e.due <- struct{}{}:
	default:
	}
}

// forget implements placer.
func (e *embedded) forget(job types.NamespacedName) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, found := e.jobs[job]; found {
		delete(e.jobs, job)
		e.wake()
	}
}

// of implements placer.
func (e *embedded) of(ctx context.Context, job mpi.Job, seen mpi.Observed, past *v1alpha1.SchedulingStatus) (*mpi.GangState, error) {
	e.needed()
	if len(seen.Shortages) > 0 {
		// What its namespace's quota does not let it have need not be kept for it.
		e.forget(job.Key())
		return nil, nil
	}
	e.mu.Lock()
	c := e.jobs[job.Key()]
	known := c != nil && c.uid == job.UID && c.generation == job.Generation
	e.mu.Unlock()
	var whole *candidate
	if !known {
		whole = e.shape(ctx, job)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	c = e.enter(job, whole, past, seen.Now)
	c.look(job, seen)
	if !c.lacks.none() && c.held == nil {
		if !e.clock.Now().Before(e.next) {
			// At once, so that a job that finds room waits for nothing.
			e.decide()
			e.decided = slices.DeleteFunc(e.decided, func(other types.NamespacedName) bool { return other == job.Key() })
		}
		e.wake()
	}
	return c.state(job), nil
}

// shape is what the pods of a job ask for.
func (e *embedded) shape(ctx context.Context, job mpi.Job) *candidate {
	launcher, worker := e.cluster.Completed(ctx, job, e.settings)
	c := &candidate{uid: job.UID, generation: job.Generation, preempts: true}
	c.whole.Together, c.whole.Firmly = job.Topology.Key, job.Topology.Required
	for i, pod := range []*corev1.Pod{worker, launcher} {
		if pod == nil {
			continue
		}
		shape := e.nodes.Resources.ShapeOf(pod)
		if i == 0 {
			c.whole.Worker, c.priority = &shape, ptr.Deref(pod.Spec.Priority, 0)
		} else {
			c.whole.Launcher = &shape
		}
		// The gang counts as much as the least of its pods.
		c.priority = min(c.priority, ptr.Deref(pod.Spec.Priority, 0))
		if policy := pod.Spec.PreemptionPolicy; policy != nil && *policy == corev1.PreemptNever {
			c.preempts = false
		}
	}
	return c
}

// enter is the job's place in the queue; it comes to the end of it if it was not there.
func (e *embedded) enter(job mpi.Job, whole *candidate, past *v1alpha1.SchedulingStatus, now time.Time) *candidate {
	c := e.jobs[job.Key()]
	if c == nil || c.uid != job.UID {
		c = &candidate{uid: job.UID, since: now, pins: map[string]string{}, free: map[string]bool{}}
		if past != nil && past.Since != nil {
			c.since = past.Since.Time
		}
		e.jobs[job.Key()] = c
	}
	if whole != nil {
		c.generation, c.whole, c.priority, c.preempts = whole.generation, whole.whole, whole.priority, whole.preempts
	}
	least := int(job.GangSize())
	if job.Launcher.AfterWorkers {
		// It is made later, and its room is kept until then.
		least++
	}
	c.whole.Workers, c.whole.Least = int(job.Workers.Count), min(least, int(job.Pods()))
	return c
}

// look takes over which pods a job has.
func (c *candidate) look(job mpi.Job, seen mpi.Observed) {
	launcher := seen.Launcher != nil && !ptr.Deref(seen.Launcher.Spec.Suspend, false)
	switch first := firstPod(seen); {
	case first.IsZero() && !launcher:
		if c.evicted != nil {
			// It is gone, and waits again.
			c.evicted, c.admitted = nil, time.Time{}
		}
		if !c.admitted.IsZero() && seen.Now.Sub(c.admitted) > lettingIn && len(seen.Workers) == 0 {
			c.leave()
		}
	case !c.admitted.IsZero():
	case first.IsZero():
		c.admitted = seen.Now
	default:
		// Another operator has let it in.
		c.admitted, c.held = first, nil
	}
	c.count(job, seen, launcher)
	if !c.admitted.IsZero() && job.Topology.Required {
		// Its other pods say where it is.
		c.letIn(job, c.lacks, gang.Placement{Workers: make([]string, len(c.lacks.workers))})
	}
}

// firstPod is when the oldest of the job's pods was made that are not on their way out; zero where there is none.
func firstPod(seen mpi.Observed) (first time.Time) {
	for _, pod := range podsOf(seen) {
		if at := pod.CreationTimestamp.Time; pod.DeletionTimestamp == nil && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}

// count finds out which pods are to be placed: those that are neither there nor were decided on. The pods of a job that
// waits are all to be made, though some of its old ones may not be gone yet.
func (c *candidate) count(job mpi.Job, seen mpi.Observed, launcher bool) {
	there := map[string]bool{job.LauncherName(): launcher}
	for _, worker := range seen.Workers {
		there[job.WorkerName(worker.Index)] = !c.admitted.IsZero()
	}
	lacks := func(name string) bool {
		if there[name] {
			delete(c.free, name)
		}
		return !there[name] && c.pins[name] == "" && !c.free[name]
	}
	c.lacks = lack{launcher: !job.Launcher.None && lacks(job.LauncherName())}
	for index := range int(job.Workers.Count) {
		if lacks(job.WorkerName(index)) {
			c.lacks.workers = append(c.lacks.workers, index)
		}
	}
}

// leave puts a job back into the queue.
func (c *candidate) leave() {
	c.admitted, c.passed, c.held = time.Time{}, false, nil
	clear(c.pins)
	clear(c.free)
}

// letIn takes over where pods of a job go.
func (c *candidate) letIn(names named, lacks lack, placed gang.Placement) {
	put := func(name, node string) {
		if node == "" {
			c.free[name] = true
		} else {
			c.pins[name] = node
		}
	}
	if lacks.launcher {
		put(names.LauncherName(), placed.Launcher)
	}
	for i, index := range lacks.workers {
		put(names.WorkerName(index), placed.Workers[i])
	}
	c.lacks, c.held = lack{}, nil
}

// named names pods: a job, or what stands for one.
type named interface {
	LauncherName() string
	WorkerName(index int) string
}

// decide makes a pass over the queue.
func (e *embedded) decide() {
	now := e.clock.Now()
	if len(e.jobs) == 0 {
		return
	}
	snapshot, pods, known := e.nodes.Snapshot(now)
	if !known {
		return
	}
	var waiting, running []gang.Entry
	keys := make(map[types.UID]types.NamespacedName, len(e.jobs))
	for key, c := range e.jobs {
		keys[c.uid] = key
		entry := c.entry(key, snapshot, pods[key])
		if c.admitted.IsZero() {
			waiting = append(waiting, entry)
		} else {
			running = append(running, entry)
		}
	}
	e.usage = e.usage.After(now, snapshot, running)
	decision := gang.Decide(now, snapshot, waiting, running, e.usage)
	e.take(now, keys, decision)
	e.next = e.clock.Now().Add(max(betweenPasses, calm*e.clock.Since(now)))
}

// entry is a job as a pass sees it. The room of pods that were decided on and are not there yet is taken in the snapshot.
func (c *candidate) entry(key types.NamespacedName, snapshot *gang.Snapshot, pods []cluster.GangPod) gang.Entry {
	entry := gang.Entry{
		UID: c.uid, Namespace: key.Namespace, Name: key.Name, Priority: c.priority, Preempts: c.preempts, Passed: c.passed,
		Since: c.since, Leaving: c.evicted != nil, Request: c.request(),
	}
	if c.admitted.IsZero() {
		return entry
	}
	entry.Since = c.admitted
	holds := map[string]gang.Totals{}
	names := mpi.New()
	names.Name = key.Name
	for _, pod := range pods {
		if pod.Leaving {
			continue
		}
		if pod.Node != "" {
			holds[pod.Node] = holds[pod.Node].Plus(pod.Amounts)
		}
		// What is there counts by itself from now on.
		if pod.Role == mpi.RoleLauncher {
			delete(c.pins, names.LauncherName())
		} else {
			delete(c.pins, pod.Name)
		}
	}
	for name, node := range c.pins {
		shape := c.whole.Worker
		if name == names.LauncherName() {
			shape = c.whole.Launcher
		}
		if shape != nil && c.evicted == nil {
			snapshot.Take(node, shape.Requests)
			holds[node] = holds[node].Plus(shape.Requests)
		}
	}
	for node, amount := range holds {
		entry.Holds = append(entry.Holds, gang.Hold{Node: node, Amount: amount})
	}
	return entry
}

// request is what is to be placed of a job.
func (c *candidate) request() gang.Request {
	request := c.whole
	if !c.lacks.launcher {
		request.Launcher = nil
	}
	if request.Workers = len(c.lacks.workers); request.Workers == 0 {
		request.Worker = nil
	}
	return request
}

// take takes a decision over, and notes which jobs it changes.
func (e *embedded) take(now time.Time, keys map[types.UID]types.NamespacedName, decision gang.Decision) {
	var changed []types.NamespacedName
	for uid, placed := range decision.Admit {
		key := keys[uid]
		c := e.jobs[key]
		if c.lacks.none() {
			continue
		}
		names := mpi.New()
		names.Name = key.Name
		c.letIn(names, c.lacks, placed)
		if c.admitted.IsZero() {
			c.admitted, c.passed, c.told = now, placed.Passed, ""
		}
		changed = append(changed, key)
	}
	for uid, held := range decision.Held {
		c := e.jobs[keys[uid]]
		if c.held == nil || c.held.Reason != held.Reason {
			changed = append(changed, keys[uid])
		}
		c.held = &held
	}
	for uid, why := range decision.Evict {
		c := e.jobs[keys[uid]]
		c.leave()
		c.admitted, c.evicted = now, &why
		c.told = fmt.Sprintf("Its pods were stopped at %s to make room for a job of a higher priority (%d, over %d).", now.UTC().Format(time.TimeOnly+" MST"), why.Over, why.Priority)
		changed = append(changed, keys[uid])
	}
	slices.SortFunc(changed, func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
	e.decided = append(e.decided, changed...)
}

// state is what a job is told.
func (c *candidate) state(job mpi.Job) *mpi.GangState {
	state := &mpi.GangState{Backend: gang.Embedded}
	switch {
	case c.evicted != nil:
		state.Hold, state.Evict, state.Reason, state.Message = true, true, gang.ReasonPreempted, c.told
	case c.lacks.none():
		state.Nodes = maps.Clone(c.pins)
	case c.held == nil:
		// That its pods were stopped is news, and would else be told too late for the job's timeline.
		state.Hold, state.Message = true, cmp.Or(c.told, "The operator is about to see what room the cluster has.")
	default:
		held := c.held
		state.Hold, state.Never, state.Reason, state.Message = true, held.Never, held.Reason, held.Message
		state.PodsFit, state.NodesFit, state.NodesTotal = new(min(held.PodsFit, job.Pods())), new(held.NodesFit), new(held.NodesTotal)
		if held.Position > 0 {
			state.Position, state.Scope = about(held.Position), "of those that wait for room on the cluster (approximate)"
		}
		if c.told != "" {
			state.Message = c.told + " " + state.Message
		}
	}
	return state
}

// about is a place in line, far behind to the next ten: it changes with each job that is let in, and has to be written
// for all.
func about(position int32) int32 {
	if position > 100 {
		return (position + 9) / 10 * 10
	}
	return position
}
