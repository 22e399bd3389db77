// Package mpijob implements the kind MPIJob of kubeflow.org/v2beta1, the API of mpi-operator, with its Go types.
package mpijob

import (
	"context"
	"fmt"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/kinds"
	"opendatahub.io/mpijob/internal/mpi"
)

// Kind implements kinds.Kind and kinds.Validated for MPIJobs.
type Kind struct{}

var (
	_ kinds.Kind      = Kind{}
	_ kinds.Validated = Kind{}
)

// Name returns MPIJob.
func (Kind) Name() string { return kubeflow.Kind }

// New returns an empty MPIJob.
func (Kind) New() client.Object { return &kubeflow.MPIJob{} }

// NewList returns an empty list of MPIJobs.
func (Kind) NewList() client.ObjectList { return &kubeflow.MPIJobList{} }

// Runner returns nil: the operator runs MPIJobs.
func (Kind) Runner() *kinds.Runner { return nil }

// Load reads an MPIJob. It returns nil if the MPIJob does not exist.
func (Kind) Load(ctx context.Context, from kinds.Readers, key types.NamespacedName) (kinds.Job, error) {
	var object kubeflow.MPIJob
	if err := from.Cached.Get(ctx, key, &object); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("read MPIJob %s: %w", key, err)
	}
	return job{&object}, nil
}

// job implements kinds.Job. The operator creates all objects of an MPIJob, so that none are read with it.
type job struct{ object *kubeflow.MPIJob }

func (j job) Object() client.Object { return j.object }

func (j job) Convert() (mpi.Job, field.ErrorList) {
	converted, errs := Kind{}.Convert(j.object)
	return converted, append(errs, mpi.Validate(converted)...)
}

func (job) Observe(seen jobstate.Observed) jobstate.Observed { return seen }

func (job) Judge(converted mpi.Job, seen jobstate.Observed) jobstate.Outcome {
	return jobstate.Judge(converted, seen)
}

func (j job) Status(out jobstate.Outcome, now time.Time) (client.Object, []kinds.Event) {
	return status(j.object, out, now)
}
