package process

import (
	"os/exec"
	"slices"
	"testing"
)

// TestMembersOfThisAgent: with hostPID an agent sees the processes of other agents, whose sessions have the same
// numbers. It finds only those of its own.
func TestMembersOfThisAgent(t *testing.T) {
	start := func(mark string) int {
		t.Helper()
		process := exec.Command("sleep", "600")
		process.Env = []string{EnvSession + "=" + mark}
		if err := process.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = process.Process.Kill()
			_ = process.Wait()
		})
		return process.Process.Pid
	}
	first, second := start(SessionMark("1")), start(SessionMark("2"))
	start("1")
	start("OTHERAGENT.1")
	if got := Members("1"); !slices.Equal(got, []int{first}) {
		t.Errorf("session 1 has the processes %v, want only %d", got, first)
	}
	got := Members("")
	slices.Sort(got)
	if want := []int{first, second}; !slices.Equal(got, want) {
		t.Errorf("the agent's sessions have the processes %v, want %v", got, want)
	}
}
