package cgroup

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"opendatahub.io/mpijob/internal/agent/usage"
	"opendatahub.io/mpijob/internal/agentapi"
)

// ReadUsage adds what the container's cgroup counts to a reading (Linux, Documentation/admin-guide/cgroup-v2.rst, and cgroup-v1/memory.rst,
// blkio-controller.rst and scheduler/sched-bwc.rst). Version 1 does not count pressure.
func ReadUsage(root string, r *usage.Reading) {
	if _, err := os.Stat(filepath.Join(root, "memory.events")); err == nil {
		readUsage2(root, r)
		return
	}
	readUsage1(root, r)
}

func readUsage2(root string, r *usage.Reading) {
	file := func(name string) string { return filepath.Join(root, name) }
	cpu := values(file("cpu.stat"))
	addCPU(r, float64(cpu["usage_usec"])/1000, float64(cpu["throttled_usec"])/1000, cpu)
	quota, period, _ := strings.Cut(text(file("cpu.max")), " ")
	addCPULimit(r, parse(quota), parse(period))
	memory := values(file("memory.stat"))
	addMemory(r, number(file("memory.current")), memory["inactive_file"], number(file("memory.max")), memory["pgmajfault"])
	for name, metric := range map[string]agentapi.Metric{
		"cpu.pressure": agentapi.MetricCPUPressure, "memory.pressure": agentapi.MetricMemoryPressure, "io.pressure": agentapi.MetricIOPressure,
	} {
		if total, known := pressure(text(file(name))); known {
			r.Counters[metric] = usage.Counter{Count: float64(total) / 1000, PerSecond: true}
		}
	}
	if io := text(file("io.stat")); io != "" {
		r.Counters[agentapi.MetricIO] = usage.Counter{Count: float64(ioBytes(io)) / 1024, PerSecond: true}
	}
}

func readUsage1(root string, r *usage.Reading) {
	cpu := values(filepath.Join(root, "cpu", "cpu.stat"))
	if used := cpuTime1(root); used > 0 {
		addCPU(r, float64(used)/1e6, float64(cpu["throttled_time"])/1e6, cpu)
	}
	addCPULimit(r, number(filepath.Join(root, "cpu", "cpu.cfs_quota_us")), number(filepath.Join(root, "cpu", "cpu.cfs_period_us")))
	memory := values(filepath.Join(root, "memory", "memory.stat"))
	addMemory(r, number(filepath.Join(root, "memory", "memory.usage_in_bytes")), memory["total_inactive_file"],
		number(filepath.Join(root, "memory", "memory.limit_in_bytes")), memory["total_pgmajfault"])
	for _, name := range []string{"blkio.throttle.io_service_bytes_recursive", "blkio.throttle.io_service_bytes"} {
		if io := values(filepath.Join(root, "blkio", name)); len(io) > 0 {
			r.Counters[agentapi.MetricIO] = usage.Counter{Count: float64(io["Total"]) / 1024, PerSecond: true}
			break
		}
	}
}

// addCPU adds the CPU time and the time for which the CPU limit stopped processes, in milliseconds. The kernel adds up the latter over the
// CPUs on which processes were stopped, as it does the former: together, they are the time that the processes needed. The share of
// periods in which it stopped any (nr_throttled of nr_periods) shows little: processes that use all of their limit are stopped at the end of
// each period, if only for a moment.
func addCPU(r *usage.Reading, used, throttled float64, stat map[string]int64) {
	r.Counters[agentapi.MetricCPU] = usage.Counter{Count: used, PerSecond: true}
	if _, known := stat["nr_periods"]; known {
		r.Counters[agentapi.MetricThrottled] = usage.Counter{Count: 1000 * throttled, Of: used + throttled}
	}
}

func addCPULimit(r *usage.Reading, quota, period int64) {
	if quota > 0 && period > 0 {
		r.Limits[agentapi.MetricCPU] = 1000 * quota / period
	}
}

// addMemory adds the memory in use without cached files that the kernel can drop, as kubelets count it, and the page faults.
func addMemory(r *usage.Reading, used, inactiveFile, limit, faults int64) {
	if used > 0 {
		r.Gauges[agentapi.MetricMemory] = max(0, used-inactiveFile) >> 20
		r.Counters[agentapi.MetricMajorFaults] = usage.Counter{Count: 60 * float64(faults), PerSecond: true}
	}
	if limit > 0 {
		r.Limits[agentapi.MetricMemory] = limit >> 20
	}
}

// text returns the content of a file; "" if it cannot be read.
func text(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

func parse(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

// values returns the lines "name number" of a file.
func values(path string) map[string]int64 {
	all := map[string]int64{}
	for line := range strings.Lines(text(path)) {
		if name, value, found := strings.Cut(strings.TrimSpace(line), " "); found {
			if n, err := strconv.ParseInt(value, 10, 64); err == nil {
				all[name] = n
			}
		}
	}
	return all
}

// pressure returns the microseconds for which a process waited, from a file such as cpu.pressure.
func pressure(file string) (total int64, known bool) {
	for line := range strings.Lines(file) {
		if !strings.HasPrefix(line, "some ") {
			continue
		}
		if _, value, found := strings.Cut(strings.TrimSpace(line), "total="); found {
			return parse(value), true
		}
	}
	return 0, false
}

// ioBytes adds up the bytes that were read and written, from the text of io.stat.
func ioBytes(file string) (total int64) {
	for field := range strings.FieldsSeq(file) {
		if name, value, found := strings.Cut(field, "="); found && (name == "rbytes" || name == "wbytes") {
			total += parse(value)
		}
	}
	return total
}
