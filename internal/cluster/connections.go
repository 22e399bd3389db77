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

// Connections returns what is known about the Secrets that a job lists as its connections, in order: the names of
// their keys. Values are dropped immediately. live reads without cache. Secrets that cannot be read are left out.
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
