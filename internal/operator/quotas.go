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
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"opendatahub.io/mpijob/internal/cluster"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/plan"
	"opendatahub.io/mpijob/internal/quota"
)

const (
	// reservedFor is how long the room that a job was let into is kept from others while its pods are being made: quotas
	// count them only then.
	reservedFor = 20 * time.Second
	// shortFor is how long a job that waits is told the same: figures of what others use change all the time.
	shortFor = 30 * time.Second
	// frontRow is how many jobs that wait in a namespace are told that others use less.
	frontRow = 16
)

// quotas tells what the ResourceQuotas of namespaces lack for jobs that have no pods yet.
type quotas struct {
	cluster  *cluster.Cluster
	settings plan.Settings

	mu sync.Mutex
	// jobs are those that wait for room or have just got it, by namespace.
	jobs map[string]map[types.UID]*claim
}

// claim is a job with what it asks for.
type claim struct {
	kind    string
	request reconcile.Request
	pods    []quota.Pods
	// since is when it was seen first; ours is set where it has no pods before all of them fit.
	since time.Time
	ours  bool
	// until is when the room is no longer kept for it; zero while it waits.
	until time.Time
	// told is what it was told at a time; never is set where waiting does not help it.
	told  []mpi.Shortage
	never bool
	at    time.Time
}

// addQuotas keeps the quotas of namespaces at hand.
func addQuotas(ctx context.Context, m manager.Manager, c *cluster.Cluster, settings plan.Settings) (*quotas, error) {
	for _, object := range []client.Object{&corev1.ResourceQuota{}, &corev1.LimitRange{}} {
		if _, err := m.GetCache().GetInformer(ctx, object); err != nil {
			return nil, fmt.Errorf("watch %T: %w", object, err)
		}
	}
	return &quotas{cluster: c, settings: settings, jobs: map[string]map[types.UID]*claim{}}, nil
}

// of is what quotas lack for a job that has no pods yet. For one that is suspended it is what they can never give. It is
// advice: where quotas cannot be read there is none.
func (q *quotas) of(ctx context.Context, job mpi.Job, seen mpi.Observed) []mpi.Shortage {
	if job.Past.Finish != nil || job.Lifecycle.Deleting {
		q.forget(job.Namespace, job.UID)
		return nil
	}
	if len(seen.Workers) > 0 || len(seen.LauncherPods) > 0 {
		if len(seen.Workers) >= int(job.Workers.Count) && len(seen.LauncherPods) > 0 {
			q.forget(job.Namespace, job.UID)
		}
		return nil
	}
	launcher, worker := job.Launcher.Template, job.Workers.Template
	if job.Names.PodLabel == "" {
		// Those of another kind's job are made elsewhere.
		launcher, worker = plan.Templates(job, q.settings)
	}
	pods, have, err := q.cluster.Asked(ctx, job, launcher, worker)
	if err != nil {
		log.FromContext(ctx).Error(err, "what quotas say of the job is not known")
		return nil
	}
	if len(have) == 0 {
		q.forget(job.Namespace, job.UID)
		return nil
	}
	if job.Lifecycle.Suspended {
		q.forget(job.Namespace, job.UID)
		never, _ := mpi.SplitShortages(quota.Shortages(pods, nil, have))
		return never
	}
	return q.claim(job, pods, have, seen.Now)
}

// claim takes room for a job, or has it wait.
func (q *quotas) claim(job mpi.Job, pods []quota.Pods, have []mpi.Quota, now time.Time) []mpi.Shortage {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := q.jobs[job.Namespace]
	if all == nil {
		all = map[types.UID]*claim{}
		q.jobs[job.Namespace] = all
	}
	own := all[job.UID]
	if own == nil {
		own = &claim{kind: job.Kind, request: reconcile.Request{NamespacedName: job.Key()}, since: now}
		all[job.UID] = own
	}
	own.pods, own.ours = pods, job.Names.PodLabel == ""
	var ahead []quota.Pods
	for uid, other := range all {
		switch {
		case uid == job.UID:
		case !other.until.IsZero() && now.After(other.until):
			delete(all, uid)
		case !other.until.IsZero(), other.before(own):
			ahead = append(ahead, other.pods...)
		}
	}
	switch short := quota.ShortagesAfter(ahead, pods, have); {
	case len(short) == 0 && own.until.IsZero():
		own.told, own.until = nil, now.Add(reservedFor)
	case len(short) == 0:
		own.told = nil
	default:
		own.until = time.Time{}
		if !slices.EqualFunc(own.told, short, alike) || now.Sub(own.at) >= shortFor || now.Before(own.at) {
			own.told, own.at = short, now
		}
	}
	own.never = slices.ContainsFunc(own.told, mpi.Shortage.Never)
	return own.told
}

