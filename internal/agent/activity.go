package agent

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"opendatahub.io/mpijob/internal/agentapi"
)

const (
	// samplePeriod is the time between two samples of what ranks do.
	samplePeriod = 5 * time.Second
	// clockTicks is USER_HZ, the unit of times in /proc/PID/stat: 100 on every architecture of Linux that Go supports.
	clockTicks = 100
)

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

// readUsages adds up the usage of a rank and of the processes that it started, which may do its work. The first is the
// rank's; the others may have ended meanwhile.
func readUsages(pids []int, at time.Time) (processUsage, bool) {
	var total processUsage
	for i, pid := range pids {
		u, ok := readUsage(pid, at)
		if !ok && i == 0 {
			return processUsage{}, false
		}
		if !ok {
			continue
		}
		// Shells wait for what they started. One process that is blocked means that not all sleep.
		if i == 0 || u.wait != waitsForChild && (total.wait == waitsForChild || strings.Contains(total.wait, sleeps)) {
			total.wait = u.wait
		}
		total.at, total.device = at, total.device || u.device
		total.user, total.system, total.queued = total.user+u.user, total.system+u.system, total.queued+u.queued
		total.bytes += u.bytes
	}
	return total, len(pids) > 0
}

// The kernel's functions in which processes wait for the end of a child, and (a part of the name) sleep.
const (
	waitsForChild = "do_wait"
	sleeps        = "nanosleep"
)

// readUsage reads the usage of a process, with that of its children that have ended, from /proc.
func readUsage(pid int, at time.Time) (processUsage, bool) {
	data, err := os.ReadFile(procFile(pid, "stat"))
	if err != nil {
		return processUsage{}, false
	}
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	if len(fields) < 15 {
		return processUsage{}, false
	}
	ticks := func(field string) time.Duration {
		n, _ := strconv.ParseInt(field, 10, 64)
		return time.Duration(n) * time.Second / clockTicks
	}
	u := processUsage{at: at, user: ticks(fields[11]) + ticks(fields[13]), system: ticks(fields[12]) + ticks(fields[14]), queued: queuedTime(pid), device: usesDevice(pid)}
	io, _ := os.ReadFile(procFile(pid, "io"))
	for line := range strings.Lines(string(io)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if name == "rchar" || name == "wchar" {
			n, _ := strconv.ParseInt(value, 10, 64)
			u.bytes += n
		}
	}
	wait, _ := os.ReadFile(procFile(pid, "wchan"))
	switch u.wait = string(wait); {
	case fields[0] == "Z":
		// A process that has ended does not show what the others do.
		u.wait = waitsForChild
	case u.wait == "0":
		u.wait = ""
	}
	return u, true
}

// queuedTime returns the time for which the threads of a process were ready to run and had no CPU, as on a busy machine
// (Linux, Documentation/scheduler/sched-stats.rst).
func queuedTime(pid int) (total time.Duration) {
	tasks, _ := os.ReadDir(procFile(pid, "task"))
	for _, task := range tasks {
		data, _ := os.ReadFile(procFile(pid, "task/"+task.Name()+"/schedstat"))
		if fields := strings.Fields(string(data)); len(fields) >= 2 {
			n, _ := strconv.ParseInt(fields[1], 10, 64)
			total += time.Duration(n)
		}
	}
	return total
}

// usesDevice reports whether a process has a device of an accelerator open.
func usesDevice(pid int) bool {
	entries, err := os.ReadDir(procFile(pid, "fd"))
	if err != nil {
		return false
	}
	for _, entry := range entries {
		target, _ := os.Readlink(procFile(pid, "fd/"+entry.Name()))
		for _, device := range []string{"/dev/nvidia", "/dev/kfd", "/dev/dri/", "/dev/accel", "/dev/habanalabs"} {
			if strings.HasPrefix(target, device) {
				return true
			}
		}
	}
	return false
}

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

// activity follows what the ranks of a container do.
type activity struct {
	samples map[int]*rankSamples
	traffic int64
	at      time.Time
	// latest is the latest result.
	latest agentapi.Activity
}

// sample compares the ranks' processes with the sample before. processes are the ranks by process id.
func (a *activity) sample(now time.Time, processes map[int]int32) agentapi.Activity {
	// quietTraffic is the number of bytes per second that a pod sends and receives although its ranks do not: probes,
	// metrics and keep-alives.
	const quietTraffic = 4 << 10
	traffic, elapsed := networkBytes(), now.Sub(a.at).Seconds()
	quiet := !a.at.IsZero() && elapsed > 0 && float64(traffic-a.traffic)/elapsed < quietTraffic && len(processes) > 0
	next := agentapi.Activity{Ranks: []agentapi.RankActivity{}}
	samples, started := map[int]*rankSamples{}, startedBy(processes)
	for pid, rank := range processes {
		pids := append([]int{pid}, started[pid]...)
		current, ok := readUsages(pids, now)
		if !ok {
			quiet = false
			continue
		}
		samples[pid] = a.samples[pid]
		if samples[pid] == nil {
			samples[pid] = &rankSamples{}
		}
		what := samples[pid].add(current)
		if samples[pid].code.runsOnlyMPI(pids, now, samples[pid].computes) {
			what = agentapi.Polling
		}
		quiet = quiet && what != agentapi.Busy
		next.Ranks = append(next.Ranks, agentapi.RankActivity{Rank: rank, Doing: what})
	}
	slices.SortFunc(next.Ranks, func(a, b agentapi.RankActivity) int { return int(a.Rank - b.Rank) })
	if quiet {
		next.QuietSince = a.latest.QuietSince
		if next.QuietSince == 0 {
			next.QuietSince = a.at.Unix()
		}
	}
	a.samples, a.traffic, a.at, a.latest = samples, traffic, now, next
	return next
}

