package ranks

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"opendatahub.io/mpijob/internal/agent/cgroup"
	"opendatahub.io/mpijob/internal/agent/process"
	"opendatahub.io/mpijob/internal/agent/progress"
	"opendatahub.io/mpijob/internal/agent/usage"
	"opendatahub.io/mpijob/internal/agentapi"
)

// readUsages adds up the usage of a rank and of the processes that it started, which may do its work. The first is the
// rank's; the others may have ended meanwhile.
func readUsages(pids []int, at time.Time) (total progress.Usage, ok bool) {
	for i, pid := range pids {
		u, ok := readUsage(pid, at)
		switch {
		case i == 0 && !ok:
			return progress.Usage{}, false
		case i == 0:
			total = u
		case ok:
			total.Add(u)
		}
	}
	return total, len(pids) > 0
}

// readUsage reads the usage of a process, with that of its children that have ended, from /proc.
func readUsage(pid int, at time.Time) (progress.Usage, bool) {
	fields := process.StatFields(pid)
	if len(fields) < 15 {
		return progress.Usage{}, false
	}
	u := progress.Usage{At: at, User: process.Ticks(fields[11], fields[13]), System: process.Ticks(fields[12], fields[14])}
	u.Device, u.GPUs = openDevices(process.File(pid, "fd"))
	// Those of children that have ended are in the second figure, as with CPU times (proc_pid_stat(5)).
	for _, field := range []string{fields[9], fields[10]} {
		n, _ := strconv.ParseInt(field, 10, 64)
		u.Faults += n
	}
	u.Queued, u.Ready = queued(pid)
	u.Sleeps = sleeps(process.File(pid, "task/"+strconv.Itoa(pid)))
	io, _ := os.ReadFile(process.File(pid, "io"))
	for line := range strings.Lines(string(io)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if name == "rchar" || name == "wchar" {
			n, _ := strconv.ParseInt(value, 10, 64)
			u.Bytes += n
		}
	}
	wait, _ := os.ReadFile(process.File(pid, "wchan"))
	switch u.Wait = string(wait); {
	case fields[0] == "Z":
		// A process that has ended does not show what the others do.
		u.Wait = progress.WaitsForChild
	case u.Wait == "0":
		u.Wait = ""
	}
	u.For, u.Holder = awaitedBy(pid, u.Wait)
	return u, true
}

// queued returns the time for which the threads of a process were ready to run and had no CPU, as on a busy machine
// (Linux, Documentation/scheduler/sched-stats.rst). ready are the threads that run or are ready now, each with how often it has gone to
// sleep.
func queued(pid int) (total time.Duration, ready map[int]int64) {
	tasks, _ := os.ReadDir(process.File(pid, "task"))
	for _, task := range tasks {
		folder := process.File(pid, "task/"+task.Name())
		stat, _ := os.ReadFile(folder + "/stat")
		if thread, err := strconv.Atoi(task.Name()); err == nil && bytes.HasPrefix(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" R ")) {
			if ready == nil {
				ready = map[int]int64{}
			}
			ready[thread] = sleeps(folder)
		}
		data, _ := os.ReadFile(folder + "/schedstat")
		if fields := strings.Fields(string(data)); len(fields) >= 2 {
			n, _ := strconv.ParseInt(fields[1], 10, 64)
			total += time.Duration(n)
		}
	}
	return total, ready
}

// sleeps returns how often a thread, given by its folder in /proc, has gone to sleep.
func sleeps(folder string) (count int64) {
	status, _ := os.ReadFile(folder + "/status")
	_, rest, _ := strings.Cut(string(status), "\nvoluntary_ctxt_switches:")
	line, _, _ := strings.Cut(rest, "\n")
	count, _ = strconv.ParseInt(strings.TrimSpace(line), 10, 64)
	return count
}

// openDevices reports whether a process, given by the folder of its open files in /proc, has a device of an accelerator open, and returns the numbers
// of its GPUs of NVIDIA.
func openDevices(folder string) (hasDevice bool, gpus []int) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return false, nil
	}
	for _, entry := range entries {
		target, _ := os.Readlink(filepath.Join(folder, entry.Name()))
		for _, device := range []string{"/dev/nvidia", "/dev/kfd", "/dev/dri/", "/dev/accel", "/dev/habanalabs"} {
			hasDevice = hasDevice || strings.HasPrefix(target, device)
		}
		number, isNVIDIA := strings.CutPrefix(target, "/dev/nvidia")
		if gpu, err := strconv.Atoi(number); isNVIDIA && err == nil && !slices.Contains(gpus, gpu) {
			gpus = append(gpus, gpu)
		}
	}
	return hasDevice, gpus
}

// useOf returns what GPUs of NVIDIA, given by their numbers, have done lately; nil if that is unknown of one. busy are the shares of time, in
// thousandths, in which GPUs computed.
func useOf(gpus []int, busy map[int]int64) *progress.GPUUse {
	if len(gpus) == 0 {
		return nil
	}
	use := progress.GPUUse{Least: math.MaxInt64}
	for _, gpu := range gpus {
		share, isKnown := busy[gpu]
		if !isKnown {
			return nil
		}
		use.Least, use.Most = min(use.Least, share), max(use.Most, share)
	}
	return &use
}

