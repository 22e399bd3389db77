package cluster

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/utils/clock"
)

// lookup keeps an answer of the API server for some time. Callers that come at the same time wait for the same answer.
type lookup[T any] struct {
	calls singleflight.Group
	mu    sync.Mutex
	last  lookedUp[T]
	until time.Time
}

// lookedUp is an answer.
type lookedUp[T any] struct {
	value T
	err   error
}

// get returns the last answer, or what find returns within a time limit. The answer is kept for a time, and an error for another. A caller whose
// context ends gets that error alone: others wait for the answer, too.
func (l *lookup[T]) get(ctx context.Context, clock clock.PassiveClock, limit, keep, keepError time.Duration, find func(context.Context) (T, error)) (T, error) {
	if last, known := l.known(clock.Now()); known {
		return last.value, last.err
	}
	found := l.calls.DoChan("", func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
		defer cancel()
		var now lookedUp[T]
		now.value, now.err = find(ctx)
		if now.err != nil {
			keep = keepError
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.last, l.until = now, clock.Now().Add(keep)
		return now, nil
	})
	select {
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	case result := <-found:
		now, _ := result.Val.(lookedUp[T])
		return now.value, now.err
	}
}

// known returns the last answer; false if it is too old.
func (l *lookup[T]) known(now time.Time) (lookedUp[T], bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last, now.Before(l.until)
}
