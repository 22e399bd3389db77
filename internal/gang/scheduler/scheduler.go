// Package scheduler is the embedded gang scheduler: it watches nodes and pods, and lets jobs start when all of their pods
// fit. What it decides is computed by package gang.
package scheduler

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/cluster"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/gang"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/plan"
	"opendatahub.io/mpijob/internal/podstatus"
	"opendatahub.io/mpijob/internal/times"
	"opendatahub.io/mpijob/internal/waiting"
)

const (
	// minPassInterval is the shortest time between two scheduling cycles, and restFactor the number of cycle lengths
	// to pause after a cycle, so that a long queue does not take the CPU from everything else. maxRest is the longest such
	// pause: on a busy node a cycle takes long because it waits for the CPU, and all new jobs wait for the next one.
	minPassInterval = 200 * time.Millisecond
	restFactor      = 10
	maxRest         = 2 * time.Second
	// entryPause is the longest pause that is cut short for a new job: only long cycles make it wait.
	entryPause = 100 * time.Millisecond
	// refreshInterval is how often queue positions and figures are updated without an event.
	refreshInterval = 30 * time.Second
	// minEstimateInterval is the shortest time between two estimates of when jobs start, and estimateFactor the number of
	// their lengths between two.
	minEstimateInterval = 2 * time.Second
	estimateFactor      = 50
	// warmUp is the time after the start in which no job is admitted: until then not all jobs have been seen, and the
	// first ones seen may be the last in the queue.
	warmUp = 2 * time.Second
	// admissionTimeout is how long an admitted job may have no pod. Then its room is released.
	admissionTimeout = time.Minute
	// probeTimeout is how long a job may have its pods created for an autoscaler before the next one's turn.
	probeTimeout = 10 * time.Minute
	// preemptTimeout is the same where the cluster's scheduler is to preempt pods: they have that long to end. preemptPause is when the
	// same job may have its next turn.
	preemptTimeout = 2 * time.Minute
	preemptPause   = 10 * time.Minute
	// mostPreemptions is of how many jobs in a cycle it is found out whether preemption would make room.
	mostPreemptions = 16
	// refusalRetry is the time until the API server is asked again about pods that it refused, and answerRetry until it is
	// asked again after it did not answer.
	refusalRetry = 15 * time.Second
	answerRetry  = time.Second
)

// Scheduler places jobs as a whole by itself: it has the pods of a job made when all of them have room, and says where
// they go. It keeps nothing but in memory: what runs is read from pods, and who waits comes again.
type Scheduler struct {
	nodes    *cluster.Nodes
	cluster  *cluster.Cluster
	settings plan.Settings
	clock    clock.WithTicker
	// start is closed when the first job asks: until then nothing is watched.
	start   func()
	started chan struct{}
	// decisions are jobs of which something was decided, by kind. wakeUp is sent to when there is something to decide.
	decisions map[string]chan event.GenericEvent
	wakeUp    chan struct{}

	mu   sync.Mutex
	jobs map[mpi.ID]*candidate
	// refused are jobs that are not queued because the API server refused their pods, or did not answer.
	refused map[mpi.ID]refusedJob
	usage   gang.Usage
	// decided are jobs to reconcile because of a decision.
	decided []mpi.ID
	// nextPass is when the next pass may be, nextEntry when a pass for a new job may be.
	nextPass, nextEntry time.Time
	// usageAt is when usage was last added up.
	usageAt time.Time
	// others returns what pods have of nodes that belong to none of the jobs for which isJob is true.
	others func(isJob func(mpi.ID) bool) gang.Others
	// autoscaled reports whether a cluster autoscaler may add nodes for pods that do not fit.
	autoscaled func() bool
	// describeRun returns what is known about the end of a job.
	describeRun func(mpi.ID) waiting.Job
	// estimatedAt is when starts were last estimated, and nextEstimate when that may be done again for new jobs.
	estimatedAt, nextEstimate time.Time
	// isUsable is false if the operator may not read the nodes and pods of the cluster.
	isUsable bool
}

// refusedJob is a job that is not queued, until it is asked again.
type refusedJob struct {
	uid        types.UID
	generation int64
	state      jobstate.GangState
	until      time.Time
}

// isOf reports whether the refusal is still that of a job.
func (r refusedJob) isOf(job mpi.Job, now time.Time) bool {
	return r.uid == job.UID && r.generation == job.Generation && now.Before(r.until)
}

