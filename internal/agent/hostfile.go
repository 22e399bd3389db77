package agent

import (
	"net"
	"os"
	"strconv"
	"strings"
)

// hostfile is what a launcher expects of its job.
type hostfile struct {
	// others is how many hosts there are besides this pod, slots how many slots they have together.
	others, slots int32
	// ownSlots are this pod's, where it runs ranks as well.
	ownSlots int32
	// slotsOf are each host's, by its name without the domain.
	slotsOf map[string]int32
}

// readHostfile reads a hostfile in the form of Open MPI, "host slots=4", or of Hydra, "host:4". Without one, or with
// lines that say something else, it expects nothing.
func readHostfile(path string) hostfile {
	h := hostfile{slotsOf: map[string]int32{}}
	data, err := os.ReadFile(path)
	if err != nil {
		return h
	}
	for line := range strings.Lines(string(data)) {
		name, number, found := strings.Cut(strings.TrimSpace(line), " slots=")
		if !found {
			name, number, found = strings.Cut(name, ":")
		}
		slots, err := strconv.ParseInt(number, 10, 32)
		if !found || err != nil {
			continue
		}
		if isSelf(name) {
			h.ownSlots = int32(slots)
			continue
		}
		h.others++
		h.slots += int32(slots)
		h.slotsOf[short(name)] = int32(slots)
	}
	return h
}

// short is a host's name without its domain.
func short(host string) string {
	if net.ParseIP(host) != nil {
		return host
	}
	first, _, _ := strings.Cut(host, ".")
	return first
}

// isSelf reports whether a host is this pod, which needs no connection.
func isSelf(host string) bool {
	self, err := os.Hostname()
	if err != nil {
		return false
	}
	first, _, _ := strings.Cut(host, ".")
	return host == "localhost" || first == self || host == self
}

// hydraHostfile gives a list of hosts in Hydra's form, and the slots of its first host. Lines in another form stay.
func hydraHostfile(list string) (text, slots string) {
	var b strings.Builder
	for line := range strings.Lines(list) {
		host, number, found := strings.Cut(strings.TrimSpace(line), " slots=")
		if !found {
			b.WriteString(line)
			continue
		}
		if slots == "" {
			slots = number
		}
		b.WriteString(host + ":" + number + "\n")
	}
	return b.String(), slots
}
