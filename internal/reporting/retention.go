package reporting

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"opendatahub.io/mpijob/api/v1alpha1"
)

// keepFailed is how long the report of a failed job is kept at least.
const keepFailed = 24 * time.Hour

// isExpired reports whether a job has ended so long ago that no report of it is kept.
func (r *Reporter) isExpired(end time.Time, failed bool) bool {
	keep := r.retention
	if failed {
		keep = max(keep, keepFailed)
	}
	return r.retention > 0 && r.clock.Since(end) >= keep
}

// deleteExpiredPeriodically deletes old reports again and again, until the context ends.
func (r *Reporter) deleteExpiredPeriodically(ctx context.Context) error {
	if r.retention <= 0 {
		return nil
	}
	ticker := time.NewTicker(min(max(r.retention/24, time.Second), time.Hour))
	defer ticker.Stop()
	for {
		if err := r.deleteExpired(ctx); err != nil && ctx.Err() == nil {
			log.Log.Error(err, "old reports are not deleted; this is tried again later")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// deleteExpired deletes the reports whose time is over.
func (r *Reporter) deleteExpired(ctx context.Context) error {
	var list v1alpha1.JobReportList
	if err := r.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list reports: %w", err)
	}
	expired := map[string][]*v1alpha1.JobReport{}
	for i := range list.Items {
		item := &list.Items[i]
		if item.Status.CompletionTime != nil && r.isExpired(item.Status.CompletionTime.Time, item.Status.Phase == v1alpha1.PhaseFailed) {
			expired[item.Namespace] = append(expired[item.Namespace], item)
		}
	}
	// A namespace whose ledger cannot be written does not stop the others.
	var errs []error
	for _, namespace := range slices.Sorted(maps.Keys(expired)) {
		errs = append(errs, r.ledger.countBefore(ctx, expired[namespace], func(item *v1alpha1.JobReport) error { return deleteReport(ctx, r.client, item) }))
	}
	return errors.Join(errs...)
}

// deleteReport deletes a report unless another one has its name by now.
func deleteReport(ctx context.Context, c client.Client, item *v1alpha1.JobReport) error {
	doomed := &v1alpha1.JobReport{}
	doomed.Namespace, doomed.Name = item.Namespace, item.Name
	err := c.Delete(ctx, doomed, client.Preconditions{UID: &item.UID})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete report %s/%s: %w", item.Namespace, item.Name, err)
	}
	return nil
}
