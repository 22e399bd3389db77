package reporting

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/report"
)

// RecordDeletion records in a job's report who requested the job's deletion, since the job itself cannot be written any
// more. Any replica may do so, whether it leads or not; the report is read from the API server.
func (r *Reporter) RecordDeletion(ctx context.Context, live client.Reader, job client.Object, user string) error {
	// The API server waits as long as config/webhook specifies, and the user waits as long.
	const patience = 3 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	apiVersion, kind := job.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
	described := mpi.Job{APIVersion: apiVersion, Kind: kind, Namespace: job.GetNamespace(), Name: job.GetName(), UID: job.GetUID()}
	key := client.ObjectKey{Namespace: described.Namespace, Name: described.ReportName()}
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		var found v1alpha1.JobReport
		if err := live.Get(ctx, key, &found); err != nil {
			return err //nolint:wrapcheck // it is wrapped below; what may be tried again must be seen here
		}
		next, news := report.DeletionRequested(found, user, r.clock.Now())
		if !news {
			return nil
		}
		if err := r.client.Update(ctx, &next, client.DisableReadYourWritesConsistency); err != nil {
			return err //nolint:wrapcheck // as above
		}
		r.emitEvents(described, &found, next)
		return nil
	})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return fmt.Errorf("write report %s: %w", key, err)
	}
	return nil
}
