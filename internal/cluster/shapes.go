package cluster

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/plan"
	"opendatahub.io/mpijob/internal/quota"
)

// Completed are a launcher's pod and a worker's of a job as the API server would keep them, which it is asked without
// making any: with the requests, tolerations, overhead and priority that it adds. Where it takes none now, they are as
// they are written, with what LimitRanges add. One that the job does not have is nil.
func (c *Cluster) Completed(ctx context.Context, job mpi.Job, settings plan.Settings) (launcher, worker *corev1.Pod) {
	ctx, cancel := context.WithTimeout(ctx, preflightFor)
	defer cancel()
	launchers, workers := plan.Templates(job, settings)
	var both sync.WaitGroup
	complete := func(into **corev1.Pod, role mpi.Role, template corev1.PodTemplateSpec) {
		// The job's own pods may be there already.
		template.Name = ""
		_, *into = c.try(ctx, job, newProbe(role, 1, template, field.NewPath(string(role))))
		if *into != nil {
			return
		}
		ranges, err := limitRanges(ctx, c.client, job.Namespace)
		if err != nil {
			ranges = nil
		}
		*into = quota.WithDefaults(template, ranges)
	}
	if !job.Launcher.None {
		both.Go(func() { complete(&launcher, mpi.RoleLauncher, launchers) })
	}
	if job.Workers.Count > 0 {
		both.Go(func() { complete(&worker, mpi.RoleWorker, workers) })
	}
	both.Wait()
	return launcher, worker
}
