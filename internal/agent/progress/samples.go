// Package progress judges by samples what ranks do, and whether a job makes progress.
package progress

import (
	"cmp"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"time"

	"opendatahub.io/mpijob/internal/agentapi"
)

// SamplePeriod is the time between two samples of what ranks do.
const SamplePeriod = 5 * time.Second

// Usage is what a process has used so far.
type Usage struct {
	At time.Time
	// User and System are CPU times, and Queued is the time for which threads waited for a CPU, of all threads.
	User, System, Queued time.Duration
	// Ready are the threads that run or wait for a CPU at that time, each with how often it has gone to sleep. The kernel adds what it
	// waited to the queued time only when it gets one.
	Ready map[int]int64
	// Sleeps is how often the main thread has gone to sleep.
	Sleeps int64
	// Bytes were read and written.
	Bytes int64
	// Faults are the page faults that read from a disk, of all threads.
	Faults int64
	// Wait is the kernel function in which the main thread sleeps, if it does and the kernel tells.
	Wait string
	// For is what it waits for, such as "the lock of /data/index.lock"; "" if that is unknown.
	For string
	// Holder is the process that holds the lock for which it waits; 0 if it waits for none, or that is unknown.
	Holder int
	// Device is whether a GPU or another accelerator is open: what a process waits for may run there.
	Device bool
	// GPUs are the numbers of the GPUs of NVIDIA that are open.
	GPUs []int
	// GPU is what the GPUs that are open have done lately; nil if that is not measured.
	GPU *GPUUse
}

// GPUUse is the share of time, in thousandths, in which GPUs computed lately: the one that did least, and the one that did most.
type GPUUse struct{ Least, Most int64 }

// Add adds the usage of a process that the first one started.
func (u *Usage) Add(other Usage) {
	// Shells wait for what they started. One process that is blocked means that not all sleep.
	if other.Wait != WaitsForChild && (u.Wait == WaitsForChild || strings.Contains(u.Wait, sleeps)) {
		u.Wait = other.Wait
	}
	if u.For == "" {
		u.For, u.Holder = other.For, other.Holder
	}
	u.Device = u.Device || other.Device
	for _, gpu := range other.GPUs {
		if !slices.Contains(u.GPUs, gpu) {
			u.GPUs = append(u.GPUs, gpu)
		}
	}
	if u.Ready == nil {
		u.Ready = map[int]int64{}
	}
	maps.Copy(u.Ready, other.Ready)
	u.User, u.System, u.Queued = u.User+other.User, u.System+other.System, u.Queued+other.Queued
	u.Bytes += other.Bytes
	u.Faults += other.Faults
	u.Sleeps += other.Sleeps
}

// The kernel's functions in which processes wait for the end of a child, and (a part of the name) sleep.
const (
	WaitsForChild = "do_wait"
	sleeps        = "nanosleep"
)

// Samples are the samples of one rank.
type Samples struct {
	// last is the latest, and base the one since which the shares of CPU time are compared.
	last, base Usage
	doing      agentapi.Doing
	// idleSince is when the rank was busy for the last time, in seconds since 1970; 0 if it is busy.
	idleSince int64
	// sleptAt is when the process was last seen asleep for a time that it chose.
	sleptAt time.Time
	// computes is set if the process is busy only because of its use of a CPU.
	computes bool
	code     CodeWatch
	// doubted is set if the latest result was not believed: it was based on too little of a CPU.
	doubted bool
	// is what the rank does, as it was reported last.
	is agentapi.Doing
	// waits has a bit for each of the latest samples, the latest first, which is set if the rank was not busy, and count is their number.
	waits uint16
	count int
	// queued is the share of the time since the sample before for which threads waited for a CPU.
	queued float64
	// gpuIdleSince and gpuBusySince are those of agentapi.RankActivity.
	gpuIdleSince, gpuBusySince int64
}

