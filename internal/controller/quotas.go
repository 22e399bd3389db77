package controller

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
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"opendatahub.io/mpijob/internal/cluster"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/plan"
	"opendatahub.io/mpijob/internal/quota"
	"opendatahub.io/mpijob/internal/waiting"
)

const (
	// reservedFor is how long room is reserved for a job while its pods are being created: quotas count them only then.
	reservedFor = 20 * time.Second
	// shortageRefresh is how often the shortages of a waiting job are updated if only the usage of others changes.
	shortageRefresh = 30 * time.Second
	// quotaWarmUp is the time after the start in which no job gets room: until then not all waiting jobs have been seen, and the first
	// ones seen may be the last in line.
	quotaWarmUp = 2 * time.Second
	// newTurnInterval is the shortest time between two estimates for the jobs of a namespace.
	newTurnInterval = 2 * time.Second
	// maxNext is how many waiting jobs of a namespace are reconciled when the usage of a quota changes.
	maxNext = 16
)

// quotas holds the jobs without pods against the ResourceQuotas of their namespaces, and reserves room for those that may
// start.
type quotas struct {
	cluster  *cluster.Cluster
	settings plan.Settings

	// describeRun returns what is known about the end of a job.
	describeRun func(mpi.ID) waiting.Job

	mu sync.Mutex
	// start is when this process began to reconcile jobs.
	start time.Time
	// running are the jobs with pods, by namespace, and turns are the places of those that wait.
	running map[string]map[types.UID]quotaRun
	turns   map[string]quotaTurns
	// jobs are the claims of jobs that wait for room or have just got it, by namespace.
	jobs map[string]claims
}

// quotaRun is what a job with pods uses of the quotas of its namespace.
type quotaRun struct {
	job        mpi.ID
	generation int64
	pods       []quota.Pods
	// ended is set while the pods of a job that has ended are being deleted.
	ended bool
}

// quotaTurns are the places of the jobs of a namespace that wait for quota, as they were at a time.
type quotaTurns struct {
	at    time.Time
	byJob map[types.UID]jobstate.Turn
}

// claims are the claims of the jobs of a namespace.
type claims map[types.UID]*claim

// claim is what a job requests of the quotas of its namespace.
type claim struct {
	kind    string
	request reconcile.Request
	pods    []quota.Pods
	// created is when the job was created, and since when it was first seen. managed is set if it has no pods before all of them fit.
	created, since time.Time
	managed        bool
	// unsettled is set if the job was last seen in the warm-up: it goes before younger jobs, whether there is room for it or not.
	unsettled bool
	// until is when the room is no longer reserved for the job; zero while it waits.
	until time.Time
	// shortages are what was reported to the job at a time. never is set if waiting does not help.
	shortages []quota.Shortage
	never     bool
	at        time.Time
}

// quotaRequest is what a job needs of the quotas of its namespace.
type quotaRequest struct {
	namespace string
	job       types.UID
	change    claimChange
	// claim is the job's claim as of now, and have are the quotas, for a job that is to have a claim.
	claim claim
	have  []quota.Quota
	now   time.Time
	// warmUp is how long a job that may have room waits until its claim is settled; 0: it is settled.
	warmUp time.Duration
	// shortages are what quotas lack for the job.
	shortages []quota.Shortage
	// turn is its place among those that wait; nil if it waits for none.
	turn *jobstate.Turn
	// run is what its pods use; nil if it has none, or they use no quota.
	run *quotaRun
}

// claimChange is a change of a job's claim.
type claimChange int

const (
	// keepClaim is for a job whose pods are being created.
	keepClaim claimChange = iota
	dropClaim
	makeClaim
)

// addQuotas watches the quotas and LimitRanges of all namespaces.
func addQuotas(ctx context.Context, m manager.Manager, c *cluster.Cluster, settings plan.Settings, describeRun func(mpi.ID) waiting.Job) (*quotas, error) {
	for _, object := range []client.Object{&corev1.ResourceQuota{}, &corev1.LimitRange{}} {
		if _, err := m.GetCache().GetInformer(ctx, object); err != nil {
			return nil, fmt.Errorf("watch %T: %w", object, err)
		}
	}
	q := &quotas{
		cluster: c, settings: settings, describeRun: describeRun,
		jobs: map[string]claims{}, running: map[string]map[types.UID]quotaRun{}, turns: map[string]quotaTurns{},
	}
	// It runs when this process leads.
	err := m.Add(manager.RunnableFunc(func(context.Context) error {
		q.warmUpLeft(clock.RealClock{}.Now())
		return nil
	}))
	if err != nil {
		return nil, fmt.Errorf("add warm-up of quotas: %w", err)
	}
	return q, nil
}

