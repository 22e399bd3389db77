package cluster

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/quota"
)

const (
	// clusterQuotasTTL is how long the ClusterResourceQuotas are cached: all waiting jobs ask for the same ones.
	clusterQuotasTTL = 2 * time.Second
	// noClusterQuotasTTL is how long the operator assumes that a cluster without ClusterResourceQuotas still has none, or
	// that they cannot be read.
	noClusterQuotasTTL = 10 * time.Minute
	// clusterQuotasTimeout limits the request, for which all waiting jobs wait.
	clusterQuotasTimeout = time.Second
)

// clusterQuotas reads ClusterResourceQuotas. They are advice: if they cannot be read there are none.
type clusterQuotas struct {
	live  client.Reader
	clock clock.PassiveClock

	mu    sync.Mutex
	until time.Time
	list  []clusterQuota
}

// clusterQuota is a ClusterResourceQuota with the namespaces that it selects.
type clusterQuota struct {
	quota.Quota
	namespaces []string
}

// in returns the quotas that select a namespace, by name.
func (q *clusterQuotas) in(ctx context.Context, namespace string) []quota.Quota {
	q.mu.Lock()
	defer q.mu.Unlock()
	if now := q.clock.Now(); !now.Before(q.until) {
		list, err := listClusterQuotas(ctx, q.live)
		q.list, q.until = list, now.Add(clusterQuotasTTL)
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
			q.until = now.Add(noClusterQuotasTTL)
		}
	}
	var found []quota.Quota
	for _, one := range q.list {
		if slices.Contains(one.namespaces, namespace) {
			found = append(found, one.Quota)
		}
	}
	return found
}

func listClusterQuotas(ctx context.Context, from client.Reader) ([]clusterQuota, error) {
	ctx, cancel := context.WithTimeout(ctx, clusterQuotasTimeout)
	defer cancel()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(quota.ClusterGroupVersion.WithKind("ClusterResourceQuotaList"))
	if err := from.List(ctx, list); err != nil {
		return nil, err //nolint:wrapcheck // only whether there is one matters
	}
	quotas := make([]clusterQuota, len(list.Items))
	for i := range list.Items {
		parsed, namespaces, err := quota.ParseCluster(&list.Items[i])
		if err != nil {
			return nil, err //nolint:wrapcheck // as above
		}
		quotas[i] = clusterQuota{Quota: quotaOf(&parsed), namespaces: namespaces}
	}
	slices.SortFunc(quotas, func(a, b clusterQuota) int { return strings.Compare(a.Name, b.Name) })
	return quotas, nil
}
