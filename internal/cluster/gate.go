package cluster

import (
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// inFlight is how many writes are under way at once, for all jobs together. More would only queue in the API
// server, whose priority and fairness then turns requests away (429) and has us wait longer and longer; 1,536 at
// once made a burst of 100 jobs five times slower than 64.
const inFlight = 48

// gate lets so many writes through at a time, and the next one is always of the job that has the fewest under
// way: a small job does not wait behind a big one.
type gate struct {
	mu      sync.Mutex
	free    int
	held    map[types.UID]int
	waiting []*waiter
}

type waiter struct {
	job types.UID
	in  chan struct{}
}

func newGate(size int) *gate { return &gate{free: size, held: map[types.UID]int{}} }

// enter waits for a place; the caller leaves it again unless there is an error, which is the context's.
func (g *gate) enter(ctx context.Context, job types.UID) error {
	g.mu.Lock()
	if g.free > 0 {
		g.free--
		g.held[job]++
		g.mu.Unlock()
		return nil
	}
	w := &waiter{job: job, in: make(chan struct{})}
	g.waiting = append(g.waiting, w)
	g.mu.Unlock()
	select {
	case <-w.in:
		return nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(g.waiting, w); i >= 0 {
		g.waiting = slices.Delete(g.waiting, i, i+1)
	} else {
		// The place came with the end of the context.
		g.pass(job)
	}
	return ctx.Err()
}

// leave gives a place back.
func (g *gate) leave(job types.UID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pass(job)
}

// pass hands the place of a job on to whoever is next.
func (g *gate) pass(from types.UID) {
	if g.held[from]--; g.held[from] == 0 {
		delete(g.held, from)
	}
	if len(g.waiting) == 0 {
		g.free++
		return
	}
	next := 0
	for i, w := range g.waiting {
		if g.held[w.job] < g.held[g.waiting[next].job] {
			next = i
		}
	}
	w := g.waiting[next]
	g.waiting = slices.Delete(g.waiting, next, next+1)
	g.held[w.job]++
	close(w.in)
}