// Add compares a sample with those before, and returns what the process does. Processes that have had too little of a CPU
// to tell by it do what they did.
func (r *Samples) Add(current Usage) agentapi.Doing {
	const (
		// idle is the share of a CPU that a process at most uses if it does nothing, and waiting the share of the time for which it then
		// waits for a CPU at most: on a busy machine, one that wakes up every second may wait for long each time.
		idle, waiting = 0.05, 0.5
		// brief is the CPU time that a process uses at most each time it wakes up if it then only looks whether it can go on.
		brief = 500 * time.Microsecond
		// kernel is the share of CPU time in the kernel from which a process only polls: MPI libraries that wait look for
		// messages in a loop of system calls; programs that compute hardly make any.
		kernel = 0.25
		// enough is the CPU time after which the share is known.
		enough = 200 * time.Millisecond
		// certain is the CPU time after which the share is exact, and unlike the part of it that a process is below which no longer polls
		// although less is known: the kernel counts by its ticks whether time is its own.
		certain, unlike = time.Second, 0.5
		// awake is how long a process that sleeps again and again is taken for asleep when it is not seen so.
		awake = 6 * SamplePeriod
		// moved is the number of bytes per second from which a process transfers data.
		moved = 64 << 10
	)
	last := r.last
	r.last = current
	seconds := current.At.Sub(last.At).Seconds()
	used := (current.User + current.System - last.User - last.System).Seconds()
	// The queued time of processes that ended is lost.
	queued := max(0, current.Queued-last.Queued).Seconds()
	// On a machine with many processes per CPU, one that wakes up several times a second waits most of the time.
	wakes := time.Duration(used*float64(time.Second)) < time.Duration(current.Sleeps-last.Sleeps)*brief
	idles := used/seconds < idle && ((used+queued)/seconds < waiting || wakes) && !starves(last, current)
	r.queued = queued / max(seconds, 1)
	user, system := current.User-r.base.User, current.System-r.base.System
	r.computes = false
	if strings.Contains(current.Wait, sleeps) {
		r.sleptAt = current.At
	}
	switch {
	case last.At.IsZero():
		r.base, r.doing = current, agentapi.Busy
	case seconds <= 0, current.Device && !idles, float64(current.Bytes-last.Bytes)/seconds > moved, float64(current.Faults-last.Faults)/seconds >= slowFaults:
		r.base, r.doing = current, agentapi.Busy
	case idles && (strings.Contains(current.Wait, sleeps) || current.At.Sub(r.sleptAt) < awake):
		r.base, r.doing = current, agentapi.Sleeping
	case idles:
		r.base, r.doing = current, agentapi.Blocked
	case user+system >= enough && float64(system) >= kernel*float64(user+system):
		r.base, r.doing = current, agentapi.Polling
	case r.doing == agentapi.Polling && user+system < certain && float64(system) >= unlike*kernel*float64(user+system):
		// It has had too little of a CPU to tell.
	case user+system >= enough, r.doing != agentapi.Polling:
		r.doing, r.computes = agentapi.Busy, true
		if user+system >= enough {
			r.base = current
		}
	}
	return r.doing
}

// believe returns what a rank does, by what the latest sample showed. If it waited, and has now computed with little of a CPU, as on a busy
// machine, it needs a second sample to show that. A sample with hardly any of a CPU shows nothing.
func (r *Samples) believe(what, before agentapi.Doing, used time.Duration) agentapi.Doing {
	// little is the CPU time between two samples up to which the second one is needed.
	const little, none = SamplePeriod / 5, 20 * time.Millisecond
	mayWait := what == agentapi.Busy && r.computes && before != "" && before != agentapi.Busy
	switch {
	case mayWait && used < none:
		return before
	case mayWait && used < little && !r.doubted:
		r.doubted = true
		return before
	}
	r.doubted = false
	return what
}

// keepGPU notes since when the GPUs of the rank are idle, or busy.
func (r *Samples) keepGPU(use *GPUUse, now time.Time) {
	// From idle on, a GPU does anything at all, and from busy on as much as one that waits in a kernel of NCCL, or computes.
	const idle, busy = 10, 500
	since := func(is bool, before int64) int64 {
		if !is {
			return 0
		}
		return cmp.Or(before, now.Unix())
	}
	r.gpuIdleSince = since(use != nil && use.Most < idle, r.gpuIdleSince)
	r.gpuBusySince = since(use != nil && use.Least >= busy, r.gpuBusySince)
}

