package cluster

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/quota"
)

// clusterQuotaKind is OpenShift's quota for several namespaces together (github.com/openshift/api/quota/v1).
var clusterQuotaKind = schema.GroupVersionKind{Group: "quota.openshift.io", Version: "v1", Kind: "ClusterResourceQuotaList"}

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

// clusterQuota is a ClusterResourceQuota, as far as jobs are compared with it.
type clusterQuota struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Quota corev1.ResourceQuotaSpec `json:"quota"`
	} `json:"spec"`
	Status struct {
		// Total is what all namespaces use. Namespaces are those that the quota selects.
		Total      corev1.ResourceQuotaStatus `json:"total"`
		Namespaces []selected                 `json:"namespaces"`
	} `json:"status"`
}

// selected is a namespace that a ClusterResourceQuota selects.
type selected struct {
	Namespace string `json:"namespace"`
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
	for i := range q.list {
		of := &q.list[i]
		if !slices.Contains(of.Status.Namespaces, selected{Namespace: namespace}) {
			continue
		}
		as := quotaOf(&corev1.ResourceQuota{Spec: of.Spec.Quota, Status: of.Status.Total})
		as.Name = quota.ClusterName(of.Metadata.Name)
		found = append(found, as)
	}
	return found
}

func listClusterQuotas(ctx context.Context, from client.Reader) ([]clusterQuota, error) {
	ctx, cancel := context.WithTimeout(ctx, clusterQuotasTimeout)
	defer cancel()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(clusterQuotaKind)
	if err := from.List(ctx, list); err != nil {
		return nil, err //nolint:wrapcheck // only whether there is one matters
	}
	quotas := make([]clusterQuota, len(list.Items))
	for i := range list.Items {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, &quotas[i]); err != nil {
			return nil, err //nolint:wrapcheck // as above
		}
	}
	slices.SortFunc(quotas, func(a, b clusterQuota) int { return strings.Compare(a.Metadata.Name, b.Metadata.Name) })
	return quotas, nil
}
