package controller

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/plan"
	"opendatahub.io/mpijob/internal/report"
	"opendatahub.io/mpijob/internal/reporting"
)

// gangScheduler is a back end that decides by itself which job's pods may be created, and where they run.
type gangScheduler interface {
	// State returns where a job stands with it: what Enqueue would return, but for a decision that is still to be made.
	State(job mpi.Job, seen jobstate.Observed) *jobstate.GangState
	// Enqueue adds a job to the queue, or updates it there, and returns where it stands. past is what the job's report
	// contains of its waiting time so far, nil for nothing; byDefault is whether the job has not asked to be placed. Do not enqueue a job while its pods are being deleted, or it
	// waits for its next attempt.
	Enqueue(ctx context.Context, job mpi.Job, seen jobstate.Observed, past *v1alpha1.SchedulingStatus, byDefault bool) *jobstate.GangState
	// Forget removes a job from the queue.
	Forget(job mpi.ID)
	// IsUsable reports whether it can place jobs at all.
	IsUsable() bool
}

// Gangs chooses what places a job as a whole, and reads the state of the job there.
type Gangs struct {
	// setting is the operator's flag --gang-scheduling.
	setting string
	reports *reporting.Reporter
	// embedded is nil where the operator places no jobs itself.
	embedded gangScheduler
	// apis are those of PodGroups, one of each of gang.Backends.
	apis []*podGroups
	// autoscaled reports whether a cluster autoscaler may add nodes.
	autoscaled func() bool
	// never has, for each job that no nodes can hold, since when.
	never jobTimes
	// sign returns the signature of a text that all replicas of the operator agree on; empty if there is none yet.
	sign func(text string) string
}

// jobTimes has a time for each job of which something is so.
type jobTimes struct {
	mu   sync.Mutex
	jobs map[mpi.ID]time.Time
}

// of returns since when something is so for a job without a break; zero if it is not.
func (n *jobTimes) of(job mpi.ID, is bool, now time.Time) time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !is {
		delete(n.jobs, job)
		return time.Time{}
	}
	since, known := n.jobs[job]
	if !known {
		if n.jobs == nil {
			n.jobs = map[mpi.ID]time.Time{}
		}
		since, n.jobs[job] = now, now
	}
	return since
}

const (
	// admissionAge is how long a decision about a job counts whose gate does not exist yet. Trainer usually creates it within 0.2 s. Later,
	// the job is decided on again once it has its gate. With admissionSkew it is less than the time in which a new leader admits no job.
	admissionAge = time.Second
	// admissionSkew is how far the clocks of two replicas may differ.
	admissionSkew = 500 * time.Millisecond
)

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

// cacheTimeout is how long a pass waits for a cache of PodGroups that is being filled: some milliseconds are usual.
const cacheTimeout = 10 * time.Second

// addGangs reads PodGroups from when the cluster has them.
func addGangs(ctx context.Context, m manager.Manager, config *rest.Config, setting string, namespaces []string, news *queues, reports *reporting.Reporter) (*Gangs, error) {
	g := &Gangs{setting: cmp.Or(setting, gang.Auto), reports: reports}
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
			return of.start(ctx, m, config, namespaces, news)
		}))
		if err != nil {
			return nil, fmt.Errorf("add reading of %s: %w", what, err)
		}
	}
	return g, nil
}

// apiInterval is how often it is looked whether the cluster has an API.
const apiInterval = 10 * time.Second

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
	ticker := time.NewTicker(apiInterval)
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

// isReady reports whether reconciles use the API: while the cluster serves it, once it is cached.
func (p *podGroups) isReady() bool {
	select {
	case <-p.filled:
		return p.served.Load()
	default:
		return p.known && p.served.Load()
	}
}

// start watches the PodGroups of an API.
func (p *podGroups) start(ctx context.Context, m manager.Manager, config *rest.Config, namespaces []string, news *queues) error {
	reader, err := startCache(ctx, m, config, p.kind, cache.Options{DefaultTransform: cache.TransformStripManagedFields()}, namespaces, news.enqueue)
	if reader == nil || err != nil {
		return err
	}
	p.reader = reader
	close(p.filled)
	return nil
}

