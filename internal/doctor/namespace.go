package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/quota"
	"opendatahub.io/mpijob/internal/roles"
)

// dns checks that the cluster resolves host names, which ranks need to find each other.
func (c Cluster) dns(ctx context.Context) []Result {
	const check = "DNS"
	for _, service := range []client.ObjectKey{{Namespace: "kube-system", Name: "kube-dns"}, {Namespace: "openshift-dns", Name: "dns-default"}} {
		var list discoveryv1.EndpointSliceList
		err := c.API.List(ctx, &list, client.InNamespace(service.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: service.Name})
		if err != nil {
			return unknown(check, err)
		}
		if len(list.Items) > 0 {
			return []Result{judgeDNS(check, service, list.Items)}
		}
	}
	return []Result{{Check: check, Verdict: None, Found: "unknown: no service kube-system/kube-dns or openshift-dns/dns-default found"}}
}

// judgeDNS judges by the endpoints that are ready.
func judgeDNS(check string, service client.ObjectKey, endpoints []discoveryv1.EndpointSlice) Result {
	ready := 0
	for _, slice := range endpoints {
		for _, endpoint := range slice.Endpoints {
			if endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready {
				ready += len(endpoint.Addresses)
			}
		}
	}
	if ready == 0 {
		return Result{
			Check: check, Verdict: Fail, Found: fmt.Sprintf("no endpoint of service %s is ready: host names of workers cannot be resolved", service),
			Remedy: "Find out why its pods are not ready: kubectl -n " + service.Namespace + " get pods",
		}
	}
	return Result{Check: check, Verdict: OK, Found: fmt.Sprintf("%d endpoints of service %s are ready", ready, service)}
}

// namespace checks that the namespace exists, which pods it admits, and what limits its jobs.
func (c Cluster) namespace(ctx context.Context) []Result {
	const check = "Namespace"
	var namespace corev1.Namespace
	err := c.API.Get(ctx, client.ObjectKey{Name: c.Namespace}, &namespace)
	switch {
	case apierrors.IsNotFound(err):
		return []Result{{Check: check, Verdict: Fail, Found: "namespace " + c.Namespace + " not found", Remedy: "Use -n, or create it: kubectl create namespace " + c.Namespace}}
	case err != nil:
		return unknown(check, err)
	}
	limits, err := c.limits(ctx, namespace)
	results := append([]Result{judgeNamespace(check, namespace)}, judgeLimits(namespace, limits)...)
	switch {
	case apierrors.IsForbidden(err):
		results = append(results, Result{
			Check: "Limits", Verdict: None,
			Found: "the cluster's limits are annotations of the operator's namespace " + limits.DefaultsFrom + ", which you may not read; jobs are compared with them anyway",
		})
	case err != nil:
		results = append(results, Result{Check: "Limits", Verdict: None, Err: fmt.Errorf("read the limits of all namespaces: %w", err)})
	}
	return results
}

// limits returns the limits of the jobs of a namespace. With an error they are those of the namespace alone.
func (c Cluster) limits(ctx context.Context, namespace corev1.Namespace) (trainjob.Limits, error) {
	limits := trainjob.Limits{Namespace: namespace.Annotations, DefaultsFrom: operatorNamespace}
	switch found, err := FindOperator(ctx, c.API); {
	case err == nil:
		limits.DefaultsFrom = found.Namespace
	case isNotInstalled(err):
		return limits, nil
	}
	var defaults corev1.Namespace
	err := c.API.Get(ctx, client.ObjectKey{Name: limits.DefaultsFrom}, &defaults)
	limits.Defaults = defaults.Annotations
	return limits, client.IgnoreNotFound(err)
}

// isNotInstalled reports whether an error of FindOperator is that there is none.
func isNotInstalled(err error) bool {
	_, none := errors.AsType[*NotInstalledError](err)
	return none
}

