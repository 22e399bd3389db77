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
