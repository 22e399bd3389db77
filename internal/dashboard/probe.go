package dashboard

import (
	"context"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
)

// probe asks the API server for its version again and again. Feeds do not notice each outage: client-go takes a lost
// connection for the end of a watch, and a connection without traffic may be dead for a minute.
type probe struct {
	api rest.Interface
	// failures is how many of the last requests have failed.
	failures atomic.Int32
}

const (
	probeInterval, probeRetry, probeTimeout = 2 * time.Second, 500 * time.Millisecond, 3 * time.Second
	// maxFailures is how many requests in a row may fail before the API server counts as away.
	maxFailures = 1
)

// isAway reports whether the API server does not answer.
func (p *probe) isAway() bool { return p.failures.Load() > maxFailures }

// run asks until the context ends.
func (p *probe) run(ctx context.Context) {
	for ctx.Err() == nil {
		pause := probeInterval
		if p.answers(ctx) {
			p.failures.Store(0)
		} else {
			p.failures.Add(1)
			pause = probeRetry
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// answers reports whether the API server answers a request, also if it refuses it.
func (p *probe) answers(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	err := p.api.Get().AbsPath("/version").MaxRetries(0).Do(ctx).Error()
	return err == nil || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)
}
