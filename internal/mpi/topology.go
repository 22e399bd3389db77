package mpi

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Annotations on a job that keep its pods together, in one rack, zone or the like: on nodes that have the same value of a
// label. The annotation's value is the label's key, such as topology.kubernetes.io/zone. With the first the pods run
// nowhere else, with the second if possible.
const (
	AnnotationRequiredTopology  = Group + "/required-topology"
	AnnotationPreferredTopology = Group + "/preferred-topology"
)

// Topology is where a job's pods are to be together.
type Topology struct {
	// Key is the label of nodes that the pods' nodes have the same value of; empty: they may be anywhere.
	Key      string
	Required bool
}

// TopologyOf reads AnnotationRequiredTopology and AnnotationPreferredTopology.
func TopologyOf(annotations map[string]string) (Topology, field.ErrorList) {
	at := field.NewPath("metadata", "annotations")
	required, isRequired := annotations[AnnotationRequiredTopology]
	preferred, isPreferred := annotations[AnnotationPreferredTopology]
	name, topology := AnnotationRequiredTopology, Topology{Key: required, Required: true}
	switch {
	case !isRequired && !isPreferred:
		return Topology{}, nil
	case isRequired && isPreferred:
		return Topology{}, field.ErrorList{field.Forbidden(at.Key(AnnotationPreferredTopology), "cannot stand beside "+AnnotationRequiredTopology+": choose one of them")}
	case isPreferred:
		name, topology = AnnotationPreferredTopology, Topology{Key: preferred}
	}
	if problems := validation.IsQualifiedName(topology.Key); len(problems) > 0 {
		return Topology{}, field.ErrorList{field.Invalid(at.Key(name), topology.Key,
			"must be the key of a label of nodes, such as "+corev1.LabelTopologyZone+": "+strings.Join(problems, "; "))}
	}
	return topology, nil
}

// kueueTopology begins the annotations by which a pod template asks Kueue for a topology, and kueueTopologyEnd ends them
// (sigs.k8s.io/kueue/apis/kueue/v1beta2/topology_types.go).
const kueueTopology, kueueTopologyEnd = "kueue.x-k8s.io/podset-", "-topology"

// Together is the affinity of a pod of the job by which it comes to where the job's others are, besides the affinity that
// it has. It is left as it is where the pod's annotations have Kueue choose the nodes.
func (j Job) Together(have *corev1.Affinity, annotations map[string]string) *corev1.Affinity {
	if j.Topology.Key == "" {
		return have
	}
	for name := range annotations {
		if strings.HasPrefix(name, kueueTopology) && strings.HasSuffix(name, kueueTopologyEnd) {
			return have
		}
	}
	affinity := have.DeepCopy()
	if affinity == nil {
		affinity = &corev1.Affinity{}
	}
	if affinity.PodAffinity == nil {
		affinity.PodAffinity = &corev1.PodAffinity{}
	}
	term := corev1.PodAffinityTerm{TopologyKey: j.Topology.Key, LabelSelector: &metav1.LabelSelector{MatchLabels: j.Selector()}}
	pods := affinity.PodAffinity
	if j.Topology.Required {
		pods.RequiredDuringSchedulingIgnoredDuringExecution = append(pods.RequiredDuringSchedulingIgnoredDuringExecution, term)
	} else {
		const most = 100
		pods.PreferredDuringSchedulingIgnoredDuringExecution = append(pods.PreferredDuringSchedulingIgnoredDuringExecution, corev1.WeightedPodAffinityTerm{Weight: most, PodAffinityTerm: term})
	}
	return affinity
}
