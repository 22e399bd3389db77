package progress

import (
	"fmt"
	"math"
	"slices"
	"time"

	"opendatahub.io/mpijob/internal/agent/outcome"
	"opendatahub.io/mpijob/internal/agentapi"
)

// Counts are what the kernel has counted of a pod by now that shows why its ranks are slow. Each is 0 if it is not counted.
type Counts struct {
	// Needed is the CPU time that processes used, with the time for which the CPU limit stopped them, and Throttled the latter, in
	// milliseconds.
	Needed, Throttled float64
	// Faults are the page faults that read from a disk.
	Faults float64
}

// From these figures on, something slows ranks down: shares of the time, and page faults per second. A rank is slow if it waits for the CPU or
// the disk for a fifth of the time; one reading of a disk takes a millisecond and more, also from its cache. Ranks that wait for a CPU are
// normal on a shared machine, and half of the time is not.
const (
	slowThrottled = 0.2
	slowFaults    = 50
	slowQueued    = 0.5
)

// slowWatch finds what slows the ranks of a pod down. Its zero value is ready to use.
type slowWatch struct {
	// counts are those of the latest minute, oldest first, and queued the shares of the time for which the ranks that use a CPU waited for it.
	counts []timedCounts
	// since is when something was found to slow the ranks down; 0 if nothing does.
	since int64
}

type timedCounts struct {
	at     time.Time
	counts Counts
	queued float64
}

// next adds what was counted up to now, and the share of the time since the last call for which ranks that use a CPU waited for it. It
// returns what has slowed the ranks down in the latest minute; nil if nothing has, or if that is unknown so far.
func (w *slowWatch) next(counts Counts, queued float64, now time.Time) *agentapi.Slowness {
	w.counts = append(w.counts, timedCounts{now, counts, queued})
	if len(w.counts) > latestSamples+1 {
		w.counts = w.counts[1:]
	}
	first, n := w.counts[0], float64(len(w.counts)-1)
	seconds := now.Sub(first.at).Seconds()
	if n < float64(latestSamples)/2 || seconds <= 0 {
		return nil
	}
	slow := agentapi.Slowness{}
	if needed := counts.Needed - first.counts.Needed; needed > 0 {
		slow.Throttled = tens((counts.Throttled-first.counts.Throttled)/needed, slowThrottled)
	}
	if faults := (counts.Faults - first.counts.Faults) / seconds; faults >= slowFaults {
		slow.Faults = int32(min(faults, 1e6)) / slowFaults * slowFaults
	}
	total := 0.0
	for _, sample := range w.counts[1:] {
		total += sample.queued
	}
	slow.Queued = tens(total/n, slowQueued)
	if slow == (agentapi.Slowness{}) {
		w.since = 0
		return nil
	}
	if w.since == 0 {
		w.since = first.at.Unix()
	}
	slow.Since = w.since
	return &slow
}

// tens returns a share in percent, rounded down to tens so that it rarely changes; 0 if it is less than what matters.
func tens(share, least float64) int32 {
	if share < least {
		return 0
	}
	return int32(10*min(1, share)+1e-9) * 10
}

// pod is what is known of a host of the job on which ranks run.
type pod struct {
	host  string
	ranks []agentapi.RankActivity
	slow  agentapi.Slowness
}

// slowCause is something that can slow the ranks of pods down, with the texts for one pod and for several.
type slowCause struct {
	figure       func(agentapi.Slowness) int32
	one, several string
}

var slowCauses = []slowCause{
	{func(s agentapi.Slowness) int32 { return s.Throttled }, "%s is throttled %d %%%s of the time", "%s are throttled %d %%%s of the time"},
	{func(s agentapi.Slowness) int32 { return s.Faults }, "%s has %d%s major page faults per second", "%s have %d%s major page faults per second"},
	{func(s agentapi.Slowness) int32 { return s.Queued }, "the ranks of %s wait for a CPU %d %%%s of the time", "the ranks of %s wait for a CPU %d %%%s of the time"},
}

// slowPods are the pods whose ranks are slower than those of the others.
type slowPods struct {
	pods []pod
	// why is the reason, such as "pi-worker-1 is throttled 40 % of the time"; "" if there are no such pods.
	why string
}

// has reports whether a pod is one of them.
func (s slowPods) has(p pod) bool {
	return slices.ContainsFunc(s.pods, func(slow pod) bool { return slow.host == p.host })
}

// count returns how many of their ranks do something.
func (s slowPods) count(doing agentapi.Doing) (n int) {
	for _, p := range s.pods {
		n += len(numbers(p.ranks, doing))
	}
	return n
}

// findSlowPods returns the pods of which the same slows the ranks down, such as those on one busy node; none if nothing shows that they are slower
// than the others: what slows down more than half of the pods, as a busy machine does, does not tell them apart. A pod whose ranks all wait for
// others is none of them, as on a busy machine, where ranks that poll wait for a CPU.
func findSlowPods(pods []pod) slowPods {
	var found slowPods
	for _, candidate := range pods {
		if slowCauseOf(candidate, pods) >= 0 && slices.ContainsFunc(candidate.ranks, func(r agentapi.RankActivity) bool { return r.Doing == agentapi.Busy || !r.Waits }) {
			found.pods = append(found.pods, candidate)
		}
	}
	if len(found.pods) == 0 || 2*len(found.pods) > len(pods) {
		return slowPods{}
	}
	cause := slowCauseOf(found.pods[0], pods)
	if slices.ContainsFunc(found.pods, func(p pod) bool { return slowCauseOf(p, pods) != cause }) {
		return slowPods{}
	}
	var hosts []string
	least, most := int32(math.MaxInt32), int32(0)
	for _, p := range found.pods {
		hosts = append(hosts, p.host)
		figure := slowCauses[cause].figure(p.slow)
		least, most = min(least, figure), max(most, figure)
	}
	text, orMore := slowCauses[cause].one, ""
	if len(hosts) > 1 {
		text = slowCauses[cause].several
	}
	if most > least {
		orMore = " or more"
	}
	found.why = fmt.Sprintf(text, outcome.Some(hosts), least, orMore)
	return found
}

// slowCauseOf returns which of slowCauses slows the ranks of a pod down, and about as much those of at most half of the pods; -1 if none does.
func slowCauseOf(of pod, pods []pod) int {
	return slices.IndexFunc(slowCauses, func(cause slowCause) bool {
		value, same := cause.figure(of.slow), 0
		for _, other := range pods {
			if 2*cause.figure(other.slow) >= value {
				same++
			}
		}
		return value > 0 && 2*same <= len(pods)
	})
}

// awaitedRanks returns the ranks of slow pods that keep those of all other pods waiting most of the time; none if they do not, or if the others may
// wait for their devices.
func awaitedRanks(slow slowPods, pods []pod) (busy, others []agentapi.RankActivity) {
	for _, p := range pods {
		isSlow := slow.has(p)
		for _, r := range p.ranks {
			switch {
			case r.Device:
				return nil, nil
			case isSlow && !r.Waits:
				busy = append(busy, r)
			case !isSlow && !r.Waits:
				return nil, nil
			case !isSlow:
				others = append(others, r)
			}
		}
	}
	return busy, others
}
