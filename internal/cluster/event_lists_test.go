package cluster_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"opendatahub.io/mpijob/internal/cluster"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

// TestEventsAreReadOnceForManyJobs: a namespace's events are not read again for each job that is diagnosed, and a job sees only
// its own.
func TestEventsAreReadOnceForManyJobs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const jobs, takes = 100, 100 * time.Millisecond
		var reads atomic.Int32
		live := mpitest.FakeAPI().WithInterceptorFuncs(interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
				if _, is := list.(*corev1.EventList); is {
					reads.Add(1)
					time.Sleep(takes)
				}
				return c.List(ctx, list, options...)
			},
		}).Build()
		seen := func(i int) jobstate.Observed {
			pod := mpitest.Worker(mpitest.Job(1), 0, corev1.PodPending)
			pod.Pod.Name, pod.Pod.UID = fmt.Sprintf("pod-%d", i), types.UID(fmt.Sprintf("uid-%d", i))
			return jobstate.Observed{Workers: []jobstate.Worker{pod}}
		}
		write := func(i int, source, message string) {
			pod := seen(i).Workers[0].Pod
			event := &corev1.Event{
				ObjectMeta: metav1.ObjectMeta{Namespace: mpitest.Job(1).Namespace, Name: fmt.Sprintf("%s.%s.%s", pod.Name, source, message)}, Message: message,
				InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: pod.Name, UID: pod.UID}, Source: corev1.EventSource{Component: source},
			}
			if err := live.Create(t.Context(), event); err != nil {
				t.Fatal(err)
			}
		}
		gatherer := cluster.NewGatherer(live, nil, logs.Masker{}, clock.RealClock{})
		check := func(i int, want string) {
			events := gatherer.Gather(t.Context(), mpitest.Job(1), seen(i), nil).Events
			if len(events) != 1 || events[0].Message != want {
				t.Errorf("the events of job %d are %+v, want one: %s", i, events, want)
			}
		}
		for i := range jobs {
			write(i, "kubelet", fmt.Sprint(i))
			write(i, mpi.EventSource, "the operator's own")
		}
		var all sync.WaitGroup
		for i := range jobs {
			all.Go(func() { check(i, fmt.Sprint(i)) })
		}
		all.Wait()
		time.Sleep(takes)
		check(0, "0")
		if got := reads.Load(); got != 1 {
			t.Errorf("events were read %d times for %d jobs, want once", got, jobs)
		}
		write(jobs, "kubelet", "new")
		time.Sleep(20 * takes)
		check(jobs, "new")
		if got := reads.Load(); got != 2 {
			t.Errorf("events were read %d times, want again after a time", got)
		}
	})
}

// TestEventsThatAreTooMany: those of a job are read by its name if a namespace has too many to read all.
func TestEventsThatAreTooMany(t *testing.T) {
	t.Parallel()
	job := mpitest.Job(1)
	event := corev1.Event{Message: "about the job", InvolvedObject: corev1.ObjectReference{Kind: job.Kind, Name: job.Name, UID: job.UID}}
	live := mpitest.FakeAPI().WithInterceptorFuncs(interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			events, is := list.(*corev1.EventList)
			if !is {
				return nil
			}
			var by client.ListOptions
			by.ApplyOptions(options)
			if by.FieldSelector == nil {
				events.Continue = "more"
			} else if by.FieldSelector.Matches(fieldsOf(event.InvolvedObject)) {
				events.Items = []corev1.Event{event}
			}
			return nil
		},
	}).Build()
	evidence := cluster.NewGatherer(live, nil, logs.Masker{}, clock.RealClock{}).Gather(t.Context(), job, jobstate.Observed{}, nil)
	if len(evidence.Events) != 1 || evidence.Events[0].Message != event.Message {
		t.Errorf("the events of the job are %+v, want one: %s", evidence.Events, event.Message)
	}
}

// fieldsOf returns what the API server selects events by.
func fieldsOf(object corev1.ObjectReference) fields.Set {
	return fields.Set{"involvedObject.kind": object.Kind, "involvedObject.name": object.Name}
}

// TestInterruptedEvents: a job that waits for the events that another one reads, whose context ends, reads them itself.
func TestInterruptedEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		job := mpitest.Job(1)
		event := corev1.Event{Message: "about the job", InvolvedObject: corev1.ObjectReference{Kind: job.Kind, Name: job.Name, UID: job.UID}}
		live := mpitest.FakeAPI().WithInterceptorFuncs(interceptor.Funcs{
			List: func(ctx context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
				events, is := list.(*corev1.EventList)
				if !is {
					return nil
				}
				select {
				case <-time.After(time.Second):
					events.Items = []corev1.Event{event}
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			},
		}).Build()
		gatherer := cluster.NewGatherer(live, nil, logs.Masker{}, clock.RealClock{})
		first, cancel := context.WithCancel(t.Context())
		var both sync.WaitGroup
		both.Go(func() { gatherer.Gather(first, job, jobstate.Observed{}, nil) })
		synctest.Wait()
		both.Go(func() {
			if events := gatherer.Gather(t.Context(), job, jobstate.Observed{}, nil).Events; len(events) != 1 {
				t.Errorf("the events are %+v, want one", events)
			}
		})
		synctest.Wait()
		cancel()
		both.Wait()
	})
}
