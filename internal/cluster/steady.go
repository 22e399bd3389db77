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

// askAgain is how often an API server is asked that is not there; as much again at most is left to chance.
const askAgain = time.Second

// Steady is a source of objects that waits for an API server to which nobody can connect, asking it again and again.
// client-go's own caches ask ever more seldom, at last once a minute, and for so long after an outage whoever reads them
// would decide by what was before it. A server that answers, be it that it is too busy, is left to client-go.
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
				case <-time.After(askAgain + rand.N(askAgain)):
				}
			}
		},
	}
}

// NewInformer makes the informers of a cache Steady.
func NewInformer(source toolscache.ListerWatcher, example runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
	return toolscache.NewSharedIndexInformer(Steady(source), example, resync, indexers)
}
