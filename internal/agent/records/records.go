// Package records keeps the files by which the agents of a container meet: what each rsh knows of its host, and the
// termination message that is left for the kubelet.
package records

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"opendatahub.io/mpijob/internal/agent/files"
	"opendatahub.io/mpijob/internal/agent/hostfile"
	"opendatahub.io/mpijob/internal/agentapi"
)

// Record is what one rsh knows of its host. It is kept in a file, by which the launcher's agent and the rsh's that
// MPI has started meet: they are processes of one container with nobody in between but mpirun.
type Record struct {
	Host string `json:"host"`
	// Port is the port that was asked for, 0 for the usual one.
	Port int `json:"port,omitempty"`
	// Process is the rsh's id. Container identifies the run of the container in which it ran.
	Process   int    `json:"process"`
	Container string `json:"container,omitempty"`
	// Ancestors are the processes above the rsh, nearest first: MPI's launcher is one of them.
	Ancestors []int `json:"ancestors,omitempty"`
	// Since is when the first attempt was made; Reached is zero until one succeeded.
	Since   time.Time `json:"since"`
	Reached time.Time `json:"reached"`
	// Trouble and Why are the last failure's, empty after success.
	Trouble agentapi.Code `json:"trouble,omitempty"`
	Why     string        `json:"why,omitempty"`
	// TroubleAt is when a session was lost or given up, or its pod began to end; zero before.
	TroubleAt time.Time `json:"troubleAt,omitzero"`
	// Over is set when nothing more will come: the session has ended, or was given up.
	Over bool `json:"over,omitempty"`
	// Seconds is how long it took up to failing, or how long the session lasted.
	Seconds int32 `json:"seconds,omitempty"`
	// BoundBy is the flag of MPI's launcher that decides whether ranks are bound to cores; "" if none does.
	BoundBy string `json:"boundBy,omitempty"`
	// Worker is the worker's summary of the session.
	Worker *agentapi.Summary `json:"worker,omitempty"`
}

// EnvSupervised is set by the launcher's agent if it reports the waits for all hosts together.
const EnvSupervised = "MPI_AGENT_SUPERVISED"

// Folder is where the rsh's leave their records.
func Folder() string { return cmp.Or(os.Getenv(agentapi.EnvRun), agentapi.Run) }

// Write keeps the record in a folder, under a name of its own. A folder that cannot be written to keeps none: the
// image's own agent may run without a launcher's agent.
func (r Record) Write(folder string) {
	r.replace(folder, "json", r)
}

// replace writes a value as JSON to the record's file with an extension. Those who read it see the old content or the new one.
func (r Record) replace(folder, extension string, value any) {
	data, err := json.Marshal(value)
	if err != nil {
		return
	}
	name := filepath.Join(folder, fmt.Sprintf("%s.%d.%s", filepath.Base(r.Host), r.Process, extension))
	if os.WriteFile(name+".new", data, 0o644) == nil { //nolint:gosec // the pod's containers may run as different users
		_ = os.Rename(name+".new", name)
	}
}

// Read reads all records of a folder, by file name. A file that is being replaced, or no record, is left out.
func Read(folder string) []Record {
	names, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return nil
	}
	var records []Record
	for _, name := range names {
		var r Record
		if read(name, &r) == nil {
			records = append(records, r)
		}
	}
	return records
}

// mostOfRecord is more than a record has of thousands of hosts.
const mostOfRecord = 64 << 20

// read reads a record. Programs of the job can replace its file.
func read(name string, into any) error {
	file, err := files.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, mostOfRecord))
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

// Uses returns the hosts that were connected, and those behind them, by name.
func Uses(records []Record) []agentapi.HostUse {
	ranks := map[string]int32{}
	add := func(host string, seen int32) { ranks[hostfile.Short(host)] = max(ranks[hostfile.Short(host)], seen) }
	for _, r := range records {
		if r.Reached.IsZero() {
			continue
		}
		add(r.Host, 0)
		if r.Worker == nil {
			continue
		}
		add(r.Host, r.Worker.RanksSeen)
		for _, use := range r.Worker.Through {
			add(use.Host, use.RanksSeen)
		}
	}
	var all []agentapi.HostUse
	for _, host := range slices.Sorted(maps.Keys(ranks)) {
		all = append(all, agentapi.HostUse{Host: host, RanksSeen: ranks[host]})
	}
	return all
}

// ByHost puts records together by host, in the order of names: the latest record of a host counts, and a host that
// was reached once was reached.
func ByHost(records []Record) []Record {
	byHost := map[string]Record{}
	for _, r := range records {
		have, known := byHost[r.Host]
		if known && have.Since.After(r.Since) {
			have, r = r, have
		}
		if r.Reached.IsZero() {
			r.Reached = have.Reached
		}
		byHost[r.Host] = r
	}
	return slices.SortedFunc(maps.Values(byHost), func(a, b Record) int { return strings.Compare(a.Host, b.Host) })
}

// CompareTrouble orders records by when their trouble began: the first may have caused that of the others. Those without a time are last.
func CompareTrouble(a, b Record) int {
	if a.TroubleAt.IsZero() != b.TroubleAt.IsZero() {
		return b.TroubleAt.Compare(a.TroubleAt)
	}
	return a.TroubleAt.Compare(b.TroubleAt)
}

// SetTrouble keeps why a host is lost or is ending, and since when.
func (r *Record) SetTrouble(code agentapi.Code, why string) {
	r.Trouble, r.Why = code, why
	if r.TroubleAt.IsZero() {
		r.TroubleAt = time.Now()
	}
}

// Add adds a worker's answer, which came after the session's end. Ranks and hosts of earlier launches are left out.
func (r *Record) Add(told agentapi.Summary) {
	told.Ranks = slices.DeleteFunc(told.Ranks, func(end agentapi.RankEnd) bool { return end.At < r.Since.UnixMilli() })
	told.Hosts = slices.DeleteFunc(told.Hosts, func(host agentapi.HostTrouble) bool { return host.At < r.Since.UnixMilli() })
	if r.Worker != nil {
		told.InitSeconds, told.Through, told.Binding = r.Worker.InitSeconds, r.Worker.Through, r.Worker.Binding
	}
	r.Worker = &told
}
