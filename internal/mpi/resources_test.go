package mpi_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"opendatahub.io/mpijob/internal/mpi"
)

// TestWorkerCores: a container may own its cores if its CPUs are a whole number and its pod is Guaranteed.
func TestWorkerCores(t *testing.T) {
	t.Parallel()
	list := func(cpu, memory string) corev1.ResourceList {
		all := corev1.ResourceList{}
		for name, value := range map[corev1.ResourceName]string{corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory} {
			if value != "" {
				all[name] = resource.MustParse(value)
			}
		}
		return all
	}
	with := func(requests, limits corev1.ResourceList) corev1.Container {
		return corev1.Container{Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits}}
	}
	whole := with(list("4", "1Gi"), list("4", "1Gi"))
	for name, test := range map[string]struct {
		pod  corev1.PodSpec
		runs bool
		want int64
	}{
		"whole CPUs":                      {pod: corev1.PodSpec{Containers: []corev1.Container{whole}}, want: 4},
		"in thousandths":                  {pod: corev1.PodSpec{Containers: []corev1.Container{with(nil, list("4000m", "1Gi"))}}, want: 4},
		"only limits":                     {pod: corev1.PodSpec{Containers: []corev1.Container{with(nil, list("4", "1Gi"))}}, want: 4},
		"a part of a CPU":                 {pod: corev1.PodSpec{Containers: []corev1.Container{with(nil, list("1500m", "1Gi"))}}},
		"a smaller request":               {pod: corev1.PodSpec{Containers: []corev1.Container{with(list("2", ""), list("4", "1Gi"))}}},
		"a smaller request of memory":     {pod: corev1.PodSpec{Containers: []corev1.Container{with(list("4", "1Mi"), list("4", "1Gi"))}}},
		"no limit of memory":              {pod: corev1.PodSpec{Containers: []corev1.Container{with(list("4", "1Gi"), list("4", ""))}}},
		"no limit of CPUs":                {pod: corev1.PodSpec{Containers: []corev1.Container{with(list("4", "1Gi"), list("", "1Gi"))}}},
		"no resources":                    {pod: corev1.PodSpec{Containers: []corev1.Container{{}}}},
		"no containers":                   {},
		"another container":               {pod: corev1.PodSpec{Containers: []corev1.Container{whole, {}}}},
		"another container, Guaranteed":   {pod: corev1.PodSpec{Containers: []corev1.Container{whole, with(nil, list("100m", "1Gi"))}}, want: 4},
		"an init container":               {pod: corev1.PodSpec{InitContainers: []corev1.Container{{}}, Containers: []corev1.Container{whole}}},
		"resources of the pod as a whole": {pod: corev1.PodSpec{Containers: []corev1.Container{whole}, Resources: &corev1.ResourceRequirements{}}},
		"a launcher that runs ranks":      {pod: corev1.PodSpec{Containers: []corev1.Container{whole}}, runs: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := mpi.New()
			job.Workers.Template.Spec, job.Launcher.RunsRanks = test.pod, test.runs
			if got := job.WorkerCores(); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}