// latestSamples is how many samples are looked at to find ranks that wait most of the time: those of a minute.
const latestSamples = int(time.Minute / SamplePeriod)

// keepWaits notes whether the rank is busy, and reports whether it was not in most of the latest samples.
func (r *Samples) keepWaits(what agentapi.Doing) bool {
	r.waits, r.count = r.waits<<1&(1<<latestSamples-1), min(r.count+1, latestSamples)
	if what != agentapi.Busy {
		r.waits |= 1
	}
	return r.count >= latestSamples/2 && 2*bits.OnesCount16(r.waits) > r.count
}

// starves reports whether a thread was ready from one sample to the next without a sleep, and got too little of a CPU. One that only wakes up from
// time to time may be ready in both, too.
func starves(last, current Usage) bool {
	for thread, sleeps := range current.Ready {
		if before, ready := last.Ready[thread]; ready && before == sleeps {
			return true
		}
	}
	return false
}

// RankUsage is what a rank has used up to now.
type RankUsage struct {
	Rank int32
	// Processes are the rank's own, first, and those that it started.
	Processes []int
	Used      Usage
	// Known is false if the rank ended meanwhile.
	Known bool
}

// Network is what a pod has sent and received, and whom it calls.
type Network struct {
	Bytes int64
	// Connecting are the addresses of connections that are being opened, such as "10.0.0.7:443".
	Connecting []string
}

// Follower follows what the ranks of a container do.
type Follower struct {
	samples map[int]*Samples
	traffic int64
	// calls are the addresses of connections that were being opened, with the time since when, in seconds since 1970.
	calls map[string]int64
	at    time.Time
	// looked is set if the agent has looked into the ranks since the latest sample.
	looked bool
	slow   slowWatch
	// Latest is the latest result, nil before the first one.
	Latest *agentapi.Activity
}

// LookedInto notes that the agent has read the memory or the programs of the ranks, or has sent what it found. The kernel marks what was
// read as used, as if the ranks had used it, and the answer is traffic of the pod: until the next sample, neither shows what the ranks do.
func (f *Follower) LookedInto() { f.looked = true }

// Sample compares what the ranks used with the sample before.
func (f *Follower) Sample(now time.Time, ranks []RankUsage, network Network, pod Counts, pages Marks) agentapi.Activity {
	// quietTraffic is the number of bytes per second that a pod sends and receives although its ranks do not: probes,
	// metrics and keep-alives.
	const quietTraffic = 4 << 10
	elapsed := now.Sub(f.at).Seconds()
	still := !f.at.IsZero() && elapsed > 0 && (float64(network.Bytes-f.traffic)/elapsed < quietTraffic || f.looked && f.Latest.StillSince > 0)
	next := agentapi.Activity{Ranks: []agentapi.RankActivity{}}
	samples, queued, awake := map[int]*Samples{}, 0.0, 0
	for _, r := range ranks {
		if !r.Known {
			// It has ended meanwhile, which the others may have waited for.
			still = false
			continue
		}
		of := f.samples[r.Processes[0]]
		if of == nil {
			of = &Samples{}
		}
		samples[r.Processes[0]] = of
		used := r.Used.User + r.Used.System - of.last.User - of.last.System
		what := of.Add(r.Used)
		if of.code.RunsOnlyMPI(pages, r.Processes, now, of.computes, f.looked) {
			what = agentapi.Polling
		}
		what = of.believe(what, of.is, used)
		of.is = what
		of.keepGPU(r.Used.GPU, now)
		rank := agentapi.RankActivity{Rank: r.Rank, Doing: what, Device: r.Used.Device, Waits: of.keepWaits(what), GPUIdleSince: of.gpuIdleSince, GPUBusySince: of.gpuBusySince}
		if what != agentapi.Busy {
			of.idleSince = cmp.Or(of.idleSince, f.at.Unix())
			rank.Since, rank.For = of.idleSince, r.Used.For
		} else {
			of.idleSince = 0
		}
		if what == agentapi.Busy || what == agentapi.Polling {
			queued, awake = queued+min(1, of.queued), awake+1
		}
		next.Ranks = append(next.Ranks, rank)
	}
	slices.SortFunc(next.Ranks, func(a, b agentapi.RankActivity) int { return int(a.Rank - b.Rank) })
	if still {
		next.StillSince = cmp.Or(f.Latest.StillSince, f.at.Unix())
	}
	next.Unanswered = f.unanswered(network.Connecting, now)
	next.Slow = f.slow.next(pod, queued/max(1, float64(awake)), now)
	f.samples, f.traffic, f.at, f.looked, f.Latest = samples, network.Bytes, now, false, &next
	return next
}

