package cases

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/hack/bench/contestant"
	"opendatahub.io/mpijob/hack/bench/report"
	"opendatahub.io/mpijob/hack/bench/wait"
)

// awayFor is how long the API server is away.
const awayFor = 45 * time.Second

// moved kills the operator when a third of the objects of many new jobs exist, and starts another one, which has to wait for the
// lease. It measures from then until all objects exist.
func moved(jobs int) Case {
	name := fmt.Sprintf("moved/%d", jobs)
	return disturbed(jobs, name, func(ctx context.Context, _ *arena, process contestant.Restarter) error {
		return process.Restart(ctx, false)
	})
}

// away has the operator find no API server for a while when a third of the objects of many new jobs exist. It measures from when
// the API server is back until all objects exist.
func away(jobs int) Case {
	name := fmt.Sprintf("away/%d", jobs)
	return disturbed(jobs, name, func(ctx context.Context, a *arena, _ contestant.Restarter) error {
		if err := a.server.Cut(); err != nil {
			return err
		}
		return errors.Join(wait.For(ctx, awayFor), a.server.Resume())
	})
}

// disturbed creates many jobs at once, and has something happen when a third of their objects exist.
func disturbed(jobs int, name string, happens func(context.Context, *arena, contestant.Restarter) error) Case {
	return Case{
		Results: []Result{{name, "s"}, {name + "/extra", "objects"}, {name + "/restarts", "restarts"}},
		PodsRun: true,
		Nodes:   scaleNodes,
		Relayed: true,
		Once:    true,
		measure: func(ctx context.Context, a *arena) (map[string]report.Value, error) {
			process, ok := a.runner.(contestant.Restarter)
			if !ok {
				return nil, fmt.Errorf("it has no process to restart")
			}
			process.Supervise()
			m := newMix(jobs)
			if err := a.submitMix(ctx, m); err != nil {
				return nil, err
			}
			if err := within(ctx, followLimit, func(ctx context.Context) error { return a.seen.WaitForAll(ctx, m.objects()/3) }); err != nil {
				return nil, err
			}
			if err := happens(ctx, a, process); err != nil {
				return nil, err
			}
			start, had := time.Now(), len(a.seen.Arrivals())
			if had == m.objects() {
				return nil, fmt.Errorf("all objects existed before anything happened: use more jobs")
			}
			if err := within(ctx, followLimit, func(ctx context.Context) error { return a.seen.WaitForAll(ctx, m.objects()) }); err != nil {
				return nil, fmt.Errorf("wait for all objects: %w", err)
			}
			took := time.Since(start)
			if err := a.reachedWithin(ctx, patience, jobs, kubeflow.JobRunning); err != nil {
				return nil, err
			}
			return map[string]report.Value{
				name: {Value: took.Seconds()},
				// An object that was created twice, or deleted and created again, arrived twice.
				name + "/extra":    {Value: float64(len(a.seen.Arrivals()) - m.objects())},
				name + "/restarts": {Value: float64(process.Restarts())},
			}, nil
		},
	}
}

const (
	// churnFor is how long jobs are replaced, and churnEvery after what time the next one is.
	churnFor, churnEvery = time.Minute, 500 * time.Millisecond
)

// churn has many jobs run, of which one after another is deleted and replaced by a new one of the same size.
func churn(jobs int) Case {
	name := func(figure string) string { return fmt.Sprintf("%s/%d", figure, jobs) }
	return Case{
		Results: []Result{
			{name("churn") + "/p50", "s"},
			{name("churn") + "/p99", "s"},
			{name("churn-cpu"), "%"},
			{name("churn-requests"), "requests/job"},
			{name("churn-memory"), "MiB"},
		},
		PodsRun:  true,
		Nodes:    scaleNodes,
		Collects: true,
		Counts:   true,
		Relayed:  true,
		Alone:    true,
		Once:     true,
		measure: func(ctx context.Context, a *arena) (map[string]report.Value, error) {
			m := newMix(jobs)
			if err := a.submitMix(ctx, m); err != nil {
				return nil, err
			}
			if err := a.reachedWithin(ctx, followLimit, jobs, kubeflow.JobRunning); err != nil {
				return nil, err
			}
			if _, err := a.quiet(ctx); err != nil {
				return nil, err
			}
			before, err := a.consumed()
			if err != nil {
				return nil, err
			}
			start := time.Now()
			replaced, err := a.replaceJobs(ctx, m)
			if err != nil {
				return nil, err
			}
			after, err := a.consumed()
			if err != nil {
				return nil, err
			}
			a.requests = after.requests.Since(before.requests)
			p50, p99 := replaced.created(a.seen)
			return map[string]report.Value{
				name("churn") + "/p50": {Value: p50},
				name("churn") + "/p99": {Value: p99},
				name("churn-cpu"):      {Value: 100 * (after.cpu - before.cpu).Seconds() / time.Since(start).Seconds()},
				name("churn-requests"): {Value: float64(a.requests.Total()) / float64(len(replaced.workers))},
				name("churn-memory"):   {Value: float64(after.memory) / (1 << 20)},
			}, nil
		},
	}
}

