package agent

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"opendatahub.io/mpijob/internal/agentapi"
)

// samplePeriod is the time between two samples of what ranks do.
const samplePeriod = 5 * time.Second

// processUsage is what a process has used so far.
type processUsage struct {
	at time.Time
	// user and system are CPU times, and queued is the time for which threads waited for a CPU, of all threads.
	user, system, queued time.Duration
	// bytes were read and written.
	bytes int64
	// wait is the kernel function in which the main thread sleeps, if it does and the kernel tells.
	wait string
	// device is whether a GPU or another accelerator is open: what a process waits for may run there.
	device bool
}

// add adds the usage of a process that the first one started.
func (u *processUsage) add(other processUsage) {
	// Shells wait for what they started. One process that is blocked means that not all sleep.
	if other.wait != waitsForChild && (u.wait == waitsForChild || strings.Contains(u.wait, sleeps)) {
		u.wait = other.wait
	}
	u.device = u.device || other.device
	u.user, u.system, u.queued = u.user+other.user, u.system+other.system, u.queued+other.queued
	u.bytes += other.bytes
}

// The kernel's functions in which processes wait for the end of a child, and (a part of the name) sleep.
const (
	waitsForChild = "do_wait"
	sleeps        = "nanosleep"
)

// rankSamples are the samples of one rank.
type rankSamples struct {
	// last is the latest, and base the one since which the shares of CPU time are compared.
	last, base processUsage
	doing      agentapi.Doing
	// computes is set if the process is busy only because of its use of a CPU.
	computes bool
	code     codeWatch
}

// add compares a sample with those before, and returns what the process does. Processes that have had too little of a CPU
// to tell by it do what they did.
func (r *rankSamples) add(current processUsage) agentapi.Doing {
	const (
		// idle is the share of a CPU that a process at most uses or waits for if it does nothing.
		idle = 0.05
		// kernel is the share of CPU time in the kernel from which a process only polls: MPI libraries that wait look for
		// messages in a loop of system calls; programs that compute hardly make any.
		kernel = 0.25
		// enough is the CPU time after which the share is known.
		enough = 200 * time.Millisecond
		// moved is the number of bytes per second from which a process transfers data.
		moved = 64 << 10
	)
	last := r.last
	r.last = current
	seconds := current.at.Sub(last.at).Seconds()
	// The queued time of processes that ended is lost.
	demand := (current.user + current.system - last.user - last.system + max(0, current.queued-last.queued)).Seconds()
	user, system := current.user-r.base.user, current.system-r.base.system
	r.computes = false
	switch {
	case last.at.IsZero():
		r.base, r.doing = current, agentapi.Busy
	case seconds <= 0, current.device, float64(current.bytes-last.bytes)/seconds > moved:
		r.base, r.doing = current, agentapi.Busy
	case demand/seconds < idle && strings.Contains(current.wait, sleeps):
		r.base, r.doing = current, agentapi.Sleeping
	case demand/seconds < idle:
		r.base, r.doing = current, agentapi.Blocked
	case user+system >= enough && float64(system) >= kernel*float64(user+system):
		r.base, r.doing = current, agentapi.Polling
	case user+system >= enough, r.doing != agentapi.Polling:
		r.doing, r.computes = agentapi.Busy, true
		if user+system >= enough {
			r.base = current
		}
	}
	return r.doing
}

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
