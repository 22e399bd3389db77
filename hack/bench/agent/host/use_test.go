package host

import (
	"os/exec"
	"testing"
	"time"
)

// TestUses: processes are counted by all of their arguments, and a host holds at least the descriptors of its first process.
func TestUses(t *testing.T) {
	// The length identifies this process.
	const program, length = "sleep", "1003371"
	command := exec.CommandContext(t.Context(), program, length)
	if err := command.Start(); err != nil {
		t.Skip("sleep is not installed")
	}
	defer func() { _ = command.Process.Kill(); _ = command.Wait() }()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		n, err := Count(program, length)
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("the process is not counted: %v", err)
		}
		if n == 1 {
			break
		}
	}
	if n, err := Count(program); err != nil || n != 0 {
		t.Errorf("%d processes are counted that have other arguments (%v)", n, err)
	}
	all, err := Uses(&Host{command: command})
	if err != nil {
		t.Fatal(err)
	}
	if all[0].Processes < 1 || all[0].Descriptors < 3 || all[0].Private == 0 {
		t.Errorf("the host holds nothing: %+v", all[0])
	}
}