// judgeLimits reports the limits of each job of a namespace; none if it has none.
func judgeLimits(namespace corev1.Namespace, limits trainjob.Limits) []Result {
	result := Result{Check: "Limits", Verdict: OK}
	own := trainjob.Limits{Namespace: namespace.Annotations}
	if errs := append(own.Check(), mpi.CheckRequireEncryption(namespace.Annotations)...); len(errs) > 0 {
		return []Result{invalidLimits(namespace.Name, errs, "the namespace")}
	}
	if errs := limits.Check(); len(errs) > 0 {
		return []Result{invalidLimits(limits.DefaultsFrom, errs, "the cluster")}
	}
	var texts []string
	for _, limit := range []struct{ annotation, text string }{
		{mpi.AnnotationMaxWorkers, "at most %s workers"}, {mpi.AnnotationMaxGPUs, "at most %s GPUs per pod"}, {mpi.AnnotationNodeLabels, "only nodes with %s"},
	} {
		value, isDefault, set := limits.Get(limit.annotation)
		if !set || limit.annotation == mpi.AnnotationNodeLabels && strings.Trim(value, ", ") == "" {
			continue
		}
		text := fmt.Sprintf(limit.text, value)
		if isDefault {
			text += " (of the cluster, by the namespace " + limits.DefaultsFrom + ")"
		}
		texts = append(texts, text)
	}
	if namespace.Annotations[mpi.AnnotationRequireEncryption] == "true" {
		texts = append(texts, "only with encrypted traffic between pods")
	}
	if len(texts) == 0 {
		return nil
	}
	result.Found = "each job of " + namespace.Name + ": " + strings.Join(texts, ", ")
	return []Result{result}
}

// invalidLimits is the result of annotations that cannot be read. of is what the administrator administers.
func invalidLimits(namespace string, errs field.ErrorList, of string) Result {
	return Result{
		Check: "Limits", Verdict: Fail,
		Found:  "namespace " + namespace + " has invalid limits, with which jobs are refused: " + errs.ToAggregate().Error(),
		Remedy: "Ask the administrator of " + of + " to correct the annotations: kubectl annotate --overwrite namespace " + namespace + " NAME=VALUE",
	}
}

func judgeNamespace(check string, namespace corev1.Namespace) Result {
	if namespace.DeletionTimestamp != nil {
		return Result{Check: check, Verdict: Fail, Found: namespace.Name + " is being deleted and does not accept new objects", Remedy: "Use another one with -n."}
	}
	level := cmp.Or(namespace.Labels["pod-security.kubernetes.io/enforce"], "privileged")
	note := "all pods are allowed"
	switch level {
	case "restricted":
		note = "pods must run unprivileged as non-root; the agent does, sshd in images mostly does not"
	case "baseline":
		note = "no host network, no host paths"
	}
	return Result{Check: check, Verdict: OK, Found: fmt.Sprintf("%s, Pod Security %s: %s", namespace.Name, level, note)}
}

// quotas reports the use of the namespace's quotas, and of OpenShift's quotas for several namespaces that apply to it.
func (c Cluster) quotas(ctx context.Context) []Result {
	const check = "Quota"
	var results []Result
	var list corev1.ResourceQuotaList
	if err := c.API.List(ctx, &list, client.InNamespace(c.Namespace)); err != nil {
		results = unknown(check, err)
	}
	for _, own := range list.Items {
		results = append(results, judgeQuota(check, own, "see what uses it: kubectl -n "+own.Namespace+" get pods"))
	}
	shared, err := c.sharedQuotas(ctx)
	if err != nil {
		results = append(results, unknown(check, err)...)
	}
	for _, of := range shared {
		results = append(results, judgeQuota(check, of, "see which namespaces share it: kubectl -n "+c.Namespace+" describe appliedclusterresourcequota "+quota.ObjectName(of.Name)))
	}
	if len(results) == 0 {
		return []Result{{Check: check, Verdict: OK, Found: "no quotas in " + c.Namespace}}
	}
	return results
}

