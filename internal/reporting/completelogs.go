package reporting

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
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
func (r *Reporter) addKeeper(m manager.Manager, options Options, records cache.Informer) error {
	if !options.LogBucket.IsOn() {
		return nil
	}
	bucket, err := logstore.NewBucket(options.LogBucket)
	if err != nil {
		return err //nolint:wrapcheck // it names the bucket
	}
	pods, err := corev1client.NewForConfig(logConfig(m.GetConfig()))
	if err != nil {
		return fmt.Errorf("set up reading complete logs: %w", err)
	}
	r.keeper = logstore.New(options.LogBucket, bucket, pods, options.Masker, keptReports{r.client}, clock.RealClock{})
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

// logConfig returns a configuration for reading many logs at once: the API server sends little in advance of each. A connection has one
// limit for all of its requests, so that these get one of their own.
func logConfig(of *rest.Config) *rest.Config {
	config := rest.CopyConfig(of)
	// Clients with equal settings share connections.
	config.NextProtos = []string{"h2", "http/1.1"}
	config.Wrap(func(transport http.RoundTripper) http.RoundTripper {
		inner := transport
		for wrapper, is := inner.(utilnet.RoundTripperWrapper); is; wrapper, is = inner.(utilnet.RoundTripperWrapper) {
			inner = wrapper.WrappedRoundTripper()
		}
		if own, is := inner.(*http.Transport); is {
			own.HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: logstore.ReceiveWindow}
		}
		return transport
	})
	return config
}

// keptReports are the reports of the jobs whose complete logs are kept.
type keptReports struct{ client client.Client }

// Publish writes to the report of a job where its complete logs are.
func (r keptReports) Publish(ctx context.Context, namespace, name string, job types.UID, kept v1alpha1.CompleteLogs) error {
	report := &v1alpha1.JobReport{}
	report.Namespace, report.Name = namespace, name
	// Fields of an earlier publication that are unset now are removed.
	fields := map[string]any{"index": nil, "expires": nil, "lines": nil, "size": nil, "pods": nil, "podsCut": nil, "podsUnread": nil, "message": nil}
	text, err := json.Marshal(kept)
	if err == nil {
		err = json.Unmarshal(text, &fields)
	}
	if kept == (v1alpha1.CompleteLogs{}) {
		fields = nil
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

// End returns when a job has ended by its reports in a namespace, zero if it has not, and whether it has a report.
func (r keptReports) End(ctx context.Context, namespace string, job types.UID) (at time.Time, hasReport bool, err error) {
	var list v1alpha1.JobReportList
	if err := r.client.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{reportsByUID: string(job)}, client.UnsafeDisableDeepCopy); err != nil {
		return time.Time{}, false, fmt.Errorf("list reports of the job %s in %s: %w", job, namespace, err)
	}
	for _, report := range list.Items {
		end := report.Status.CompletionTime
		if end == nil {
			return time.Time{}, true, nil
		}
		if hasReport = true; end.After(at) {
			at = end.Time
		}
	}
	return at, hasReport, nil
}
