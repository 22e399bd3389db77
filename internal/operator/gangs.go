package operator

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/cluster"
	"opendatahub.io/mpijob/internal/gang"
	"opendatahub.io/mpijob/internal/mpi"
)

// placer is a back end that decides by itself which job's pods may be made, and where they go.
type placer interface {
	// of is where a job stands with it. The past is what the job's record says of its waiting so far; nil: nothing. A job
	// that was put back is not asked about while it rests.
	of(ctx context.Context, job mpi.Job, seen mpi.Observed, past *v1alpha1.SchedulingStatus) (*mpi.GangState, error)
	// forget drops what is kept of a job that waits no longer, for whatever reason, or was put back.
	forget(job types.NamespacedName)
}

// gangs tells what places jobs as a whole, and what that says of them.
type gangs struct {
	// setting is the operator's flag --gang-scheduling.
	setting string
	reports *reporter
	// embedded is nil where the operator places no jobs itself.
	embedded placer
	// apis are those of PodGroups, one of each of gang.Backends.
	apis []*podGroups
}

// podGroups are those of one API.
type podGroups struct {
	backend string
	kind    schema.GroupVersionKind
	// served is set while the cluster has the API, as each replica finds out for itself: all of them answer webhooks.
	served atomic.Bool
	// known is set where it was served from the start: no job is then started otherwise before it is read.
	known bool
	// reader reads from a cache; it is there once filled is closed.
	reader client.Reader
	filled chan struct{}
}

// filling is how long a pass waits for a cache of PodGroups that is being filled: some milliseconds are usual.
const filling = 10 * time.Second

// addGangs reads PodGroups from when the cluster has them.
func addGangs(ctx context.Context, m manager.Manager, config *rest.Config, options Options, news *queues, reports *reporter) (*gangs, error) {
	g := &gangs{setting: options.GangScheduling, reports: reports}
	if g.setting == "" {
		g.setting = gang.Auto
	}
	served, err := discovery.NewDiscoveryClientForConfigAndClient(config, m.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("set up asking what the cluster has: %w", err)
	}
	for _, backend := range gang.Backends {
		of := &podGroups{backend: backend.Name(), kind: backend.Kind(), filled: make(chan struct{})}
		g.apis = append(g.apis, of)
		what := "PodGroup of " + of.kind.GroupVersion().String()
		kinds := []schema.GroupVersionKind{of.kind}
		of.known = installed(ctx, m.GetRESTMapper(), what, kinds)
		of.served.Store(of.known)
		if err := m.Add(tracker{podGroups: of, discovery: served}); err != nil {
			return nil, fmt.Errorf("add tracking of %s: %w", what, err)
		}
		err := m.Add(whenInstalled(m, what, kinds, func(ctx context.Context) error {
			of.served.Store(true)
			return of.start(ctx, m, config, options, news)
		}))
		if err != nil {
			return nil, fmt.Errorf("add reading of %s: %w", what, err)
		}
	}
	return g, nil
}

// lookForAPI is how often it is looked whether the cluster has an API.
const lookForAPI = 10 * time.Second

// tracker notices that an API has come, or has gone with its feature gate or its definition: jobs whose PodGroups can be
// neither read nor written would else be stuck. It works in every replica.
type tracker struct {
	*podGroups
	discovery discovery.ServerResourcesInterface
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (tracker) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (t tracker) Start(ctx context.Context) error {
	ticker := time.NewTicker(lookForAPI)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		list, err := t.discovery.ServerResourcesForGroupVersion(t.kind.GroupVersion().String())
		if err != nil && !apierrors.IsNotFound(err) {
			// An API server that does not answer has lost nothing.
			continue
		}
		served := err == nil && slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Kind == t.kind.Kind })
		if was := t.served.Swap(served); was != served {
			log.FromContext(ctx).Info("an API of PodGroups came or went", "api", t.kind.GroupVersion().String(), "there", served)
		}
	}
}

// there tells whether passes over jobs go by the API: as long as the cluster has it, once it is read.
func (p *podGroups) there() bool {
	select {
	case <-p.filled:
		return p.served.Load()
	default:
		return p.known && p.served.Load()
	}
}

// start watches the PodGroups of an API.
func (p *podGroups) start(ctx context.Context, m manager.Manager, config *rest.Config, options Options, news *queues) error {
	reader, err := follow(ctx, m, config, p.kind, cache.Options{DefaultTransform: cache.TransformStripManagedFields()}, options, news.tell)
	if reader == nil || err != nil {
		return err
	}
	p.reader = reader
	close(p.filled)
	return nil
}

