package cases

import (
	"context"
	"errors"
	"fmt"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	"golang.org/x/sync/errgroup"

	"opendatahub.io/mpijob/hack/bench/kueue"
	"opendatahub.io/mpijob/hack/bench/report"
	"opendatahub.io/mpijob/hack/bench/wait"
)

// Queue are the cases of the suite "queue": what jobs cost while they wait, and how soon they start when they are let in.
func Queue() []Case {
	return []Case{plain(64), admitted(64), waiting(1000, 64)}
}

const (
	// settles is how long jobs wait before their cost is measured: by then the first status updates are over.
	settles = 45 * time.Second
	// watched is how long it is measured: three times what the operator looks again after.
	watched = 90 * time.Second
	// moves is how often the next one in the queue leaves it, so that all others move up.
	moves = 5 * time.Second
)

// plain measures a job that waits for nothing, as create does: what the others are compared with. It and admitted take
// the median of nine, one after another.
func plain(workers int) Case {
	name := fmt.Sprintf("plain/%d", workers)
	return Case{
		Results: []Result{{name, "s"}},
		Queued:  true,
		Once:    true,
		measure: func(ctx context.Context, a *arena) (map[string]report.Value, error) {
			var all []report.Value
			for i := range 9 {
				start := time.Now()
				job := a.job(fmt.Sprintf("job-%d", i), workers)
				if err := a.runner.Submit(ctx, job); err != nil {
					return nil, err
				}
				if err := within(ctx, patience, func(ctx context.Context) error { return a.seen.Wait(ctx, job.Name, workers) }); err != nil {
					return nil, err
				}
				all = append(all, report.Value{Value: time.Since(start).Seconds()})
				if err := wait.For(ctx, 5*time.Second); err != nil {
					return nil, err
				}
			}
			return map[string]report.Value{name: {Value: report.Summarize(all).Median}}, nil
		},
	}
}

// admitted measures from the admission of a job until all of its pods exist.
func admitted(workers int) Case {
	name := fmt.Sprintf("admitted/%d", workers)
	return Case{
		Results: []Result{{name, "s"}},
		Queued:  true,
		Once:    true,
		measure: withQueue(func(ctx context.Context, a *arena, queue *kueue.Kueue) (map[string]report.Value, error) {
			var all []report.Value
			for i := range 9 {
				took, err := a.letIn(ctx, queue, fmt.Sprintf("job-%d", i), workers)
				if err != nil {
					return nil, err
				}
				all = append(all, took)
			}
			return map[string]report.Value{name: {Value: report.Summarize(all).Median}}, nil
		}),
	}
}

// withQueue returns a measurement during which Kueue is simulated.
func withQueue(measure func(context.Context, *arena, *kueue.Kueue) (map[string]report.Value, error)) func(context.Context, *arena) (map[string]report.Value, error) {
	return func(ctx context.Context, a *arena) (values map[string]report.Value, err error) {
		queue, err := kueue.Start(ctx, a.admin)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, queue.Stop()) }()
		return measure(ctx, a, queue)
	}
}

// letIn queues a job, admits it, and measures until all of its pods exist.
func (a *arena) letIn(ctx context.Context, queue *kueue.Kueue, name string, workers int) (report.Value, error) {
	job := a.queued(name, workers)
	if err := a.runner.Submit(ctx, job); err != nil {
		return report.Value{}, err
	}
	if err := queue.Hold(ctx, job); err != nil {
		return report.Value{}, err
	}
	if err := wait.For(ctx, 5*time.Second); err != nil {
		return report.Value{}, err
	}
	start := time.Now()
	if err := queue.Admit(ctx, job); err != nil {
		return report.Value{}, err
	}
	err := within(ctx, patience, func(ctx context.Context) error { return a.seen.Wait(ctx, job.Name, workers) })
	return report.Value{Value: time.Since(start).Seconds()}, err
}

