package plan

import (
	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/mpi"
)

// addConnections adds the keys of the job's data connections to a container's environment. They are the first
// entries, so that the user's own envFrom entries override them.
func addConnections(job mpi.Job, container *corev1.Container) {
	container.EnvFrom = append(mpi.ConnectionSources(job.Connections), container.EnvFrom...)
}
