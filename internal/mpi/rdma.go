package mpi

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"opendatahub.io/mpijob/internal/podspec"
)

// Values of AnnotationRDMA.
const (
	// RDMARequired makes the pods wait for nodes with RDMA.
	RDMARequired = "required"
	// RDMAOptional lets the job run over TCP if no node of the cluster offers the RDMA that its pods request. It is the default.
	RDMAOptional = "optional"
)

// RDMAPath is the field of AnnotationRDMA.
var RDMAPath = field.NewPath("metadata", "annotations").Key(AnnotationRDMA)

// ParseRDMA reads AnnotationRDMA: whether the job may run without RDMA. It returns true if the annotation is missing or
// invalid.
func ParseRDMA(annotations map[string]string) (optional bool, errs field.ErrorList) {
	switch text, set := annotations[AnnotationRDMA]; {
	case !set, text == RDMAOptional:
		return true, nil
	case text == RDMARequired:
		return false, nil
	default:
		return true, field.ErrorList{field.NotSupported(RDMAPath, text, []string{RDMARequired, RDMAOptional})}
	}
}

// RDMA describes the use of RDMA by a job.
type RDMA struct {
	// Optional is whether the job may run without it.
	Optional bool
	// Fixed is whether AnnotationRDMA has no effect on this job: nothing completes the pods that another controller creates.
	Fixed bool
	// Removed are the RDMA resources that the user's pods request and this job does not (see WithoutRDMA and StripRDMA), by name.
	Removed []corev1.ResourceName
}

// RDMAOf reads how a job uses RDMA. What its pods request was not removed, whatever its annotation contains.
func RDMAOf(job metav1.Object, pods []corev1.PodSpec) RDMA {
	var rdma RDMA
	if rdma.Optional, _ = ParseRDMA(job.GetAnnotations()); !rdma.Optional {
		return rdma
	}
	removed := map[corev1.ResourceName]bool{}
	for _, request := range RemovedRDMA(job.GetAnnotations()) {
		removed[request.resource()] = true
	}
	for _, pod := range pods {
		for name := range podspec.Requests(pod) {
			delete(removed, name)
		}
	}
	rdma.Removed = slices.Sorted(maps.Keys(removed))
	return rdma
}

// ResourceNames returns names of resources as a text.
func ResourceNames(names []corev1.ResourceName) string {
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = string(name)
	}
	return strings.Join(texts, " and ")
}

// RequestsRDMA reports whether a pod requests RDMA.
func RequestsRDMA(pods []corev1.PodSpec) bool {
	return slices.ContainsFunc(pods, func(pod corev1.PodSpec) bool {
		for name := range podspec.Requests(pod) {
			if podspec.IsRDMA(name) {
				return true
			}
		}
		return false
	})
}

// LacksRDMA reports whether a pod requests more of an RDMA resource than any node has. offers are the allocatable resources of
// the cluster's nodes; without nodes nothing is known.
func LacksRDMA(pods []corev1.PodSpec, offers []corev1.ResourceList) bool {
	if len(offers) == 0 {
		return false
	}
	for _, pod := range pods {
		for name, requested := range podspec.Requests(pod) {
			isEnough := func(node corev1.ResourceList) bool { have := node[name]; return have.Cmp(requested) >= 0 }
			if podspec.IsRDMA(name) && !slices.ContainsFunc(offers, isEnough) {
				return true
			}
		}
	}
	return false
}

// PodSpecs returns the specifications of the job's pods, one of each role.
func (j Job) PodSpecs() []corev1.PodSpec {
	var pods []corev1.PodSpec
	if !j.Launcher.None {
		pods = append(pods, j.Launcher.Template.Spec)
	}
	if j.Workers.Count > 0 {
		pods = append(pods, j.Workers.Template.Spec)
	}
	return pods
}

// WithoutRDMA returns the job without requests for RDMA, of all of its pods: ranks communicate in one way.
func (j Job) WithoutRDMA() Job {
	removed := map[corev1.ResourceName]bool{}
	for _, template := range []*corev1.PodTemplateSpec{&j.Launcher.Template, &j.Workers.Template} {
		copied := template.DeepCopy()
		for _, containers := range [][]corev1.Container{copied.Spec.InitContainers, copied.Spec.Containers} {
			for i := range containers {
				for _, list := range []corev1.ResourceList{containers[i].Resources.Requests, containers[i].Resources.Limits} {
					maps.DeleteFunc(list, func(name corev1.ResourceName, _ resource.Quantity) bool {
						if podspec.IsRDMA(name) {
							removed[name] = true
						}
						return podspec.IsRDMA(name)
					})
				}
			}
		}
		*template = *copied
	}
	for _, name := range j.RDMA.Removed {
		removed[name] = true
	}
	j.RDMA.Removed = slices.Sorted(maps.Keys(removed))
	return j
}
