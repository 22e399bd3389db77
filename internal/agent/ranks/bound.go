package ranks

import (
	"maps"
	"os"
	"slices"
	"strings"

	"opendatahub.io/mpijob/internal/agent/cgroup"
	"opendatahub.io/mpijob/internal/agent/process"
	"opendatahub.io/mpijob/internal/agentapi"
)

// boundRanks returns the CPUs to which ranks are bound, given by their processes; nil if they may use all CPUs of their container, or if
// that is unknown.
func boundRanks(running map[int]int32) *agentapi.BoundRanks {
	own := allowedCPUs(os.Getpid())
	var lists [][]int
	for pid := range running {
		lists = append(lists, allowedCPUs(pid))
	}
	bound := addBound(own, lists)
	if bound != nil {
		machine, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
		bound.Machine = strings.TrimSpace(string(machine))
	}
	return bound
}

// addBound adds up the CPUs of ranks that may not use all of their container's.
func addBound(own []int, ranks [][]int) *agentapi.BoundRanks {
	all, count := map[int]bool{}, int32(0)
	for _, cpus := range ranks {
		if len(cpus) == 0 || len(cpus) >= len(own) {
			continue
		}
		count++
		for _, cpu := range cpus {
			all[cpu] = true
		}
	}
	if count == 0 {
		return nil
	}
	return &agentapi.BoundRanks{CPUs: agentapi.FormatCPUs(slices.Sorted(maps.Keys(all))), Ranks: count, Usable: int32(len(own))}
}

// allowedCPUs returns the CPUs on which a process may run; none if they are unknown.
func allowedCPUs(pid int) []int {
	status, _ := os.ReadFile(process.File(pid, "status"))
	cpus, _ := agentapi.ParseCPUs(cgroup.AllowedCPUs(string(status)))
	return cpus
}
