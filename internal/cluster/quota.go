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

// Quotas are the ResourceQuotas of a namespace, by name.
func Quotas(ctx context.Context, from client.Reader, namespace string) ([]mpi.Quota, error) {
	var list corev1.ResourceQuotaList
	if err := from.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list quotas of namespace %s: %w", namespace, err)
	}
	var quotas []mpi.Quota
	for i := range list.Items {
		quotas = append(quotas, quotaOf(&list.Items[i]))
	}
	slices.SortFunc(quotas, func(a, b mpi.Quota) int { return strings.Compare(a.Name, b.Name) })
	return quotas, nil
}

func quotaOf(of *corev1.ResourceQuota) mpi.Quota {
	// The specification counts: the status follows it in a moment.
	found := mpi.Quota{Name: of.Name, Hard: of.Spec.Hard, Used: of.Status.Used}
	for _, scope := range of.Spec.Scopes {
		found.Scopes = append(found.Scopes, corev1.ScopedResourceSelectorRequirement{ScopeName: scope, Operator: corev1.ScopeSelectorOpExists})
	}
	if of.Spec.ScopeSelector != nil {
		found.Scopes = append(found.Scopes, of.Spec.ScopeSelector.MatchExpressions...)
	}
	return found
}

// limitRanges are those of a namespace, by name.
func limitRanges(ctx context.Context, from client.Reader, namespace string) ([]corev1.LimitRange, error) {
	var list corev1.LimitRangeList
	if err := from.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list LimitRanges of namespace %s: %w", namespace, err)
	}
	slices.SortFunc(list.Items, func(a, b corev1.LimitRange) int { return strings.Compare(a.Name, b.Name) })
	return list.Items, nil
}

// Asked is what a job without pods asks for, and the quotas of its namespace, from the cache; nothing where there are no
// quotas. Templates are those of its launcher and of its workers. What webhooks and RuntimeClasses add to pods is not
// known here.
func (c *Cluster) Asked(ctx context.Context, job mpi.Job, launcher, worker corev1.PodTemplateSpec) ([]quota.Pods, []mpi.Quota, error) {
	quotas, err := Quotas(ctx, c.client, job.Namespace)
	if err != nil || len(quotas) == 0 {
		return nil, nil, err
	}
	ranges, err := limitRanges(ctx, c.client, job.Namespace)
	if err != nil {
		return nil, nil, err
	}
	var pods []quota.Pods
	if !job.Launcher.None {
		pods = append(pods, quota.Counted(mpi.RoleLauncher, 1, quota.WithDefaults(launcher, ranges)))
	}
	return append(pods, quota.Counted(mpi.RoleWorker, int64(job.WorkersAtOnce()), quota.WithDefaults(worker, ranges))), quotas, nil
}