// sharedQuotas returns OpenShift's ClusterResourceQuotas that apply to the namespace; none on other clusters.
func (c Cluster) sharedQuotas(ctx context.Context) ([]corev1.ResourceQuota, error) {
	const resource = "appliedclusterresourcequotas"
	group := quota.ClusterGroupVersion
	served, err := c.serves(group, resource)
	if err != nil || !served {
		return nil, err
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(group.WithKind("AppliedClusterResourceQuotaList"))
	if err := c.API.List(ctx, list, client.InNamespace(c.Namespace)); err != nil {
		return nil, err
	}
	quotas := make([]corev1.ResourceQuota, 0, len(list.Items))
	for i := range list.Items {
		of, _, err := quota.ParseCluster(&list.Items[i])
		if err != nil {
			return nil, err
		}
		quotas = append(quotas, of)
	}
	return quotas, nil
}

// judgeQuota judges by the resources that are used up. see is a remedy that shows what uses them.
func judgeQuota(check string, quota corev1.ResourceQuota, see string) Result {
	var parts, full []string
	for _, name := range slices.Sorted(maps.Keys(quota.Status.Hard)) {
		hard, used := quota.Status.Hard[name], quota.Status.Used[name]
		parts = append(parts, fmt.Sprintf("%s of %s %s", used.String(), hard.String(), name))
		if used.Cmp(hard) >= 0 {
			full = append(full, string(name))
		}
	}
	result := Result{Check: check, Verdict: OK, Found: quota.Name + ": used " + strings.Join(parts, ", ")}
	if len(full) > 0 {
		result.Verdict = Warn
		result.Remedy = "The quota for " + strings.Join(full, ", ") + " is exhausted: new jobs that request it are refused until others end, or wait with --wait-for-quota or in a queue. Ask a cluster administrator for more, or " + see
	}
	return result
}

// purpose is something that a user wants to do, with the rights that it needs.
type purpose struct {
	check string
	// otherwise is the verdict if a right is missing.
	otherwise Verdict
	rights    []roles.Right
}

// purposes are those of users of a cluster, with Kubeflow Trainer or without.
func purposes(withTrainer bool) []purpose {
	jobs, reports := kubeflow.SchemeGroupVersion.Group, mpi.Group
	all := []purpose{
		{"See jobs", Fail, []roles.Right{{Verb: "list", Group: jobs, Resource: "mpijobs"}, {Verb: "list", Group: reports, Resource: "jobreports"}, {Verb: "watch", Group: reports, Resource: "jobreports"}}},
		{"Run jobs", Fail, []roles.Right{{Verb: "create", Group: jobs, Resource: "mpijobs"}, {Verb: "patch", Group: jobs, Resource: "mpijobs"}, {Verb: "delete", Group: jobs, Resource: "mpijobs"}}},
		{"Read logs", Fail, []roles.Right{{Verb: "list", Resource: "pods"}, {Verb: "watch", Resource: "pods"}, {Verb: "get", Resource: "pods/log"}}},
		{"Read events", Warn, []roles.Right{{Verb: "list", Resource: "events"}}},
		{"Enter pods", Warn, []roles.Right{{Verb: "create", Resource: "pods/exec"}, {Verb: "create", Resource: "pods/portforward"}}},
	}
	if withTrainer {
		trainJobs := trainjob.GroupVersion.Group
		// Those who run MPIJobs need no right to run TrainJobs.
		all = slices.Insert(all, 2, purpose{"Run TrainJobs", Warn, []roles.Right{
			{Verb: "create", Group: trainJobs, Resource: "trainjobs"}, {Verb: "patch", Group: trainJobs, Resource: "trainjobs"}, {Verb: "delete", Group: trainJobs, Resource: "trainjobs"},
		}})
	}
	return all
}

// rights checks what the user may do in the namespace.
func (c Cluster) rights(ctx context.Context) []Result {
	var results []Result
	// Without an answer, the check of Trainer reports the error.
	withTrainer, _ := c.serves(trainjob.GroupVersion, "trainjobs")
	for _, p := range purposes(withTrainer) {
		var missing []roles.Right
		var errs []error
		for _, right := range p.rights {
			allowed, err := c.may(ctx, right)
			if errs = append(errs, err); err == nil && !allowed {
				missing = append(missing, right)
			}
		}
		if err := errors.Join(errs...); err != nil {
			results = append(results, unknown(p.check, err)...)
			continue
		}
		results = append(results, p.judge(missing, c.Namespace))
	}
	return results
}

// may reports whether the user has a right in the namespace.
func (c Cluster) may(ctx context.Context, right roles.Right) (bool, error) {
	resource, subresource, _ := strings.Cut(right.Resource, "/")
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
		Namespace: c.Namespace, Verb: right.Verb, Group: right.Group, Resource: resource, Subresource: subresource,
	}}}
	err := c.API.Create(ctx, review)
	return review.Status.Allowed, err
}

// judge judges by the rights that are missing.
func (p purpose) judge(missing []roles.Right, namespace string) Result {
	if len(missing) == 0 {
		return Result{Check: p.check, Verdict: OK, Found: "allowed"}
	}
	texts := make([]string, len(missing))
	for i, right := range missing {
		texts[i] = right.String()
	}
	return Result{
		Check: p.check, Verdict: p.otherwise, Found: "not allowed in " + namespace + ": " + strings.Join(texts, ", "),
		Remedy: "Ask a cluster administrator for " + roles.With(p.rights[0]) + " in this namespace.",
	}
}
