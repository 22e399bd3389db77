package implementation

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/mpi"
)

// unbound returns those of the variables that keep an MPI from binding ranks to cores which the launcher's container needs: the daemons
// of all pods of a node would bind to the same cores (docs/decisions/0028-ranks-are-not-bound.md). It needs none if the agent runs the
// command, since the agent sets them where neither the image, the command nor a file asks for binding, or if the container's own
// variables do.
func unbound(job mpi.Job, variables ...corev1.EnvVar) []corev1.EnvVar {
	containers := job.Launcher.Template.Spec.Containers
	if len(containers) == 0 || job.UsesAgent() && len(containers[0].Command) > 0 ||
		slices.ContainsFunc(containers[0].Env, func(v corev1.EnvVar) bool { return agentapi.AsksForBinding(v.Name, v.Value) }) {
		return nil
	}
	return variables
}
