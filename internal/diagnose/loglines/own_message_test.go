package loglines

import "testing"

// TestOwnMessage: programs name themselves before their errors, and may print their usage after it.
func TestOwnMessage(t *testing.T) {
	t.Parallel()
	lines := []string{"rank 0 of 2", "pip: no", `[1,1]<stderr>:pi: "1e9" is not a number`, "[1,1]<stderr>:usage: pi [INTERVALS]", "pi: later"}
	if found := OwnMessage(lines, "pi"); found == nil || found.Message != `"1e9" is not a number (usage: pi [INTERVALS])` || found.Rank != "1" || found.Line != lines[2] {
		t.Errorf("got %+v", found)
	}
	for _, program := range []string{"", "solver"} {
		if found := OwnMessage(lines, program); found != nil {
			t.Errorf("%q reports %+v", program, found)
		}
	}
}
