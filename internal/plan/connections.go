package plan

import (
	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/mpi"
)

// addConnections gives a container the keys of the job's data connections as variables. They come first: what users
// take from elsewhere under the same names stands.
func addConnections(job mpi.Job, container *corev1.Container) {
	container.EnvFrom = append(mpi.ConnectionSources(job.Connections), container.EnvFrom...)
}