// settle gives back the room that a job was let into and does not use yet, since it waits for something else. It says
// after what time to look again; 0: not before something happens.
func (q *quotas) settle(job mpi.Job, seen mpi.Observed, out mpi.Outcome) time.Duration {
	if !out.PodsMayStart {
		q.mu.Lock()
		defer q.mu.Unlock()
		if c := q.jobs[job.Namespace][job.UID]; c != nil {
			c.until = time.Time{}
		}
	}
	if len(seen.Shortages) > 0 && !job.Lifecycle.Suspended {
		return shortFor
	}
	return 0
}

// alike tells whether two shortages differ in no more than what others use.
func alike(a, b mpi.Shortage) bool {
	return a.Quota == b.Quota && a.Resource == b.Resource && a.Hard.Cmp(b.Hard) == 0 && a.Asked.Cmp(b.Asked) == 0
}

// before tells whether a job that waits has the first turn: it came earlier, and there will be room for it.
func (c *claim) before(other *claim) bool {
	return c.ours && len(c.told) > 0 && !c.never && c.order(other) < 0
}

func (c *claim) order(other *claim) int {
	if earlier := c.since.Compare(other.since); earlier != 0 {
		return earlier
	}
	return cmp.Or(strings.Compare(c.request.String(), other.request.String()), strings.Compare(c.kind, other.kind))
}

func (q *quotas) forget(namespace string, job types.UID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.jobs[namespace], job)
	if len(q.jobs[namespace]) == 0 {
		delete(q.jobs, namespace)
	}
}

// forgetJob drops what is known of a job that is gone.
func (q *quotas) forgetJob(kind string, job types.NamespacedName) {
	q.mu.Lock()
	defer q.mu.Unlock()
	maps.DeleteFunc(q.jobs[job.Namespace], func(_ types.UID, c *claim) bool { return c.kind == kind && c.request.NamespacedName == job })
	if len(q.jobs[job.Namespace]) == 0 {
		delete(q.jobs, job.Namespace)
	}
}

// waiting are the jobs of a kind in a namespace that quotas lack something for, those that came first before others. Of many only the first: it
// is theirs to go next, and the others look for themselves now and then.
func (q *quotas) waiting(kind, namespace string) []reconcile.Request {
	q.mu.Lock()
	defer q.mu.Unlock()
	var claims []*claim
	for _, c := range q.jobs[namespace] {
		if c.kind == kind && len(c.told) > 0 {
			claims = append(claims, c)
		}
	}
	slices.SortFunc(claims, (*claim).order)
	claims = claims[:min(len(claims), frontRow)]
	requests := make([]reconcile.Request, len(claims))
	for i, c := range claims {
		requests[i] = c.request
	}
	return requests
}

// events have a pass follow when a quota changes: over all jobs of its namespace when it gives another amount, and over
// those that wait when another amount is in use.
func (q *quotas) events(kind string, list func(ctx context.Context, namespace string) ([]reconcile.Request, error)) handler.Funcs {
	add := func(into queue, requests []reconcile.Request) {
		for _, request := range requests {
			into.AddAfter(request, soon)
		}
	}
	all := func(ctx context.Context, into queue, object client.Object) {
		requests, err := list(ctx, object.GetNamespace())
		if err != nil {
			log.FromContext(ctx).Error(err, "jobs are told of a changed quota later")
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
				add(into, q.waiting(kind, after.Namespace))
				return
			}
			all(ctx, into, e.ObjectNew)
		},
	}
}
