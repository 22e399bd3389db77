package agent

import (
	"fmt"
	"time"

	"opendatahub.io/mpijob/internal/agentapi"
)

// summarize adds the hosts, and the ranks there, to the summary of a launcher's own container, and judges what was the cause.
// records are those of all rsh's of this run, and expected is the hostfile.
func summarize(summary agentapi.Summary, records []record, expected hostfile, now time.Time) agentapi.Summary {
	summary.Role, summary.HostsExpected, summary.SlotsExpected = agentapi.RoleLauncher, expected.others, expected.slots
	var lost []record
	all := hosts(records)
	summary.HostsIdle = idleHosts(records, expected, now)
	summary.ConnectSeconds = seconds(connectTime(all))
	for _, use := range uses(records) {
		summary.HostsReached++
		summary.SlotsFound += expected.slotsOf[use.Host]
	}
	for _, r := range all {
		if isEnding := r.Worker != nil && r.Worker.Ending; r.Trouble != "" && (r.Over || isEnding || r.Reached.IsZero()) {
			summary.Hosts = append(summary.Hosts, agentapi.HostTrouble{Host: short(r.Host), Code: r.Trouble, Message: r.Why, Seconds: r.Seconds})
			lost = append(lost, r)
		}
		if r.Worker != nil {
			summary.Ranks = append(summary.Ranks, r.Worker.Ranks...)
			summary.OOMKills += r.Worker.OOMKills
			summary.CPUSeconds += r.Worker.CPUSeconds
			summary.ThrottledSeconds += r.Worker.ThrottledSeconds
			summary.InitSeconds = max(summary.InitSeconds, r.Worker.InitSeconds)
		}
	}
	judge(&summary, lost)
	summary.Hosts = summary.Hosts[:min(len(summary.Hosts), mostHosts)]
	summary.Ranks = summary.Ranks[:min(len(summary.Ranks), mostRankEnds)]
	return summary
}

// mostHosts is how many hosts with trouble a summary names, and mostRankEnds how many bad ends of ranks are kept: the first ones
// show the cause, the rest follow from it.
const mostHosts, mostRankEnds = 8, 8

// connectTime is how long it took to reach all hosts that were asked for; 0 where one was not reached.
func connectTime(hosts []record) time.Duration {
	var first, last time.Time
	for _, r := range hosts {
		if r.Reached.IsZero() {
			return 0
		}
		if first.IsZero() || r.Since.Before(first) {
			first = r.Since
		}
		if r.Reached.After(last) {
			last = r.Reached
		}
	}
	return last.Sub(first)
}

// seconds returns a duration in seconds, rounded to milliseconds and at least 0.001, because 0 means unknown.
func seconds(d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return max(1, float64(d.Milliseconds())) / 1000
}

// judge names the cause: memory first, then a rank that failed by itself, then a host, and last ranks that were
// terminated, as MPI terminates all others when one has failed.
func judge(summary *agentapi.Summary, lost []record) {
	sortByCause(summary.Ranks)
	first := 0
	if len(summary.Ranks) > 0 {
		first = afterwards(summary.Ranks[0])
	}
	switch {
	case len(summary.Ranks) > 0 && summary.Ranks[0].OOM:
		summary.Code, summary.Message = agentapi.OutOfMemory, rankEnded(summary.Ranks[0])
	case len(lost) > 0 && lost[0].Reached.IsZero():
		summary.Code, summary.Message = lost[0].Trouble, hostUnused(lost[0])
	case len(summary.Ranks) > 0 && (first < toldToEnd || len(lost) == 0):
		summary.Code, summary.Message = agentapi.RankFailed, rankEnded(summary.Ranks[0])
	case len(lost) > 0:
		summary.Code, summary.Message = lost[0].Trouble, hostLost(lost[0])
	}
}

// hostLost says how the connection to a host was lost.
func hostLost(r record) string { return fmt.Sprintf("Host %s was lost: %s.", short(r.Host), r.Why) }

// hostUnused reports why a host was not reached.
func hostUnused(r record) string {
	return fmt.Sprintf("Host %s could not be used: %s.", short(r.Host), r.Why)
}

// idleHosts returns on how many hosts of a hostfile no rank ran, in any launch, although ranks ran on others or nothing was
// started on any. Ranks of a few seconds are not always observed: a host that was only used so long does not count. While it is
// unknown what a host did, so is which other hosts it reached.
func idleHosts(records []record, expected hostfile, now time.Time) (idle int32) {
	const observed = 10 * time.Second
	if len(records) == 0 {
		return expected.others
	}
	uncertain := map[string]bool{}
	for _, r := range records {
		if !r.Reached.IsZero() && (r.Worker == nil || lasted(r, now) < observed) {
			uncertain[short(r.Host)] = true
		}
	}
	used, seen, unknown := false, int32(0), false
	for _, use := range uses(records) {
		_, listed := expected.slotsOf[use.Host]
		switch {
		case use.RanksSeen > 0:
			used = true
		case !listed:
			// Not one of the job's.
			continue
		case uncertain[use.Host]:
			unknown = true
		default:
			idle++
		}
		seen++
	}
	if !used {
		return 0
	}
	if !unknown {
		idle += max(0, expected.others-seen)
	}
	return idle
}

// lasted is how long a session has lasted: until its end or until now.
func lasted(r record, now time.Time) time.Duration {
	if r.Over {
		return time.Duration(r.Seconds) * time.Second
	}
	return now.Sub(r.Reached)
}