// warmUpLeft returns how long no job gets room yet. The first call begins the warm-up.
func (q *quotas) warmUpLeft(now time.Time) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.start.IsZero() {
		q.start = now
	}
	return max(0, q.start.Add(quotaWarmUp).Sub(now))
}

// observe returns what quotas lack for a job that has no pods yet; for a suspended job, what they can never provide. It
// reserves nothing. It is advice: if quotas cannot be read there is none.
func (q *quotas) observe(ctx context.Context, job mpi.Job, seen jobstate.Observed) quotaRequest {
	request := quotaRequest{namespace: job.Namespace, job: job.UID, now: seen.Now}
	switch {
	case job.Recorded.Finish != nil:
		request.change = dropClaim
		if slices.ContainsFunc(seen.AllPods(), func(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil }) {
			if request.run = q.runOf(ctx, job); request.run != nil {
				request.run.ended = true
			}
		}
		return request
	case len(seen.Workers) > 0 || len(seen.LauncherPods) > 0:
		if len(seen.Workers) >= int(job.Workers.Count) && len(seen.LauncherPods) > 0 {
			request.change = dropClaim
		}
		request.run = q.runOf(ctx, job)
		return request
	}
	pods, have, err := q.asked(ctx, job)
	switch {
	case err != nil:
		log.FromContext(ctx).Error(err, "the job is not compared with the quotas of its namespace")
		return request
	case len(have) == 0:
		request.change = dropClaim
		return request
	case job.Lifecycle.Suspended:
		request.change = dropClaim
		request.shortages, _ = quota.SplitShortages(quota.Shortages(pods, nil, have))
		return request
	}
	request.change, request.have = makeClaim, have
	request.claim = claim{kind: job.Kind, request: reconcile.Request{NamespacedName: job.Key()}, pods: pods, created: job.Created, managed: job.ControlsPods()}
	left := q.warmUpLeft(seen.Now)
	request.claim.unsettled = request.claim.managed && left > 0
	q.mu.Lock()
	defer q.mu.Unlock()
	request.claim = q.jobs[job.Namespace].assess(request)
	request.shortages = request.claim.shortages
	if request.claim.unsettled && len(request.shortages) == 0 {
		request.warmUp = left
	}
	if len(request.shortages) > 0 && request.claim.managed && !request.claim.never {
		request.turn = q.turnOf(request)
	}
	return request
}

// asked returns what a job requests of the quotas of its namespace, and the quotas. It reads caches only.
func (q *quotas) asked(ctx context.Context, job mpi.Job) ([]quota.Pods, []quota.Quota, error) {
	//nolint:wrapcheck // callers log it
	return q.cluster.Asked(ctx, job, func() (launcher, worker corev1.PodTemplateSpec) {
		if job.External {
			return job.Launcher.Template, job.Workers.Template
		}
		return plan.Templates(job, q.settings)
	})
}

// runOf returns what a job with pods uses of quotas.
func (q *quotas) runOf(ctx context.Context, job mpi.Job) *quotaRun {
	q.mu.Lock()
	known, found := q.running[job.Namespace][job.UID]
	q.mu.Unlock()
	if found && known.generation == job.Generation {
		return &known
	}
	pods, have, err := q.asked(ctx, job)
	if err != nil || len(have) == 0 {
		return nil
	}
	return &quotaRun{job: job.ID(), generation: job.Generation, pods: pods}
}

// turnOf returns a job's place among those that wait for the quotas of its namespace. All places are computed at once, and are used
// for shortageRefresh; a new job causes that earlier. The mutex is held.
func (q *quotas) turnOf(r quotaRequest) *jobstate.Turn {
	known := q.turns[r.namespace]
	turn, found := known.byJob[r.job]
	if age := r.now.Sub(known.at); known.byJob == nil || age < 0 || age >= shortageRefresh || !found && age >= newTurnInterval {
		known = quotaTurns{at: r.now, byJob: q.estimate(r)}
		q.turns[r.namespace] = known
		turn, found = known.byJob[r.job]
	}
	if !found {
		return nil
	}
	return &turn
}

