package quota

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ClusterGroupVersion is the API of OpenShift's quotas for several namespaces together (github.com/openshift/api/quota/v1).
var ClusterGroupVersion = schema.GroupVersion{Group: "quota.openshift.io", Version: "v1"}

// clusterSuffix marks the names of ClusterResourceQuotas: a ResourceQuota of the namespace may have the same name.
const clusterSuffix = " (ClusterResourceQuota)"

// ObjectName returns the name of the object for the Name of a Quota, as the API server's messages contain it.
func ObjectName(name string) string { return strings.TrimSuffix(name, clusterSuffix) }

// ParseCluster reads a ClusterResourceQuota, or an AppliedClusterResourceQuota, as a ResourceQuota whose usage is that of all
// its namespaces, and whose name says what it is. It also returns the namespaces that the quota selects.
func ParseCluster(object *unstructured.Unstructured) (corev1.ResourceQuota, []string, error) {
	var read struct {
		Spec struct {
			Quota corev1.ResourceQuotaSpec `json:"quota"`
		} `json:"spec"`
		Status struct {
			Total      corev1.ResourceQuotaStatus `json:"total"`
			Namespaces []struct {
				Namespace string `json:"namespace"`
			} `json:"namespaces"`
		} `json:"status"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &read); err != nil {
		return corev1.ResourceQuota{}, nil, fmt.Errorf("read %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	found := corev1.ResourceQuota{Spec: read.Spec.Quota, Status: read.Status.Total}
	found.Name = object.GetName() + clusterSuffix
	var namespaces []string
	for _, selected := range read.Status.Namespaces {
		namespaces = append(namespaces, selected.Namespace)
	}
	return found, namespaces, nil
}
