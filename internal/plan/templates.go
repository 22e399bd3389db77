package plan

import (
	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/mpi"
)

// Templates returns the pod templates of a job with everything that the operator adds. Workers only differ in names
// and labels. A job with only a launcher has no worker template. To the pods of a job that another controller runs, the operator
// adds nothing that takes resources.
func Templates(job mpi.Job, settings Settings) (launcher, workers corev1.PodTemplateSpec) {
	if job.External {
		return job.Launcher.Template, job.Workers.Template
	}
	if settings.AgentImage == "" {
		job.Launch = mpi.LaunchSSHD
	}
	if job.Workers.Count > 0 {
		pod := worker(job, 0, settings)
		workers = corev1.PodTemplateSpec{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec}
	}
	return launcherTemplate(job, settings), workers
}