// estimate returns the places of all jobs that wait for the quotas of a namespace, among them that of a request, and when they are
// expected to start.
func (q *quotas) estimate(r quotaRequest) map[types.UID]jobstate.Turn {
	claims := maps.Clone(q.jobs[r.namespace])
	if claims == nil {
		claims = map[types.UID]*claim{}
	}
	own := r.claim
	claims[r.job] = &own
	var line []types.UID
	var running, waits []waiting.Job
	var used, wanted [][]quota.Pods
	var reserved []quota.Pods
	for _, uid := range slices.SortedFunc(maps.Keys(claims), func(a, b types.UID) int { return claims[a].order(claims[b]) }) {
		switch c := claims[uid]; {
		case c.isExpired(r.now):
			delete(claims, uid)
		case !c.until.IsZero():
			// Its pods are being created.
			reserved = append(reserved, c.pods...)
			running, used = append(running, q.describeRun(c.id())), append(used, c.pods)
		case c.managed && len(c.shortages) > 0 && !c.never:
			line = append(line, uid)
			waits, wanted = append(waits, q.describeRun(c.id())), append(wanted, c.pods)
		}
	}
	runs := q.running[r.namespace]
	for _, uid := range slices.Sorted(maps.Keys(runs)) {
		if _, reserves := claims[uid]; reserves {
			continue
		}
		job := q.describeRun(runs[uid].job)
		if runs[uid].ended {
			job = waiting.Job{Namespace: job.Namespace, Name: job.Name, Start: r.now.Add(-time.Second), Deadline: time.Second}
		}
		running, used = append(running, job), append(used, runs[uid].pods)
	}
	starts := waiting.Starts(r.now, waits, running, func() waiting.Room { return quota.NewRoom(r.have, reserved, used, wanted) })
	turns := make(map[types.UID]jobstate.Turn, len(line))
	for i, uid := range line {
		turns[uid] = jobstate.Turn{Position: int32(i + 1), Start: starts[i]}
	}
	return turns
}

// id returns the job of a claim.
func (c *claim) id() mpi.ID {
	return mpi.ID{Kind: c.kind, Namespace: c.request.Namespace, Name: c.request.Name}
}

// assess returns the claim of a job given the claims of others: reserved if there is room for it after those, else with
// what quotas lack.
func (all claims) assess(r quotaRequest) claim {
	next := r.claim
	next.since, next.until, next.shortages, next.at = r.now, time.Time{}, nil, time.Time{}
	before := all[r.job]
	if before != nil {
		next.since, next.until, next.at = before.since, before.until, before.at
	}
	var ahead []quota.Pods
	for uid, other := range all {
		if uid != r.job && !other.isExpired(r.now) && (!other.until.IsZero() || other.before(&next)) {
			ahead = append(ahead, other.pods...)
		}
	}
	switch short := quota.ShortagesAfter(ahead, next.pods, r.have); {
	case len(short) == 0 && next.until.IsZero() && !next.unsettled:
		next.until = r.now.Add(reservedFor)
	case len(short) == 0:
	case before != nil && slices.EqualFunc(before.shortages, short, sameShortage) && r.now.Sub(before.at) < shortageRefresh && !r.now.Before(before.at):
		next.until, next.shortages = time.Time{}, before.shortages
	default:
		next.until, next.shortages, next.at = time.Time{}, short, r.now
	}
	next.never = slices.ContainsFunc(next.shortages, quota.Shortage.Never)
	return next
}

// isExpired reports whether a reservation has ended.
func (c *claim) isExpired(now time.Time) bool { return !c.until.IsZero() && now.After(c.until) }

// reserve makes the claim of a request. Room is only kept for a job that may start. It returns false if other jobs have
// taken the room since, or have left room for this one.
func (q *quotas) reserve(r quotaRequest, mayStart bool) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.setRun(r)
	all := q.jobs[r.namespace]
	switch r.change {
	case dropClaim:
		q.drop(r.namespace, r.job)
		return true
	case makeClaim:
		next := all.assess(r)
		if (len(next.shortages) == 0) != (len(r.shortages) == 0) {
			return false
		}
		if all == nil {
			all = claims{}
			q.jobs[r.namespace] = all
		}
		maps.DeleteFunc(all, func(uid types.UID, other *claim) bool { return uid != r.job && other.isExpired(r.now) })
		all[r.job] = &next
	}
	if own := all[r.job]; own != nil && !mayStart {
		own.until = time.Time{}
	}
	return true
}

