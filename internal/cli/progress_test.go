package cli

import (
	"testing"
	"time"
)

func TestStopwatch(t *testing.T) {
	tests := map[string]string{"0s": "0:00", "42s": "0:42", "62s": "1:02", "3723s": "1:02:03", "-5s": "0:00"}
	for text, want := range tests {
		if got := stopwatch(parseDuration(t, text)); got != want {
			t.Errorf("%s is %q, want %q", text, got, want)
		}
	}
}

func parseDuration(t *testing.T, text string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