// podGroupsFor are the PodGroups of a job.
func (p *podGroups) podGroupsFor(ctx context.Context, job mpi.Job) ([]*unstructured.Unstructured, error) {
	if !p.isReady() {
		return nil, nil
	}
	select {
	case <-p.filled:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(cacheTimeout):
		return nil, fmt.Errorf("%s are not read yet", p.kind)
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(p.kind.GroupVersion().WithKind(p.kind.Kind + "List"))
	if err := p.reader.List(ctx, list, client.InNamespace(job.Namespace), client.MatchingFields{cluster.ByOwner: string(job.UID)}); err != nil {
		return nil, fmt.Errorf("list %s of %s %s: %w", p.kind, job.Kind, job.Key(), err)
	}
	found := make([]*unstructured.Unstructured, len(list.Items))
	for i := range list.Items {
		found[i] = &list.Items[i]
	}
	return found, nil
}

// gangRequest is the place of a job in the embedded scheduler's queue, and the state that follows from it.
type gangRequest struct {
	// state is the job's; nil if nothing places it as a whole.
	state *jobstate.GangState
	place queuePlace
	// queued is what the scheduler returned for a job that is to be in the queue, and past what it needs to know of the
	// job's waiting time so far.
	queued *jobstate.GangState
	past   *v1alpha1.SchedulingStatus
	// byDefault is set for a job that has not asked to be placed as a whole.
	byDefault bool
}

// queuePlace is a change of a job's place in the queue.
type queuePlace int

const (
	// keepPlace is for jobs that are never in the queue.
	keepPlace queuePlace = iota
	leaveQueue
	enterQueue
)

// podGroupsFor returns the PodGroups of a job, of all APIs.
func (g *Gangs) podGroupsFor(ctx context.Context, job mpi.Job) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, api := range g.apis {
		found, err := api.podGroupsFor(ctx, job)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// observe returns what places a job as a whole, if anything does, from its PodGroups and its report. It reserves nothing.
func (g *Gangs) observe(ctx context.Context, job mpi.Job, seen jobstate.Observed, record *v1alpha1.JobReport) gangRequest {
	request := g.requestOf(ctx, job, seen, record)
	since := g.never.of(job.ID(), request.state != nil && request.state.Never, seen.Now)
	if request.state != nil {
		request.state.NeverSince = since
	}
	return request
}

// requestOf is observe without the time since when a job never fits.
func (g *Gangs) requestOf(ctx context.Context, job mpi.Job, seen jobstate.Observed, record *v1alpha1.JobReport) gangRequest {
	if !job.ControlsPods() {
		return gangRequest{state: g.externalState(ctx, job, seen)}
	}
	var choice gang.Choice
	if job.Recorded.Finish == nil && !job.Lifecycle.Suspended {
		choice = gang.Choose(g.setting, g.has, job)
	}
	if choice.Backend == "" || choice.Backend == gang.Embedded && (g.embedded == nil || choice.ByDefault && !g.embedded.IsUsable()) {
		return gangRequest{place: leaveQueue}
	}
	request := gangRequest{byDefault: choice.ByDefault}
	request.past = pastOf(record)
	state := gang.State(choice, job, seen)
	before := waitSoFar(request.past)
	before.RanSince = report.RanSince(record)
	switch {
	case choice.Backend != gang.Embedded:
		g.addCapacity(ctx, job, seen, before.Since, &state)
	case gang.Rests(job, seen, before):
		request.place, state.Hold = leaveQueue, true
		g.addCapacity(ctx, job, seen, before.Since, &state)
	default:
		// The scheduler itself adds the capacity, once it has looked.
		request.place, request.queued = enterQueue, g.embedded.State(job, seen)
		if request.queued != nil {
			placed, wanted := state.Placed, state.Wanted
			state = *request.queued
			state.Placed, state.Wanted = placed, wanted
		}
	}
	if choice.ByDefault {
		gang.Settle(job, seen, &state)
	}
	state = gang.Clock(job, seen, before, state)
	request.state = &state
	return request
}

// externalState returns what the PodGroup states of a job that another controller runs; nil if it has none.
func (g *Gangs) externalState(ctx context.Context, job mpi.Job, seen jobstate.Observed) *jobstate.GangState {
	if job.Recorded.Finish != nil || job.Lifecycle.Suspended {
		return nil
	}
	for _, api := range g.apis {
		for _, podGroup := range seen.PodGroups {
			if podGroup.GroupVersionKind().GroupKind() != api.kind.GroupKind() {
				continue
			}
			state := gang.State(gang.Choice{Backend: api.backend}, job, seen)
			g.addCapacity(ctx, job, seen, podGroup.GetCreationTimestamp().Time, &state)
			return &state
		}
	}
	return nil
}

// reserve gives a job its place in the queue. It returns false if the scheduler has decided on the job meanwhile.
func (g *Gangs) reserve(ctx context.Context, job mpi.Job, seen jobstate.Observed, request gangRequest) bool {
	switch request.place {
	case leaveQueue:
		if request.state == nil {
			g.never.of(job.ID(), false, time.Time{})
		}
		// A job that rests keeps the time since when it never fits: its queue takes its quota back by that.
		g.leave(job.ID())
	case enterQueue:
		return reflect.DeepEqual(request.queued, g.embedded.Enqueue(ctx, job, seen, request.past, request.byDefault))
	}
	return true
}

// addCapacity adds to the state of a job that waits how much room there is, and whether that can ever be enough, where its back end
// does not say. Another controller may require fewer pods at once, unless a queue holds all of them back. The nodes are not as they were
// before the wait began: a driver may have added devices just before the job was created.
func (g *Gangs) addCapacity(ctx context.Context, job mpi.Job, seen jobstate.Observed, since time.Time, state *jobstate.GangState) {
	if !state.Waits() || state.Never || state.PodsFit != nil {
		return
	}
	// Times in reports are whole seconds.
	if rounded := since.Add(time.Second); seen.Now.After(rounded) {
		since = rounded
	}
	nodes := g.reports.Nodes(ctx, since)
	if len(nodes) == 0 {
		return
	}
	gang.Fits(job, seen, nodes, state)
	isWhole := job.ControlsPods() || seen.Queue != nil && !seen.Queue.Admitted
	if isWhole && !g.autoscaled() {
		gang.FitsNever(job, seen, nodes, state)
	}
}

// neverFits returns why no nodes can ever hold all pods of a job that has none, or "".
func (g *Gangs) neverFits(ctx context.Context, job mpi.Job, seen jobstate.Observed) string {
	state := jobstate.GangState{Wanted: job.GangSize()}
	if g.addCapacity(ctx, job, seen, time.Time{}, &state); state.Never {
		return state.Message
	}
	return ""
}

// Check returns why the pods of a new job cannot be placed together: an error if its user can fix that, else a warning.
func (g *Gangs) Check(job mpi.Job) (field.ErrorList, []string) {
	switch choice := gang.Choose(g.setting, g.serves, job); {
	case choice.Wrong == "":
		return nil, nil
	case !g.serves(choice.Backend):
		return nil, []string{choice.Wrong}
	default:
		return field.ErrorList{field.Forbidden(job.Fields.Gang, choice.Wrong)}, nil
	}
}

// Gates reports whether the pods of a job that another controller runs are held back until all of them fit, on the nodes or in the quotas
// of the namespace.
func (g *Gangs) Gates(job mpi.Job) bool {
	choice := gang.Choose(g.setting, g.serves, job)
	isPlaced := choice.Backend == gang.Embedded && g.embedded.IsUsable()
	return job.External && job.Gated && (isPlaced || job.WaitsForQuota())
}

// HasAdmitted reports whether an annotation states that a job may have all of its pods, as the leader has just decided
// (mpi.AnnotationAdmitted). The gate is then created open.
func (g *Gangs) HasAdmitted(job mpi.Job, annotation string, now time.Time) bool {
	text, _, _ := strings.Cut(annotation, ".")
	milliseconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return false
	}
	decided := time.UnixMilli(milliseconds)
	stated, age := g.stateAdmission(job, decided), now.Sub(decided)
	return stated != "" && hmac.Equal([]byte(stated), []byte(annotation)) && -admissionSkew < age && age <= admissionAge
}

// stateAdmission returns the annotation that states a decision; empty if nothing can be signed yet. Users can write NetworkPolicies, so that
// it is signed. They can also write runtimes, so that the number of pods and what these ask for are signed, too.
func (g *Gangs) stateAdmission(job mpi.Job, decided time.Time) string {
	if g.sign == nil {
		return ""
	}
	room, err := json.Marshal(struct {
		Workers  int32
		Topology mpi.Topology
		Pods     []corev1.PodSpec
	}{job.Workers.Count, job.Topology, job.PodSpecs()})
	if err != nil {
		return ""
	}
	at := strconv.FormatInt(decided.UnixMilli(), 10)
	signature := g.sign(strings.Join([]string{
		mpi.AnnotationAdmitted, job.ID().String(), string(job.UID), strconv.FormatInt(job.Generation, 10), at, fmt.Sprintf("%x", sha256.Sum256(room)),
	}, "\n"))
	if signature == "" {
		return ""
	}
	return at + "." + signature
}

// addAdmission adds the decision that the pods of a job may be created to its NetworkPolicy, if that is created before the job has a gate:
// the webhook of the gate waits for it, in any replica. The job's reservations are made.
func (g *Gangs) addAdmission(job mpi.Job, seen jobstate.Observed, out jobstate.Outcome, planned plan.Plan) {
	if !job.External || !job.Gated || seen.Gate != nil || !out.PodsMayStart || out.Finish != nil || job.Lifecycle.Suspended {
		return
	}
	for _, object := range planned.Base {
		if policy, is := object.(*networkingv1.NetworkPolicy); is && policy.UID == "" {
			if stated := g.stateAdmission(job, seen.Now); stated != "" {
				metav1.SetMetaDataAnnotation(&policy.ObjectMeta, mpi.AnnotationAdmitted, stated)
			}
		}
	}
}

// MayGetNodes reports whether a cluster autoscaler may add nodes.
func (g *Gangs) MayGetNodes() bool { return g.autoscaled() }

// placesByDefault reports whether the operator itself places jobs that do not ask for it.
func (g *Gangs) placesByDefault() bool {
	return g.embedded.IsUsable() && (g.setting == gang.Embedded || g.setting == gang.Auto && !g.serves(gang.PodGroup))
}

// forget drops what is kept of a job that is gone.
func (g *Gangs) forget(job mpi.ID) {
	g.never.of(job, false, time.Time{})
	g.leave(job)
}

// leave removes a job from the embedded scheduler's queue.
func (g *Gangs) leave(job mpi.ID) {
	if g.embedded != nil {
		g.embedded.Forget(job)
	}
}

// has reports whether the API of a back end is read.
func (g *Gangs) has(backend string) bool {
	return slices.ContainsFunc(g.apis, func(p *podGroups) bool { return p.backend == backend && p.isReady() })
}

// serves reports whether the cluster has the API of a back end, though this replica may not work.
func (g *Gangs) serves(backend string) bool {
	return slices.ContainsFunc(g.apis, func(p *podGroups) bool { return p.backend == backend && p.served.Load() })
}

// pastOf returns what a report contains of the time that its job waited for places; nil for nothing. A job that waited for quota
// has not begun to wait for places, but may have been put back before.
func pastOf(record *v1alpha1.JobReport) *v1alpha1.SchedulingStatus {
	if record == nil || record.Status.Scheduling == nil {
		return nil
	}
	past := record.Status.Scheduling
	switch {
	case past.Backend != "":
		return past
	case past.Attempts > 0:
		return &v1alpha1.SchedulingStatus{Attempts: past.Attempts, EvictedAt: past.EvictedAt, NextTry: past.NextTry}
	}
	return nil
}

// waitSoFar returns what a job's report contains of its waiting time so far.
func waitSoFar(record *v1alpha1.SchedulingStatus) gang.Past {
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
