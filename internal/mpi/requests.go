package mpi

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Requests are what a pod of a template holds while it runs: what all its containers ask for, a limit counting as a
// request where there is none. Init containers are left out: they are there before.
func Requests(spec corev1.PodSpec) corev1.ResourceList {
	sum := corev1.ResourceList{}
	for _, c := range spec.Containers {
		for name, quantity := range c.Resources.Limits {
			if _, found := c.Resources.Requests[name]; !found {
				add(sum, name, quantity.DeepCopy())
			}
		}
		for name, quantity := range c.Resources.Requests {
			add(sum, name, quantity.DeepCopy())
		}
	}
	return sum
}

// PodOf is a pod of a template in which a limit counts as a request where there is none, as the API server has it.
func PodOf(template corev1.PodTemplateSpec) *corev1.Pod {
	copied := template.DeepCopy()
	pod := &corev1.Pod{ObjectMeta: copied.ObjectMeta, Spec: copied.Spec}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			list[i].Resources.Requests = FillIn(list[i].Resources.Requests, list[i].Resources.Limits)
		}
	}
	return pod
}

// FillIn adds to a list what is missing in it, and returns it; a list that is nil is made if anything is.
func FillIn(list, from corev1.ResourceList) corev1.ResourceList {
	for name, quantity := range from {
		if _, set := list[name]; !set {
			if list == nil {
				list = corev1.ResourceList{}
			}
			list[name] = quantity
		}
	}
	return list
}

// GPUs counts those that a container asks for: whatever has "gpu" in its name, as Kubeflow Trainer counts them.
func GPUs(r corev1.ResourceRequirements) int64 {
	for _, list := range []corev1.ResourceList{r.Limits, r.Requests} {
		for name, quantity := range list {
			if strings.Contains(strings.ToLower(string(name)), "gpu") {
				return quantity.Value()
			}
		}
	}
	return 0
}

func add(sum corev1.ResourceList, name corev1.ResourceName, quantity resource.Quantity) {
	quantity.Add(sum[name])
	sum[name] = quantity
}
