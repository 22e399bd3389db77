package cluster

import (
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// maxWrites is the number of concurrent writes of all jobs. More would only queue in the API server, whose priority
// and fairness rejects requests (429) with growing delays: with 1,536 writes at once, a burst of 100 jobs took five
// times as long as with 64.
const maxWrites = 48

// maxSharedWrites is the number of concurrent writes of one job while others write, too. The API server processes all
// writes at once, so that the writes of a large job delay those of a small one: with 48, the small job was created
// after 0.28 s, with 8 after 0.08 s. A job that writes alone is not slower.
const maxSharedWrites = 8

// gate limits concurrent writes. The next write is always one of the job with the fewest writes in flight, so that a
// small job does not wait for a large one.
type gate struct {
	mu   sync.Mutex
	free int
	// most is the limit of one job while it writes alone, and shared while others write.
	most, shared int
	// jobs is the number of jobs that have writes to make, whether one is in flight or not.
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

// begin registers a job that has writes to make, until end.
func (g *gate) begin() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.jobs++
}

// end unregisters the job. If only one job remains, it gets the free slots.
func (g *gate) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.jobs--
	for g.free > 0 && g.letNext() {
		g.free--
	}
}

// mayHave reports whether a job may start another write.
func (g *gate) mayHave(job types.UID) bool {
	if g.jobs > 1 {
		return g.held[job] < g.shared
	}
	return g.held[job] < g.most
}

// enter waits for a slot. The caller must call leave, unless enter returns the context's error.
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
		// The slot was assigned when the context ended.
		g.pass(job)
	}
	return ctx.Err()
}

// isBusy reports whether writes of several jobs wait for a slot. Those of one job also wait while others are free.
func (g *gate) isBusy() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.waiting) > 0 && g.free == 0
}

// leave releases a slot.
func (g *gate) leave(job types.UID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pass(job)
}

// pass hands a job's slot to the next waiter.
func (g *gate) pass(from types.UID) {
	if g.held[from]--; g.held[from] == 0 {
		delete(g.held, from)
	}
	if !g.letNext() {
		g.free++
	}
}

// letNext assigns a slot to the next waiter, and reports whether there was one.
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