// of are the PodGroups of a job.
func (p *podGroups) of(ctx context.Context, job mpi.Job) ([]*unstructured.Unstructured, error) {
	if !p.there() {
		return nil, nil
	}
	select {
	case <-p.filled:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(filling):
		return nil, fmt.Errorf("%s are not read yet", p.kind)
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(p.kind.GroupVersion().WithKind(p.kind.Kind + "List"))
	if err := p.reader.List(ctx, list, client.InNamespace(job.Namespace), client.MatchingFields{cluster.ByOwner: string(job.UID)}); err != nil {
		return nil, fmt.Errorf("list %s of %s %s: %w", p.kind, job.Kind, job.Key(), err)
	}
	return pointers(list.Items), nil
}

// observe adds to what was seen of a job what places it as a whole, if anything does.
func (g *gangs) observe(ctx context.Context, job mpi.Job, seen *mpi.Observed) error {
	for _, api := range g.apis {
		found, err := api.of(ctx, job)
		if err != nil {
			return err
		}
		seen.PodGroups = append(seen.PodGroups, found...)
	}
	var choice gang.Choice
	if job.Past.Finish == nil && !job.Lifecycle.Suspended {
		choice = gang.Choose(g.setting, g.has, job)
	}
	if choice.Backend == "" || choice.Backend == gang.Embedded && g.embedded == nil {
		g.forget(job.Key())
		return nil
	}
	past, ran, err := g.reports.scheduling(ctx, job)
	if err != nil {
		return err
	}
	state := gang.State(choice, job, *seen)
	before := pastOf(past)
	before.Ran = ran
	switch {
	case choice.Backend != gang.Embedded:
		g.room(ctx, job, *seen, &state)
	case gang.Rests(job, *seen, before):
		g.forget(job.Key())
		g.room(ctx, job, *seen, &state)
	default:
		// What room there is it says itself, once it has looked.
		said, err := g.embedded.of(ctx, job, *seen, past)
		if err != nil {
			return err
		}
		if said != nil {
			said.Backend, said.Placed, said.Wanted = state.Backend, state.Placed, state.Wanted
			state = *said
		}
	}
	state = gang.Clock(job, *seen, before, state)
	seen.Gang = &state
	return nil
}

// follow adds to what was seen of a job that another controller runs what its PodGroup says, if it has one.
func (g *gangs) follow(ctx context.Context, job mpi.Job, seen *mpi.Observed) error {
	if job.Past.Finish != nil || job.Lifecycle.Suspended {
		return nil
	}
	for _, api := range g.apis {
		found, err := api.of(ctx, job)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			continue
		}
		seen.PodGroups = found
		state := gang.State(gang.Choice{Backend: api.backend}, job, *seen)
		g.room(ctx, job, *seen, &state)
		seen.Gang = &state
		return nil
	}
	return nil
}

// room adds to the state of a job that waits how much room there is, where its back end does not say.
func (g *gangs) room(ctx context.Context, job mpi.Job, seen mpi.Observed, state *mpi.GangState) {
	if !state.Waits() || state.Never || state.PodsFit != nil {
		return
	}
	if nodes := g.reports.nodes(ctx); len(nodes) > 0 {
		gang.Fits(job, seen, nodes, state)
	}
}

// check tells why the pods of a new job cannot be placed together, as an error where its user can mend that, else as a
// warning.
func (g *gangs) check(job mpi.Job) (field.ErrorList, []string) {
	switch choice := gang.Choose(g.setting, g.serves, job); {
	case choice.Wrong == "":
		return nil, nil
	case !g.serves(choice.Backend):
		return nil, []string{choice.Wrong}
	default:
		return field.ErrorList{field.Forbidden(job.Fields.Gang, choice.Wrong)}, nil
	}
}

// forget drops what is kept of a job that is gone, or waits no longer.
func (g *gangs) forget(job types.NamespacedName) {
	if g.embedded != nil {
		g.embedded.forget(job)
	}
}

// has tells whether the API of a back end is read.
func (g *gangs) has(backend string) bool {
	return slices.ContainsFunc(g.apis, func(p *podGroups) bool { return p.backend == backend && p.there() })
}

// serves tells whether the cluster has the API of a back end, though this replica may not work.
func (g *gangs) serves(backend string) bool {
	return slices.ContainsFunc(g.apis, func(p *podGroups) bool { return p.backend == backend && p.served.Load() })
}

// pastOf is what a job's record says of its waiting so far.
func pastOf(record *v1alpha1.SchedulingStatus) gang.Past {
	if record == nil {
		return gang.Past{}
	}
	past := gang.Past{Attempts: record.Attempts}
	if record.Since != nil {
		past.Since = record.Since.Time
	}
	if record.EvictedAt != nil {
		past.EvictedAt = record.EvictedAt.Time
	}
	if record.NextTry != nil {
		past.NextTry = record.NextTry.Time
	}
	return past
}

// nodes are the cluster's; nil where they are not known.
func (r *reporter) nodes(ctx context.Context) []mpi.Node {
	if r == nil {
		return nil
	}
	return r.gatherer.Nodes(ctx)
}

// scheduling is what a job's record says of its waiting, and whether all of its pods have run at a time; nil where it says
// nothing, or is not kept.
func (r *reporter) scheduling(ctx context.Context, job mpi.Job) (waits *v1alpha1.SchedulingStatus, ran bool, err error) {
	if r == nil {
		return nil, false, nil
	}
	var report v1alpha1.JobReport
	err = r.client.Get(ctx, client.ObjectKey{Namespace: job.Namespace, Name: job.ReportName()}, &report)
	if client.IgnoreNotFound(err) != nil {
		return nil, false, fmt.Errorf("read report of %s %s: %w", job.Kind, job.Key(), err)
	}
	return report.Status.Scheduling, report.Status.RunningTime != nil, nil
}
