package mpi

import (
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

func add(sum corev1.ResourceList, name corev1.ResourceName, quantity resource.Quantity) {
	quantity.Add(sum[name])
	sum[name] = quantity
}
