package agentapi_test

import (
	"testing"
	"time"

	"opendatahub.io/mpijob/internal/agentapi"
)

func TestUsagePause(t *testing.T) {
	t.Parallel()
	for running, want := range map[time.Duration]time.Duration{0: time.Minute, 5 * time.Minute: time.Minute, 30 * time.Minute: 3 * time.Minute, 100 * time.Hour: 5 * time.Minute} {
		if got := agentapi.UsagePause(running); got != want {
			t.Errorf("after %s: %s, want %s", running, got, want)
		}
	}
}
