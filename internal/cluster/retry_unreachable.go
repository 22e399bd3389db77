package cluster

import (
	"context"
	"math/rand/v2"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

// retryInterval is how often an unreachable API server is retried, plus up to 100 % jitter.
const retryInterval = 500 * time.Millisecond

// Steady wraps a source of objects to retry at a constant interval while the API server is unreachable. client-go's
// caches back off up to a minute, so that after an outage decisions would be based on old state. Errors that the
// server returns, such as too many requests, are left to client-go.
func Steady(source toolscache.ListerWatcher) toolscache.ListerWatcher {
	of := toolscache.ToListerWatcherWithContext(source)
	return &toolscache.ListWatch{
		ListWithContextFunc: of.ListWithContext,
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			for {
				events, err := of.WatchWithContext(ctx, options)
				if err == nil || !utilnet.IsConnectionRefused(err) && !utilnet.IsConnectionReset(err) && !utilnet.IsTimeout(err) {
					return events, err
				}
				select {
				case <-ctx.Done():
					return nil, err
				case <-time.After(retryInterval + rand.N(retryInterval)):
				}
			}
		},
	}
}

// NewInformer creates the informers of a cache with Steady sources.
func NewInformer(source toolscache.ListerWatcher, example runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
	return toolscache.NewSharedIndexInformer(Steady(source), example, resync, indexers)
}
