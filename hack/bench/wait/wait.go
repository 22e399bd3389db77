// Package wait waits for a time, unless a context ends.
package wait

import (
	"context"
	"time"
)

// For waits for a time. It returns the cause if the context ends before.
func For(ctx context.Context, length time.Duration) error {
	select {
	case <-time.After(length):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