// unanswered returns the connection that is being opened for the longest time, if that was so in the sample before; nil if there is
// none. An answer takes less than the time between two samples.
func (f *Follower) unanswered(connecting []string, now time.Time) (longest *agentapi.Unanswered) {
	calls := map[string]int64{}
	for _, address := range connecting {
		since, before := f.calls[address]
		calls[address] = cmp.Or(since, now.Unix())
		if before && (longest == nil || since < longest.Since || since == longest.Since && address < longest.Address) {
			longest = &agentapi.Unanswered{Address: address, Since: since}
		}
	}
	f.calls = calls
	return longest
}

// Ranks that wait for a message in shared memory may look for it without a system call: MPICH's do. Their times do not tell them
// from ranks that compute; the code that they run does. A rank that waits uses pages of MPI's libraries, and none of its program's code.

// CodeUse is what a process has used since its marks were cleared.
type CodeUse struct {
	// MPI is set if code of MPI's libraries was used, and Other if other code was, that of the system's libraries excepted: it is
	// called by other code.
	MPI, Other bool
	// Bytes is the size of all pages that were used.
	Bytes int64
	// Cost is the CPU time that it took to find out.
	Cost time.Duration
}

// Marks are those of the pages that processes use.
type Marks interface {
	// Used returns what processes have used since their marks were cleared, and Clear clears them; false if it is not possible.
	Used(pids []int) (CodeUse, bool)
	Clear(pids []int) bool
}

// CodeWatch finds out whether a rank runs only code of MPI.
type CodeWatch struct {
	// cleared is when the marks of the processes were cleared, or zero, and next when they are at the earliest.
	cleared, next time.Time
	processes     []int
	// onlyMPI is the latest result.
	onlyMPI bool
}

// RunsOnlyMPI reports whether all code that a rank, with the processes that it started, has run since the sample before is MPI's.
// It is called with each sample; computes is whether the rank uses a CPU. If others than the rank have used its pages since the sample
// before, the marks show nothing, and the latest result is the next one, too.
func (w *CodeWatch) RunsOnlyMPI(of Marks, pids []int, now time.Time, computes, usedByOthers bool) bool {
	const (
		// few is the size of the pages that a rank uses at most if it only waits. One that transfers data uses more.
		few = 16 << 20
		// again is the time after which a rank that ran its program's code is looked at again, and cost the share of the time that
		// this takes at most: processes with much memory have many pages.
		again = 3 * SamplePeriod
		cost  = 0.005
	)
	if !computes || now.Before(w.next) {
		w.cleared, w.onlyMPI = time.Time{}, false
		return false
	}
	known := !w.cleared.IsZero() && slices.Equal(pids, w.processes)
	switch {
	case known && usedByOthers:
		known = w.onlyMPI
	case known:
		use, ok := of.Used(pids)
		if isCheap := w.onlyMPI || float64(use.Cost) <= cost*float64(SamplePeriod); ok && isCheap && !use.MPI && !use.Other {
			// It has hardly had a CPU, and does what it did: what it uses next shows more.
			return w.onlyMPI
		}
		if !ok || !use.MPI || use.Other || use.Bytes > few {
			w.cleared, w.onlyMPI, w.next = time.Time{}, false, now.Add(max(again, time.Duration(float64(use.Cost)/cost)))
			return false
		}
	}
	w.cleared, w.processes, w.onlyMPI = now, slices.Clone(pids), known
	if !of.Clear(pids) {
		w.cleared = time.Time{}
	}
	return known
}