// candidate is a job as the queue sees it.
type candidate struct {
	uid types.UID
	// names has the job's name and the suffixes of its pods' names, and nothing else.
	names      mpi.Job
	generation int64
	// removed are the requests for RDMA without which the job was examined: a TrainJob runs without them when its JobSet exists.
	removed []corev1.ResourceName
	// whole is what all of its pods ask for.
	whole    gang.Request
	priority int32
	preempts bool
	// since is when it began to wait, admitted is when it was let in or its first pod came; zero while it waits. Passed is
	// set where others were before it then.
	since, admitted time.Time
	passed          bool
	// podsAt is when it was last seen with pods, reservedAt when capacity was last reserved for pods.
	podsAt, reservedAt time.Time

	// pending are the pods to place; pins are the nodes of pods that do not exist yet, by pod name, and free are the pods
	// that kube-scheduler may place on any node.
	pending     pendingPods
	assignments map[string]string
	unassigned  map[string]bool
	// byDefault is set if the job has not asked to be placed as a whole. Its pods are not pinned: reserved is the room that
	// is kept for those that have no node yet, by pod name.
	byDefault bool
	reserved  map[string]string
	// probe is set during the job's turn: its pods exist so that an autoscaler adds nodes or, with preempting, so that the cluster's scheduler
	// preempts other pods. probedAt is when the turn began last.
	probe, preempting bool
	probedAt          time.Time
	// free is set if the job's pods were created although they never fit together, and workersFirst if its launcher has to wait until a
	// worker has a node. inQueue is set if a queue has admitted the job: it has no pods then, so that it can give back its quota. gated is
	// set if its pods can only be created all at once.
	free, workersFirst, inQueue, gated bool
	// unsure is set if the estimate of the job's requests was wrong: the API server is then asked.
	unsure bool

	// held is the result of the last cycle, nil if there was none. evicted is set while the job must release its nodes;
	// evictionReason and evictionMessage are why it did the last time.
	held *gang.Held
	// start is when it is expected to start, as of the last estimate.
	start waiting.Estimate

	evicted                         bool
	evictionReason, evictionMessage string
}

// pendingPods are pods that are to be placed: the launcher, and workers by their index.
type pendingPods struct {
	launcher bool
	workers  []int
}

func (l pendingPods) isEmpty() bool { return !l.launcher && len(l.workers) == 0 }

// Add adds what places jobs of some kinds; it does nothing until the first one asks.
//
// autoscaled reports whether a cluster autoscaler may add nodes, and describeRun returns what is known about the end of a job.
func Add(ctx context.Context, m manager.Manager, config *rest.Config, c *cluster.Cluster, settings plan.Settings, kinds []string, autoscaled func() bool, describeRun func(mpi.ID) waiting.Job) (*Scheduler, error) {
	config = rest.CopyConfig(config)
	config.AcceptContentTypes, config.ContentType = "application/vnd.kubernetes.protobuf,application/json", "application/vnd.kubernetes.protobuf"
	core, err := v1.NewForConfigAndClient(config, m.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("set up reading nodes: %w", err)
	}
	begun, nodes := make(chan struct{}), cluster.NewNodes(core)
	e := &Scheduler{
		autoscaled: autoscaled, others: nodes.Others, describeRun: describeRun, isUsable: nodes.MayRead(ctx),
		nodes: nodes, cluster: c, settings: settings, clock: clock.RealClock{},
		start: sync.OnceFunc(func() { close(begun) }), started: begun,
		decisions: map[string]chan event.GenericEvent{}, wakeUp: make(chan struct{}, 1),
		jobs: map[mpi.ID]*candidate{}, refused: map[mpi.ID]refusedJob{},
	}
	for _, kind := range kinds {
		e.decisions[kind] = make(chan event.GenericEvent, 1024)
	}
	if err := m.Add(manager.RunnableFunc(e.run)); err != nil {
		return nil, fmt.Errorf("add the queue of jobs to be placed: %w", err)
	}
	return e, nil
}

// IsUsable reports whether the operator may read the nodes and pods of the cluster, without which nothing can be placed.
func (e *Scheduler) IsUsable() bool { return e.isUsable }

// Start begins to watch nodes and pods, so that the first job does not wait for that.
func (e *Scheduler) Start() { e.start() }

// Source has a reconcile follow for jobs of a kind of which something was decided.
func (e *Scheduler) Source(kind string) source.Source {
	return source.Channel(e.decisions[kind], handler.Funcs{
		GenericFunc: func(_ context.Context, e event.GenericEvent, into workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			job := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(e.Object)}
			if ordered, is := into.(priorityqueue.PriorityQueue[reconcile.Request]); is {
				ordered.AddWithOpts(priorityqueue.AddOpts{Priority: new(priorityDecided)}, job)
				return
			}
			into.Add(job)
		},
	})
}

// priorityDecided has jobs of which something was decided reconciled before others (0), which would find the room taken that is kept for them.
const priorityDecided = 10

