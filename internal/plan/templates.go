package plan

import (
	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/mpi"
)

// Templates are what the job's pods are made of, with all that is added to what its user wrote. Workers differ in their
// names and labels alone; a job of its launcher alone has no second template.
func Templates(job mpi.Job, settings Settings) (launcher, workers corev1.PodTemplateSpec) {
	if settings.AgentImage == "" {
		job.Launch = mpi.LaunchSSHD
	}
	if job.Workers.Count > 0 {
		pod := worker(job, 0, settings)
		workers = corev1.PodTemplateSpec{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec}
	}
	return launcherTemplate(job, settings), workers
}