// startedBy returns the processes that each rank started, and those that these started.
func startedBy(ranks map[int]int32) map[int][]int {
	pids, _ := allProcesses()
	started := map[int][]int{}
	for _, pid := range pids {
		if _, isRank := ranks[pid]; isRank {
			continue
		}
		for _, above := range ancestorsOf(pid) {
			if _, isRank := ranks[above]; isRank {
				started[above] = append(started[above], pid)
				break
			}
		}
	}
	return started
}

// networkBytes returns the number of bytes that this pod has sent and received.
func networkBytes() (total int64) {
	data, _ := os.ReadFile("/proc/net/dev")
	return countTraffic(string(data))
}

// countTraffic adds up the bytes of all interfaces of /proc/net/dev but the loopback.
func countTraffic(table string) (total int64) {
	for line := range strings.Lines(table) {
		name, counts, found := strings.Cut(line, ":")
		fields := strings.Fields(counts)
		if !found || strings.TrimSpace(name) == "lo" || len(fields) < 9 {
			continue
		}
		received, _ := strconv.ParseInt(fields[0], 10, 64)
		sent, _ := strconv.ParseInt(fields[8], 10, 64)
		total += received + sent
	}
	return total
}

// stall is the launcher's judgment of what the ranks of the job do.
type stall struct {
	// text is the line for the log, without the agent's prefix; "" if nothing is wrong.
	text string
}

// waitingAfter is how long no rank makes progress until that is reported, and goneAfter how long ranks continue after one
// failed: MPI needs a few seconds to end them.
const waitingAfter, goneAfter = 30 * time.Second, 20 * time.Second

// hasNoRanks reports whether MPI has started no rank on a host, and will not: it uses fewer slots than there are. All ranks start
// within seconds.
func hasNoRanks(r record, now time.Time) bool {
	const started = time.Minute
	none := r.Worker == nil || r.Worker.Activity == nil || len(r.Worker.Activity.Ranks) == 0
	return none && !r.Reached.IsZero() && now.Sub(r.Reached) >= started
}

// judgeStall decides whether ranks wait for each other or for one that is gone. all are the job's hosts, own is what the
// ranks in the launcher's pod do, and failedAt is when the launcher first saw that a rank had failed, or zero.
func judgeStall(all []record, own agentapi.Activity, failed []agentapi.RankEnd, failedAt, now time.Time) stall {
	var ranks []agentapi.RankActivity
	quietSince := int64(0)
	quiet := true
	add := func(a agentapi.Activity) {
		ranks = append(ranks, a.Ranks...)
		quiet = quiet && a.QuietSince > 0
		quietSince = max(quietSince, a.QuietSince)
	}
	for _, r := range all {
		switch {
		case r.Over, hasNoRanks(r, now):
		case r.Worker == nil || r.Worker.Activity == nil || len(r.Worker.Activity.Ranks) == 0:
			// Its ranks have not started, or have not been sampled.
			quiet = false
		default:
			add(*r.Worker.Activity)
		}
	}
	if len(own.Ranks) > 0 {
		add(own)
	}
	switch {
	case len(ranks) == 0:
		return stall{}
	case len(failed) > 0 && !failedAt.IsZero() && now.Sub(failedAt) >= goneAfter:
		others := "1 other rank still runs"
		if len(ranks) > 1 {
			others = fmt.Sprintf("%d other ranks still run", len(ranks))
		}
		return stall{text: fmt.Sprintf("%s, but %s, since %s", strings.TrimSuffix(rankEnded(failed[0]), "."), others, clockTime(failedAt))}
	case len(ranks) < 2 || !quiet || now.Sub(time.Unix(quietSince, 0)) < waitingAfter:
		return stall{}
	}
	byDoing := map[agentapi.Doing][]string{}
	for _, r := range ranks {
		byDoing[r.Doing] = append(byDoing[r.Doing], strconv.Itoa(int(r.Rank)))
	}
	if len(byDoing[agentapi.Sleeping]) == len(ranks) {
		// Programs may sleep on purpose.
		return stall{}
	}
	var parts []string
	for _, doing := range []agentapi.Doing{agentapi.Sleeping, agentapi.Blocked, agentapi.Polling} {
		if numbers := byDoing[doing]; len(numbers) > 0 {
			parts = append(parts, fmt.Sprintf("%s: %s", doing, some(numbers)))
		}
	}
	return stall{text: fmt.Sprintf("all %d ranks wait, since %s; %s", len(ranks), clockTime(time.Unix(quietSince, 0)), strings.Join(parts, "; "))}
}

func clockTime(at time.Time) string { return at.UTC().Format("15:04:05 UTC") }
