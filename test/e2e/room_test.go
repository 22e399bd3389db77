package e2e

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/semaphore"
)

// ranksAtOnce is how many ranks of all tests compute or wait for each other at once. Ranks that wait for each other take all of a processor:
// with many more of them than these come to a halt together, and so does everything else on the machine.
var ranksAtOnce = int64(5 * runtime.NumCPU())

// rankRoom is the room for these ranks, and who has how much of it.
var rankRoom = struct {
	free    *semaphore.Weighted
	mu      sync.Mutex
	holders map[string]int64
}{free: semaphore.NewWeighted(ranksAtOnce), holders: map[string]int64{}}

// longestForRoom is how long a test waits for room before it fails: longer than any test holds it, shorter than CI lasts.
const longestForRoom = 20 * time.Minute

// parallel runs a test beside others once there is room for its ranks, as takeRoom counts them.
func parallel(t *testing.T, ranks int64) (leave func()) {
	t.Helper()
	t.Parallel()
	return takeRoom(t, ranks)
}

// takeRoom waits until there is room for a test's ranks, as many as compute or wait for each other at a time; what they start that
// knows nothing of MPI, such as sleep, does not count. They have the room until the test's end, or until what takeRoom returns is
// called: when they sleep, say.
//
// A test with parallel subtests takes no room itself: it would hold it while its subtests wait for their turn, behind tests that wait for
// this room. Its subtests take it.
func takeRoom(t *testing.T, ranks int64) (leave func()) {
	t.Helper()
	ranks = min(ranks, ranksAtOnce)
	ctx, cancel := context.WithTimeout(t.Context(), longestForRoom)
	defer cancel()
	if err := rankRoom.free.Acquire(ctx, ranks); err != nil {
		rankRoom.mu.Lock()
		defer rankRoom.mu.Unlock()
		t.Fatalf("wait for room for %d of %d ranks: %v; the room is held by %v", ranks, ranksAtOnce, err, rankRoom.holders)
	}
	hold := func(ranks int64) {
		rankRoom.mu.Lock()
		defer rankRoom.mu.Unlock()
		if rankRoom.holders[t.Name()] += ranks; rankRoom.holders[t.Name()] == 0 {
			delete(rankRoom.holders, t.Name())
		}
	}
	hold(ranks)
	leave = sync.OnceFunc(func() {
		hold(-ranks)
		rankRoom.free.Release(ranks)
	})
	t.Cleanup(leave)
	return leave
}
