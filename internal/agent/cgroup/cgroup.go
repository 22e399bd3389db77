// Package cgroup reads what the container's cgroup counts: memory, kills for lack of it, and CPU time.
package cgroup

import (
	"os"
	"path/filepath"
	"strconv"

	"opendatahub.io/mpijob/internal/agentapi"
)

// Root is where a container sees its own cgroup.
const Root = "/sys/fs/cgroup"

// memory is what the container's cgroup counts, in bytes; 0 is unknown or unlimited.
type memory struct {
	limit, peak int64
	// kills is how many processes the kernel has killed in the container because it was out of memory.
	kills int64
}

// readMemory reads the container's own cgroup below a folder, /sys/fs/cgroup in a container, of version 2 or 1
// (Linux, Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst).
func readMemory(root string) memory {
	if _, err := os.Stat(filepath.Join(root, "memory.events")); err == nil {
		return memory{
			limit: number(filepath.Join(root, "memory.max")),
			peak:  max(number(filepath.Join(root, "memory.peak")), number(filepath.Join(root, "memory.current"))),
			kills: values(filepath.Join(root, "memory.events"))["oom_kill"],
		}
	}
	v1 := filepath.Join(root, "memory")
	return memory{
		limit: number(filepath.Join(v1, "memory.limit_in_bytes")),
		peak:  number(filepath.Join(v1, "memory.max_usage_in_bytes")),
		kills: values(filepath.Join(v1, "memory.oom_control"))["oom_kill"],
	}
}

// number reads a file of one number. Version 1 writes "no limit" as a number that no machine has.
func number(path string) int64 {
	n, err := strconv.ParseInt(text(path), 10, 64)
	if err != nil || n > 1<<60 {
		return 0
	}
	return n
}

// readCPU returns the CPU time of the container's cgroup, and the time for which the kernel stopped its processes because
// of the CPU limit, in seconds. Both are 0 if they are unknown.
func readCPU(root string) (used, throttled float64) {
	if stat := values(filepath.Join(root, "cpu.stat")); stat["usage_usec"] > 0 {
		return float64(stat["usage_usec"]) / 1e6, float64(stat["throttled_usec"]) / 1e6
	}
	if usage := cpuTime1(root); usage > 0 {
		return float64(usage) / 1e9, float64(values(filepath.Join(root, "cpu", "cpu.stat"))["throttled_time"]) / 1e9
	}
	return 0, 0
}

// cpuTime1 returns the CPU time in nanoseconds that version 1 counts; 0 if it is unknown. The first two folders are one that is linked
// as cpu, which has the limit.
func cpuTime1(root string) int64 {
	for _, folder := range []string{"cpu,cpuacct", "cpu", "cpuacct"} {
		if used := number(filepath.Join(root, folder, "cpuacct.usage")); used > 0 {
			return used
		}
	}
	return 0
}

// Kills returns how many processes of the container the kernel has killed because it was out of memory.
func Kills(root string) int64 { return readMemory(root).kills }

// Tell writes what the container's cgroup counts into a summary.
func Tell(root string, summary *agentapi.Summary) {
	m := readMemory(root)
	summary.OOMKills, summary.MemoryLimit, summary.MemoryPeak = m.kills, m.limit, m.peak
	summary.CPUSeconds, summary.ThrottledSeconds = readCPU(root)
}
