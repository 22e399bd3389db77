package progress

import (
	"fmt"
	"slices"
	"time"

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

// slowedBy returns why the ranks of a pod are slower than those of the others, such as "pi-worker-1 is throttled 40 % of the time"; "" if
// nothing shows it: what slows down half of the pods, as a busy machine does, does not tell one from the others.
func slowedBy(of pod, pods []pod) string {
	for _, cause := range []struct {
		figure func(agentapi.Slowness) int32
		text   string
	}{
		{func(s agentapi.Slowness) int32 { return s.Throttled }, "%s is throttled %d %% of the time"},
		{func(s agentapi.Slowness) int32 { return s.Faults }, "%s has %d major page faults per second"},
		{func(s agentapi.Slowness) int32 { return s.Queued }, "the ranks of %s wait for a CPU %d %% of the time"},
	} {
		value, same := cause.figure(of.slow), 0
		for _, other := range pods {
			// It slows the other one down about as much.
			if 2*cause.figure(other.slow) >= value {
				same++
			}
		}
		if value > 0 && 2*same <= len(pods) {
			return fmt.Sprintf(cause.text, of.host, value)
		}
	}
	return ""
}

// slowPod returns the ranks of the pod that is slower than the others, and why; none if there is no such pod, or several. A pod whose ranks all
// wait for others is none, as on a busy machine, where ranks that poll wait for a CPU.
func slowPod(pods []pod) (of pod, why string) {
	for _, candidate := range pods {
		if !slices.ContainsFunc(candidate.ranks, func(r agentapi.RankActivity) bool { return r.Doing == agentapi.Busy || !r.Waits }) {
			continue
		}
		text := slowedBy(candidate, pods)
		switch {
		case text == "":
		case why != "":
			return pod{}, ""
		default:
			of, why = candidate, text
		}
	}
	return of, why
}

// waitForPod returns the ranks of a slow pod that keep those of all other pods waiting most of the time; none if they do not, or if the
// others may wait for their devices.
func waitForPod(slow pod, pods []pod) (busy, others []agentapi.RankActivity) {
	for _, p := range pods {
		for _, r := range p.ranks {
			switch {
			case r.Device:
				return nil, nil
			case p.host == slow.host && !r.Waits:
				busy = append(busy, r)
			case p.host != slow.host && !r.Waits:
				return nil, nil
			case p.host != slow.host:
				others = append(others, r)
			}
		}
	}
	return busy, others
}
