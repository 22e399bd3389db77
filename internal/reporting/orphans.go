package reporting

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/report"
)

// jobsPerPage is how many jobs are read at once.
const jobsPerPage = 500

// closeOrphansOnce closes the reports of jobs that were deleted while no replica led: no watch reports these deletions. Finished
// jobs whose pods still held resources are among them.
func (r *Reporter) closeOrphansOnce(ctx context.Context, live client.Reader) error {
	if err := r.closeOrphans(ctx, live); err != nil && ctx.Err() == nil {
		log.FromContext(ctx).Error(err, "reports of jobs that were deleted meanwhile are not closed; the next leader tries again")
	}
	return nil
}

func (r *Reporter) closeOrphans(ctx context.Context, live client.Reader) error {
	// Reports are read before jobs, so that the job of each is found unless it was deleted.
	var reports v1alpha1.JobReportList
	if err := r.client.List(ctx, &reports, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list reports: %w", err)
	}
	open := map[schema.GroupVersionKind][]v1alpha1.JobReport{}
	for _, item := range reports.Items {
		if item.Status.CompletionTime == nil || report.Holds(&item) {
			kind := schema.FromAPIVersionAndKind(item.Spec.JobRef.APIVersion, item.Spec.JobRef.Kind)
			open[kind] = append(open[kind], item)
		}
	}
	for kind, items := range open {
		exist, err := jobsOf(ctx, live, kind)
		switch {
		case meta.IsNoMatchError(err):
			continue
		case err != nil:
			return err
		}
		for i := range items {
			ref := items[i].Spec.JobRef
			key := types.NamespacedName{Namespace: items[i].Namespace, Name: ref.Name}
			if exist[key] == ref.UID {
				continue
			}
			if err := r.Close(ctx, ref.Kind, key, exist[key]); err != nil {
				return err
			}
		}
	}
	return nil
}

// jobsOf returns the UIDs of all jobs of a kind, or of those that options select.
func jobsOf(ctx context.Context, live client.Reader, kind schema.GroupVersionKind, options ...client.ListOption) (map[types.NamespacedName]types.UID, error) {
	found := map[types.NamespacedName]types.UID{}
	list := &metav1.PartialObjectMetadataList{}
	for {
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := live.List(ctx, list, append(options, client.Limit(jobsPerPage), client.Continue(list.GetContinue()))...); err != nil {
			return nil, fmt.Errorf("list %ss: %w", kind.Kind, err)
		}
		for i := range list.Items {
			found[client.ObjectKeyFromObject(&list.Items[i])] = list.Items[i].UID
		}
		if list.GetContinue() == "" {
			return found, nil
		}
	}
}
