package mpi

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Topology describes which nodes a job's pods must share.
type Topology struct {
	// Key is the node label whose value must be the same for all pods; "" allows any nodes.
	Key      string
	Required bool
}

// ParseTopology reads AnnotationRequiredTopology and AnnotationPreferredTopology.
func ParseTopology(annotations map[string]string) (Topology, field.ErrorList) {
	at := field.NewPath("metadata", "annotations")
	required, isRequired := annotations[AnnotationRequiredTopology]
	preferred, isPreferred := annotations[AnnotationPreferredTopology]
	name, topology := AnnotationRequiredTopology, Topology{Key: required, Required: true}
	switch {
	case !isRequired && !isPreferred:
		return Topology{}, nil
	case isRequired && isPreferred:
		return Topology{}, field.ErrorList{field.Forbidden(at.Key(AnnotationPreferredTopology), "cannot be combined with "+AnnotationRequiredTopology+"; remove one of them")}
	case isPreferred:
		name, topology = AnnotationPreferredTopology, Topology{Key: preferred}
	}
	if problems := validation.IsQualifiedName(topology.Key); len(problems) > 0 {
		return Topology{}, field.ErrorList{field.Invalid(at.Key(name), topology.Key,
			"must be the key of a node label, such as "+corev1.LabelTopologyZone+": "+strings.Join(problems, "; "))}
	}
	return topology, nil
}

// kueueTopologyPrefix and kueueTopologySuffix delimit the annotations by which a pod template requests a topology
// from Kueue (sigs.k8s.io/kueue/apis/kueue/v1beta2/topology_types.go).
const kueueTopologyPrefix, kueueTopologySuffix = "kueue.x-k8s.io/podset-", "-topology"

// kueueTopologyGate is the scheduling gate of pods whose nodes Kueue selects (sigs.k8s.io/kueue/apis/kueue/v1beta2/topology_types.go).
const kueueTopologyGate = "kueue.x-k8s.io/topology"

// Annotations by which a pod template requires one topology domain of Kueue for all of its pods, and by which launcher and workers share
// it (sigs.k8s.io/kueue/apis/kueue/v1beta2/topology_types.go).
const (
	kueueRequiredTopology = kueueTopologyPrefix + "required" + kueueTopologySuffix
	kueueTopologyGroup    = kueueTopologyPrefix + "group-name"
)

// WithKueueTopology returns a job with the topology domain that its workers require from Kueue, in place of its own, which gives way if the
// pods request a topology from Kueue. It has no launcher, if that may be elsewhere.
func (j Job) WithKueueTopology() Job {
	launcher, workers := j.Launcher.Template.Annotations, j.Workers.Template.Annotations
	if !asksKueue(launcher) && !asksKueue(workers) {
		return j
	}
	j.Topology = Topology{Key: workers[kueueRequiredTopology]}
	if j.Topology.Key == "" {
		return j
	}
	j.Topology.Required = true
	group := workers[kueueTopologyGroup]
	isShared := group != "" && group == launcher[kueueTopologyGroup]
	j.Launcher.None = j.Launcher.None || !isShared
	return j
}

// asksKueue reports whether a pod template requests a topology from Kueue.
func asksKueue(annotations map[string]string) bool {
	for name := range annotations {
		if strings.HasPrefix(name, kueueTopologyPrefix) && strings.HasSuffix(name, kueueTopologySuffix) {
			return true
		}
	}
	return false
}

// PlacedByKueue reports whether Kueue has admitted the job with topology-aware scheduling, by which it selects a node for each pod.
func (j Job) PlacedByKueue() bool {
	isGated := func(of *corev1.PodTemplateSpec) bool {
		return slices.ContainsFunc(of.Spec.SchedulingGates, func(gate corev1.PodSchedulingGate) bool { return gate.Name == kueueTopologyGate })
	}
	return isGated(&j.Workers.Template) || isGated(&j.Launcher.Template)
}

// WithTopologyAffinity returns an affinity with a term that places a pod with the other pods of the job. It returns
// the affinity unchanged if the job has no topology, or if the pod's annotations request one from Kueue, which then
// selects the nodes.
func (j Job) WithTopologyAffinity(have *corev1.Affinity, annotations map[string]string) *corev1.Affinity {
	if j.Topology.Key == "" || asksKueue(annotations) {
		return have
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
