package hostfile

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestMayGet: a host that differs from the job's by its number may join it; another name, such as one of an old list of hosts, may not.
func TestMayGet(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hostfile")
	if err := os.WriteFile(path, []byte("pi-worker-0.pi.ns.svc slots=2\npi-worker-1.pi.ns.svc slots=2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	job := Read(path)
	if want := []string{"pi-worker-0", "pi-worker-1"}; !slices.Equal(job.Names, want) {
		t.Errorf("the hosts are %q, want %q", job.Names, want)
	}
	if want := []string{"pi-worker-0.pi.ns.svc", "pi-worker-1.pi.ns.svc"}; !slices.Equal(job.Full, want) {
		t.Errorf("the full names are %q, want %q", job.Full, want)
	}
	for host, want := range map[string]string{
		"pi-worker-1": "pi-worker-1.pi.ns.svc", "pi-worker-1.pi": "pi-worker-1.pi", "pi-worker-2": "pi-worker-2", "10.0.0.1": "10.0.0.1",
	} {
		if got := job.FullName(host); got != want {
			t.Errorf("%s: the full name is %s, want %s", host, got, want)
		}
	}
	for host, want := range map[string]bool{
		"pi-worker-1":            true,
		"pi-worker-7.pi.ns.svc":  true,
		"localhost":              true,
		"node01":                 false,
		"worker-0":               false,
		"other-worker-0.other.x": false,
	} {
		if got := job.MayGet(host); got != want {
			t.Errorf("%s: %t, want %t", host, got, want)
		}
	}
	if !(Hosts{}).MayGet("node01") {
		t.Error("without a hostfile, any host may be one of the job's")
	}
}
