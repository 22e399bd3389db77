package launcher

import (
	"context"
	"testing"
	"time"

	"opendatahub.io/mpijob/internal/agentapi"
)

func TestAddLater(t *testing.T) {
	t.Parallel()
	of := func(until int64) agentapi.HostUsage {
		return agentapi.HostUsage{Host: "a", Usage: agentapi.Usage{Until: until}}
	}
	hosts := addLater(nil, of(10))
	hosts = addLater(hosts, of(5))
	if len(hosts) != 1 || hosts[0].Usage.Until != 10 {
		t.Errorf("%+v, want the later one", hosts)
	}
	if hosts = addLater(hosts, of(20)); len(hosts) != 1 || hosts[0].Usage.Until != 20 {
		t.Errorf("%+v, want the later one", hosts)
	}
}

// TestLaunchIsReported: the launcher reports once that ranks run, and not before.
func TestLaunchIsReported(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	checks, told := 0, 0
	running := func() bool {
		checks++
		return checks >= 3
	}
	tellWhenDue(ctx, time.Millisecond, running, func() {
		if told++; checks != 3 {
			t.Errorf("told after %d checks", checks)
		}
		time.AfterFunc(50*time.Millisecond, cancel)
	})
	if told != 1 || checks != 3 {
		t.Errorf("told %d times, checked %d times", told, checks)
	}
}

// TestEndIsReported: the end is reported of runs that were long enough to report before, so that it delays no short one.
func TestEndIsReported(t *testing.T) {
	t.Parallel()
	for seconds, want := range map[int64]bool{0: false, 59: false, 60: true, 100_000: true} {
		if got := isWorthTelling(&agentapi.Usage{Since: 1000, Until: 1000 + seconds}); got != want {
			t.Errorf("after %d s: %v", seconds, got)
		}
	}
	if isWorthTelling(nil) {
		t.Error("it is reported although it is unknown")
	}
}
