package reporting

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	served "sigs.k8s.io/controller-runtime/pkg/metrics"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/logstore"
)

// addKeeper keeps complete logs if there is a bucket for them, while this replica leads.
func (r *Reporter) addKeeper(m manager.Manager, pods logstore.Pods, options Options, records cache.Informer) error {
	if !options.LogBucket.IsOn() {
		return nil
	}
	bucket, err := logstore.NewBucket(options.LogBucket)
	if err != nil {
		return err //nolint:wrapcheck // it names the bucket
	}
	r.keeper = logstore.New(options.LogBucket, bucket, pods, options.Masker, r.publishLogs, clock.RealClock{})
	see := func(object any) {
		if report, is := object.(*v1alpha1.JobReport); is {
			r.keeper.SeeReport(report)
		}
	}
	if _, err := records.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: see, UpdateFunc: func(_, now any) { see(now) }}); err != nil {
		return fmt.Errorf("watch JobReports: %w", err)
	}
	run := func(ctx context.Context) error {
		var reports v1alpha1.JobReportList
		if err := r.client.List(ctx, &reports, client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("list reports: %w", err)
		}
		if options.ServeMetrics {
			if err := served.Registry.Register(r.keeper); err != nil {
				return fmt.Errorf("register metrics of the log bucket: %w", err)
			}
			defer served.Registry.Unregister(r.keeper)
		}
		return r.keeper.Run(ctx, reports.Items) //nolint:wrapcheck // it is not wrapped by another package
	}
	if err := m.Add(manager.RunnableFunc(run)); err != nil {
		return fmt.Errorf("add keeping of complete logs: %w", err)
	}
	return nil
}

// watchKeptPods has the logs of pods be read before the pods are gone.
func (r *Reporter) watchKeptPods(ctx context.Context, of cache.Cache) error {
	if r.keeper == nil {
		return nil
	}
	informer, err := of.GetInformer(ctx, &corev1.Pod{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch pods: %w", err)
	}
	see := func(object any, isGone bool) {
		if last, is := object.(toolscache.DeletedFinalStateUnknown); is {
			object = last.Obj
		}
		if pod, is := object.(*corev1.Pod); is {
			r.keeper.SeePod(pod, isGone)
		}
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		UpdateFunc: func(_, now any) { see(now, false) },
		DeleteFunc: func(last any) { see(last, true) },
	})
	if err != nil {
		return fmt.Errorf("watch pods: %w", err)
	}
	return nil
}

// publishLogs writes to the report of a job where its complete logs are.
func (r *Reporter) publishLogs(ctx context.Context, namespace, name string, job types.UID, kept v1alpha1.CompleteLogs) error {
	report := &v1alpha1.JobReport{}
	report.Namespace, report.Name = namespace, name
	// Fields of an earlier publication that are unset now are removed.
	fields := map[string]any{"index": nil, "expires": nil, "lines": nil, "size": nil, "pods": nil, "podsCut": nil, "podsUnread": nil, "message": nil}
	text, err := json.Marshal(kept)
	if err == nil {
		err = json.Unmarshal(text, &fields)
	}
	var patch []byte
	if err == nil {
		patch, err = json.Marshal(map[string]any{"spec": map[string]any{"jobRef": map[string]any{"uid": job}}, "status": map[string]any{"completeLogs": fields}})
	}
	if err == nil {
		err = r.client.Patch(ctx, report, client.RawPatch(types.MergePatchType, patch))
	}
	// A report of another job, which a user has given the name of this one, is invalid with this job's UID.
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsInvalid(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return nil
	}
	return fmt.Errorf("write where the complete logs of report %s/%s are: %w", namespace, name, err)
}