// queued is a job that Kueue has suspended, in a queue.
func (a *arena) queued(name string, workers int) *kubeflow.MPIJob {
	job := a.job(name, workers)
	job.Labels = map[string]string{kueue.Label: kueue.Queue}
	job.Spec.RunPolicy.Suspend = new(true)
	return job
}

// waiting has many jobs wait, first while nothing happens and then while the queue moves, and lets one more in.
func waiting(jobs, workers int) Case {
	still, moving := fmt.Sprintf("%d-still", jobs), fmt.Sprintf("%d-moving", jobs)
	behind := fmt.Sprintf("admitted/%d-beside-%d", workers, jobs)
	return Case{
		Results: []Result{
			{"writes/" + still, "writes/s"},
			{"cpu/" + still, "%"},
			{"writes/" + moving, "writes/s"},
			{"cpu/" + moving, "%"},
			{fmt.Sprintf("memory/%d", jobs), "MiB"},
			{fmt.Sprintf("heap/%d", jobs), "MiB"},
			{behind, "s"},
		},
		Queued: true,
		Counts: true,
		Once:   true,
		measure: withQueue(func(ctx context.Context, a *arena, queue *kueue.Kueue) (map[string]report.Value, error) {
			if err := a.submitQueued(ctx, queue, jobs); err != nil {
				return nil, err
			}
			if err := wait.For(ctx, settles); err != nil {
				return nil, err
			}
			values := map[string]report.Value{}
			if err := a.rates(ctx, values, still, func() {}); err != nil {
				return nil, err
			}
			if err := a.rates(ctx, values, moving, queue.Move); err != nil {
				return nil, err
			}
			usage, _, err := a.runner.Usage()
			if err != nil {
				return nil, err
			}
			values[fmt.Sprintf("memory/%d", jobs)] = report.Value{Value: float64(usage.PeakMemory) / (1 << 20)}
			values[fmt.Sprintf("heap/%d", jobs)] = report.Value{Value: float64(usage.LiveHeap) / (1 << 20)}
			values[behind], err = a.letIn(ctx, queue, "let-in", workers)
			return values, err
		}),
	}
}

// submitQueued submits jobs that wait, and returns when the operator has taken up all of them.
func (a *arena) submitQueued(ctx context.Context, queue *kueue.Kueue, jobs int) error {
	var submits errgroup.Group
	submits.SetLimit(16)
	for i := range jobs {
		submits.Go(func() error {
			job := a.queued(fmt.Sprintf("job-%d", i), 8)
			if err := a.runner.Submit(ctx, job); err != nil {
				return err
			}
			return queue.Hold(ctx, job)
		})
	}
	if err := submits.Wait(); err != nil {
		return err
	}
	err := within(ctx, patience, func(ctx context.Context) error { return a.reached(ctx, jobs, kubeflow.JobSuspended) })
	if err != nil {
		return fmt.Errorf("wait until %d jobs report that they wait: %w", jobs, err)
	}
	return nil
}

// rates measures the operator's writes and CPU time a second, while something happens every few seconds.
func (a *arena) rates(ctx context.Context, values map[string]report.Value, what string, happens func()) error {
	requests, usage, err := a.spent()
	if err != nil {
		return err
	}
	start := time.Now()
	for time.Since(start) < watched {
		happens()
		if err := wait.For(ctx, moves); err != nil {
			return err
		}
	}
	after, used, err := a.spent()
	if err != nil {
		return err
	}
	took := time.Since(start).Seconds()
	values["writes/"+what] = report.Value{Value: float64(after-requests) / took}
	values["cpu/"+what] = report.Value{Value: 100 * (used - usage).Seconds() / took}
	return nil
}

// spent are the writes of the operator so far, and its CPU time.
func (a *arena) spent() (writes int, cpu time.Duration, err error) {
	requests, err := a.server.Requests(a.runner.User())
	if err != nil {
		return 0, 0, err
	}
	usage, _, err := a.runner.Usage()
	writes, _ = countWrites(requests)
	a.requests = requests
	return writes, usage.CPU, err
}