// startedBy returns the processes that each rank started, and those that these started.
func startedBy(ranks map[int]int32) map[int][]int {
	pids, _ := process.All()
	started := map[int][]int{}
	for _, pid := range pids {
		if _, isRank := ranks[pid]; isRank {
			continue
		}
		for _, above := range process.Ancestors(pid) {
			if _, isRank := ranks[above]; isRank {
				started[above] = append(started[above], pid)
				break
			}
		}
	}
	return started
}

// podCounts returns what the cgroup in a folder has counted that slows ranks down.
func podCounts(root string) progress.Counts {
	reading := usage.Reading{Counters: map[agentapi.Metric]usage.Counter{}, Gauges: map[agentapi.Metric]int64{}, Limits: map[agentapi.Metric]int64{}}
	cgroup.ReadUsage(root, &reading)
	// Their units are thousandths, and faults by the minute.
	throttled := reading.Counters[agentapi.MetricThrottled]
	return progress.Counts{Needed: throttled.Of, Throttled: throttled.Count / 1000, Faults: reading.Counters[agentapi.MetricMajorFaults].Count / 60}
}

// NetworkBytes returns the number of bytes that this pod has sent and received.
func NetworkBytes() (total int64) {
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

// pages are the marks that the kernel sets on the pages that processes use, and clears on request (proc_pid_clear_refs(5)).
type pages struct{}

// Used adds up what processes have used since their marks were cleared.
func (pages) Used(pids []int) (total progress.CodeUse, ok bool) {
	// On a busy machine, most of the time that passes is that of others.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	started := threadTime()
	for _, pid := range pids {
		text, err := os.ReadFile(process.File(pid, "smaps"))
		if err != nil {
			return progress.CodeUse{Cost: threadTime() - started}, false
		}
		use := parseUse(string(text))
		total = progress.CodeUse{MPI: total.MPI || use.MPI, Other: total.Other || use.Other, Bytes: total.Bytes + use.Bytes}
	}
	total.Cost = threadTime() - started
	return total, true
}

// Clear clears the marks of processes, and reports whether it could.
func (pages) Clear(pids []int) bool {
	cleared := true
	for _, pid := range pids {
		cleared = os.WriteFile(process.File(pid, "clear_refs"), []byte("1"), 0) == nil && cleared
	}
	return cleared
}

// mpiLibraries are the beginnings of the names of libraries that MPI consists of, and systemLibraries those of libraries that do
// nothing by themselves.
var (
	mpiLibraries    = []string{"libmpi", "libpmpi", "libopen-pal", "libopen-rte", "libpmix", "libucp.", "libuct", "libucs", "libucm", "libfabric", "libpsm"}
	systemLibraries = []string{
		"libc.", "libc-", "libm.", "libm-", "ld-", "libpthread", "librt", "libdl", "libgcc_s", "libatomic", "libstdc++", "libibverbs", "librdmacm", "libmlx",
		"libefa", "libnl-", "libhwloc", "libnuma", "libevent", "libxpmem", "libpciaccess", "libudev", "libz.", "[vdso]", "[vsyscall]",
	}
)

// parseUse adds up the marks in the text of /proc/PID/smaps.
func parseUse(smaps string) (use progress.CodeUse) {
	isCode, name := false, ""
	for line := range strings.Lines(smaps) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		if !strings.HasSuffix(fields[0], ":") {
			isCode, name = strings.Contains(fields[1], "x"), ""
			if len(fields) >= 6 {
				name = filepath.Base(fields[5])
			}
			continue
		}
		if fields[0] != "Referenced:" {
			continue
		}
		size, _ := strconv.ParseInt(fields[1], 10, 64)
		use.Bytes += size << 10
		is := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
		switch {
		case size == 0 || !isCode:
		case slices.ContainsFunc(mpiLibraries, is):
			use.MPI = true
		case !slices.ContainsFunc(systemLibraries, is):
			use.Other = true
		}
	}
	return use
}

// addUses adds up what ranks and the processes that they started have used. ranks are the ranks by process, and now is the time since
// the machine was started.
func addUses(ranks map[int]int32, read map[int]process.Use, now time.Duration) []agentapi.RankUse {
	totals := map[int]process.Use{}
	for pid, use := range read {
		for above, depth := pid, 0; depth < len(read); depth++ {
			if _, isRank := ranks[above]; isRank {
				total := totals[above]
				totals[above] = process.Use{CPU: total.CPU + use.CPU, Memory: total.Memory + use.Memory}
				break
			}
			parent, known := read[above]
			if !known {
				break
			}
			above = parent.Parent
		}
	}
	var uses []agentapi.RankUse
	for pid, rank := range ranks {
		use, known := read[pid]
		if age := now - use.Started; known && age > 0 {
			uses = append(uses, agentapi.RankUse{Rank: rank, CPU: int64(1000*totals[pid].CPU.Seconds()/age.Seconds() + 0.5), Memory: totals[pid].Memory >> 20})
		}
	}
	slices.SortFunc(uses, func(a, b agentapi.RankUse) int { return int(a.Rank - b.Rank) })
	return uses
}

// bootTime returns the time since the machine was started.
func bootTime() time.Duration {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) != nil {
		return 0
	}
	return time.Duration(now.Nano())
}

// threadTime returns the CPU time that the calling thread has used.
func threadTime() time.Duration {
	var usage unix.Rusage
	if unix.Getrusage(unix.RUSAGE_THREAD, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
