package controller

import (
	"context"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/kinds"
	"opendatahub.io/mpijob/internal/kueue"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/plan"
)

// gathered is what a reconcile knows of a job. Nothing was written or reserved to gather it.
type gathered struct {
	loaded kinds.Job
	job    mpi.Job
	// errs are the reasons not to start the job. Nothing further is then gathered. A job that became invalid after it had been
	// started has none (see mpi.Job.Ignored).
	errs field.ErrorList
	// unencrypted is set if one of them is that nothing encrypts the traffic between pods, which changes without an event.
	unencrypted bool
	seen        jobstate.Observed
	// record is the job's report as it was last written; nil if there is none.
	record *v1alpha1.JobReport
	// workload is the job's Workload of Kueue; nil if there is none.
	workload *kueue.Workload
	// quota and gang are the reservations that the job needs.
	quota quotaRequest
	gang  gangRequest
	// settings contain the way to deliver the agent if the plan needs it.
	settings plan.Settings
}

// isSkipped reports whether nothing is done for a job: another controller manages it, or it is being deleted and its pods
// are another controller's, or stay.
func (g gathered) isSkipped() bool {
	return g.job.ManagedBy != "" || g.job.Lifecycle.Deleting && (g.job.External || g.job.Lifecycle.Orphaning)
}

// gather reads what exists of a job, each object once.
func (r *reconciler) gather(ctx context.Context, loaded kinds.Job) (gathered, error) {
	g := gathered{loaded: loaded, settings: r.settings}
	g.job, g.errs = loaded.Convert()
	if g.isSkipped() {
		return g, nil
	}
	var err error
	if g.job.Lifecycle.Deleting {
		g.seen, err = r.observe(ctx, g)
		return g, err
	}
	if g.record, err = r.reporter.Report(ctx, g.job); err != nil {
		return g, err
	}
	if g.job.Recorded.Finish != nil {
		// What has run is not validated again.
		g.job = jobstate.KeepStarted(g.job, g.errs, jobstate.Observed{})
		g.job.Ignored, g.errs = nil, nil
	}
	if g.seen, err = r.observe(ctx, g); err != nil {
		return g, err
	}
	if !g.job.External && g.job.Recorded.Finish == nil && !g.seen.Communicates() {
		// The webhook fails open, and the cluster may encrypt no more when a job is resumed.
		unencrypted := r.cluster.CheckEncryption(ctx, g.job, g.settings)
		g.errs, g.unencrypted = append(g.errs, unencrypted...), len(unencrypted) > 0
	}
	if len(g.errs) > 0 {
		if !g.seen.IsStarted() {
			g.seen = jobstate.Observed{Now: g.seen.Now}
			g.release()
			return g, nil
		}
		g.job, g.errs = jobstate.KeepStarted(g.job, g.errs, g.seen), nil
		if g.seen, err = r.observe(ctx, g); err != nil {
			return g, err
		}
	}
	g.seen = loaded.Observe(g.seen)
	if g.job.IsFrozen() {
		return r.gatherFrozen(ctx, g)
	}
	g.job = r.cluster.SettleRDMA(ctx, g.job, g.seen)
	if plan.Isolates(g.job, g.settings) && g.job.Recorded.Finish == nil {
		r.cluster.ObserveEndpoints(ctx, g.job, g.settings, &g.seen)
	}
	if g.workload, g.seen.Queue, err = r.queues.observe(ctx, g.job, g.seen.Now); err != nil {
		return g, err
	}
	if g.seen.Queue != nil && kueue.MayLackNodes(*g.seen.Queue) {
		g.seen.Queue.NeverFits = r.gangs.neverFits(ctx, g.job, g.seen)
	}
	g.quota = r.quotas.observe(ctx, g.job, g.seen)
	g.seen.Shortages, g.seen.QuotaTurn = g.quota.shortages, g.quota.turn
	if g.seen.PodGroups, err = r.gangs.podGroupsFor(ctx, g.job); err != nil {
		return g, err
	}
	g.gang = r.gangs.observe(ctx, g.job, g.seen, g.record)
	g.seen.Gang = g.gang.state
	if plan.NeedsDelivery(g.job, g.seen) {
		g.settings, err = r.deliveries.Settle(ctx, g.job, g.settings)
	}
	return g, err
}

// observe reads the objects that the operator created for a job.
func (r *reconciler) observe(ctx context.Context, g gathered) (jobstate.Observed, error) {
	job := g.job
	if len(g.errs) > 0 {
		// An invalid job may have billions of workers to look for. Those that exist are found without their number.
		job.Workers.Count = 0
	}
	return r.cluster.Observe(ctx, job)
}

// release has a job that must not be started give up its reservations.
func (g *gathered) release() {
	g.quota = quotaRequest{namespace: g.job.Namespace, job: g.job.UID, change: dropClaim}
	g.gang = gangRequest{place: leaveQueue}
}

// gatherFrozen adds what the end of a job depends on that became invalid after it had been started. It needs no reservations,
// because no pods are created for it.
func (r *reconciler) gatherFrozen(ctx context.Context, g gathered) (gathered, error) {
	g.release()
	if g.seen.Isolation == nil && plan.Isolates(g.job, g.settings) {
		r.cluster.ObserveEndpoints(ctx, g.job, g.settings, &g.seen)
	}
	var err error
	if g.workload, g.seen.Queue, err = r.queues.observe(ctx, g.job, g.seen.Now); err != nil {
		return g, err
	}
	g.seen.PodGroups, err = r.gangs.podGroupsFor(ctx, g.job)
	return g, err
}