// setRun keeps what the pods of a job use. The mutex is held.
func (q *quotas) setRun(r quotaRequest) {
	if r.run == nil {
		delete(q.running[r.namespace], r.job)
		if len(q.running[r.namespace]) == 0 {
			delete(q.running, r.namespace)
		}
		return
	}
	if q.running[r.namespace] == nil {
		q.running[r.namespace] = map[types.UID]quotaRun{}
	}
	q.running[r.namespace][r.job] = *r.run
}

// refreshIn returns the time until the shortages of a job are computed again; 0: when a quota changes.
func (r quotaRequest) refreshIn(job mpi.Job) time.Duration {
	if len(r.shortages) > 0 && !job.Lifecycle.Suspended && job.ControlsPods() {
		return shortageRefresh
	}
	return 0
}

// sameShortage reports whether two shortages only differ in the usage of others.
func sameShortage(a, b quota.Shortage) bool {
	return a.Quota == b.Quota && a.Resource == b.Resource && a.Hard.Cmp(b.Hard) == 0 && a.Asked.Cmp(b.Asked) == 0
}

// before reports whether a waiting job goes first: it is older, and there will be room for it.
func (c *claim) before(other *claim) bool {
	return c.managed && (c.unsettled || len(c.shortages) > 0) && !c.never && c.order(other) < 0
}

// order compares by the creation of jobs, which has whole seconds, and then by when they were first seen.
func (c *claim) order(other *claim) int {
	return cmp.Or(c.created.Compare(other.created), c.since.Compare(other.since),
		strings.Compare(c.request.String(), other.request.String()), strings.Compare(c.kind, other.kind))
}

// drop removes the claim of a job. The mutex is held.
func (q *quotas) drop(namespace string, job types.UID) {
	delete(q.jobs[namespace], job)
	if len(q.jobs[namespace]) == 0 {
		delete(q.jobs, namespace)
		delete(q.turns, namespace)
	}
}

// forgetJob removes the claims of a job that no longer exists.
func (q *quotas) forgetJob(kind string, job types.NamespacedName) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for uid, c := range q.jobs[job.Namespace] {
		if c.kind == kind && c.request.NamespacedName == job {
			q.drop(job.Namespace, uid)
		}
	}
	for uid, run := range q.running[job.Namespace] {
		if run.job.Kind == kind && run.job.Name == job.Name {
			q.setRun(quotaRequest{namespace: job.Namespace, job: uid})
		}
	}
}

// nextInLine returns up to maxNext jobs of a kind in a namespace that wait for quota, oldest first. The others are
// reconciled every shortageRefresh.
func (q *quotas) nextInLine(kind, namespace string) []reconcile.Request {
	q.mu.Lock()
	defer q.mu.Unlock()
	var claims []*claim
	for _, c := range q.jobs[namespace] {
		if c.kind == kind && len(c.shortages) > 0 {
			claims = append(claims, c)
		}
	}
	slices.SortFunc(claims, (*claim).order)
	claims = claims[:min(len(claims), maxNext)]
	requests := make([]reconcile.Request, len(claims))
	for i, c := range claims {
		requests[i] = c.request
	}
	return requests
}

// eventHandler enqueues jobs when a quota changes: all jobs of its namespace if its limits change, and those that wait if
// its usage changes.
func (q *quotas) eventHandler(kind string, list func(ctx context.Context, namespace string) ([]reconcile.Request, error)) handler.Funcs {
	add := func(into queue, requests []reconcile.Request) {
		for _, request := range requests {
			into.AddAfter(request, batchDelay)
		}
	}
	all := func(ctx context.Context, into queue, object client.Object) {
		requests, err := list(ctx, object.GetNamespace())
		if err != nil {
			log.FromContext(ctx).Error(err, "jobs are compared with a changed quota later")
			return
		}
		add(into, requests)
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, into queue) {
			if !e.IsInInitialList {
				all(ctx, into, e.Object)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, into queue) { all(ctx, into, e.Object) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, into queue) {
			before, isQuota := e.ObjectOld.(*corev1.ResourceQuota)
			after, isStill := e.ObjectNew.(*corev1.ResourceQuota)
			if isQuota && isStill && equality.Semantic.DeepEqual(before.Spec, after.Spec) {
				add(into, q.nextInLine(kind, after.Namespace))
				return
			}
			all(ctx, into, e.ObjectNew)
		},
	}
}
