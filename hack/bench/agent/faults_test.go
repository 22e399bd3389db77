package agent

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"opendatahub.io/mpijob/hack/bench/report"
)

func TestIsLate(t *testing.T) {
	for workers, want := range map[int][]int{2: {1}, 5: {1, 3}, 8: {1, 3, 5, 7}} {
		b := lateHalf(workers, soonLate)
		var got []int
		for n := range workers {
			if b.isLate(n) {
				got = append(got, n)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("of %d workers %v are late, want %v", workers, got, want)
		}
	}
	if mpirun(2).isLate(1) {
		t.Error("a worker is late in a case in which none is")
	}
}

func TestDeathsOf(t *testing.T) {
	for workers, want := range map[int]int{2: 1, 16: 1, 64: 3, 256: 12} {
		deaths := deathsOf(workers, 1)
		if len(deaths) != want {
			t.Errorf("%d of %d workers die, want %d", len(deaths), workers, want)
		}
		seen := map[int]bool{}
		for _, d := range deaths {
			if seen[d.worker] || d.worker < 0 || d.worker >= workers {
				t.Errorf("worker %d of %d cannot die", d.worker, workers)
			}
			seen[d.worker] = true
		}
		if deaths[0].after != 0 || !slices.IsSortedFunc(deaths, func(a, b death) int { return int(a.after - b.after) }) {
			t.Errorf("they do not die one after another, the first at once: %v", deaths)
		}
		if !slices.Equal(deaths, deathsOf(workers, 1)) {
			t.Error("the second contestant has other deaths in the same turn")
		}
		if slices.Equal(deaths, deathsOf(workers, 2)) {
			t.Error("the next turn has the same deaths")
		}
	}
}

func TestJudge(t *testing.T) {
	deaths := []death{{worker: 3}, {worker: 12}}
	ours, other := withAgent(Ours, Key{}, ""), openSSH(Key{})
	tests := map[string]struct {
		contestant contestant
		printed    string
		want       float64
	}{
		"the first that died":            {ours, "mpi-agent: Host worker-3 was lost: its pod ended.", 1},
		"two that died":                  {other, "lost worker-3 and worker-12", 1},
		"the second that died":           {ours, "mpi-agent: Host worker-12 was lost: its pod ended.", 0},
		"the second before the first":    {other, "lost worker-12 and worker-3", 0},
		"one that lives":                 {ours, "mpi-agent: Host worker-1 was lost.", 0},
		"one that died, one that lives":  {other, "lost worker-3, worker-4", 0},
		"none":                           {ours, "mpi-agent: Rank 3 was ended by signal 9.", 0},
		"nothing":                        {other, "", 0},
		"the agent's last line counts":   {ours, "daemons: worker-1\nmpi-agent: waiting for worker-1\nmpi-agent: Host worker-3 was lost.\nworker-2", 1},
		"the agent prints nothing of it": {ours, "ORTE has lost worker-3", 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := test.contestant.judge(test.printed, deaths); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestCut(t *testing.T) {
	got := dyingSome(16).cut()
	if len(got) != 1 || got["dying/16"] != limit.Seconds() {
		t.Errorf("a run that was cut has the figures %v, want the limit as its time and nothing else", got)
	}
	if got := holding(16).cut(); len(got) != 0 {
		t.Errorf("a run that was cut has the figures %v without a time", got)
	}
}

// TestTally: a contestant that fails has no figures and is named with the reason, one that reaches the limit has that as its time, and both
// make no further runs.
func TestTally(t *testing.T) {
	all := tally{
		bout:   dyingSome(16),
		values: map[string]map[string][]report.Value{"dying/16": {}, "dying-named/16": {}}, over: map[string]bool{}, skipped: map[string]string{},
	}
	all.add(Ours, map[string]float64{"dying/16": 1, "dying-named/16": 1}, nil)
	all.add(OpenSSH, map[string]float64{"dying/16": 1, "dying-named/16": 1}, nil)
	if all.over[Ours] || all.over[OpenSSH] {
		t.Error("a contestant is over after a run that went well")
	}
	all.add(Ours, map[string]float64{"dying/16": 3, "dying-named/16": 0}, nil)
	all.add(OpenSSH, nil, errors.New("exit status 1\nmore"))
	all.add(Before, nil, fmt.Errorf("run mpirun: %w", errLimit))
	if !all.over[OpenSSH] || !all.over[Before] || len(all.skipped) != 1 || all.skipped[OpenSSH] != "exit status 1" {
		t.Errorf("over are %v, skipped %v", all.over, all.skipped)
	}
	lines := all.lines()
	if len(lines) != 2 || lines[0].Ours != 2 || lines[1].Ours != 0.5 || lines[1].Details[Ours].Runs != 1 {
		t.Fatalf("got %+v", lines)
	}
	if before := lines[0].Details[Before]; len(lines[0].Details) != 2 || !before.AtLeast || before.Median != limit.Seconds() {
		t.Errorf("got %+v", lines[0].Details)
	}
}

func TestMean(t *testing.T) {
	if got := mean([]report.Value{{Value: 1}, {Value: 0}, {Value: 0}, {Value: 1}}); got.Value != 0.5 {
		t.Errorf("got %v, want 0.5", got.Value)
	}
}

func TestLink(t *testing.T) {
	slow := link{roundTrip: time.Millisecond}
	for name, test := range map[string]struct{ got, want string }{
		"loopback":            {link{}.worker(0), "127.0.1.1"},
		"its launcher":        {link{}.launcher(), "127.0.0.1"},
		"of a slow network":   {slow.worker(250), "10.0.2.1"},
		"launcher of a slow":  {slow.launcher(), "10.0.0.1"},
		"the last of a group": {slow.worker(249), "10.0.1.250"},
	} {
		if test.got != test.want {
			t.Errorf("%s: the address is %s, want %s", name, test.got, test.want)
		}
	}
}

// TestBouts: each figure is measured once, has a unit, and hundreds of hosts are for full alone.
func TestBouts(t *testing.T) {
	for _, full := range []bool{false, true} {
		seen := map[string]bool{}
		for _, b := range bouts(full) {
			for _, r := range b.results {
				if seen[r.name] || r.unit == "" {
					t.Errorf("%s is measured twice, or has no unit", r.name)
				}
				seen[r.name] = true
			}
			if !full && b.workers > 32 {
				t.Errorf("%s has %d workers", b.results[0].name, b.workers)
			}
			if b.floor && b.workers > mostRanks {
				t.Errorf("%s has more workers than the floor has folders", b.results[0].name)
			}
		}
	}
}
