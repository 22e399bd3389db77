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

// whileShared is how many of them one job has at most while there are others that write. The API server works on all that
// it has at once, so that each write of a small job takes as long as the many of a big one beside it: with 48 of those
// the small one was there after 0.28 s, with 8 after 0.08 s. A job that writes alone is no slower for it.
const whileShared = 8

// gate lets so many writes through at a time, and the next one is always of the job that has the fewest under
// way: a small job does not wait behind a big one.
type gate struct {
	mu   sync.Mutex
	free int
	// most is how many one job has while it writes alone, shared while there are others.
	most, shared int
	// jobs is how many have writes to make, whether one is under way just now or not.
	jobs    int
	held    map[types.UID]int
	waiting []*waiter
}

type waiter struct {
	job types.UID
	in  chan struct{}
}

func newGate(size, shared int) *gate {
	return &gate{free: size, most: size, shared: shared, held: map[types.UID]int{}}
}

// begin tells that a job has writes to make, until end.
func (g *gate) begin() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.jobs++
}

// end is for the job that told of itself with begin. Whoever is left alone gets what is free.
func (g *gate) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.jobs--
	for g.free > 0 && g.letNext() {
		g.free--
	}
}

// mayHave tells whether a job has room for another write.
func (g *gate) mayHave(job types.UID) bool {
	if g.jobs > 1 {
		return g.held[job] < g.shared
	}
	return g.held[job] < g.most
}

// enter waits for a place; the caller leaves it again unless there is an error, which is the context's.
func (g *gate) enter(ctx context.Context, job types.UID) error {
	g.mu.Lock()
	if g.free > 0 && g.mayHave(job) {
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
	if !g.letNext() {
		g.free++
	}
}

// letNext lets the next one in, and tells whether there was one.
func (g *gate) letNext() bool {
	next := -1
	for i, w := range g.waiting {
		if g.mayHave(w.job) && (next < 0 || g.held[w.job] < g.held[g.waiting[next].job]) {
			next = i
		}
	}
	if next < 0 {
		return false
	}
	w := g.waiting[next]
	g.waiting = slices.Delete(g.waiting, next, next+1)
	g.held[w.job]++
	close(w.in)
	return true
}
