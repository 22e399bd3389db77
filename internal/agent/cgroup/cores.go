package cgroup

import (
	"os"
	"path/filepath"
	"strings"

	"opendatahub.io/mpijob/internal/agentapi"
)

// Cores are what shows whether a container owns its cores: the kubelet's static CPU manager gives exclusive ones to a container with whole
// CPUs in a pod of the QoS class Guaranteed, and all others share the rest.
type Cores struct {
	// Expected is the number of whole CPUs of a container in a Guaranteed pod (agentapi.EnvCores); 0 for others.
	Expected int
	// Set is the number of CPUs of the container's cpuset, and Allowed that of CPUs on which this process may run; 0 if they are unknown.
	Set, Allowed int
	// Online is the number of CPUs of the machine that are online.
	Online int
	// Quota and Period are the CPU limit, in microseconds; the quota is 0 without one, as kubelets set none for exclusive cores since
	// version 1.33.
	Quota, Period int64
}

// Owned reports whether the container owns its cores. A shared pool may have as many CPUs by chance, but the static CPU manager puts no
// container with an expected number into it.
func (c Cores) Owned() bool {
	return c.Expected > 0 && c.Set == c.Expected && c.Allowed == c.Set && c.Set < c.Online &&
		(c.Quota <= 0 || c.Quota == int64(c.Expected)*c.Period)
}

// Hidden reports whether the container owns its cores, and MPI does not find them: their cpuset cannot be read as hwloc does it.
func (c Cores) Hidden() bool {
	visible := c
	visible.Set = c.Allowed
	return c.Set == 0 && visible.Owned()
}

// ReadCores reads what shows whether the container owns its cores, below the root of the file system. The cpuset is looked up as hwloc
// does it, the library by which MPI finds cores: where that finds none, as in version 1 without a cgroup namespace, MPI would bind ranks to
// cores that the container does not have.
func ReadCores(root string, expected int) Cores {
	file := func(names ...string) string { return text(filepath.Join(append([]string{root}, names...)...)) }
	cgroups := filepath.Join("sys", "fs", "cgroup")
	c := Cores{Expected: expected, Online: agentapi.CountCPUs(file("sys", "devices", "system", "cpu", "online")), Allowed: agentapi.CountCPUs(AllowedCPUs(file("proc", "self", "status")))}
	if _, err := os.Stat(filepath.Join(root, cgroups, "cgroup.controllers")); err == nil {
		for line := range strings.Lines(file("proc", "self", "cgroup")) {
			if own, is := strings.CutPrefix(strings.TrimSpace(line), "0::"); is {
				c.Set = agentapi.CountCPUs(file(cgroups, own, "cpuset.cpus.effective"))
				quota, period, _ := strings.Cut(file(cgroups, own, "cpu.max"), " ")
				c.Quota, c.Period = parse(quota), parse(period)
			}
		}
		return c
	}
	c.Set = agentapi.CountCPUs(file(cgroups, "cpuset", file("proc", "self", "cpuset"), "cpuset.cpus"))
	c.Quota, c.Period = parse(file(cgroups, "cpu", "cpu.cfs_quota_us")), parse(file(cgroups, "cpu", "cpu.cfs_period_us"))
	return c
}

// AllowedCPUs returns the list of the CPUs on which a process may run, from its /proc/PID/status; "" if it does not show them.
func AllowedCPUs(status string) string {
	_, rest, _ := strings.Cut(status, "\nCpus_allowed_list:")
	line, _, _ := strings.Cut(rest, "\n")
	return line
}
