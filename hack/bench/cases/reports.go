package cases

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/hack/bench/apiserver"
	"opendatahub.io/mpijob/hack/bench/nodes"
	"opendatahub.io/mpijob/hack/bench/report"
	"opendatahub.io/mpijob/hack/bench/wait"
)

// Report are the cases of the suite "report": what it costs to keep a record of each job.
func Report() []Case {
	return []Case{
		records("1000-finished", 1000, 2, kubeflow.JobSucceeded),
		records("100x64-running", 100, 64, kubeflow.JobRunning),
	}
}

// patience is how long jobs may take to get so far on fake nodes.
const patience = 10 * time.Minute

// records submits many jobs and waits until all have got so far and the operator is quiet. It yields the operator's
// writes for each job, those of them that are of JobReports, the reports' sizes, and the operator's memory.
func records(name string, jobs, workers int, until kubeflow.JobConditionType) Case {
	writes, reportWrites := "writes/"+name, "report-writes/"+name
	median, largest := "bytes/"+name, "bytes-largest/"+name
	memory, heap := "memory/"+name, "heap/"+name
	return Case{
		Results: []Result{
			{memory, "MiB"}, {heap, "MiB"}, {writes, "writes/job"}, {reportWrites, "writes/job"}, {median, "bytes"}, {largest, "bytes"},
		},
		PodsRun: true,
		Counts:  true,
		Once:    true,
		measure: func(ctx context.Context, a *arena) (map[string]report.Value, error) {
			before, err := a.server.Requests(a.runner.User())
			if err != nil {
				return nil, err
			}
			if err := a.submitPlaced(ctx, jobs, workers, until == kubeflow.JobRunning); err != nil {
				return nil, err
			}
			if err := within(ctx, patience, func(ctx context.Context) error { return a.reached(ctx, jobs, until) }); err != nil {
				return nil, fmt.Errorf("wait for %d jobs to be %s: %w", jobs, until, err)
			}
			after, err := a.quiet(ctx)
			if err != nil {
				return nil, err
			}
			usage, _, err := a.runner.Usage()
			if err != nil {
				return nil, err
			}
			a.requests = after.Since(before)
			all, ofReports := countWrites(a.requests)
			values := map[string]report.Value{
				memory: {Value: float64(usage.PeakMemory) / (1 << 20)},
				heap:   {Value: float64(usage.LiveHeap) / (1 << 20)},
				writes: {Value: float64(all) / float64(jobs)},
			}
			sizes, err := reportSizes(ctx, a.server, a.namespace)
			if err != nil || len(sizes) == 0 {
				return values, err
			}
			if len(sizes) != jobs {
				return nil, fmt.Errorf("there are %d JobReports of %d jobs", len(sizes), jobs)
			}
			values[reportWrites] = report.Value{Value: float64(ofReports) / float64(jobs)}
			values[median] = report.Value{Value: float64(sizes[len(sizes)/2])}
			values[largest] = report.Value{Value: float64(sizes[len(sizes)-1])}
			return values, nil
		},
	}
}

// submitPlaced submits jobs whose pods have a node already: the scheduler would take longer than all the rest, and is
// not what is measured. Their launchers succeed after a while unless they run on.
func (a *arena) submitPlaced(ctx context.Context, jobs, workers int, runOn bool) error {
	var submits errgroup.Group
	submits.SetLimit(16)
	for i := range jobs {
		job := a.job(fmt.Sprintf("job-%d", i), workers)
		for role, spec := range job.Spec.MPIReplicaSpecs {
			spec.Template.Spec.NodeName = nodes.Name(i)
			if runOn && role == kubeflow.MPIReplicaTypeLauncher {
				spec.Template.Labels = map[string]string{nodes.RunsOn: ""}
			}
		}
		submits.Go(func() error { return a.runner.Submit(ctx, job) })
	}
	return submits.Wait()
}

// reachedWithin waits until so many jobs have had a condition, at most for a time.
func (a *arena) reachedWithin(ctx context.Context, limit time.Duration, jobs int, condition kubeflow.JobConditionType) error {
	if err := within(ctx, limit, func(ctx context.Context) error { return a.reached(ctx, jobs, condition) }); err != nil {
		return fmt.Errorf("wait until %d jobs are %s: %w", jobs, condition, err)
	}
	return nil
}

// reached waits until so many jobs have had a condition.
func (a *arena) reached(ctx context.Context, jobs int, condition kubeflow.JobConditionType) error {
	for {
		var list kubeflow.MPIJobList
		if err := a.admin.List(ctx, &list, client.InNamespace(a.namespace)); err != nil {
			return err
		}
		have := 0
		for i := range list.Items {
			if slices.ContainsFunc(list.Items[i].Status.Conditions, func(c kubeflow.JobCondition) bool { return c.Type == condition && c.Status == "True" }) {
				have++
			}
		}
		if have == jobs {
			return nil
		}
		if err := wait.For(ctx, 2*time.Second); err != nil {
			return fmt.Errorf("%d are: %w", have, err)
		}
	}
}

// countWrites counts requests that write, and those of them that write JobReports.
func countWrites(requests apiserver.Requests) (all, ofReports int) {
	for what, n := range requests {
		verb, resource, _ := strings.Cut(what, " ")
		if !slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, verb) {
			continue
		}
		all += n
		if resource == "jobreports" {
			ofReports += n
		}
	}
	return all, ofReports
}

// reportSizes are the bytes of JSON of a namespace's JobReports as the API server sends them, in ascending order; none
// where it has no JobReports.
func reportSizes(ctx context.Context, server *apiserver.Server, namespace string) ([]int, error) {
	config := server.Admin()
	config.GroupVersion, config.APIPath = new(jobReport.GroupVersion()), "/apis"
	config.NegotiatedSerializer = clientgoscheme.Codecs.WithoutConversion()
	reader, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("read JobReports: %w", err)
	}
	data, err := reader.Get().Namespace(namespace).Resource("jobreports").Do(ctx).Raw()
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read JobReports: %w", err)
	}
	var list struct {
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("read JobReports: %w", err)
	}
	sizes := make([]int, 0, len(list.Items))
	for _, item := range list.Items {
		sizes = append(sizes, len(item))
	}
	slices.Sort(sizes)
	return sizes, nil
}
