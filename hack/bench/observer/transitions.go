package observer

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// Transitions are the times at which objects of a namespace first reached a state, from when they are watched.
type Transitions struct {
	events  *watchtools.RetryWatcher
	reached func(*unstructured.Unstructured) (job string, ok bool)

	mu      sync.Mutex
	at      map[string]time.Time
	err     error
	changed chan struct{}
}

// WatchTransitions watches a resource until Stop. The function returns the job of an object, and whether the object has
// reached the state.
func WatchTransitions(ctx context.Context, config *rest.Config, namespace string, resource schema.GroupVersionResource, reached func(*unstructured.Unstructured) (job string, ok bool)) (*Transitions, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("observe %s: %w", resource.Resource, err)
	}
	objects := client.Resource(resource).Namespace(namespace)
	list, err := objects.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return nil, fmt.Errorf("observe %s: %w", resource.Resource, err)
	}
	events, err := watchtools.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return objects.Watch(ctx, options)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("observe %s: %w", resource.Resource, err)
	}
	t := &Transitions{events: events, reached: reached, at: map[string]time.Time{}, changed: make(chan struct{}, 1)}
	go t.follow(resource.Resource)
	return t, nil
}

func (t *Transitions) follow(resource string) {
	for event := range t.events.ResultChan() {
		now := time.Now()
		object, ok := event.Object.(*unstructured.Unstructured)
		t.mu.Lock()
		switch {
		case event.Type == watch.Error:
			t.err = fmt.Errorf("observe %s: %v", resource, event.Object)
		case ok:
			job, reached := t.reached(object)
			if _, known := t.at[job]; reached && !known {
				t.at[job] = now
			}
		}
		t.mu.Unlock()
		select {
		case t.changed <- struct{}{}:
		default: // a waiting caller looks again anyway
		}
	}
}

// Stop ends the observation.
func (t *Transitions) Stop() { t.events.Stop() }

// Wait waits until so many jobs have reached the state, and returns when each did. One at a time may wait.
func (t *Transitions) Wait(ctx context.Context, jobs int) (map[string]time.Time, error) {
	for {
		t.mu.Lock()
		at, err := maps.Clone(t.at), t.err
		t.mu.Unlock()
		if err != nil || len(at) >= jobs {
			return at, err
		}
		select {
		case <-t.changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("%d of %d jobs have: %w", len(at), jobs, context.Cause(ctx))
		}
	}
}
