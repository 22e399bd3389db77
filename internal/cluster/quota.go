package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/quota"
)

// quotas returns the quotas that limit a namespace: its ResourceQuotas, and the ClusterResourceQuotas that select it.
func (c *Cluster) quotas(ctx context.Context, from client.Reader, namespace string) ([]quota.Quota, error) {
	quotas, err := Quotas(ctx, from, namespace)
	if err != nil {
		return nil, err
	}
	return append(quotas, c.clusterQuotas.in(ctx, namespace)...), nil
}

// Quotas returns the ResourceQuotas of a namespace, by name.
func Quotas(ctx context.Context, from client.Reader, namespace string) ([]quota.Quota, error) {
	var list corev1.ResourceQuotaList
	if err := from.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list quotas of namespace %s: %w", namespace, err)
	}
	var quotas []quota.Quota
	for i := range list.Items {
		quotas = append(quotas, quotaOf(&list.Items[i]))
	}
	slices.SortFunc(quotas, func(a, b quota.Quota) int { return strings.Compare(a.Name, b.Name) })
	return quotas, nil
}

func quotaOf(of *corev1.ResourceQuota) quota.Quota {
	// The specification, because the status is updated later.
	found := quota.Quota{Name: of.Name, Hard: of.Spec.Hard, Used: of.Status.Used}
	for _, scope := range of.Spec.Scopes {
		found.Scopes = append(found.Scopes, corev1.ScopedResourceSelectorRequirement{ScopeName: scope, Operator: corev1.ScopeSelectorOpExists})
	}
	if of.Spec.ScopeSelector != nil {
		found.Scopes = append(found.Scopes, of.Spec.ScopeSelector.MatchExpressions...)
	}
	return found
}

// LimitRanges returns the LimitRanges of a namespace, by name, from the cache.
func (c *Cluster) LimitRanges(ctx context.Context, namespace string) ([]corev1.LimitRange, error) {
	return limitRanges(ctx, c.client, namespace)
}

// limitRanges returns the LimitRanges of a namespace, by name.
func limitRanges(ctx context.Context, from client.Reader, namespace string) ([]corev1.LimitRange, error) {
	var list corev1.LimitRangeList
	if err := from.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list LimitRanges of namespace %s: %w", namespace, err)
	}
	slices.SortFunc(list.Items, func(a, b corev1.LimitRange) int { return strings.Compare(a.Name, b.Name) })
	return list.Items, nil
}

// Asked returns the requests of a job without pods, and the quotas of its namespace, from the cache; nothing if there
// are no quotas. templates returns those of the launcher and the workers. It ignores what webhooks and RuntimeClasses
// add to pods.
func (c *Cluster) Asked(ctx context.Context, job mpi.Job, templates func() (launcher, worker corev1.PodTemplateSpec)) ([]quota.Pods, []quota.Quota, error) {
	quotas, err := c.quotas(ctx, c.client, job.Namespace)
	if err != nil || len(quotas) == 0 {
		return nil, nil, err
	}
	ranges, err := limitRanges(ctx, c.client, job.Namespace)
	if err != nil {
		return nil, nil, err
	}
	launcher, worker := templates()
	var pods []quota.Pods
	if !job.Launcher.None {
		pods = append(pods, quota.Counted(mpi.RoleLauncher, 1, quota.WithDefaults(launcher, ranges)))
	}
	return append(pods, quota.Counted(mpi.RoleWorker, int64(job.MinWorkers()), quota.WithDefaults(worker, ranges))), quotas, nil
}
