package agent

import (
	"cmp"
	"slices"
	"time"

	"opendatahub.io/mpijob/internal/agentapi"
)

// rankUsage is what a rank has used up to now.
type rankUsage struct {
	rank int32
	// processes are the rank's own, first, and those that it started.
	processes []int
	used      processUsage
	// known is false if the rank ended meanwhile.
	known bool
}

// activity follows what the ranks of a container do.
type activity struct {
	samples map[int]*rankSamples
	traffic int64
	at      time.Time
	latest  agentapi.Activity
}

// sample compares what the ranks used with the sample before. traffic is the number of bytes that the pod has sent and received.
func (a *activity) sample(now time.Time, ranks []rankUsage, traffic int64, pages marks) agentapi.Activity {
	// quietTraffic is the number of bytes per second that a pod sends and receives although its ranks do not: probes,
	// metrics and keep-alives.
	const quietTraffic = 4 << 10
	elapsed := now.Sub(a.at).Seconds()
	quiet := !a.at.IsZero() && elapsed > 0 && float64(traffic-a.traffic)/elapsed < quietTraffic && len(ranks) > 0
	next := agentapi.Activity{Ranks: []agentapi.RankActivity{}}
	samples := map[int]*rankSamples{}
	for _, r := range ranks {
		if !r.known {
			quiet = false
			continue
		}
		of := a.samples[r.processes[0]]
		if of == nil {
			of = &rankSamples{}
		}
		samples[r.processes[0]] = of
		what := of.add(r.used)
		if of.code.runsOnlyMPI(pages, r.processes, now, of.computes) {
			what = agentapi.Polling
		}
		quiet = quiet && what != agentapi.Busy
		next.Ranks = append(next.Ranks, agentapi.RankActivity{Rank: r.rank, Doing: what})
	}
	slices.SortFunc(next.Ranks, func(a, b agentapi.RankActivity) int { return int(a.Rank - b.Rank) })
	if quiet {
		next.QuietSince = cmp.Or(a.latest.QuietSince, a.at.Unix())
	}
	a.samples, a.traffic, a.at, a.latest = samples, traffic, now, next
	return next
}

// last returns the latest result, or nil if there is none.
func (a *activity) last() *agentapi.Activity {
	if a.at.IsZero() {
		return nil
	}
	latest := a.latest
	return &latest
}
