package records

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"opendatahub.io/mpijob/internal/agent/hostfile"
	"opendatahub.io/mpijob/internal/agentapi"
)

// usages is what one rsh received about what its host used, and the hosts behind it. It has a file of its own: records are read every few
// seconds, and this is most of what is known of a host.
type usages struct {
	// Container identifies the run of the container in which the rsh ran.
	Container string               `json:"container,omitempty"`
	Hosts     []agentapi.HostUsage `json:"hosts"`
}

// UsagePattern matches the files of WriteUsage.
const UsagePattern = "*.usage"

// WriteUsage keeps what a record's host used, and the hosts behind it. The host itself is first.
func (r Record) WriteUsage(folder string, hosts []agentapi.HostUsage) {
	r.replace(folder, "usage", usages{Container: r.Container, Hosts: hosts})
}

// ReadUsage returns what hosts used, by name: the latest of each host. With a run of a container, others do not count.
func ReadUsage(folder, container string) []agentapi.HostUsage {
	names, err := filepath.Glob(filepath.Join(folder, UsagePattern))
	if err != nil {
		return nil
	}
	latest := map[string]agentapi.HostUsage{}
	for _, name := range names {
		var of usages
		if err := read(name, &of); err != nil || container != "" && of.Container != container {
			continue
		}
		for _, h := range of.Hosts {
			h.Host = hostfile.Short(h.Host)
			if have, known := latest[h.Host]; !known || h.Usage.Until > have.Usage.Until {
				latest[h.Host] = h
			}
		}
	}
	return slices.SortedFunc(maps.Values(latest), func(a, b agentapi.HostUsage) int { return strings.Compare(a.Host, b.Host) })
}
