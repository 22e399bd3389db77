// Package cases knows what is measured, and how the contestants take turns.
package cases

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/hack/bench/apiserver"
	"opendatahub.io/mpijob/hack/bench/report"
	"opendatahub.io/mpijob/hack/bench/wait"
)

// Result is the name and the unit of one figure.
type Result struct{ Name, Unit string }

// Case is one thing that contestants do, and the figures it yields.
type Case struct {
	// Results are the figures; a run may lack some for a contestant that has none.
	Results []Result
	// PodsRun says that pods must run, and not only exist.
	PodsRun bool
	// Counts says that requests are counted.
	Counts bool
	// Gangs says that Kubernetes' own scheduler places the pods of a PodGroup together; it goes with PodsRun.
	Gangs bool
	// Nodes is how many nodes there are, 0 being nodes.Count; it goes with PodsRun, as does Collects: Kubernetes' own garbage
	// collector deletes the objects of deleted jobs.
	Nodes    int
	Collects bool
	// Relayed has contestants reach the API server through a relay, which counts bytes and can cut them off.
	Relayed bool
	// Alone runs our operator without leader election: on a machine with other load it may not renew its lease of 4 s in time.
	Alone bool
	// Queued is set if there is Kueue, or the package kueue in its place.
	Queued bool
	// Often is how many runs are made for each that is asked for, 0 being one: what takes milliseconds varies
	// more from run to run.
	Often int
	// OperatorsOnly leaves out the floor, which takes one job after another.
	OperatorsOnly bool
	// Once has every contestant make one run, on an API server of its own that goes with what the run made: removing
	// thousands of pods takes as long as making them.
	Once bool

	measure func(context.Context, *arena) (map[string]report.Value, error)
}

// name is that of the first result; it stands for the case in progress lines and file names.
func (c Case) name() string { return c.Results[0].Name }

// MPIJob are the cases of the suite "mpijob", in the order in which they are run.
func MPIJob() []Case {
	var all []Case
	for _, workers := range []int{1, 16, 64, 200, 1000} {
		all = append(all, create(workers))
	}
	return append(all, steps(1), idleSmall(), behindBig("behind-big", 0), behindBig("behind-big/1s", time.Second), burst(100, 64), requests(64))
}

// Smallest is the one case that shows that the bench works.
func Smallest() []Case { return []Case{create(1)} }

// Matching are the cases of which a result's name matches.
func Matching(all []Case, names *regexp.Regexp) []Case {
	return slices.DeleteFunc(slices.Clone(all), func(c Case) bool {
		return !slices.ContainsFunc(c.Results, func(r Result) bool { return names.MatchString(r.Name) })
	})
}

// create measures from the creation of an MPIJob until its launcher Job and all its worker pods exist.
func create(workers int) Case {
	name := fmt.Sprintf("create/%d", workers)
	often := 1
	if workers < 64 {
		often = 3
	}
	return Case{
		Results: []Result{{name, "s"}},
		Often:   often,
		measure: func(ctx context.Context, a *arena) (map[string]report.Value, error) {
			start := time.Now()
			if err := a.runner.Submit(ctx, a.job("job", workers)); err != nil {
				return nil, err
			}
			value, _, err := a.await(ctx, start, workers+1)
			return map[string]report.Value{name: value}, err
		},
	}
}

// steps measures when the steps of a job's creation are done, from the request that creates it on, by the API server's clock: where
// the time of create/N goes.
func steps(workers int) Case {
	name := func(step string) string { return fmt.Sprintf("steps/%d/%s", workers, step) }
	return Case{
		Results: []Result{
			{name("1-created"), "s"}, {name("2-first-write"), "s"}, {name("3-base-written"), "s"}, {name("4-pods-sent"), "s"}, {name("5-pods-written"), "s"}, {name("6-pods-seen"), "s"},
		},
		Often:         3,
		Counts:        true,
		OperatorsOnly: true,
		measure: func(ctx context.Context, a *arena) (map[string]report.Value, error) {
			start := time.Now()
			if err := a.runner.Submit(ctx, a.job("job", workers)); err != nil {
				return nil, err
			}
			created := time.Now()
			if err := a.seen.WaitForAll(ctx, workers+1); err != nil {
				return nil, err
			}
			seen := time.Now()
			var err error
			if a.requests, err = a.quiet(ctx); err != nil {
				return nil, err
			}
			requests, err := a.server.Answered(a.runner.User())
			if err != nil {
				return nil, err
			}
			first, base, sent, written, err := stepsOf(requests, a.namespace, start)
			if err != nil {
				return nil, err
			}
			values := map[string]report.Value{}
			for step, at := range map[string]time.Time{"1-created": created, "2-first-write": first, "3-base-written": base, "4-pods-sent": sent, "5-pods-written": written, "6-pods-seen": seen} {
				values[name(step)] = report.Value{Value: at.Sub(start).Seconds()}
			}
			return values, nil
		},
	}
}