// replaceJobs deletes a job and creates another one of the same size, again and again, and waits until all of them have their
// objects.
func (a *arena) replaceJobs(ctx context.Context, m *mix) (*mix, error) {
	replaced := &mix{name: "new"}
	for begun := time.Now(); time.Since(begun) < churnFor; {
		i := len(replaced.workers)
		old := &kubeflow.MPIJob{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: m.job(i % len(m.workers))}}
		if i < len(m.workers) {
			if err := a.admin.Delete(ctx, old, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
				return nil, fmt.Errorf("delete %s: %w", old.Name, err)
			}
		}
		workers := m.workers[i%len(m.workers)]
		replaced.workers = append(replaced.workers, workers)
		replaced.submitted = append(replaced.submitted, time.Now())
		if err := a.runner.Submit(ctx, a.placedJob(replaced.job(i), workers, i)); err != nil {
			return nil, err
		}
		if err := wait.For(ctx, churnEvery); err != nil {
			return nil, err
		}
	}
	return replaced, within(ctx, patience, func(ctx context.Context) error {
		for i, workers := range replaced.workers {
			if err := a.seen.Wait(ctx, replaced.job(i), workers); err != nil {
				return fmt.Errorf("wait for %s: %w", replaced.job(i), err)
			}
		}
		return nil
	})
}

// suspended has thousands of jobs wait that are suspended, restarts the operator, starts one more job, and lists all.
func suspended(jobs int) Case {
	name := func(figure string) string { return fmt.Sprintf("%s/%d-suspended", figure, jobs) }
	another, list := fmt.Sprintf("create/16-with-%d", jobs), fmt.Sprintf("list/%d", jobs)
	return Case{
		Results: []Result{
			{name("cpu"), "s"},
			{name("memory"), "MiB"},
			{name("requests"), "requests/job"},
			{name("idle-cpu"), "%"},
			{name("idle-requests"), "requests/s"},
			{name("restart"), "s"},
			{name("restart-writes"), "writes"},
			{another, "s"},
			{list, "s"},
		},
		Counts:  true,
		Relayed: true,
		Alone:   true,
		Once:    true,
		measure: func(ctx context.Context, a *arena) (map[string]report.Value, error) {
			values := map[string]report.Value{}
			set := func(figure string, value float64) { values[figure] = report.Value{Value: value} }
			before, err := a.consumed()
			if err != nil {
				return nil, err
			}
			if err := a.submitSuspended(ctx, jobs); err != nil {
				return nil, err
			}
			if _, err := a.quiet(ctx); err != nil {
				return nil, err
			}
			after, err := a.consumed()
			if err != nil {
				return nil, err
			}
			a.requests = after.requests.Since(before.requests)
			set(name("cpu"), (after.cpu - before.cpu).Seconds())
			set(name("memory"), float64(after.memory)/(1<<20))
			set(name("requests"), float64(a.requests.Total())/float64(jobs))
			if err := a.watchIdle(ctx, func(cpu, requests float64) {
				set(name("idle-cpu"), cpu)
				set(name("idle-requests"), requests)
			}); err != nil {
				return nil, err
			}
			took, err := a.restart(ctx)
			if err != nil {
				return nil, err
			}
			writes, _ := countWrites(took.requests)
			set(name("restart"), took.until.Seconds())
			set(name("restart-writes"), float64(writes))
			start := time.Now()
			if err := a.runner.Submit(ctx, a.job("another", 16)); err != nil {
				return nil, err
			}
			if err := within(ctx, patience, func(ctx context.Context) error { return a.seen.Wait(ctx, "another", 16) }); err != nil {
				return nil, err
			}
			set(another, time.Since(start).Seconds())
			values[list], err = a.list(ctx)
			return values, err
		},
	}
}

// submitSuspended creates jobs that are suspended, and waits until their status shows it.
func (a *arena) submitSuspended(ctx context.Context, jobs int) error {
	var submits errgroup.Group
	submits.SetLimit(16)
	for i := range jobs {
		job := a.job(fmt.Sprintf("job-%d", i), 8)
		job.Spec.RunPolicy.Suspend = new(true)
		submits.Go(func() error { return a.runner.Submit(ctx, job) })
	}
	if err := submits.Wait(); err != nil {
		return err
	}
	return a.reachedWithin(ctx, patience, jobs, kubeflow.JobSuspended)
}

// list measures the command that lists all jobs of the namespace, from start to end: that of our command line, or kubectl get for
// mpi-operator, which has none. It is the median of five.
func (a *arena) list(ctx context.Context) (report.Value, error) {
	kubeconfig, err := a.server.AdminKubeconfig()
	if err != nil {
		return report.Value{}, err
	}
	args := []string{filepath.Join(a.settings.Assets, "kubectl"), "get", "mpijobs", "-n", a.namespace}
	if a.who == contestant.Ours {
		args = []string{a.settings.CLI, "list", "-n", a.namespace}
	}
	var all []report.Value
	for range 5 {
		command := exec.CommandContext(ctx, args[0], args[1:]...)
		command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
		start := time.Now()
		if out, err := command.CombinedOutput(); err != nil {
			return report.Value{}, fmt.Errorf("%v: %w: %s", args, err, out)
		}
		all = append(all, report.Value{Value: time.Since(start).Seconds()})
	}
	return report.Value{Value: report.Summarize(all).Median}, nil
}
