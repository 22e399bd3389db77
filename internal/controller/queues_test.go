package controller

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/kueue"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

// TestWithoutWorkload: a job that waits for its Workload for more than a minute says so, and names a class that does not exist. The classes
// are read every half a minute for all jobs.
func TestWithoutWorkload(t *testing.T) {
	filled := make(chan struct{})
	close(filled)
	read := 0
	api := mpitest.FakeAPI().WithInterceptorFuncs(interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			if classes, is := list.(*metav1.PartialObjectMetadataList); is {
				read++
				classes.Items = []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Name: "low"}}, {ObjectMeta: metav1.ObjectMeta{Name: "high"}}}
			}
			return nil
		},
	}).Build()
	none := "Kueue has not created a Workload yet"
	late := "Kueue has created no Workload since 2026-11-21 10:00:00 UTC"
	for name, test := range map[string]struct {
		change func(*mpi.Job)
		after  time.Duration
		want   string
		never  bool
	}{
		"at first":               {after: 59 * time.Second, want: none},
		"after a minute":         {after: time.Minute, want: late, never: true},
		"it names no such class": {change: func(j *mpi.Job) { j.QueuePriority = "nosuch" }, after: time.Minute, want: late + ": WorkloadPriorityClass nosuch does not exist (those that exist: high, low)", never: true},
		"it runs":                {change: func(j *mpi.Job) { j.Lifecycle.Suspended = false }, after: time.Hour, want: none},
		"its user suspends it":   {change: func(j *mpi.Job) { j.SuspendedInQueue = true }, after: time.Hour, want: none},
	} {
		t.Run(name, func(t *testing.T) {
			q := queues{known: true, filled: filled, workloads: api, priorities: &priorities{live: api}, without: &jobTimes{}, unfit: &jobTimes{}}
			job := mpitest.Job(2, func(j *mpi.Job) { j.Queue, j.Lifecycle.Suspended = "team-a", true })
			if test.change != nil {
				test.change(&job)
			}
			read = 0
			for _, after := range []time.Duration{0, test.after, test.after + 29*time.Second} {
				_, state, err := q.observe(t.Context(), job, mpitest.Now.Add(after))
				if err != nil {
					t.Fatal(err)
				}
				if after == test.after && (state.Message != test.want || state.Never != test.never) {
					t.Errorf("after %s: %+v", after, state)
				}
			}
			if read > 1 {
				t.Errorf("the classes were read %d times", read)
			}
			q.forget(job.ID())
			if _, state, _ := q.observe(t.Context(), job, mpitest.Now.Add(2*time.Hour)); state.Never {
				t.Errorf("a new job of the same name: %+v", state)
			}
		})
	}
}

// TestQueueBeforeWorkloadsAreRead: a job in a queue of which nothing is known yet waits there, unless Kueue is not installed.
func TestQueueBeforeWorkloadsAreRead(t *testing.T) {
	closed := make(chan struct{})
	close(closed)
	suspended := mpitest.Job(2, func(j *mpi.Job) { j.Queue, j.Lifecycle.Suspended = "team-a", true })
	tests := map[string]struct {
		queues queues
		want   string
	}{
		"Kueue is not installed":                 {queues: queues{filled: make(chan struct{})}, want: "Suspended. The job names queue team-a, but Kueue, which would resume it, was not found on the cluster."},
		"Kueue is installed, and cannot be read": {queues: queues{known: true, filled: make(chan struct{}), overdue: closed}, want: "Waiting in queue team-a. The operator has not read Kueue's Workloads yet."},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, state, err := test.queues.observe(t.Context(), suspended, mpitest.Now)
			if err != nil {
				t.Fatal(err)
			}
			if out := jobstate.Judge(suspended, jobstate.Observed{Now: mpitest.Now, Queue: state}); !strings.HasPrefix(out.Message, test.want) {
				t.Errorf("it is %s: %s\nwant %s", out.Phase, out.Message, test.want)
			}
			if state != nil && state.Backend != kueue.Kueue {
				t.Errorf("the back end is %s", state.Backend)
			}
		})
	}
}

// TestUnfit: a job whose pods request nothing is never admitted where Kueue selects the nodes. One that has only lost its quota to another job has
// the same message, for a moment.
func TestUnfit(t *testing.T) {
	const text = `{metadata: {name: w, uid: w}, spec: {queueName: team-a}, status: {resourceRequests: [{name: launcher}],
		conditions: [{type: QuotaReserved, status: "False", reason: Pending, message: Workload no longer fits after processing another workload}]}}`
	filled := make(chan struct{})
	close(filled)
	api := mpitest.FakeAPI().WithInterceptorFuncs(interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			if into, is := list.(*unstructured.UnstructuredList); is {
				into.Items = parsed(t, []string{text})
			}
			return nil
		},
	}).Build()
	none := func(context.Context, types.NamespacedName) (map[string]kueue.Position, error) { return nil, nil }
	q := queues{known: true, filled: filled, workloads: api, without: &jobTimes{}, unfit: &jobTimes{}, positions: &positions{read: none, known: map[types.NamespacedName]*queuePositions{}}}
	job := mpitest.Job(2, func(j *mpi.Job) { j.Queue, j.Lifecycle.Suspended = "team-a", true })
	for _, step := range []struct {
		after time.Duration
		never bool
	}{{0, false}, {29 * time.Second, false}, {30 * time.Second, true}, {time.Hour, true}} {
		_, state, err := q.observe(t.Context(), job, mpitest.Now.Add(step.after))
		if err != nil {
			t.Fatal(err)
		}
		if state.Never != step.never || (state.Reason == kueue.ReasonNeedsRequests) != step.never {
			t.Errorf("after %s: %+v", step.after, state)
		}
	}
}
