package gang

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"opendatahub.io/mpijob/internal/waiting"
)

// TestEstimateStarts: gangs start when those have ended that hold the nodes which they need, and not just as many GPUs.
func TestEstimateStarts(t *testing.T) {
	t.Parallel()
	w := newWorld().node(4, 0).node(4, 0).node(1, 0)
	one := w.on(entry("a", "one", Request{}, 60), 4, 0)
	two := w.on(entry("b", "two", Request{}, 60), 0, 4)
	whole := Request{Worker: w.shape(4, 0), Workers: 1}
	held := []Entry{
		entry("a", "first", whole, 30), entry("b", "second", whole, 20), entry("a", "third", whole, 10),
		entry("c", "never", Request{Worker: w.shape(9, 0), Workers: 1}, 5), entry("c", "now", Request{Worker: w.shape(1, 0), Workers: 1}, 1),
	}
	running := []Entry{one, two}
	runs := map[types.UID]waiting.Job{
		"a/one": {Namespace: "a", Name: "one", Start: begin, Deadline: 2 * time.Hour}, "b/two": {Namespace: "b", Name: "two", Start: begin, Deadline: time.Hour},
		"a/first": {Deadline: 30 * time.Minute}, "b/second": {},
	}
	describe := func(uid types.UID) waiting.Job { return runs[uid] }
	decision := Decide(begin, w.snapshot(), held, running, Usage{})
	if _, admitted := decision.Admit["c/now"]; !admitted {
		t.Fatalf("the small gang has room: %+v", decision)
	}
	got := EstimateStarts(begin, w.snapshot(), decision, held, running, describe)
	for name, want := range map[types.UID]time.Duration{"a/first": time.Hour, "b/second": 90 * time.Minute, "a/third": 2 * time.Hour} {
		if by := got[name].By; !by.Equal(begin.Add(want)) {
			t.Errorf("%s starts by %s, want %s: %+v", name, by, begin.Add(want), got[name])
		}
	}
	if len(got) != 3 {
		t.Errorf("there is an estimate for others than those that wait: %v", got)
	}

	// A gang that is being stopped gives its nodes to the first one now.
	one.Leaving = true
	decision = Decide(begin, w.snapshot(), held[:1], []Entry{one, two}, Usage{})
	if start := EstimateStarts(begin, w.snapshot(), decision, held[:1], []Entry{one, two}, describe)["a/first"]; !start.By.Equal(begin) {
		t.Errorf("while the other is being stopped: %+v", start)
	}
	one.Leaving = false
	delete(runs, "a/one")
	delete(runs, "b/two")
	decision = Decide(begin, w.snapshot(), held[:2], running, Usage{})
	got = EstimateStarts(begin, w.snapshot(), decision, held[:2], running, describe)
	if got["a/first"].Reason != waiting.NoDeadline || got["b/second"].Reason != waiting.NoneAhead {
		t.Errorf("nothing bounds those that run: %+v", got)
	}
}

// TestEstimateOfMany: a thousand gangs that wait for a thousand that run are described once each.
func TestEstimateOfMany(t *testing.T) {
	t.Parallel()
	const n = 1000
	w := newWorld()
	var running, held []Entry
	for i := range n {
		w.node(1, 0)
		gpus := make([]int64, i+1)
		gpus[i] = 1
		running = append(running, w.on(entry("a", fmt.Sprint("runs-", i), Request{}, 60), gpus...))
		held = append(held, entry("b", fmt.Sprint("waits-", i), w.workers(1), n-i))
	}
	described := 0
	decision := Decide(begin, w.snapshot(), held, running, Usage{})
	starts := EstimateStarts(begin, w.snapshot(), decision, held, running, func(types.UID) waiting.Job {
		described++
		return waiting.Job{Start: begin, Deadline: time.Duration(described) * time.Minute}
	})
	if len(starts) != n || described != 2*n {
		t.Errorf("%d estimates, %d descriptions", len(starts), described)
	}
}
