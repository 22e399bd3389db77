package cases

import (
	"context"
	"fmt"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/hack/bench/nodes"
	"opendatahub.io/mpijob/hack/bench/report"
	"opendatahub.io/mpijob/hack/bench/wait"
)

// Gang are the cases of the suite "gang": what it costs to place all pods of a job together.
func Gang() []Case { return []Case{bound(8), bound(64), bound(256), roomAppears(64)} }

// bound measures from a job's creation until all of its pods have a node.
func bound(workers int) Case {
	name := fmt.Sprintf("bound/%d", workers)
	return Case{
		Results: []Result{{name, "s"}},
		PodsRun: true,
		Gangs:   true,
		measure: func(ctx context.Context, a *arena) (map[string]report.Value, error) {
			job := a.running("job", workers, "100m")
			start := time.Now()
			if err := a.runner.Submit(ctx, job); err != nil {
				return nil, err
			}
			err := a.placed(ctx, job, workers+1)
			return map[string]report.Value{name: {Value: time.Since(start).Seconds()}}, err
		},
	}
}

// roomAppears measures from when a job that holds what another one needs is deleted until all pods of the other have a
// node.
func roomAppears(workers int) Case {
	name := fmt.Sprintf("room/%d", workers)
	return Case{
		Results: []Result{{name, "s"}},
		PodsRun: true,
		Gangs:   true,
		measure: func(ctx context.Context, a *arena) (map[string]report.Value, error) {
			// 65 pods of 6 CPUs are more than half of ten nodes of 64, but fit alone.
			holds, waits := a.running("holds", workers, "6"), a.running("waits", workers, "6")
			if err := a.runner.Submit(ctx, holds); err != nil {
				return nil, err
			}
			if err := a.placed(ctx, holds, workers+1); err != nil {
				return nil, err
			}
			if err := a.runner.Submit(ctx, waits); err != nil {
				return nil, err
			}
			if err := wait.For(ctx, 10*time.Second); err != nil {
				return nil, err
			}
			start := time.Now()
			if err := a.admin.Delete(ctx, holds); err != nil {
				return nil, err
			}
			if err := a.admin.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(a.namespace), client.MatchingLabels{"training.kubeflow.org/job-name": holds.Name}, client.GracePeriodSeconds(0)); err != nil {
				return nil, err
			}
			err := a.placed(ctx, waits, workers+1)
			return map[string]report.Value{name: {Value: time.Since(start).Seconds()}}, err
		},
	}
}

// running is a job whose pods ask for so many CPUs, and run until they are deleted.
func (a *arena) running(name string, workers int, cpu string) *kubeflow.MPIJob {
	job := a.job(name, workers)
	for role, spec := range job.Spec.MPIReplicaSpecs {
		spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
		if role == kubeflow.MPIReplicaTypeLauncher {
			spec.Template.Labels = map[string]string{nodes.RunsOn: ""}
		}
	}
	return job
}

// placed waits until so many pods of a job have a node.
func (a *arena) placed(ctx context.Context, job *kubeflow.MPIJob, pods int) error {
	have := 0
	err := within(ctx, patience, func(ctx context.Context) error {
		for {
			var list corev1.PodList
			if err := a.admin.List(ctx, &list, client.InNamespace(a.namespace), client.MatchingLabels{"training.kubeflow.org/job-name": job.Name}); err != nil {
				return err
			}
			have = 0
			for i := range list.Items {
				if list.Items[i].Spec.NodeName != "" {
					have++
				}
			}
			if have >= pods {
				return nil
			}
			if err := wait.For(ctx, 20*time.Millisecond); err != nil {
				return err
			}
		}
	})
	if err != nil {
		return fmt.Errorf("%d of %d pods of %s have a node: %w", have, pods, job.Name, err)
	}
	return nil
}
