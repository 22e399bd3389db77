// Package controller reconciles jobs: it gathers what exists of a job, decides what to do, and does it.
package controller

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"opendatahub.io/mpijob/internal/cluster"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/kinds"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/plan"
	"opendatahub.io/mpijob/internal/reporting"
	"opendatahub.io/mpijob/internal/tracing"
)

// reservationTries is how often a job is gathered at once if its reservations change the decision: a new job that the
// embedded scheduler admits needs two.
const reservationTries = 3

// errOutdated is returned if a decision was made on objects or reservations that changed since they were gathered.
var errOutdated = errors.New("the job has changed since it was gathered")

// reconciler reconciles the jobs of one kind.
type reconciler struct {
	kind     kinds.Kind
	readers  kinds.Readers
	client   client.Client
	cluster  *cluster.Cluster
	events   record.EventRecorder
	clock    clock.PassiveClock
	settings plan.Settings
	reporter *reporting.Reporter
	queues   *queues
	quotas   *quotas
	gangs    *Gangs

	deliveries *cluster.Deliveries
	tracing    *tracing.Tracing
}

// Reconcile gathers what exists of a job, decides what to do, makes the reservations that this needs, does it, and returns
// when to look again.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	ctx, pass := r.tracing.StartPass(ctx, r.kind.Name(), request.Namespace, request.Name)
	result, err := r.reconcile(ctx, request, pass)
	pass.End(err)
	return result, err
}

func (r *reconciler) reconcile(ctx context.Context, request reconcile.Request, pass *tracing.Pass) (reconcile.Result, error) {
	loaded, err := r.kind.Load(ctx, r.readers, request.NamespacedName)
	switch {
	case err != nil:
		return reconcile.Result{}, err
	case loaded == nil:
		return resultFor(0, r.forget(ctx, request.NamespacedName))
	}
	for range reservationTries {
		g, err := r.gatherIn(ctx, pass, loaded)
		if err != nil || g.isSkipped() {
			return reconcile.Result{}, err
		}
		if g.job.Lifecycle.Deleting {
			return resultFor(0, r.release(ctx, g))
		}
		if g.quota.warmUp > 0 {
			if !r.quotas.reserve(g.quota, false) {
				continue
			}
			return reconcile.Result{RequeueAfter: g.quota.warmUp}, nil
		}
		d := decide(g)
		if err := r.revokeAdmission(ctx, g.job, d); err != nil {
			return reconcile.Result{}, err
		}
		if !r.reserve(ctx, g, d) {
			continue
		}
		a, err := r.actIn(ctx, pass, g, d)
		return resultFor(requeueAfter(g, d, a), err)
	}
	return resultFor(0, errOutdated)
}

// gatherIn gathers as a step of a pass.
func (r *reconciler) gatherIn(ctx context.Context, pass *tracing.Pass, loaded kinds.Job) (gathered, error) {
	ctx, step := pass.Step(ctx, "gather")
	g, err := r.gather(ctx, loaded)
	step.End(err)
	pass.Link(g.record)
	return g, err
}

// actIn acts as a step of a pass. That the job has changed since it was gathered is expected, and not an error.
func (r *reconciler) actIn(ctx context.Context, pass *tracing.Pass, g gathered, d decision) (acted, error) {
	ctx, step := pass.Step(ctx, "act")
	a, err := r.act(ctx, g, d)
	if errors.Is(err, errOutdated) {
		step.End(nil)
	} else {
		step.End(err)
	}
	return a, err
}

// release stops the pods of a job that is being deleted, and forgets the job.
func (r *reconciler) release(ctx context.Context, g gathered) error {
	_, err := r.cluster.Apply(ctx, g.job, plan.For(g.job, g.seen, jobstate.Outcome{}, g.settings))
	return errors.Join(err, r.forget(ctx, g.job.Key()))
}

// forget closes the report of a job that no longer exists or is being deleted, and drops its reservations.
func (r *reconciler) forget(ctx context.Context, key types.NamespacedName) error {
	r.gangs.forget(mpi.ID{Kind: r.kind.Name(), Namespace: key.Namespace, Name: key.Name})
	r.queues.forget(mpi.ID{Kind: r.kind.Name(), Namespace: key.Namespace, Name: key.Name})
	r.quotas.forgetJob(r.kind.Name(), key)
	return asOutdated(r.reporter.Close(ctx, r.kind.Name(), key, ""))
}

// asOutdated replaces an error of conflict.
func asOutdated(err error) error {
	if apierrors.IsConflict(err) {
		return errOutdated
	}
	return err
}
