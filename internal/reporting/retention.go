package reporting

import (
	"context"
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
	for _, namespace := range slices.Sorted(maps.Keys(expired)) {
		if err := r.ledger.count(ctx, expired[namespace]); err != nil {
			return err
		}
		for _, item := range expired[namespace] {
			doomed := &v1alpha1.JobReport{}
			doomed.Namespace, doomed.Name = item.Namespace, item.Name
			err := r.client.Delete(ctx, doomed, client.Preconditions{UID: &item.UID})
			if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
				return fmt.Errorf("delete report %s/%s: %w", item.Namespace, item.Name, err)
			}
		}
	}
	return nil
}
