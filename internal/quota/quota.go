// Package quota sums up what a job as a whole asks for and holds it against the ResourceQuotas of its namespace, as the
// API server will do pod by pod (k8s.io/kubernetes/pkg/quota/v1/evaluator/core).
package quota

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	resources "k8s.io/component-helpers/resource"

	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/podspec"
	"opendatahub.io/mpijob/internal/podstatus"
)

// Pods are equal pods of a job.
type Pods struct {
	Role  mpi.Role
	Count int64
	// Pod is one of them as the API server would take it, or WithDefaults of what is asked of it.
	Pod *corev1.Pod

	// use is the Usage of the pod; nil where it was not computed yet.
	use corev1.ResourceList
}

// Counted returns pods that are compared with quotas repeatedly.
func Counted(role mpi.Role, count int64, pod *corev1.Pod) Pods {
	return Pods{Role: role, Count: count, Pod: pod, use: Usage(pod)}
}

func (p Pods) usage() corev1.ResourceList {
	if p.use != nil {
		return p.use
	}
	return Usage(p.Pod)
}

// Objects counts objects of a job that are no pods, by the names of their resources as quotas have them, such as
// jobs.batch.
func Objects(kinds ...schema.GroupVersionKind) map[string]int64 {
	counts := map[string]int64{}
	for _, kind := range kinds {
		plural, _ := meta.UnsafeGuessKindToResource(kind)
		counts[plural.GroupResource().String()]++
	}
	return counts
}

// Shortages are what quotas lack for all of the pods and objects together, by quota and resource; none where all fit, also
// where they fit exactly.
func Shortages(pods []Pods, objects map[string]int64, quotas []Quota) []Shortage {
	uses := make([]corev1.ResourceList, len(pods))
	for i := range pods {
		uses[i] = pods[i].usage()
	}
	var short []Shortage
	for _, quota := range quotas {
		for _, name := range slices.Sorted(maps.Keys(quota.Hard)) {
			s := Shortage{Quota: quota.Name, Resource: name, Hard: quota.Hard[name], Used: quota.Used[name]}
			for i, p := range pods {
				each, asks := uses[i][name]
				if !asks || each.IsZero() || p.Count == 0 || !counts(quota, p.Pod) {
					continue
				}
				s.By = append(s.By, Share{Role: p.Role, Count: p.Count, Each: each})
				all := each.DeepCopy()
				all.Mul(p.Count)
				s.Asked.Add(all)
			}
			if n := ofKind(objects, name); n > 0 && len(quota.Scopes) == 0 {
				s.Asked = *resource.NewQuantity(n, resource.DecimalSI)
			}
			if s.Asked.Sign() > 0 && !fits(s) {
				short = append(short, s)
			}
		}
	}
	return short
}

func fits(s Shortage) bool {
	sum := s.Used.DeepCopy()
	sum.Add(s.Asked)
	return sum.Cmp(s.Hard) <= 0
}

// ofKind is how many objects a quota's resource counts: count/<resource>, or the older names that some have
// (k8s.io/kubernetes/pkg/quota/v1/evaluator/core/registry.go).
func ofKind(objects map[string]int64, name corev1.ResourceName) int64 {
	if of, counted := strings.CutPrefix(string(name), "count/"); counted {
		return objects[of]
	}
	switch name {
	case corev1.ResourceServices, corev1.ResourceConfigMaps, corev1.ResourceSecrets:
		return objects[string(name)]
	}
	return 0
}

// Usage is what quotas count of a pod, by their own names.
func Usage(pod *corev1.Pod) corev1.ResourceList {
	one := *resource.NewQuantity(1, resource.DecimalSI)
	use := corev1.ResourceList{corev1.ResourcePods: one, "count/pods": one}
	for name, quantity := range resources.PodRequests(pod, resources.PodResourcesOptions{}) {
		switch {
		case plain(name) || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix):
			use[name], use[corev1.DefaultResourceRequestsPrefix+name] = quantity, quantity
		case strings.Contains(string(name), "/"):
			// Devices: a limit is the same as the request.
			use[corev1.DefaultResourceRequestsPrefix+name] = quantity
		}
	}
	for name, quantity := range resources.PodLimits(pod, resources.PodResourcesOptions{}) {
		if plain(name) {
			use["limits."+name] = quantity
		}
	}
	return use
}

func plain(name corev1.ResourceName) bool {
	return name == corev1.ResourceCPU || name == corev1.ResourceMemory || name == corev1.ResourceEphemeralStorage
}

// counts reports whether a quota counts a pod: all of its scopes have to match.
func counts(quota Quota, pod *corev1.Pod) bool {
	return !slices.ContainsFunc(quota.Scopes, func(scope corev1.ScopedResourceSelectorRequirement) bool { return !inScope(scope, pod) })
}

func inScope(scope corev1.ScopedResourceSelectorRequirement, pod *corev1.Pod) bool {
	ends := pod.Spec.ActiveDeadlineSeconds != nil && *pod.Spec.ActiveDeadlineSeconds >= 0
	switch scope.ScopeName {
	case corev1.ResourceQuotaScopeTerminating:
		return ends
	case corev1.ResourceQuotaScopeNotTerminating:
		return !ends
	case corev1.ResourceQuotaScopeBestEffort:
		return bestEffort(pod)
	case corev1.ResourceQuotaScopeNotBestEffort:
		return !bestEffort(pod)
	case corev1.ResourceQuotaScopePriorityClass:
		return classMatches(scope, pod.Spec.PriorityClassName)
	case corev1.ResourceQuotaScopeCrossNamespacePodAffinity:
		return acrossNamespaces(pod.Spec.Affinity)
	}
	return false
}

