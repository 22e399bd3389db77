package cluster

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// waiters waits until so many are in the queue.
func waiters(t *testing.T, g *gate, n int) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		g.mu.Lock()
		have := len(g.waiting)
		g.mu.Unlock()
		if have == n {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d wait, want %d", have, n)
		}
		time.Sleep(time.Millisecond)
	}
}

func TestGateFavoursTheJobWithTheFewest(t *testing.T) {
	g := newGate(2, 2)
	for range 2 {
		if err := g.enter(t.Context(), "big"); err != nil {
			t.Fatal(err)
		}
	}
	order := make(chan types.UID, 3)
	for i, job := range []types.UID{"big", "big", "small"} {
		go func() {
			if g.enter(t.Context(), job) == nil {
				order <- job
			}
		}()
		waiters(t, g, i+1)
	}
	g.leave("big")
	if first := <-order; first != "small" {
		t.Errorf("the %s job was let in before the small one, which had nothing under way", first)
	}
}

func TestGateHoldsNoMoreThanItsSize(t *testing.T) {
	const size = 3
	g := newGate(size, size)
	var inside, most atomic.Int64
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			job := types.UID(rune('a' + i%7))
			if err := g.enter(t.Context(), job); err != nil {
				t.Error(err)
				return
			}
			most.Store(max(most.Load(), inside.Add(1)))
			inside.Add(-1)
			g.leave(job)
		})
	}
	all.Wait()
	if most.Load() > size {
		t.Errorf("%d were inside, want %d at most", most.Load(), size)
	}
	if g.free != size || len(g.held) > 0 || len(g.waiting) > 0 {
		t.Errorf("afterwards %d are free, held %v, %d wait", g.free, g.held, len(g.waiting))
	}
}

func TestGateForgetsWhoGivesUp(t *testing.T) {
	g := newGate(1, 1)
	if err := g.enter(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() { gone <- g.enter(ctx, "b") }()
	waiters(t, g, 1)
	cancel()
	if err := <-gone; err == nil {
		t.Fatal("whoever gave up was let in")
	}
	g.leave("a")
	if g.free != 1 {
		t.Error("the place was lost")
	}
}

// enterMany has a job ask for so many places at once, each held until the test ends it with leave.
func enterMany(t *testing.T, g *gate, job types.UID, n int) {
	t.Helper()
	for range n {
		go func() { _ = g.enter(t.Context(), job) }()
	}
}

// holds waits until a job has so many places.
func holds(t *testing.T, g *gate, job types.UID, n int) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		g.mu.Lock()
		have := g.held[job]
		g.mu.Unlock()
		if have == n {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s has %d places, want %d", job, have, n)
		}
		time.Sleep(time.Millisecond)
	}
}

func TestGateHoldsABigJobBackForOthersAlone(t *testing.T) {
	g := newGate(10, 3)
	g.begin()
	enterMany(t, g, "big", 50)
	holds(t, g, "big", 10)
	waiters(t, g, 40)

	// A small job comes: what the big one gives back stays free, down to its share.
	g.begin()
	for range 7 {
		g.leave("big")
	}
	holds(t, g, "big", 3)
	waiters(t, g, 40)
	for range 5 {
		g.leave("big")
	}
	holds(t, g, "big", 3)
	waiters(t, g, 35)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := g.enter(ctx, "small"); err != nil {
		t.Fatalf("the small job was not let in at once: %v", err)
	}
	g.leave("small")

	// The small one has all that it needs: the big one goes on as before.
	g.end()
	holds(t, g, "big", 10)
	waiters(t, g, 28)
	for range 38 {
		g.leave("big")
	}
	g.end()
	if g.free != 10 || len(g.held) > 0 || len(g.waiting) > 0 || g.jobs != 0 {
		t.Errorf("afterwards %d are free, held %v, %d wait, %d jobs write", g.free, g.held, len(g.waiting), g.jobs)
	}
}
