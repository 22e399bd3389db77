package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/kinds"
	"opendatahub.io/mpijob/internal/kueue"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/reporting"
)

// acted is what came of a decision.
type acted struct {
	// refusals are the objects that the API server refused.
	refusals []jobstate.Refusal
	// reportIn is the time until the report changes though no object does; 0: it does not.
	reportIn time.Duration
}

// act does what was decided: it writes objects, status and report, and deletes an expired job. It returns errOutdated if
// an object has changed since it was gathered.
func (r *reconciler) act(ctx context.Context, g gathered, d decision) (acted, error) {
	var a acted
	if err := r.changeWorkload(ctx, g, d.turn); err != nil {
		return a, asOutdated(err)
	}
	r.gangs.addAdmission(g.job, d.seen, d.out, d.plan)
	var err, reported error
	evicts := d.seen.Gang != nil && d.seen.Gang.Evict
	if evicts {
		// Only this process knows why the pods are stopped. Another leader would not, once they are gone.
		if reported = r.report(ctx, g, d, d.out, &a); errors.Is(reported, errOutdated) {
			return a, reported
		}
	}
	// The plan may delete the pods, and their logs with them.
	r.reporter.ReadLogs(ctx, g.job, d.seen, d.out, g.record)
	a.refusals, err = r.cluster.Apply(ctx, g.job, d.plan)
	if gang := d.seen.Gang; gang != nil && gang.Refused != nil {
		a.refusals = append(a.refusals, *gang.Refused)
	}
	out := d.out.Refused(g.job, a.refusals)
	if written := r.writeStatus(ctx, g.loaded, out); err != nil || written != nil {
		if err == nil {
			return a, asOutdated(written)
		}
		return a, errors.Join(err, written)
	}
	if !evicts {
		reported = r.report(ctx, g, d, out, &a)
	}
	if d.isExpired() && len(a.refusals) == 0 {
		reported = errors.Join(r.delete(ctx, g), reported)
	}
	return a, reported
}

// report writes the job's report.
func (r *reconciler) report(ctx context.Context, g gathered, d decision, out jobstate.Outcome, a *acted) (err error) {
	a.reportIn, err = r.reporter.Update(ctx, g.loaded.Object(), g.job, d.seen, a.refusals, out, g.record)
	return asOutdated(err)
}

// revokeAdmission removes what the job's NetworkPolicy states of an admission that no longer holds, before other jobs get its room: a JobSet
// that is created now has a closed gate.
func (r *reconciler) revokeAdmission(ctx context.Context, job mpi.Job, d decision) error {
	policy := d.seen.Isolation
	if !job.External || d.seen.Gate != nil || d.out.PodsMayStart || policy == nil || policy.Annotations[mpi.AnnotationAdmitted] == "" {
		return nil
	}
	return r.cluster.RemoveAnnotation(ctx, policy, mpi.AnnotationAdmitted)
}

// reserve makes the reservations that a decision rests on. It returns false if they change the decision: another job was
// faster, or the embedded scheduler has admitted this one.
func (r *reconciler) reserve(ctx context.Context, g gathered, d decision) bool {
	return r.quotas.reserve(g.quota, d.out.PodsMayStart || !g.job.ControlsPods()) && r.gangs.reserve(ctx, g.job, g.seen, g.gang)
}

// changeWorkload writes the job's turn to its Workload, and reports it. It returns an error of conflict if the Workload
// has changed.
func (r *reconciler) changeWorkload(ctx context.Context, g gathered, turn kueue.Turn) error {
	if err := r.queues.patchWorkload(ctx, g.workload, turn); err != nil {
		return err
	}
	if turn.Says != "" && r.reporter != nil {
		r.reporter.Events.Event(g.loaded.Object(), corev1.EventTypeWarning, kueue.ReasonTimeout, turn.Says)
	}
	return nil
}

// writeStatus writes an outcome to the job's status if that changes it, and then its events.
func (r *reconciler) writeStatus(ctx context.Context, job kinds.Job, out jobstate.Outcome) error {
	changed, events := job.Status(out, r.clock.Now())
	if changed == nil {
		return nil
	}
	switch err := r.client.Status().Update(ctx, changed); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("write status of %s %s: %w", r.kind.Name(), client.ObjectKeyFromObject(changed), err)
	}
	for _, event := range events {
		kind := corev1.EventTypeNormal
		if event.Warning {
			kind = corev1.EventTypeWarning
		}
		r.events.Event(changed, kind, event.Reason, reporting.EventMessage(event.Message))
	}
	log.FromContext(ctx).Info("job changed", "phase", out.Phase, "reason", out.Reason, "message", out.Message)
	return nil
}
