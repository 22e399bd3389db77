package jobs

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"opendatahub.io/mpijob/internal/kinds"
	"opendatahub.io/mpijob/internal/podspec"
)

// nvidiaGPU is the GPU resource of jobs that name no other.
const nvidiaGPU corev1.ResourceName = "nvidia.com/gpu"

// resources returns the resources of each worker. Memory is also a limit, so that a worker that needs more is killed alone
// and not other pods of its node.
func (s Spec) resources() corev1.ResourceRequirements {
	r := corev1.ResourceRequirements{Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}}
	if s.CPU != "" {
		r.Requests[corev1.ResourceCPU] = resource.MustParse(s.CPU)
	}
	if s.Memory != "" {
		memory := resource.MustParse(s.Memory)
		r.Requests[corev1.ResourceMemory], r.Limits[corev1.ResourceMemory] = memory, memory
	}
	if s.GPU > 0 {
		name := cmp.Or(corev1.ResourceName(s.GPUResource), nvidiaGPU)
		quantity := *resource.NewQuantity(int64(s.GPU), resource.DecimalSI)
		r.Requests[name], r.Limits[name] = quantity, quantity
	}
	return r
}

func (s Spec) slotsPerWorker() int32 {
	if s.Slots != nil {
		return *s.Slots
	}
	return cmp.Or(s.GPU, 1)
}

// launcherResources returns the resources of a launcher that runs no ranks.
func (s Spec) launcherResources() corev1.ResourceRequirements {
	limit := cmp.Or(s.LauncherMemory, "1Gi")
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cmp.Or(s.LauncherCPU, "100m")), corev1.ResourceMemory: resource.MustParse(cmp.Or(s.LauncherMemory, "128Mi"))},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(limit)},
	}
}

// readResources reads the resources of a worker. GPUs of several kinds are not read.
func (s *Spec) readResources(worker corev1.ResourceRequirements) {
	requests := podspec.FillIn(worker.Requests.DeepCopy(), worker.Limits)
	if cpu, set := requests[corev1.ResourceCPU]; set {
		s.CPU = cpu.String()
	}
	if memory, set := requests[corev1.ResourceMemory]; set {
		s.Memory = memory.String()
	}
	var names []corev1.ResourceName
	for name := range requests {
		if podspec.IsGPU(name) {
			names = append(names, name)
		}
	}
	if len(names) == 1 {
		amount := requests[names[0]]
		s.GPU, s.GPUResource = int32(amount.Value()), string(names[0])
	}
}

func setResource(name string) func(kinds.Editor, *unstructured.Unstructured, string) error {
	return func(editor kinds.Editor, job *unstructured.Unstructured, value string) error {
		if _, err := resource.ParseQuantity(value); err != nil && !parameter.MatchString(value) {
			return errors.New("must be a quantity, such as 4, 500m or 16Gi")
		}
		return editor.SetResource(job, name, value)
	}
}

// setGPUs sets the number of GPUs that each worker requests: of the kind that the job requests, else of nvidia.com/gpu.
func setGPUs(editor kinds.Editor, job *unstructured.Unstructured, value string) error {
	worker, names := editor.Summarize(job).Worker, map[string]bool{}
	for _, list := range []corev1.ResourceList{worker.Limits, worker.Requests} {
		for name := range list {
			if podspec.IsGPU(name) {
				names[string(name)] = true
			}
		}
	}
	switch {
	case len(names) == 0:
		names[string(nvidiaGPU)] = true
	case len(names) > 1:
		return fmt.Errorf("the job requests several kinds of GPUs (%s); change its resources in a file", strings.Join(slices.Sorted(maps.Keys(names)), ", "))
	}
	return setResource(slices.Collect(maps.Keys(names))[0])(editor, job, value)
}
