package diagnose

import (
	"testing"

	"opendatahub.io/mpijob/internal/agentapi"
)

// TestWaitsForChild: a call of wait is one for a process only in Python's own module.
func TestWaitsForChild(t *testing.T) {
	const stall = agentapi.StallPrefix + "all 2 ranks wait, since 03:04:27 UTC; blocked: 1; polling: 0"
	for place, want := range map[string]bool{
		"main (train.py:7) | output, _ = p.communicate()":                                     true,
		"main (train.py:7) | subprocess.run([\"fetch\"])":                                     true,
		"wait (/usr/lib/python3.12/subprocess.py:1264) < main (train.py:7) | p.wait()":        true,
		"<module> (<string>:7) | code = check.wait()":                                         true,
		"main (train.py:7) | request.wait()":                                                  false,
		"wait (/usr/lib/python3.12/threading.py:655) < main (train.py:7) | event.wait(600.0)": false,
	} {
		lines := []string{stall, agentapi.StackPrefix + "rank 1: " + place}
		if got := waitsForChild(lines, "1", "python3 -c 'check = subprocess.Popen(command)'"); got != want {
			t.Errorf("%s: %t", place, got)
		}
	}
}
