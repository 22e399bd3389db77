// Package hostfile reads the list of a job's hosts.
package hostfile

import (
	"net"
	"os"
	"strconv"
	"strings"
)

// Hosts is what a launcher expects of its job.
type Hosts struct {
	// Others is how many hosts there are besides this pod, Slots how many slots they have together.
	Others, Slots int32
	// OwnSlots are this pod's, where it runs ranks as well.
	OwnSlots int32
	// SlotsOf are each host's, by its name without the domain.
	SlotsOf map[string]int32
}

// Read reads a hostfile in the form of Open MPI, "host slots=4", or of Hydra, "host:4". Without one, or with
// lines that say something else, it expects nothing.
func Read(path string) Hosts {
	h := Hosts{SlotsOf: map[string]int32{}}
	data, err := os.ReadFile(path)
	if err != nil {
		return h
	}
	text, _ := Hydra(string(data))
	for line := range strings.Lines(text) {
		name, number, found := strings.Cut(strings.TrimSpace(line), ":")
		slots, err := strconv.ParseInt(number, 10, 32)
		if !found || err != nil {
			continue
		}
		if IsSelf(name) {
			h.OwnSlots = int32(slots)
			continue
		}
		h.Others++
		h.Slots += int32(slots)
		h.SlotsOf[Short(name)] = int32(slots)
	}
	return h
}

// Short is a host's name without its domain.
func Short(host string) string {
	if net.ParseIP(host) != nil {
		return host
	}
	first, _, _ := strings.Cut(host, ".")
	return first
}

// IsSelf reports whether a host is this pod, which needs no connection.
func IsSelf(host string) bool {
	self, err := os.Hostname()
	if err != nil {
		return false
	}
	first, _, _ := strings.Cut(host, ".")
	return host == "localhost" || first == self || host == self
}

// Hydra gives a list of hosts in Hydra's form, and the slots of its first host. Lines in another form stay.
func Hydra(list string) (text, slots string) {
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
