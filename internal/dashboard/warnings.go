package dashboard

import (
	"context"
	"sync"
)

// warningCollector collects the warnings of the API server about a request.
type warningCollector struct {
	mu  sync.Mutex
	all []string
}

type warningKey struct{}

func withWarnings(ctx context.Context, collector *warningCollector) context.Context {
	return context.WithValue(ctx, warningKey{}, collector)
}

func (w *warningCollector) texts() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all
}

// warnings passes the warnings of the API server to the collector of the request's context.
type warnings struct{}

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (warnings) HandleWarningHeaderWithContext(ctx context.Context, code int, _, text string) {
	if collector, is := ctx.Value(warningKey{}).(*warningCollector); is && code == 299 {
		collector.mu.Lock()
		defer collector.mu.Unlock()
		collector.all = append(collector.all, text)
	}
}
