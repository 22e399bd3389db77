package jobs

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/podspec"
	"opendatahub.io/mpijob/internal/quota"
)

// QuotaUse is a resource of a ResourceQuota that a job requests.
type QuotaUse struct {
	// Quota is the name of the ResourceQuota, and Resource its name of the resource, such as requests.nvidia.com/gpu.
	Quota, Resource string
	// Used is in use without the job, Requested what the job requests, and Hard the limit.
	Used, Requested, Hard resource.Quantity
}

// String returns the use with the job, such as "8 of 12 requests.nvidia.com/gpu of quota team".
func (u QuotaUse) String() string {
	sum := u.Used.DeepCopy()
	sum.Add(u.Requested)
	return fmt.Sprintf("%s of %s %s of quota %s", sum.String(), u.Hard.String(), u.Resource, u.Quota)
}

// QuotaUse returns what a job that does not exist yet uses of the quotas of its namespace: of GPUs and other devices, or of
// CPU and memory if it requests no devices. It returns nothing if there are no quotas for these, the job's size is unknown,
// or the user may not read quotas. Quotas for some pods only (scopes) are left out.
func (c *Client) QuotaUse(ctx context.Context, job *unstructured.Unstructured) ([]QuotaUse, error) {
	size, known := SizeOf(job)
	if !known {
		return nil, nil
	}
	var quotas corev1.ResourceQuotaList
	if err := c.api.List(ctx, &quotas, client.InNamespace(job.GetNamespace())); err != nil {
		if apierrors.IsForbidden(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("list quotas: %w", err)
	}
	requested := corev1.ResourceList{}
	podspec.Add(requested, podspec.Requests(size.Worker), int64(size.Workers))
	podspec.Add(requested, podspec.Requests(size.Launcher), 1)
	// They are advice: if they cannot be read there are none.
	if shared, err := c.ClusterQuotas(ctx, job.GetNamespace()); err == nil {
		quotas.Items = append(quotas.Items, shared[job.GetNamespace()]...)
	}
	return quotaUses(requested, quotas.Items), nil
}

// ClusterQuotas returns OpenShift's quotas for several namespaces together as ResourceQuotas, by the namespaces that they
// limit: those of one namespace, or of all with an empty name. A user of a namespace may read the quotas that apply to it; those
// of all are for administrators. IsNotInstalled holds for the error of a cluster that is not OpenShift.
func (c *Client) ClusterQuotas(ctx context.Context, namespace string) (map[string][]corev1.ResourceQuota, error) {
	kind := "ClusterResourceQuotaList"
	if namespace != "" {
		kind = "AppliedClusterResourceQuotaList" // OpenShift refuses to list these in all namespaces
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(quota.ClusterGroupVersion.WithKind(kind))
	if err := c.api.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list quotas of the cluster: %w", err)
	}
	all := map[string][]corev1.ResourceQuota{}
	for i := range list.Items {
		shared, namespaces, err := quota.ParseCluster(&list.Items[i])
		if err != nil {
			continue // the API server has checked it; another version may differ
		}
		if namespace != "" {
			namespaces = []string{namespace}
		}
		for _, name := range namespaces {
			all[name] = append(all[name], shared)
		}
	}
	return all, nil
}

// quotaUses returns what a request uses of quotas, sorted by quota and resource.
func quotaUses(requested corev1.ResourceList, quotas []corev1.ResourceQuota) []QuotaUse {
	isCommon := func(name corev1.ResourceName) bool {
		return name == corev1.ResourceCPU || name == corev1.ResourceMemory
	}
	devices := false
	for name, quantity := range requested {
		devices = devices || !isCommon(name) && !quantity.IsZero()
	}
	var uses []QuotaUse
	for _, quota := range quotas {
		if len(quota.Spec.Scopes) > 0 || quota.Spec.ScopeSelector != nil {
			continue
		}
		for name, hard := range quota.Status.Hard {
			of := corev1.ResourceName(strings.TrimPrefix(string(name), corev1.DefaultResourceRequestsPrefix))
			quantity, asked := requested[of]
			if !asked || quantity.IsZero() || devices && isCommon(of) {
				continue
			}
			uses = append(uses, QuotaUse{Quota: quota.Name, Resource: string(name), Used: quota.Status.Used[name], Requested: quantity, Hard: hard})
		}
	}
	slices.SortFunc(uses, func(a, b QuotaUse) int { return strings.Compare(a.Quota+"/"+a.Resource, b.Quota+"/"+b.Resource) })
	return uses
}
