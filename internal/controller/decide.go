package controller

import (
	"time"

	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/kueue"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/plan"
	"opendatahub.io/mpijob/internal/times"
)

// refusalRetry is the time until objects are written again that the API server refused: no event tells when a quota has
// room again, or another owner's object is gone.
const refusalRetry = 15 * time.Second

// minEndpointRetry is the shortest time until Secrets of data connections are read again that did not exist. Events of the
// pods, which wait for them, cause a reconcile as well.
const minEndpointRetry = 5 * time.Second

// decision is what a reconcile does for a job.
type decision struct {
	// seen is what was gathered, with the gang state of a job that Kueue gave up.
	seen jobstate.Observed
	out  jobstate.Outcome
	turn kueue.Turn
	plan plan.Plan
	// expiresIn is the time until the job is deleted, by its TTL; nil: never.
	expiresIn *time.Duration
}

// decide is a function of what was gathered.
func decide(g gathered) decision {
	d := decision{seen: g.seen}
	if len(g.errs) > 0 {
		d.out = jobstate.Invalid(g.errs)
		return d
	}
	d.turn = kueue.TurnOf(g.job, g.seen, g.workload)
	if d.turn.GaveUp {
		d.seen.Gang = &jobstate.GangState{Backend: kueue.Kueue, Wanted: g.job.GangSize(), GaveUp: true, Attempts: d.turn.Attempts, EvictedAt: d.turn.EvictedAt}
	}
	d.out = g.loaded.Judge(g.job, d.seen)
	d.plan = plan.For(g.job, d.seen, d.out, g.settings)
	d.expiresIn = expiresIn(g.job, d.out, g.seen.Now)
	return d
}

// expiresIn returns the time until the TTL of a finished job expires; nil if it never does.
func expiresIn(job mpi.Job, out jobstate.Outcome, now time.Time) *time.Duration {
	if out.Finish == nil || job.Lifecycle.TTL == nil {
		return nil
	}
	return new(out.Finish.At.Add(*job.Lifecycle.TTL).Sub(now))
}

// isExpired reports whether the job is to be deleted.
func (d decision) isExpired() bool { return d.expiresIn != nil && *d.expiresIn <= 0 }

// requeueAfter returns the time until the next reconcile if no object changes; 0: none is needed.
func requeueAfter(g gathered, d decision, a acted) time.Duration {
	waits := []time.Duration{a.reportIn, d.turn.Again, g.quota.refreshIn(g.job)}
	if d.seen.Gang != nil {
		waits = append(waits, d.seen.Gang.Again)
	}
	if d.seen.EndpointsMissing && d.out.Finish == nil {
		waits = append(waits, endpointRetry(d.seen))
	}
	switch {
	case len(a.refusals) > 0:
		waits = append(waits, refusalRetry)
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
