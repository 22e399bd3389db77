package records

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"opendatahub.io/mpijob/internal/agentapi"
)

// TestUsage: of each host, the latest usage counts, whoever reported it, in this run of the container.
func TestUsage(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	host := func(name string, until int64) agentapi.HostUsage {
		return agentapi.HostUsage{Host: name, Usage: agentapi.Usage{Until: until}}
	}
	Record{Host: "a.job.svc", Process: 1, Container: "now"}.WriteUsage(folder, []agentapi.HostUsage{host("a.job.svc", 10), host("c", 30)})
	Record{Host: "a.job.svc", Process: 2, Container: "now"}.WriteUsage(folder, []agentapi.HostUsage{host("a.job.svc", 20)})
	Record{Host: "b.job.svc", Process: 3, Container: "now"}.WriteUsage(folder, []agentapi.HostUsage{host("b.job.svc", 5), host("c.job.svc", 25)})
	Record{Host: "b.job.svc", Process: 4, Container: "before"}.WriteUsage(folder, []agentapi.HostUsage{host("b.job.svc", 500)})
	if err := os.WriteFile(filepath.Join(folder, "x.1.usage"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]agentapi.HostUsage{host("a", 20), host("b", 5), host("c", 30)}, ReadUsage(folder, "now")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]agentapi.HostUsage{host("a", 20), host("b", 500), host("c", 30)}, ReadUsage(folder, "")); diff != "" {
		t.Error(diff)
	}
	if read := Read(folder); len(read) > 0 {
		t.Errorf("the usages are records: %+v", read)
	}
}

// TestFIFO: a FIFO in the place of a record, which a program of the job can make, does not block the agent.
func TestFIFO(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for _, name := range []string{"worker.json", "worker.usage"} {
		if err := unix.Mkfifo(filepath.Join(folder, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if found := Read(folder); len(found) > 0 {
		t.Errorf("records: %v", found)
	}
	if found := ReadUsage(folder, ""); len(found) > 0 {
		t.Errorf("usage: %v", found)
	}
}
