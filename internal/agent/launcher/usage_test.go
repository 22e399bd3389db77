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
