package kueue

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ResourceFlavorKind is the kind of the objects that describe the nodes of a quota.
var ResourceFlavorKind = LocalQueueKind.GroupVersion().WithKind("ResourceFlavor")

// ResourceFlavor is what is read of a ResourceFlavor (kueue/apis/kueue/v1beta2/resourceflavor_types.go).
type ResourceFlavor struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		// TopologyName is set if Kueue selects the nodes of pods that have this flavor (topology-aware scheduling, TAS).
		TopologyName string `json:"topologyName,omitempty"`
	} `json:"spec"`
}

// topologyRequests are the annotations of pods that have Kueue select their nodes (kueue/pkg/controller/jobframework/tas.go).
var topologyRequests = []string{
	"kueue.x-k8s.io/podset-required-topology", "kueue.x-k8s.io/podset-preferred-topology", "kueue.x-k8s.io/podset-unconstrained-topology",
}

// SelectsNodes reports whether Kueue selects the nodes of the queue's pods of a template, by its flavors. That is not certain if the queue has admission
// checks: another cluster may then run the job, or nodes are added before they are selected.
func (q *ClusterQueue) SelectsNodes(template corev1.PodTemplateSpec, flavors []*ResourceFlavor) bool {
	if len(q.Spec.AdmissionChecksStrategy.AdmissionChecks) > 0 {
		return false
	}
	var with, without int
	for _, group := range q.Spec.ResourceGroups {
		for _, used := range group.Flavors {
			if slices.ContainsFunc(flavors, func(f *ResourceFlavor) bool { return f.Name == used.Name && f.Spec.TopologyName != "" }) {
				with++
			} else {
				without++
			}
		}
	}
	requested := slices.ContainsFunc(topologyRequests, func(name string) bool {
		_, has := template.Annotations[name]
		return has
	})
	// If the queue has other flavors, too, Kueue uses those with a topology only for pods that request one.
	return with > 0 && (without == 0 || requested)
}

// CountsPods reports whether the queue has a quota of pods, which pods that request nothing use as well.
func (q *ClusterQueue) CountsPods() bool {
	for _, group := range q.Spec.ResourceGroups {
		if slices.Contains(group.CoveredResources, corev1.ResourcePods) {
			return true
		}
	}
	return false
}