var operators = map[corev1.ScopeSelectorOperator]selection.Operator{
	corev1.ScopeSelectorOpIn: selection.In, corev1.ScopeSelectorOpNotIn: selection.NotIn,
	corev1.ScopeSelectorOpExists: selection.Exists, corev1.ScopeSelectorOpDoesNotExist: selection.DoesNotExist,
}

func classMatches(scope corev1.ScopedResourceSelectorRequirement, class string) bool {
	of, err := labels.NewRequirement(string(scope.ScopeName), operators[scope.Operator], scope.Values)
	if err != nil {
		return false
	}
	set := labels.Set{}
	if class != "" {
		set[string(scope.ScopeName)] = class
	}
	return of.Matches(set)
}

// bestEffort reports whether no container of a pod asks for processors or memory
// (k8s.io/kubernetes/pkg/apis/core/v1/helper/qos).
func bestEffort(pod *corev1.Pod) bool {
	if pod.Status.QOSClass != "" {
		return pod.Status.QOSClass == corev1.PodQOSBestEffort
	}
	asks := func(of corev1.ResourceRequirements) bool {
		for _, list := range []corev1.ResourceList{of.Requests, of.Limits} {
			if !list.Cpu().IsZero() || !list.Memory().IsZero() {
				return true
			}
		}
		return false
	}
	return !slices.ContainsFunc(slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers), func(c corev1.Container) bool { return asks(c.Resources) }) &&
		(pod.Spec.Resources == nil || !asks(*pod.Spec.Resources))
}

func acrossNamespaces(affinity *corev1.Affinity) bool {
	if affinity == nil {
		return false
	}
	var terms []corev1.PodAffinityTerm
	add := func(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
		terms = append(terms, required...)
		for _, term := range preferred {
			terms = append(terms, term.PodAffinityTerm)
		}
	}
	if of := affinity.PodAffinity; of != nil {
		add(of.RequiredDuringSchedulingIgnoredDuringExecution, of.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if of := affinity.PodAntiAffinity; of != nil {
		add(of.RequiredDuringSchedulingIgnoredDuringExecution, of.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	return slices.ContainsFunc(terms, func(term corev1.PodAffinityTerm) bool {
		return len(term.Namespaces) > 0 || term.NamespaceSelector != nil
	})
}

// WithDefaults is a pod of a template with the sizes that the API server gives containers which name none: a limit counts
// as a request, and then the namespace's LimitRanges fill in what is missing
// (k8s.io/kubernetes/plugin/pkg/admission/limitranger). What webhooks and RuntimeClasses add, and
// what becomes of sizes that the pod as a whole has, only a dry run tells.
func WithDefaults(template corev1.PodTemplateSpec, ranges []corev1.LimitRange) *corev1.Pod {
	pod := podspec.PodOf(template)
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			size := &list[i].Resources
			for _, of := range ranges {
				for _, item := range of.Spec.Limits {
					if item.Type == corev1.LimitTypeContainer {
						size.Limits, size.Requests = podspec.FillIn(size.Limits, item.Default), podspec.FillIn(size.Requests, item.DefaultRequest)
					}
				}
			}
		}
	}
	return pod
}

// ShortagesAfter returns the shortages of some pods if others that do not exist yet are created first.
func ShortagesAfter(ahead, pods []Pods, quotas []Quota) []Shortage {
	kept := make([]Quota, len(quotas))
	for i, quota := range quotas {
		kept[i] = quota
		kept[i].Used = sum(quota, ahead)
	}
	short := Shortages(pods, nil, kept)
	for i := range short {
		s := &short[i]
		at := slices.IndexFunc(quotas, func(q Quota) bool { return q.Name == s.Quota })
		used := quotas[at].Used[s.Resource]
		s.Ahead = s.Used.DeepCopy()
		s.Ahead.Sub(used)
		s.Used = used
	}
	return short
}

// Without are quotas as they are when some pods that use them are gone.
func Without(quotas []Quota, gone []*corev1.Pod) []Quota {
	var less []Pods
	for _, pod := range gone {
		if !podstatus.HasEnded(pod) {
			less = append(less, Counted("", -1, pod))
		}
	}
	all := slices.Clone(quotas)
	for i := range all {
		all[i].Used = sum(all[i], less)
	}
	return all
}

// sum is what of a quota is used when some more pods are there, which may be many.
func sum(quota Quota, more []Pods) corev1.ResourceList {
	if len(quota.Scopes) > 0 {
		more = slices.DeleteFunc(slices.Clone(more), func(p Pods) bool { return !counts(quota, p.Pod) })
	}
	used := make(corev1.ResourceList, len(quota.Hard))
	for name := range quota.Hard {
		total := quota.Used[name].DeepCopy()
		for _, p := range more {
			if each, asks := p.usage()[name]; asks {
				each = each.DeepCopy()
				each.Mul(p.Count)
				total.Add(each)
			}
		}
		used[name] = total
	}
	return used
}
