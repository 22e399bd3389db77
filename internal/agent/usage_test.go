package agent

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"opendatahub.io/mpijob/internal/agent/protocol"
	"opendatahub.io/mpijob/internal/agent/resolve"
	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/mpitest"
)

// TestUsageIsReported: the launcher's last message contains what a worker and its rank used, and the network interface that its rank
// sets and no pod has, however the run ended, and with the agent above it or not.
func TestUsageIsReported(t *testing.T) {
	t.Parallel()
	const rank = `OMPI_COMM_WORLD_RANK=5 GLOO_SOCKET_IFNAME=ib77 timeout 4 sh -c "while :; do :; done"; exit `
	for name, test := range map[string]struct {
		supervised bool
		code       string
	}{
		"a run that succeeded": {true, "0"}, "a run that failed": {true, "3"}, "an image's own program": {false, "0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t).serve()
			folder := t.TempDir()
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			shim := filepath.Join(folder, "ssh")
			if err := os.Symlink(self, shim); err != nil {
				t.Fatal(err)
			}
			message := filepath.Join(folder, "message")
			if err := os.WriteFile(message, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			host, port, _ := net.SplitHostPort(w.address)
			cmd := w.ssh(rank + test.code)
			if test.supervised {
				cmd = w.agent("mpi-agent", "launch", "--", shim, "-x", "-p", port, host, rank+test.code)
			}
			cmd.Env = append(cmd.Env, agentapi.EnvTermination+"="+message)
			if out, _ := cmd.CombinedOutput(); strconv.Itoa(cmd.ProcessState.ExitCode()) != test.code {
				t.Fatalf("ended with %d: %s", cmd.ProcessState.ExitCode(), out)
			}
			data, err := os.ReadFile(message)
			if err != nil {
				t.Fatal(err)
			}
			summary, _ := agentapi.ParseSummary(string(data))
			u := summary.Usage
			if u == nil || u.PodCount != 1 || u.Until-u.Since < 2 || len(u.Pods) != 1 || u.Pods[0].Host != "127" && u.Pods[0].Host != host {
				t.Fatalf("it says %s", data)
			}
			if cpu := u.Metrics[0]; cpu.Metric != agentapi.MetricCPU || cpu.Max == 0 || len(cpu.Points) == 0 {
				t.Errorf("the CPU is %+v", cpu)
			}
			if setting := summary.NoInterface; setting == nil || setting.Value != "ib77" || len(setting.Has) == 0 {
				t.Errorf("the network interface that no pod has is missing: %s", data)
			}
		})
	}
}

// TestUsageOfJobIsLogged: a worker logs the job's usage that the launcher reports, and nothing from a client without the job's key.
func TestUsageOfJobIsLogged(t *testing.T) {
	t.Parallel()
	w := newWorld(t).serve()
	want := agentapi.Usage{
		Start: 1000, Step: 10, Since: 1001, Until: 1010, PodCount: 2,
		Metrics: []agentapi.MetricUsage{{Metric: agentapi.MetricCPU, Mean: 1, P95: 2, Max: 3, Limit: 4, Points: []int64{1, agentapi.NoPoint}}},
		Pods:    []agentapi.PodUsage{{Host: "a", Metrics: []agentapi.MetricUsage{{Metric: agentapi.MetricMemory, Mean: 5}}}},
	}
	tell := func(key string) error {
		host, port, _ := net.SplitHostPort(w.address)
		number, err := strconv.Atoi(port)
		if err != nil {
			t.Fatal(err)
		}
		identity, err := protocol.ReadIdentity(key)
		if err != nil {
			t.Fatal(err)
		}
		d := protocol.Dialer{Identity: identity, LookUp: (&resolve.Names{}).Check, Waiting: func(*protocol.Trouble, time.Time) {}}
		return d.TellUsage(t.Context(), host, number, want)
	}
	if err := tell(mpitest.WriteKey(t)); err == nil {
		t.Error("a stranger may tell the job's usage")
	}
	logged := func() (found []agentapi.Usage) {
		for line := range strings.Lines(w.workerLog.String()) {
			if u, is := agentapi.ParseUsageLine(line); is {
				found = append(found, u)
			}
		}
		return found
	}
	if len(logged()) > 0 {
		t.Errorf("the worker logs what a stranger tells: %+v", logged())
	}
	if err := tell(w.key); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the usage is logged", func() bool { return len(logged()) > 0 })
	if diff := cmp.Diff([]agentapi.Usage{want}, logged()); diff != "" {
		t.Error(diff)
	}
	if slices.ContainsFunc(strings.Split(w.workerLog.String(), "\n"), func(line string) bool {
		return strings.Contains(line, "usage") && !strings.HasPrefix(line, `{"time":"`)
	}) {
		t.Errorf("the line is not one of the agent: %s", w.workerLog)
	}
}
