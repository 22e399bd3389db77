package launcher

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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
	tellWhenDue(ctx, time.Millisecond, running, nil, func() {
		if told++; checks != 3 {
			t.Errorf("told after %d checks", checks)
		}
		time.AfterFunc(50*time.Millisecond, cancel)
	})
	if told != 1 || checks != 3 {
		t.Errorf("told %d times, checked %d times", told, checks)
	}
}

// TestStallsAreReported: that ranks make no progress is reported at once, and that it is over.
func TestStallsAreReported(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	s := supervisor{stallChanges: make(chan struct{}, 1)}
	texts := []string{"all 2 ranks wait, since 10:00:00 UTC; polling: 0, 1\nmpi-agent: stack of ranks 0, 1: main (train.py:1)", agentapi.StallOver}
	write := func() {
		if len(texts) > 0 {
			s.keepStall(agentapi.StallPrefix+texts[0], time.Unix(1000, 0))
			texts = texts[1:]
		}
	}
	var told []*agentapi.Stall
	write()
	tellWhenDue(ctx, time.Hour, func() bool { return false }, s.stallChanges, func() {
		if told = append(told, s.stall.Load()); len(told) == 2 {
			cancel()
		}
		write()
	})
	want := []*agentapi.Stall{{At: 1000, Lines: []string{
		"mpi-agent: no progress: all 2 ranks wait, since 10:00:00 UTC; polling: 0, 1", "mpi-agent: stack of ranks 0, 1: main (train.py:1)",
	}}, nil}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
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