// stepsOf returns when an operator sent its first write of a job, when the last object that pods need was written, when it sent the
// first pod or launcher, and when the last of these was written.
func stepsOf(requests []apiserver.Answered, namespace string, start time.Time) (first, base, sent, written time.Time, err error) {
	for _, r := range requests {
		if r.Namespace != namespace || r.Received.Before(start) {
			continue
		}
		switch r.What {
		case "create services", "create configmaps", "create secrets", "create networkpolicies":
			first, base = earlier(first, r.Received), later(base, r.At)
		case "create pods", "create jobs":
			sent, written = earlier(sent, r.Received), later(written, r.At)
		}
	}
	if first.IsZero() || sent.IsZero() {
		return first, base, sent, written, fmt.Errorf("the audit log has no creations in %s", namespace)
	}
	return first, base, sent, written, nil
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// idleSmall is the yardstick for behindBig: the same small job, when the operator has nothing else to do.
func idleSmall() Case {
	return Case{
		Results: []Result{{"idle-small", "s"}},
		Often:   3,
		measure: func(ctx context.Context, a *arena) (map[string]report.Value, error) {
			took, err := a.small(ctx)
			return map[string]report.Value{"idle-small": took}, err
		},
	}
}

// behindBig measures a job of 1 worker, submitted when the API server has taken one of 500 workers, or a while
// after that.
func behindBig(name string, after time.Duration) Case {
	often := 3
	if after > 0 {
		often = 1
	}
	return Case{
		Results:       []Result{{name, "s"}},
		Often:         often,
		OperatorsOnly: true,
		measure: func(ctx context.Context, a *arena) (map[string]report.Value, error) {
			if err := a.runner.Submit(ctx, a.job("big", 500)); err != nil {
				return nil, err
			}
			if err := wait.For(ctx, after); err != nil {
				return nil, err
			}
			took, err := a.small(ctx)
			return map[string]report.Value{name: took}, err
		},
	}
}

func (a *arena) small(ctx context.Context) (report.Value, error) {
	start := time.Now()
	if err := a.runner.Submit(ctx, a.job("small", 1)); err != nil {
		return report.Value{}, err
	}
	err := a.seen.Wait(ctx, "small", 1)
	return report.Value{Value: time.Since(start).Seconds()}, err
}

// afterwards is how long an operator that has made all objects may go on working on them before its CPU time
// is read.
const afterwards = 3 * time.Second

// burst submits many jobs at once, and measures until all have all their objects, and what that costs.
func burst(jobs, workers int) Case {
	name := fmt.Sprintf("burst/%dx%d", jobs, workers)
	return Case{
		Results: []Result{{name, "s"}, {"cpu/burst", "s"}, {"memory/burst", "MiB"}},
		measure: func(ctx context.Context, a *arena) (map[string]report.Value, error) {
			before, measured, err := a.runner.Usage()
			if err != nil {
				return nil, err
			}
			start := time.Now()
			var submits errgroup.Group
			submits.SetLimit(16)
			for i := range jobs {
				submits.Go(func() error { return a.runner.Submit(ctx, a.job(fmt.Sprintf("job-%d", i), workers)) })
			}
			if err := submits.Wait(); err != nil {
				return nil, err
			}
			took, share, err := a.await(ctx, start, jobs*(workers+1))
			if err != nil {
				return nil, err
			}
			values := map[string]report.Value{name: took}
			if !measured {
				return values, nil
			}
			if !took.Extrapolated {
				if err := wait.For(ctx, afterwards); err != nil {
					return nil, err
				}
			}
			after, _, err := a.runner.Usage()
			if err != nil {
				return nil, err
			}
			values["cpu/burst"] = report.Value{Value: (after.CPU - before.CPU).Seconds() / share, Extrapolated: took.Extrapolated}
			values["memory/burst"] = report.Value{Value: float64(after.PeakMemory) / (1 << 20), AtLeast: took.Extrapolated}
			return values, nil
		},
	}
}

// requests counts what an operator asks of the API server for one job, from its creation until after its end.
func requests(workers int) Case {
	name := fmt.Sprintf("requests/%d", workers)
	return Case{
		Results: []Result{{name, "requests"}},
		PodsRun: true,
		Counts:  true,
		measure: func(ctx context.Context, a *arena) (map[string]report.Value, error) {
			before, err := a.server.Requests(a.runner.User())
			if err != nil {
				return nil, err
			}
			job := a.job("job", workers)
			if err := a.runner.Submit(ctx, job); err != nil {
				return nil, err
			}
			if err := a.seen.Wait(ctx, job.Name, workers); err != nil {
				return nil, err
			}
			if a.runner.RunsJobs() {
				if err := a.succeeded(ctx, job); err != nil {
					return nil, err
				}
			}
			after, err := a.quiet(ctx)
			if err != nil {
				return nil, err
			}
			a.requests = after.Since(before)
			return map[string]report.Value{name: {Value: float64(a.requests.Total())}}, nil
		},
	}
}

// succeeded waits until a job's status has the condition Succeeded.
func (a *arena) succeeded(ctx context.Context, job *kubeflow.MPIJob) error {
	for {
		var now kubeflow.MPIJob
		if err := a.admin.Get(ctx, client.ObjectKeyFromObject(job), &now); err != nil {
			return fmt.Errorf("wait for MPIJob %s to succeed: %w", job.Name, err)
		}
		for _, c := range now.Status.Conditions {
			if c.Type == kubeflow.JobSucceeded && c.Status == "True" {
				return nil
			}
		}
		if err := wait.For(ctx, 100*time.Millisecond); err != nil {
			return fmt.Errorf("wait for MPIJob %s to succeed: %w", job.Name, err)
		}
	}
}

// job is an MPIJob as small as they come, so that the operators are measured and not the user's template.
func (a *arena) job(name string, workers int) *kubeflow.MPIJob {
	count, one := int32(workers), int32(1)
	return &kubeflow.MPIJob{
		TypeMeta:   metav1.TypeMeta{APIVersion: kubeflow.SchemeGroupVersion.String(), Kind: kubeflow.Kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: name},
		Spec: kubeflow.MPIJobSpec{
			MPIReplicaSpecs: map[kubeflow.MPIReplicaType]*kubeflow.ReplicaSpec{
				kubeflow.MPIReplicaTypeLauncher: {Replicas: &one, Template: pod("mpirun", "/bin/program")},
				kubeflow.MPIReplicaTypeWorker:   {Replicas: &count, Template: pod()},
			},
		},
	}
}