// run decides whenever something has changed, until the context ends.
func (e *Scheduler) run(ctx context.Context) error {
	e.mu.Lock()
	e.nextPass = e.clock.Now().Add(warmUp)
	e.mu.Unlock()
	select {
	case <-ctx.Done():
		return nil
	case <-e.started:
	}
	log.FromContext(ctx).Info("jobs are placed by the operator itself: nodes and pods of the whole cluster are watched")
	var watching sync.WaitGroup
	defer watching.Wait()
	watching.Go(func() { e.nodes.Run(ctx) })
	refresh := e.clock.NewTicker(refreshInterval)
	defer refresh.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-e.nodes.Changed():
		case <-e.wakeUp:
		case <-refresh.C():
		}
		wait := e.notify(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-e.clock.After(wait):
		}
		e.mu.Lock()
		e.runPass()
		e.mu.Unlock()
		e.notify(ctx)
	}
}

// notify has passes follow over jobs of which something was decided. It returns how long the next decision has to wait.
func (e *Scheduler) notify(ctx context.Context) time.Duration {
	e.mu.Lock()
	decided, wait := e.decided, e.nextPass.Sub(e.clock.Now())
	e.decided = nil
	e.mu.Unlock()
	for _, job := range decided {
		about := &metav1.PartialObjectMetadata{}
		about.Namespace, about.Name = job.Namespace, job.Name
		select {
		case <-ctx.Done():
		case e.decisions[job.Kind] <- event.GenericEvent{Object: about}:
		}
	}
	return wait
}

func (e *Scheduler) wake() {
	select {
	case e.wakeUp <- struct{}{}:
	default:
	}
}

// Forget removes a job from the queue.
func (e *Scheduler) Forget(job mpi.ID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.refused, job)
	if _, found := e.jobs[job]; found {
		delete(e.jobs, job)
		e.wake()
	}
}

// State returns where a job stands, as Enqueue would, but changes nothing: no decision is made for a new job.
func (e *Scheduler) State(job mpi.Job, seen jobstate.Observed) *jobstate.GangState {
	if len(seen.Shortages) > 0 {
		return nil
	}
	e.mu.Lock()
	c := e.jobs[job.ID()].clone()
	refused, is := e.refused[job.ID()]
	e.mu.Unlock()
	if is && refused.isOf(job, seen.Now) {
		return &refused.state
	}
	if c == nil || c.uid != job.UID {
		c = newCandidate(job, seen.Now)
	}
	c.syncPods(job, seen)
	return c.gangState(job)
}

