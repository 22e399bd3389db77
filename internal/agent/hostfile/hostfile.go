// Package hostfile reads the list of a job's hosts.
package hostfile

import (
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Hosts is what a launcher expects of its job.
type Hosts struct {
	// Others is how many hosts there are besides this pod, Slots how many slots they have together.
	Others, Slots int32
	// First is the first of the other hosts, "" if there is none.
	First string
	// OwnSlots are this pod's, where it runs ranks as well.
	OwnSlots int32
	// Names are those of the other hosts without their domain, in the order of their ranks.
	Names []string
	// Full are their names as the hostfile has them.
	Full []string
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
		if h.Others == 0 {
			h.First = name
		}
		h.Others++
		h.Slots += int32(slots)
		h.Names, h.Full = append(h.Names, Short(name)), append(h.Full, name)
		h.SlotsOf[Short(name)] = int32(slots)
	}
	return h
}

// MayGet reports whether a host is one of the job's, or may become one: a job that grows gets hosts whose names differ from the
// others' in their number only. Without a hostfile, any host may.
func (h Hosts) MayGet(host string) bool {
	name := Short(host)
	return len(h.Names) == 0 || IsSelf(host) || slices.ContainsFunc(h.Names, func(own string) bool {
		return withoutNumber(own) == withoutNumber(name)
	})
}

// FullName returns the name by which the DNS has a host: that of the hostfile for the first label of one of the job's names, such as
// pi-worker-1, which only the pods of some other operators can resolve. Other names are returned as they are.
func (h Hosts) FullName(host string) string {
	if i := slices.Index(h.Names, host); i >= 0 {
		return h.Full[i]
	}
	return host
}

func withoutNumber(name string) string { return strings.TrimRight(name, "0123456789") }

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
