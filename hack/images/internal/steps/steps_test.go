package steps

import (
	"bytes"
	"testing"
	"time"
)

func TestStepPrintsElapsedTime(t *testing.T) {
	t.Parallel()
	now := time.Unix(100, 0)
	var out bytes.Buffer
	log := New(&out, func() time.Time { return now })
	log.Step("begin %s", "here")
	now = now.Add(12340 * time.Millisecond)
	log.Step("go on")
	want := "   0.0s  begin here\n  12.3s  go on\n"
	if out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}
