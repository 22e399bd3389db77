package agent

import (
	"net"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"opendatahub.io/mpijob/internal/agent/protocol"
	"opendatahub.io/mpijob/internal/agent/stacks"
	"opendatahub.io/mpijob/internal/agentapi"
)

// TestStacksOfWorker: whoever has the job's key can ask a worker where its ranks are in their code.
func TestStacksOfWorker(t *testing.T) {
	python, err := exec.LookPath("/usr/bin/python3")
	if err != nil {
		t.Skip("SKIPPED: this machine has no /usr/bin/python3")
	}
	w := newWorld(t).serve()
	command := w.ssh("PMI_RANK=3 exec " + python + " -c 'import time\ndef load_batch(): time.sleep(600)\nload_batch()'")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = command.Process.Kill(); _ = command.Wait() }()
	host, port, _ := net.SplitHostPort(w.address)
	number, _ := strconv.Atoi(port)
	ask := func(key string, rank *int32) (got agentapi.HostStacks) {
		identity, err := protocol.ReadIdentity(key)
		if err != nil {
			t.Fatal(err)
		}
		stacks.Ask(t.Context(), identity, []stacks.Host{{Name: host, Port: number}}, rank, func(answer agentapi.HostStacks) { got = answer })
		return got
	}
	var got agentapi.HostStacks
	eventually(t, "the rank hangs in load_batch", func() bool {
		got = ask(w.key, nil)
		groups := agentapi.GroupStacks([]agentapi.HostStacks{got})
		return len(groups) == 1 && groups[0].String() == "rank 3: load_batch (<string>:2) < <module> (<string>:3) | def load_batch(): time.sleep(600)"
	})
	if got.Host != host || len(got.Ranks) != 1 || got.Error != "" {
		t.Errorf("got %+v", got)
	}
	if got := ask(w.key, new(int32(2))); len(got.Ranks) > 0 || got.Error != "" {
		t.Errorf("rank 2 is %+v", got)
	}
	if got := ask(newWorld(t).key, nil); len(got.Ranks) > 0 || !strings.Contains(got.Error, "key") {
		t.Errorf("a stranger got %+v", got)
	}
}
