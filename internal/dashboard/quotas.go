package dashboard

import (
	"cmp"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/jobs"
	"opendatahub.io/mpijob/internal/kueue"
)

// Quotas are the queues and quotas of namespaces.
type Quotas struct {
	Queues []Queue           `json:"queues"`
	Quotas []NamespaceQuotas `json:"quotas"`
	// Kueue is unset if the cluster has no queues.
	Kueue   bool     `json:"kueue"`
	Missing []string `json:"missing"`
}

// NamespaceQuotas are the quotas of a namespace.
type NamespaceQuotas struct {
	Namespace string  `json:"namespace"`
	Quotas    []Quota `json:"quotas"`
}

// Quota is a limit of a ResourceQuota.
type Quota struct {
	// Name is the name of the ResourceQuota or ClusterResourceQuota, Resource such as requests.nvidia.com/gpu.
	Name     string  `json:"name"`
	Resource string  `json:"resource"`
	Hard     float64 `json:"hard"`
	Used     float64 `json:"used"`
	HardText string  `json:"hardText"`
	UsedText string  `json:"usedText"`
	// Shared is set for a ClusterResourceQuota of OpenShift: Used is the sum of all projects that it limits.
	Shared bool `json:"shared,omitempty"`
}

// quotasPage returns queues with the jobs that wait in them, and the quotas of the namespaces that the user selects.
func (s *Server) quotasPage(c *call) (any, error) {
	found := Quotas{Queues: []Queue{}, Quotas: []NamespaceQuotas{}, Kueue: true}
	var no missing
	visible, _, _, err := s.visible(c.ctx, c.user)
	if err != nil {
		return nil, err
	}
	namespaces, err := c.quotaNamespaces(visible)
	if err != nil {
		return nil, err
	}
	for _, namespace := range namespaces {
		quotas, err := c.resourceQuotas(namespace)
		if err := no.note("quotas of "+cmp.Or(namespace, "all projects"), err); err != nil {
			return nil, err
		}
		shared, err := c.clusterQuotas(namespace)
		if err := no.note("ClusterResourceQuotas of "+cmp.Or(namespace, "all projects"), err); err != nil {
			return nil, err
		}
		for name, more := range shared {
			quotas[name] = append(quotas[name], more...)
		}
		for _, name := range keys(quotas) {
			found.Quotas = append(found.Quotas, NamespaceQuotas{name, quotas[name]})
		}
		queues, err := c.queues(namespace)
		if err != nil && jobs.IsNotInstalled(err) {
			found.Kueue = false
		}
		if err := no.note("queues of "+cmp.Or(namespace, "all projects"), err); err != nil {
			return nil, err
		}
		found.Queues = append(found.Queues, queues...)
	}
	addWaiting(found.Queues, visible)
	found.Missing = orEmpty([]string(no))
	return found, nil
}

// quotaNamespaces returns the namespaces of the request; without any, those of the visible rows, or an empty name for all
// namespaces if the user may list their quotas and queues: an administrator also sees projects without jobs.
func (c *call) quotaNamespaces(visible []*Row) ([]string, error) {
	if namespaces := list(c.URL.Query(), "namespace"); len(namespaces) > 0 {
		return namespaces, nil
	}
	quotas, err1 := c.may(c.ctx, "list", corev1.Resource("resourcequotas"), "")
	queues, err2 := c.may(c.ctx, "list", schema.GroupResource{Group: kueue.LocalQueueListKind.Group, Resource: "localqueues"}, "")
	if err := errors.Join(err1, err2); err != nil || quotas && queues {
		return []string{""}, err
	}
	set := map[string]bool{}
	for _, row := range visible {
		set[row.Namespace] = true
	}
	return keys(set), nil
}

// resourceQuotas returns the limits of the ResourceQuotas of a namespace, or of all with an empty name, by namespace.
func (c *call) resourceQuotas(namespace string) (map[string][]Quota, error) {
	var list corev1.ResourceQuotaList
	err := c.api.List(c.ctx, &list, client.InNamespace(namespace))
	all := map[string][]Quota{}
	for i := range list.Items {
		all[list.Items[i].Namespace] = append(all[list.Items[i].Namespace], limitsOf(&list.Items[i], false)...)
	}
	return all, err
}

// clusterQuotas returns the limits of the ClusterResourceQuotas that limit a namespace, or all with an empty name, by namespace.
func (c *call) clusterQuotas(namespace string) (map[string][]Quota, error) {
	shared, err := c.jobs.ClusterQuotas(c.ctx, namespace)
	all := map[string][]Quota{}
	for name, quotas := range shared {
		for i := range quotas {
			all[name] = append(all[name], limitsOf(&quotas[i], true)...)
		}
	}
	return all, err
}

// limitsOf returns the limits of a quota, by resource.
func limitsOf(quota *corev1.ResourceQuota, isShared bool) []Quota {
	var all []Quota
	for _, name := range sortedNames(quota.Status.Hard) {
		hard, used := quota.Status.Hard[name], quota.Status.Used[name]
		all = append(all, Quota{
			Name: quota.Name, Resource: string(name), Hard: hard.AsApproximateFloat64(), Used: used.AsApproximateFloat64(),
			HardText: hard.String(), UsedText: used.String(), Shared: isShared,
		})
	}
	return all
}
