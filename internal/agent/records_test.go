package agent

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"opendatahub.io/mpijob/internal/agent/records"
	"opendatahub.io/mpijob/internal/agentapi"
)

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
	found := records.Read(launcher.run)
	want := []agentapi.HostUse{{Host: "127.0.0.1", RanksSeen: 1}, {Host: "127.0.0.2", RanksSeen: 1}}
	if got := records.Uses(found); len(found) != 1 || !slices.Equal(got, want) {
		t.Errorf("%d records have %+v, want %+v", len(found), got, want)
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
	old := records.Record{Host: "127.0.0.1", Process: 1, Container: "of before", Reached: time.Now(), Over: true, Worker: &agentapi.Summary{Ranks: []agentapi.RankEnd{{Rank: 9, ExitCode: 9}}}}
	old.Write(w.run)
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
	t.Setenv(records.EnvSupervised, "1")
	if _, text := run("true"); text != "" {
		t.Errorf("under an agent, a session writes %s", text)
	}
}
