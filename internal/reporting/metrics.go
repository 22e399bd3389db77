package reporting

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	served "sigs.k8s.io/controller-runtime/pkg/metrics"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/metrics"
)

// newMetrics returns the metrics of jobs. They are served with the operator's others, if these are, while it leads: a
// replica that does not lead has none of jobs.
func newMetrics(m manager.Manager, serve bool) (*metrics.Metrics, error) {
	jobs := metrics.New(metrics.Sources{
		Records: func() []v1alpha1.JobReport { return cachedReports(m) },
		Quotas:  func() []metrics.Quota { return cachedQuotas(m) },
	}, clock.RealClock{})
	if !serve {
		return jobs, nil
	}
	register := func(ctx context.Context) error {
		if err := served.Registry.Register(jobs); err != nil {
			return fmt.Errorf("register metrics of jobs: %w", err)
		}
		<-ctx.Done()
		served.Registry.Unregister(jobs)
		return nil
	}
	if err := m.Add(manager.RunnableFunc(register)); err != nil {
		return nil, fmt.Errorf("add metrics of jobs: %w", err)
	}
	return jobs, nil
}

// cachedReports are all JobReports, to be read only: thousands of them are not copied for each scrape.
func cachedReports(m manager.Manager) []v1alpha1.JobReport {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	var list v1alpha1.JobReportList
	if err := m.GetCache().List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		log.Log.Error(err, "JobReports are not listed: /metrics has no numbers of running and queued jobs")
		return nil
	}
	return list.Items
}

// cachedQuotas returns how far the ResourceQuotas of all namespaces are used.
func cachedQuotas(m manager.Manager) []metrics.Quota {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	var list corev1.ResourceQuotaList
	if err := m.GetCache().List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		log.Log.Error(err, "ResourceQuotas are not listed: /metrics does not have their use")
		return nil
	}
	var quotas []metrics.Quota
	for i := range list.Items {
		quota := &list.Items[i]
		for resource, hard := range quota.Status.Hard {
			if limit := hard.AsApproximateFloat64(); limit > 0 {
				used := quota.Status.Used[resource]
				quotas = append(quotas, metrics.Quota{Namespace: quota.Namespace, Name: quota.Name, Resource: string(resource), Ratio: used.AsApproximateFloat64() / limit})
			}
		}
	}
	return quotas
}
