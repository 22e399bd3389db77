// Package observer sees when the worker pods and launcher Jobs of MPIJobs come into being. It watches their
// metadata only, so that observing costs the API server little, and the same for every contestant.
package observer

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// Observer watches one namespace. The API server drops a watcher that falls behind, as any may when thousands of
// pods are created at once; the observer then resumes from the last event that it saw.
type Observer struct {
	cancel context.CancelFunc
	failed chan error

	mu sync.Mutex
	// objects is how many objects there are of each job; arrivals is when each came, of all jobs.
	objects  map[string]int
	arrivals []time.Time
	// latest is when the latest object of each job came.
	latest  map[string]time.Time
	changed chan struct{}
}

// Watch observes a namespace, which must be empty, until Stop.
func Watch(ctx context.Context, config *rest.Config, namespace string) (*Observer, error) {
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("observe %s: %w", namespace, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	o := &Observer{cancel: cancel, failed: make(chan error, 1), objects: map[string]int{}, latest: map[string]time.Time{}, changed: make(chan struct{}, 1)}
	for resource, jobOf := range map[schema.GroupVersionResource]func(string) (string, bool){
		{Version: "v1", Resource: "pods"}:                 jobOfWorker,
		{Group: "batch", Version: "v1", Resource: "jobs"}: jobOfLauncher,
	} {
		f := &follower{client: client.Resource(resource).Namespace(namespace), jobOf: jobOf, found: o.add}
		if err := f.begin(ctx); err != nil {
			cancel()
			return nil, fmt.Errorf("observe %s: %w", namespace, err)
		}
		go func() {
			if err := f.follow(ctx); err != nil && ctx.Err() == nil {
				select {
				case o.failed <- fmt.Errorf("observe %s: %w", namespace, err):
				default: // one is enough
				}
			}
		}()
	}
	return o, nil
}

// Stop ends the observation.
func (o *Observer) Stop() { o.cancel() }

func (o *Observer) add(job string, now time.Time) {
	o.mu.Lock()
	o.objects[job]++
	o.arrivals = append(o.arrivals, now)
	o.latest[job] = now
	o.mu.Unlock()
	select {
	case o.changed <- struct{}{}:
	default: // a waiting caller looks again anyway
	}
}

// Arrivals is when each object came so far.
func (o *Observer) Arrivals() []time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]time.Time(nil), o.arrivals...)
}

// Completed returns when the last of a job's worker pods and its launcher Job came; false if some have not come.
func (o *Observer) Completed(job string, workers int) (time.Time, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.latest[job], o.objects[job] > workers
}

// Wait waits until a job has its launcher Job and all of its worker pods. One at a time may wait.
func (o *Observer) Wait(ctx context.Context, job string, workers int) error {
	return o.wait(ctx, func() bool { return o.objects[job] > workers })
}

// WaitForAll waits until there are so many objects, of all jobs together. One at a time may wait.
func (o *Observer) WaitForAll(ctx context.Context, objects int) error {
	return o.wait(ctx, func() bool { return len(o.arrivals) >= objects })
}

func (o *Observer) wait(ctx context.Context, done func() bool) error {
	for {
		o.mu.Lock()
		ok := done()
		o.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-o.changed:
		case err := <-o.failed:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// jobOfWorker finds the job in a worker pod's name. A pod of the launcher's is none.
func jobOfWorker(pod string) (string, bool) {
	at := strings.LastIndex(pod, "-worker-")
	if at < 0 {
		return "", false
	}
	_, err := strconv.ParseUint(pod[at+len("-worker-"):], 10, 32)
	return pod[:at], err == nil
}

func jobOfLauncher(job string) (string, bool) { return strings.CutSuffix(job, "-launcher") }

// follower watches one resource.
type follower struct {
	client metadata.ResourceInterface
	jobOf  func(name string) (job string, belongs bool)
	found  func(job string, now time.Time)
	events watch.Interface
	// version is that of the last event.
	version string
}

func (f *follower) begin(ctx context.Context) error {
	list, err := f.client.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return err
	}
	f.version = list.ResourceVersion
	f.events, err = f.client.Watch(ctx, metav1.ListOptions{ResourceVersion: f.version})
	return err
}

func (f *follower) follow(ctx context.Context) error {
	for {
		for event := range f.events.ResultChan() {
			if event.Type == watch.Error {
				return apierrors.FromObject(event.Object)
			}
			object, ok := event.Object.(*metav1.PartialObjectMetadata)
			if !ok {
				continue
			}
			f.version = object.ResourceVersion
			if job, belongs := f.jobOf(object.Name); belongs && event.Type == watch.Added {
				f.found(job, time.Now())
			}
		}
		f.events.Stop()
		if ctx.Err() != nil {
			return nil
		}
		var err error
		if f.events, err = f.client.Watch(ctx, metav1.ListOptions{ResourceVersion: f.version}); err != nil {
			return err
		}
	}
}
