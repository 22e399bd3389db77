// Package mpijob is the kind MPIJob of kubeflow.org/v2beta1, mpi-operator's API, on its own Go types.
package mpijob

import (
	"context"
	"fmt"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/kinds"
)

// Kind implements kinds.Kind for MPIJobs.
type Kind struct{}

var _ kinds.Kind = Kind{}

// Name is MPIJob.
func (Kind) Name() string { return kubeflow.Kind }

// New returns an empty MPIJob.
func (Kind) New() client.Object { return &kubeflow.MPIJob{} }

// Load reads an MPIJob; nil where there is none.
func (Kind) Load(ctx context.Context, from client.Reader, key types.NamespacedName) (client.Object, error) {
	var object kubeflow.MPIJob
	if err := from.Get(ctx, key, &object); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("read MPIJob %s: %w", key, err)
	}
	return &object, nil
}
