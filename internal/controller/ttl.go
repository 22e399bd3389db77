package controller

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
)

// expiresIn returns the time until the TTL of a finished job expires; nil if it never does.
func expiresIn(job mpi.Job, out jobstate.Outcome, now time.Time) *time.Duration {
	if out.Finish == nil || job.Lifecycle.TTL == nil {
		return nil
	}
	return new(out.Finish.At.Add(*job.Lifecycle.TTL).Sub(now))
}

// isExpired reports whether the job is to be deleted.
func (d decision) isExpired() bool { return d.expiresIn != nil && *d.expiresIn <= 0 }

// delete deletes a job with everything it owns.
func (r *reconciler) delete(ctx context.Context, g gathered) error {
	err := r.client.Delete(ctx, g.loaded.Object(), client.Preconditions{UID: new(g.job.UID)}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete expired %s %s: %w", g.job.Kind, g.job.Key(), err)
	}
	return nil
}