// Enqueue adds a job to the queue, or updates it there, and returns where it stands. past is what the job's report contains
// of its waiting time so far, nil for nothing. byDefault is whether the job has not asked for it. A job that quotas have no room for leaves the queue, and has no state.
func (e *Scheduler) Enqueue(ctx context.Context, job mpi.Job, seen jobstate.Observed, past *v1alpha1.SchedulingStatus, byDefault bool) *jobstate.GangState {
	e.start()
	if len(seen.Shortages) > 0 {
		// Its capacity need not be kept for it.
		e.Forget(job.ID())
		return nil
	}
	e.mu.Lock()
	c := e.jobs[job.ID()]
	known := c != nil && c.uid == job.UID && c.generation == job.Generation && slices.Equal(c.removed, job.RDMA.Removed)
	unsure := c != nil && c.uid == job.UID && c.unsure
	e.mu.Unlock()
	var whole *candidate
	if !known {
		var state *jobstate.GangState
		if whole, state = e.examine(ctx, job, seen, byDefault && !unsure && (past == nil || past.Attempts == 0)); state != nil {
			return state
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	c = e.enqueue(job, whole, past, seen.Now)
	c.byDefault, c.inQueue, c.gated = byDefault, seen.Queue != nil, job.External
	c.syncPods(job, seen)
	if !c.pending.isEmpty() && c.held == nil {
		if now := e.clock.Now(); !now.Before(e.nextPass) || !e.nextEntry.IsZero() && e.nextEntry.Sub(now) < entryPause {
			// At once, so that a job that finds room waits for nothing.
			e.runPass()
			e.decided = slices.DeleteFunc(e.decided, func(other mpi.ID) bool { return other == job.ID() })
		}
		e.wake()
	}
	return c.gangState(job)
}

// examine returns the requests of a job, or the state of a job that is not queued: the API server refuses its pods, which
// would keep room that no pod ever uses, or does not answer. A job that has pods keeps its place. With estimate, the API
// server is only asked about pods whose requests and priority do not follow from their templates: the ordinary job starts
// without these requests.
func (e *Scheduler) examine(ctx context.Context, job mpi.Job, seen jobstate.Observed, estimate bool) (*candidate, *jobstate.GangState) {
	e.mu.Lock()
	refused, is := e.refused[job.ID()]
	e.mu.Unlock()
	if is && refused.isOf(job, seen.Now) {
		return nil, &refused.state
	}
	if estimate {
		if pods, sure := e.cluster.Estimated(ctx, job, e.settings); sure {
			return e.describe(job, pods), nil
		}
	}
	pods, err := e.cluster.Completed(ctx, job, e.settings)
	state := jobstate.GangState{Backend: gang.Embedded, Hold: true, Wanted: job.GangSize()}
	switch {
	case err != nil:
		state.Message, state.Again = "The API server did not complete the job's pods: "+err.Error()+".", answerRetry
	case pods.Refused != nil && firstPod(seen).IsZero():
		// A launcher from before is stopped: its pod would run alone.
		state.Refused, state.Again, state.Evict = pods.Refused, refusalRetry, launcherOn(seen)
	default:
		e.mu.Lock()
		delete(e.refused, job.ID())
		e.mu.Unlock()
		return e.describe(job, pods), nil
	}
	e.Forget(job.ID())
	e.mu.Lock()
	defer e.mu.Unlock()
	e.refused[job.ID()] = refusedJob{uid: job.UID, generation: job.Generation, state: state, until: seen.Now.Add(state.Again)}
	return nil, &state
}

// newCandidate returns a job that begins to wait.
func newCandidate(job mpi.Job, since time.Time) *candidate {
	names := mpi.Job{Name: job.Name, Names: job.Names}
	return &candidate{uid: job.UID, names: names, since: since, assignments: map[string]string{}, unassigned: map[string]bool{}, reserved: map[string]string{}}
}

// clone returns a copy whose pods can be synced without changing the original; nil for nil.
func (c *candidate) clone() *candidate {
	if c == nil {
		return nil
	}
	copied := *c
	copied.assignments, copied.unassigned, copied.reserved = maps.Clone(c.assignments), maps.Clone(c.unassigned), maps.Clone(c.reserved)
	return &copied
}

// describe is what the pods of a job ask for.
func (e *Scheduler) describe(job mpi.Job, pods cluster.CompletedPods) *candidate {
	c := &candidate{uid: job.UID, generation: job.Generation, removed: job.RDMA.Removed, preempts: true}
	c.whole.Together, c.whole.Firmly = job.Topology.Key, job.Topology.Required
	for i, pod := range []*corev1.Pod{pods.Worker, pods.Launcher} {
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

// enqueue returns the job's place in the queue, and appends the job if it was not queued.
func (e *Scheduler) enqueue(job mpi.Job, whole *candidate, past *v1alpha1.SchedulingStatus, now time.Time) *candidate {
	c := e.jobs[job.ID()]
	if c == nil || c.uid != job.UID {
		c = newCandidate(job, now)
		if past != nil && past.Since != nil {
			c.since = past.Since.Time
		}
		e.jobs[job.ID()] = c
	}
	if whole != nil {
		c.generation, c.removed, c.whole, c.priority, c.preempts = whole.generation, whole.removed, whole.whole, whole.priority, whole.preempts
		c.held = nil
	}
	least := int(job.GangSize())
	if job.Launcher.AfterWorkers {
		// It is made later, and its room is kept until then.
		least++
	}
	c.whole.Workers, c.whole.Least = int(job.Workers.Count), min(least, int(job.Pods()))
	return c
}

// syncPods takes over which pods a job has.
func (c *candidate) syncPods(job mpi.Job, seen jobstate.Observed) {
	launcher := launcherOn(seen)
	first := firstPod(seen)
	if !first.IsZero() {
		c.podsAt = seen.Now
	}
	switch {
	case first.IsZero() && !launcher:
		if c.evicted {
			// It is gone, and waits again.
			c.evicted, c.admitted = false, time.Time{}
		}
		if c.isOverdue(seen) {
			c.requeue()
		}
	case first.IsZero() && !c.evicted && c.isOverdue(seen):
		// The launcher's Job is there, but none of its pods: others may have the room.
		c.requeue()
		c.evicted, c.admitted, c.generation, c.unsure = true, seen.Now, 0, true
		c.evictionReason = codes.CapacityUnknown
		c.evictionMessage = fmt.Sprintf("None of its pods was created within %s, so that its capacity was released.", admissionTimeout)
	case !c.admitted.IsZero():
	case first.IsZero():
		c.admitted = seen.Now
	default:
		// Another operator has admitted it.
		c.admitted, c.held = first, nil
	}
	c.syncPending(job, seen, launcher)
	if !c.admitted.IsZero() && job.Topology.Required {
		// The placement follows from the pods that have a node.
		c.assign(seen.Now, c.pending, gang.Placement{Workers: make([]string, len(c.pending.workers))})
	}
}

// launcherOn reports whether the launcher's Job exists and may create pods.
func launcherOn(seen jobstate.Observed) bool {
	return seen.Launcher != nil && !ptr.Deref(seen.Launcher.Spec.Suspend, false)
}

// isOverdue reports whether an admitted job has had no pod for too long. It has none for a moment while JobSet restarts it.
func (c *candidate) isOverdue(seen jobstate.Observed) bool {
	return !c.admitted.IsZero() && seen.Now.Sub(times.Later(c.admitted, c.podsAt)) > admissionTimeout && len(seen.Workers) == 0
}

// firstPod is when the oldest of the job's pods was made that are not on their way out; zero where there is none. Suspended Jobs
// keep their ended pods, so that these do not count for a job with a gate.
func firstPod(seen jobstate.Observed) (first time.Time) {
	for _, pod := range seen.AllPods() {
		if seen.Gate != nil && podstatus.HasEnded(pod) {
			continue
		}
		if at := pod.CreationTimestamp.Time; pod.DeletionTimestamp == nil && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}

// syncPending finds out which pods are to be placed: those that are neither there nor were decided on. The pods of a job that
// waits are all to be made, though some of its old ones may not be gone yet.
func (c *candidate) syncPending(job mpi.Job, seen jobstate.Observed, launcher bool) {
	there := map[string]bool{job.LauncherName(): launcher}
	for _, worker := range seen.Workers {
		there[job.WorkerName(worker.Index)] = !c.admitted.IsZero()
	}
	lacks := func(name string) bool {
		if there[name] {
			delete(c.unassigned, name)
		}
		return !there[name] && c.assignments[name] == "" && !c.unassigned[name]
	}
	c.pending = pendingPods{launcher: !job.Launcher.None && lacks(job.LauncherName())}
	for index := range int(job.Workers.Count) {
		if lacks(job.WorkerName(index)) {
			c.pending.workers = append(c.pending.workers, index)
		}
	}
}

// requeue puts a job back into the queue.
func (c *candidate) requeue() {
	c.admitted, c.passed, c.held, c.probe, c.start = time.Time{}, false, nil, false, waiting.Estimate{}
	c.free, c.workersFirst = false, false
	clear(c.assignments)
	clear(c.unassigned)
	clear(c.reserved)
}

// assign takes over where pods of a job go.
func (c *candidate) assign(now time.Time, lacks pendingPods, placed gang.Placement) {
	c.reservedAt = now
	put := func(name, node string) {
		if c.byDefault && node != "" {
			c.reserved[name] = node
		}
		if node == "" || c.byDefault {
			c.unassigned[name] = true
		} else {
			c.assignments[name] = node
		}
	}
	if lacks.launcher {
		put(c.names.LauncherName(), placed.Launcher)
	}
	for i, index := range lacks.workers {
		put(c.names.WorkerName(index), placed.Workers[i])
	}
	c.pending, c.held = pendingPods{}, nil
}

// runPass runs one scheduling cycle over the queue.
func (e *Scheduler) runPass() {
	now := e.clock.Now()
	if len(e.jobs) == 0 || !e.hasWork() && now.Sub(e.usageAt) < refreshInterval {
		return
	}
	snapshot, pods, known := e.nodes.Snapshot(now)
	if !known {
		return
	}
	var waits, running []gang.Entry
	keys := make(map[types.UID]mpi.ID, len(e.jobs))
	// In a fixed order: who reserves first matters where there is too little.
	inOrder := slices.SortedFunc(maps.Keys(e.jobs), func(a, b mpi.ID) int { return strings.Compare(a.String(), b.String()) })
	for _, key := range inOrder {
		c := e.jobs[key]
		keys[c.uid] = key
		wasEvicted := c.evicted
		entry := c.entry(key, snapshot, pods[key])
		if c.evicted && !wasEvicted {
			e.decided = append(e.decided, key)
		}
		if c.admitted.IsZero() {
			waits = append(waits, entry)
		} else {
			c.workersFirst = c.workersFirst || len(snapshot.Nodes) > 0 && c.mayLackNodes(entry)
			running = append(running, entry)
		}
	}
	e.usage, e.usageAt = e.usage.After(now, snapshot, running), now
	decision := gang.Decide(now, snapshot, waits, running, e.usage)
	e.applyDecision(now, keys, decision)
	e.estimate(now, keys, snapshot, decision, waits, running)
	e.letThrough(now, keys, snapshot, decision, running)
	rest := restAfter(e.clock.Since(now))
	e.nextPass, e.nextEntry = e.clock.Now().Add(max(minPassInterval, rest)), e.clock.Now().Add(rest)
}

// mayLackNodes reports whether all workers of an admitted job exist, none of them has a node, and its launcher does not exist: an operator
// that has stopped since may have created the workers although no node can hold them (see letThrough).
func (c *candidate) mayLackNodes(entry gang.Entry) bool {
	return c.byDefault && c.pending.launcher && len(c.pending.workers) == 0 && len(entry.Holds) == 0
}

// estimate estimates when waiting jobs start: all of them every refreshInterval, and earlier for new ones, with pauses as between
// cycles.
func (e *Scheduler) estimate(now time.Time, keys map[types.UID]mpi.ID, snapshot *gang.Snapshot, decision gang.Decision, waits, running []gang.Entry) {
	isNew := slices.ContainsFunc(waits, func(entry gang.Entry) bool {
		return decision.Held[entry.UID].Position > 0 && e.jobs[keys[entry.UID]].start.IsZero()
	})
	if now.Sub(e.estimatedAt) < refreshInterval && (!isNew || now.Before(e.nextEstimate)) {
		return
	}
	begin := e.clock.Now()
	var starts map[types.UID]waiting.Estimate
	autoscaled := e.autoscaled()
	if !autoscaled {
		starts = gang.EstimateStarts(now, snapshot, decision, waits, running, func(uid types.UID) waiting.Job { return e.describeRun(keys[uid]) })
	}
	for _, entry := range waits {
		c := e.jobs[keys[entry.UID]]
		if c.start = starts[entry.UID]; autoscaled {
			c.start = waiting.Estimate{Reason: waiting.Autoscaled}
		}
	}
	e.estimatedAt, e.nextEstimate = now, e.clock.Now().Add(max(minEstimateInterval, estimateFactor*e.clock.Since(begin)))
}

// restAfter returns how long to pause after a cycle that took a time.
func restAfter(took time.Duration) time.Duration { return min(restFactor*took, maxRest) }

// hasWork reports whether there is anything to decide: a job waits, has lost pods, or keeps room.
func (e *Scheduler) hasWork() bool {
	for _, c := range e.jobs {
		if c.admitted.IsZero() || !c.pending.isEmpty() || len(c.reserved) > 0 || c.probe {
			return true
		}
	}
	return false
}

// letThrough has the pods of jobs made though they do not fit:
//   - Without nodes, all: pods block no others there.
//   - With an autoscaler, one job at a time, the longest not tried first: it adds nodes for pods that cannot be scheduled, and no
//     two jobs hold a part of them each.
//   - One job at a time also if the cluster's scheduler would make room for it by preempting pods that this one has not placed (mayPreempt).
//   - Without one, the workers of those of which none ever fits and that have not asked to be placed as a whole: the conditions of these
//     pods show why, and they hold no node. Not those that a queue has admitted, which go back there, and those whose launcher would
//     be created with them.
func (e *Scheduler) letThrough(now time.Time, keys map[types.UID]mpi.ID, snapshot *gang.Snapshot, decision gang.Decision, running []gang.Entry) {
	autoscaled, empty := e.autoscaled(), len(snapshot.Nodes) == 0
	var tried []*candidate
	var short []mpi.ID
	for uid, held := range decision.Held {
		c := e.jobs[keys[uid]]
		switch {
		case empty:
			e.release(now, keys[uid])
			c.free = true
		case held.Never && !held.Partly && c.byDefault && !c.inQueue && !c.gated && !autoscaled:
			e.release(now, keys[uid])
			c.free, c.workersFirst = true, true
		case autoscaled && held.Never, isShortage(held.Reason) && (autoscaled || c.mayPreempt(now)):
			short = append(short, keys[uid])
		}
	}
	for _, c := range e.jobs {
		if c.probe {
			tried = append(tried, c)
		}
	}
	if len(tried) > 0 || len(short) == 0 {
		return
	}
	slices.SortFunc(short, func(a, b mpi.ID) int {
		first, second := e.jobs[a], e.jobs[b]
		return cmp.Or(first.probedAt.Compare(second.probedAt), cmp.Compare(second.priority, first.priority), first.since.Compare(second.since), strings.Compare(a.String(), b.String()))
	})
	next, found := short[0], true
	if !autoscaled {
		// What was admitted in this cycle is not in the snapshot yet.
		next, found = e.fitsByPreemption(short, snapshot, running)
		found = found && len(decision.Admit) == 0
	}
	if found {
		c := e.jobs[next]
		c.probe, c.preempting, c.probedAt = true, !autoscaled, now
		e.release(now, next)
	}
}

// fitsByPreemption returns the first of some waiting jobs for which the cluster's scheduler would make room. It is not to do so while a job of a lower priority
// has what lacks: it would take single pods of that job.
func (e *Scheduler) fitsByPreemption(short []mpi.ID, snapshot *gang.Snapshot, running []gang.Entry) (next mpi.ID, found bool) {
	others := e.others(func(job mpi.ID) bool { return e.jobs[job] != nil })
	lowest, some := others.Lowest()
	if !some {
		return next, false
	}
	tried := 0
	for _, key := range short {
		c := e.jobs[key]
		if c.priority <= lowest {
			continue
		}
		if tried++; tried > mostPreemptions {
			return next, false
		}
		isInDanger := func(other gang.Entry) bool {
			return other.Priority < c.priority && snapshot.Displaces(c.request(), other.Holds)
		}
		if slices.ContainsFunc(running, isInDanger) {
			continue
		}
		if snapshot.FitsByPreemption(c.request(), c.priority, others) {
			return key, true
		}
	}
	return next, false
}

// mayPreempt reports whether the cluster's scheduler may make room for a waiting job: it has not asked to be placed as a whole, and its last turn was long
// ago.
func (c *candidate) mayPreempt(now time.Time) bool {
	return c.byDefault && c.preempts && (c.probedAt.IsZero() || now.Sub(c.probedAt) >= preemptPause)
}

// isShortage reports whether a job waits because there is too little room now.
func isShortage(reason codes.Code) bool {
	return reason == codes.InsufficientCapacity || reason == codes.LauncherUnplaced || reason == codes.TopologyFull
}

// release has the pods of a waiting job made without assigned nodes.
func (e *Scheduler) release(now time.Time, key mpi.ID) {
	c := e.jobs[key]
	c.assign(now, c.pending, gang.Placement{Workers: make([]string, len(c.pending.workers))})
	c.admitted, c.evictionMessage = now, ""
	e.decided = append(e.decided, key)
}

// entry is a job in a scheduling cycle. It reserves room in the snapshot for pods that are decided on but have no node yet.
//
// For a pod that exists, this is the node that it asks for, and what the job's template requests: others than the operator
// can create pods with the job's labels. So there is no room for more pods than the job has, nor more than is free.
func (c *candidate) entry(key mpi.ID, snapshot *gang.Snapshot, pods []cluster.GangPod) gang.Entry {
	entry := gang.Entry{
		UID: c.uid, Namespace: key.Namespace, Name: key.Name, Priority: c.priority, Preempts: c.preempts, Passed: c.passed,
		Since: c.since, Leaving: c.evicted, Request: c.request(),
	}
	if c.admitted.IsZero() {
		return entry
	}
	entry.Since = c.admitted
	holds, unbound := c.countPods(pods, snapshot.At)
	c.reserveRoom(snapshot, unbound, holds)
	for node, amount := range holds {
		entry.Holds = append(entry.Holds, gang.Hold{Node: node, Amount: amount})
	}
	return entry
}

// countPods returns what the pods of a job hold on each node, and which nodes those ask for that are not bound, by name. What
// was decided on and exists is no longer kept for it.
func (c *candidate) countPods(pods []cluster.GangPod, now time.Time) (holds map[string]gang.Totals, unbound map[string]string) {
	holds, unbound = map[string]gang.Totals{}, map[string]string{}
	bound, placed := 0, map[string]bool{}
	for _, pod := range pods {
		if pod.Leaving {
			continue
		}
		name := pod.Name
		if pod.Role == mpi.RoleLauncher {
			name = c.names.LauncherName()
		}
		if pod.Node != "" {
			bound++
			holds[pod.Node] = holds[pod.Node].Plus(pod.Amounts)
			delete(c.reserved, name)
			placed[name] = true
		} else if pod.Assigned != "" {
			unbound[name] = pod.Assigned
		}
		// What is there counts by itself from now on.
		delete(c.assignments, name)
	}
	maps.DeleteFunc(unbound, func(name, _ string) bool { return placed[name] })
	c.updateProbe(now, bound)
	if now.Sub(c.reservedAt) > admissionTimeout {
		// The scheduler does not find what was reserved: others may have it.
		clear(c.reserved)
	}
	return holds, unbound
}

// reserveRoom reserves room in the snapshot for the pods of a job that are decided on, and for those that are not bound, and
// adds it to what the job holds.
func (c *candidate) reserveRoom(snapshot *gang.Snapshot, unbound map[string]string, holds map[string]gang.Totals) {
	decided := maps.Clone(c.assignments)
	maps.Copy(decided, c.reserved)
	if c.evicted || len(decided)+len(unbound) == 0 {
		return
	}
	for _, name := range c.podNames() {
		shape := c.whole.Worker
		if name == c.names.LauncherName() {
			shape = c.whole.Launcher
		}
		node := decided[name]
		if node == "" && shape != nil && snapshot.HasRoom(unbound[name], shape.Requests) {
			node = unbound[name]
		}
		if shape != nil && node != "" {
			snapshot.Take(node, shape.Requests)
			holds[node] = holds[node].Plus(shape.Requests)
		}
	}
}

// podNames are the names of all pods that a job is to have; all of the launcher's tries count as one.
func (c *candidate) podNames() []string {
	all := make([]string, 0, c.whole.Workers+1)
	all = append(all, c.names.LauncherName())
	for index := range c.whole.Workers {
		all = append(all, c.names.WorkerName(index))
	}
	return all
}

// updateProbe ends the turn of a job: all of its pods have a node, or too few got one in time.
func (c *candidate) updateProbe(now time.Time, bound int) {
	limit, failed := probeTimeout, "No nodes for all of its pods were added"
	if c.preempting {
		limit, failed = preemptTimeout, "The cluster's scheduler did not make room for all of its pods"
	}
	switch {
	case !c.probe:
	case bound >= c.whole.Least:
		c.probe = false
	case now.Sub(c.admitted) > limit:
		c.requeue()
		c.admitted, c.evicted, c.evictionReason = now, true, codes.InsufficientCapacity
		c.evictionMessage = fmt.Sprintf("%s within %s; it is tried again after other waiting jobs.", failed, limit)
	}
}

// request is what is to be placed of a job.
func (c *candidate) request() gang.Request {
	request := c.whole
	if !c.pending.launcher {
		request.Launcher = nil
	}
	if request.Workers = len(c.pending.workers); request.Workers == 0 {
		request.Worker = nil
	}
	return request
}

// applyDecision takes a decision over, and notes which jobs it changes.
func (e *Scheduler) applyDecision(now time.Time, keys map[types.UID]mpi.ID, decision gang.Decision) {
	var changed []mpi.ID
	for uid, placed := range decision.Admit {
		key := keys[uid]
		c := e.jobs[key]
		if c.pending.isEmpty() {
			continue
		}
		c.assign(now, c.pending, placed)
		if c.admitted.IsZero() {
			c.admitted, c.passed, c.evictionMessage = now, placed.Passed, ""
		}
		changed = append(changed, key)
	}
	autoscaled := e.autoscaled()
	for uid, held := range decision.Held {
		c := e.jobs[keys[uid]]
		if held.Never && autoscaled {
			held.Never, held.Message = false, held.Message+" The cluster has an autoscaler, which may add them."
		}
		if c.held == nil || c.held.Reason != held.Reason {
			changed = append(changed, keys[uid])
		}
		c.held = &held
	}
	for uid, why := range decision.Evict {
		c := e.jobs[keys[uid]]
		c.requeue()
		c.admitted, c.evicted, c.evictionReason = now, true, codes.Preempted
		c.evictionMessage = codes.Status(codes.Preempted, map[string]string{
			"time": now.UTC().Format(time.TimeOnly + " MST"), "want": strconv.Itoa(int(why.Over)), "have": strconv.Itoa(int(why.Priority)),
		})
		changed = append(changed, keys[uid])
	}
	slices.SortFunc(changed, func(a, b mpi.ID) int { return strings.Compare(a.String(), b.String()) })
	e.decided = append(e.decided, changed...)
}

// gangState returns the state that the job's reconcile reports.
func (c *candidate) gangState(job mpi.Job) *jobstate.GangState {
	state := &jobstate.GangState{Backend: gang.Embedded}
	switch {
	case c.evicted:
		state.Hold, state.Evict, state.Reason, state.Message = true, true, c.evictionReason, c.evictionMessage
	case c.pending.isEmpty():
		state.Nodes = maps.Clone(c.assignments)
		state.Free, state.WorkersFirst, state.Turn = c.free, c.workersFirst, c.probe
		switch {
		case c.probe && c.preempting:
			state.Message = "Its pods are created so that the cluster's scheduler preempts pods of a lower priority."
		case c.probe:
			state.Message = "Its pods are created so that the autoscaler adds nodes."
		}
	case c.held == nil:
		// Report at once that its pods were stopped: later would be too late for the job's timeline.
		state.Hold, state.Reason, state.Message = true, codes.CapacityUnknown, cmp.Or(c.evictionMessage, codes.Status(codes.CapacityUnknown, nil))
	default:
		held := c.held
		state.Hold, state.Never, state.Reason, state.Message = true, held.Never, held.Reason, held.Message
		state.PodsFit, state.NodesFit, state.NodesTotal = new(min(held.PodsFit, job.Pods())), new(held.NodesFit), new(held.NodesTotal)
		if held.Position > 0 {
			state.Position, state.Scope, state.Start = roundPosition(held.Position), "among jobs waiting for capacity (approximate)", c.start
		}
		if c.evictionMessage != "" {
			state.Message = c.evictionMessage + " " + state.Message
		}
	}
	return state
}

// roundPosition is a place in line, far behind to the next ten: it changes with each job that is let in, and has to be written
// for all.
func roundPosition(position int32) int32 {
	if position > 100 {
		return (position + 9) / 10 * 10
	}
	return position
}
