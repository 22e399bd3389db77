package cluster

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
)

// lacksPrograms reports whether a container of a job ended because its program was not found: by the exit code of shells and of the
// agent, or by the container runtime.
func lacksPrograms(seen jobstate.Observed) bool {
	const notFound, notStarted = 127, 128
	for pod := range podsIn(seen) {
		for _, c := range pod.Status.ContainerStatuses {
			for _, ended := range []*corev1.ContainerStateTerminated{c.State.Terminated, c.LastTerminationState.Terminated} {
				if ended != nil && (ended.ExitCode == notFound || ended.ExitCode == notStarted) {
					return true
				}
			}
			if c.State.Waiting != nil && c.State.Waiting.Reason == "RunContainerError" {
				return true
			}
		}
	}
	return false
}

// connectionsWithPath returns the data connections of a job whose Secrets set PATH.
func (g *Gatherer) connectionsWithPath(ctx context.Context, job mpi.Job) (names []string) {
	for _, name := range job.Connections {
		var secret corev1.Secret
		if err := g.live.Get(ctx, client.ObjectKey{Namespace: job.Namespace, Name: name}, &secret); err != nil {
			continue
		}
		if _, sets := secret.Data["PATH"]; sets {
			names = append(names, name)
		}
	}
	return names
}
