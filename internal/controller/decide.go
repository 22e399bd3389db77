package controller

import (
	"time"

	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/kueue"
	"opendatahub.io/mpijob/internal/plan"
	"opendatahub.io/mpijob/internal/report"
)

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
	d.turn = kueue.TurnOf(g.job, g.seen, g.workload, report.RanSince(g.record))
	if d.turn.GaveUp {
		d.seen.Gang = &jobstate.GangState{Backend: kueue.Kueue, Wanted: g.job.GangSize(), GaveUp: true, Attempts: d.turn.Attempts, EvictedAt: d.turn.EvictedAt}
		d.seen.Gang.Message = report.Obstacle(g.record)
		if g.seen.Queue != nil && g.seen.Queue.NeverFits != "" {
			d.seen.Gang.Never, d.seen.Gang.Message = true, g.seen.Queue.NeverFits
		}
	}
	d.out = g.loaded.Judge(g.job, d.seen)
	d.plan = plan.For(g.job, d.seen, d.out, g.settings)
	d.expiresIn = expiresIn(g.job, d.out, g.seen.Now)
	return d
}
