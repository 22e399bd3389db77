package cluster

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/mpi"
)

// Connections reads what is known of the Secrets that a job names as its connections, in the job's order: the names of
// their keys, of which the values are dropped at once. Live reads past any cache. What cannot be read now is left out.
func Connections(ctx context.Context, live client.Reader, namespace string, names []string) []mpi.Connection {
	var found []mpi.Connection
	for _, name := range names {
		var secret corev1.Secret
		switch err := live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &secret); {
		case apierrors.IsNotFound(err):
			found = append(found, mpi.Connection{Name: name, Missing: true})
		case err == nil:
			found = append(found, mpi.Connection{Name: name, Keys: slices.Sorted(maps.Keys(secret.Data))})
		}
	}
	return found
}
