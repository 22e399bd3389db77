package controller

import (
	"errors"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"opendatahub.io/mpijob/internal/cluster"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/times"
)

// refusalRetry is the time until objects are written again that the API server refused: no event tells when a quota has
// room again, or another owner's object is gone.
const refusalRetry = 15 * time.Second

// webhookRetry is the time until objects are written again if the API server could not call a webhook: those are away for seconds when they are
// updated.
const webhookRetry = 3 * time.Second

// minEndpointRetry is the shortest time until Secrets of data connections are read again that did not exist. Events of the
// pods, which wait for them, cause a reconcile as well.
const minEndpointRetry = 5 * time.Second

// outdatedRetry is the time until a job is gathered again that changed while it was reconciled.
const outdatedRetry = 10 * time.Millisecond

// requeueAfter returns the time until the next reconcile if no object changes; 0: none is needed.
func requeueAfter(g gathered, d decision, a acted) time.Duration {
	waits := []time.Duration{a.reportIn, d.turn.Again, g.quota.refreshIn(g.job)}
	if d.seen.Gang != nil {
		waits = append(waits, d.seen.Gang.Again)
	}
	if d.seen.EndpointsMissing && d.out.Finish == nil {
		waits = append(waits, endpointRetry(d.seen))
	}
	if d.out.Finish == nil {
		waits = append(waits, jobstate.OverdueIn(g.job, d.seen))
	}
	if g.unencrypted {
		waits = append(waits, cluster.EncryptionInterval)
	}
	switch {
	case len(a.refusals) > 0:
		waits = append(waits, refusalRetry)
		if slices.ContainsFunc(a.refusals, func(r jobstate.Refusal) bool { return jobstate.IsUncalledWebhook(r.Message) }) {
			waits = append(waits, webhookRetry)
		}
	case d.expiresIn != nil:
		waits = append(waits, *d.expiresIn)
	}
	return times.Shortest(waits...)
}

// endpointRetry returns the time until missing Secrets of data connections are read again: a fifth of the age of the
// NetworkPolicy, so that jobs which wait for long cost few reads.
func endpointRetry(seen jobstate.Observed) time.Duration {
	if seen.Isolation == nil {
		return minEndpointRetry
	}
	return max(minEndpointRetry, seen.Now.Sub(seen.Isolation.CreationTimestamp.Time)/5)
}

// resultFor returns the result of a reconcile. Conflicts are expected and are not logged. A pass for which only time has to pass makes room for
// others, unless it follows at once, such as that which deletes the pods of a half-placed job: others wait for their nodes.
func resultFor(wait time.Duration, err error) (reconcile.Result, error) {
	switch {
	case errors.Is(err, errOutdated):
		return reconcile.Result{RequeueAfter: outdatedRetry, Priority: new(0)}, nil
	case err != nil:
		return reconcile.Result{Priority: new(0)}, err
	}
	priority := 0
	if wait >= batchDelay {
		priority = priorityBatched
	}
	return reconcile.Result{RequeueAfter: wait, Priority: &priority}, nil
}
