package agent

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"opendatahub.io/mpijob/internal/agentapi"
)

// TestIdleHosts: a host is idle if no rank was observed on it in any launch although ranks were on others, or nothing was started
// on any. What lasted only a few seconds is no proof.
func TestIdleHosts(t *testing.T) {
	t.Parallel()
	session := func(host string, seconds, ranks int32) record {
		return record{Host: host, Reached: time.Unix(1, 0), Over: true, Seconds: seconds, Worker: &agentapi.Summary{RanksSeen: ranks}}
	}
	tree := func(host string, behind ...agentapi.HostUse) record {
		r := session(host, 60, 2)
		r.Worker.Through = behind
		return r
	}
	open := func(host string, ranks int32) record {
		r := session(host, 0, ranks)
		r.Over = false
		return r
	}
	now := time.Unix(61, 0)
	for name, test := range map[string]struct {
		records []record
		want    int32
	}{
		"all are used":                         {[]record{session("a", 60, 2), session("b", 60, 2)}, 0},
		"one has no ranks":                     {[]record{session("a", 60, 2), session("b", 60, 0)}, 1},
		"one was not connected":                {[]record{session("a", 60, 2)}, 1},
		"one has no ranks, for a moment":       {[]record{session("a", 3, 2), session("b", 3, 0)}, 0},
		"one was not connected, for a moment":  {[]record{session("a", 3, 2)}, 1},
		"no rank was observed":                 {[]record{session("a", 60, 0), session("b", 60, 0)}, 0},
		"nothing was started":                  {nil, 2},
		"one after the other":                  {[]record{session("a", 60, 2), session("b", 60, 2), session("a", 60, 0)}, 0},
		"one has not told":                     {[]record{session("a", 60, 2), {Host: "b", Reached: time.Unix(1, 0), Seconds: 60}}, 0},
		"one could not be reached":             {[]record{session("a", 60, 2), {Host: "b", Seconds: 60}}, 1},
		"more hosts than were expected":        {[]record{session("a", 60, 2), session("b", 60, 2), session("c", 60, 2)}, 0},
		"a session is open that has no ranks":  {[]record{session("a", 60, 2), open("b", 0)}, 1},
		"a session is open that has ranks":     {[]record{session("a", 60, 2), open("b", 1)}, 0},
		"the same host by its full name":       {[]record{session("a", 60, 2), session("b", 60, 0), session("b.job.ns.svc", 60, 2)}, 0},
		"another host was connected":           {[]record{session("a", 60, 2), session("b", 60, 2), session("storage", 60, 0)}, 0},
		"addresses instead of names":           {[]record{session("10.0.0.1", 60, 2), session("10.0.0.2", 60, 2)}, 0},
		"a host reached the other one":         {[]record{tree("a", agentapi.HostUse{Host: "b", RanksSeen: 2})}, 0},
		"the other one has no ranks":           {[]record{tree("a", agentapi.HostUse{Host: "b"})}, 1},
		"a host that may have reached another": {[]record{session("a", 60, 2), {Host: "c", Reached: time.Unix(1, 0), Seconds: 60}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := idleHosts(test.records, hostfile{others: 2, slotsOf: map[string]int32{"a": 2, "b": 2}}, now); got != test.want {
				t.Errorf("%d, want %d", got, test.want)
			}
		})
	}
	three := hostfile{others: 3, slotsOf: map[string]int32{"a": 2, "b": 2, "c": 2}}
	if got := idleHosts([]record{session("a", 60, 2), {Host: "b", Reached: time.Unix(1, 0)}}, three, now); got != 0 {
		t.Errorf("%d of those that host b may have reached are idle", got)
	}
}

// TestHostsBehindAWorker: a worker reports the hosts on which its processes started ranks, as daemons of Open MPI do.
func TestHostsBehindAWorker(t *testing.T) {
	first := newWorld(t).serve()
	behind := newWorld(t)
	behind.key = first.key
	_, port, _ := net.SplitHostPort(behind.address)
	behind.address = net.JoinHostPort("127.0.0.2", port)
	behind.serve()
	// Each pod has a folder of its own, but this test's agents find that of the launcher in their environment.
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := fmt.Sprintf("PMI_RANK=0 sleep 1 & %s=%s %s rsh -p %s 127.0.0.2 'PMI_RANK=1 sleep 1'; wait", agentapi.EnvRun, first.run, self, port)
	launcher := newWorld(t)
	launcher.key, launcher.address = first.key, first.address
	if out, err := launcher.ssh(command).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	records := readRecords(launcher.run)
	want := []agentapi.HostUse{{Host: "127.0.0.1", RanksSeen: 1}, {Host: "127.0.0.2", RanksSeen: 1}}
	if got := uses(records); len(records) != 1 || !slices.Equal(got, want) {
		t.Errorf("%d records have %+v, want %+v", len(records), got, want)
	}
}

// TestReportWithoutSupervisor: where no agent runs the launcher's program, the sessions that it starts leave the summary. One that
// the program wrote itself is left alone, and so is what an earlier run of the container recorded.
func TestReportWithoutSupervisor(t *testing.T) {
	w := newWorld(t).serve()
	message := filepath.Join(t.TempDir(), "message")
	run := func(command string) (agentapi.Summary, string) {
		t.Helper()
		cmd := w.ssh(command)
		cmd.Env = append(cmd.Env, agentapi.EnvTermination+"="+message)
		_ = cmd.Run()
		data, err := os.ReadFile(message)
		if err != nil {
			t.Fatal(err)
		}
		summary, _ := agentapi.ParseSummary(string(data))
		return summary, string(data)
	}
	write := func(text string) {
		if err := os.WriteFile(message, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	old := record{Host: "127.0.0.1", Process: 1, Container: "of before", Reached: time.Now(), Over: true, Worker: &agentapi.Summary{Ranks: []agentapi.RankEnd{{Rank: 9, ExitCode: 9}}}}
	old.write(w.run)
	write("")
	if s, text := run("PMI_RANK=3 sh -c 'sleep 0.3; exit 4'"); s.HostsReached != 1 || len(s.Ranks) != 1 || s.Ranks[0].Rank != 3 || s.Ranks[0].ExitCode != 4 {
		t.Errorf("the message is %s", text)
	}
	if s, text := run("true"); s.Role != agentapi.RoleLauncher || s.HostsReached != 1 {
		t.Errorf("after another session the message is %s", text)
	}
	write("accuracy 0.9")
	if _, text := run("true"); text != "accuracy 0.9" {
		t.Errorf("the program's message became %s", text)
	}
	write("")
	t.Setenv(envSupervised, "1")
	if _, text := run("true"); text != "" {
		t.Errorf("under an agent, a session writes %s", text)
	}
}

// TestTerminationIsReplaced: a shorter message replaces a longer one, and one that the kubelet would read only in part.
func TestTerminationIsReplaced(t *testing.T) {
	file := filepath.Join(t.TempDir(), "message")
	t.Setenv(agentapi.EnvTermination, file)
	for _, before := range []string{"", "{", strings.Repeat("x", 300), strings.Repeat("x", mostMessage+1)} {
		if err := os.WriteFile(file, []byte(before), 0o600); err != nil {
			t.Fatal(err)
		}
		writeTermination(agentapi.Summary{Role: agentapi.RoleLauncher, HostsReached: 3})
		got, err := os.ReadFile(file)
		if summary, is := agentapi.ParseSummary(string(got)); err != nil || !is || summary.HostsReached != 3 || len(got) > mostMessage {
			t.Errorf("after %d bytes: %q, %v", len(before), got, err)
		}
	}
}
