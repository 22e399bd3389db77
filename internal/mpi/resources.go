package mpi

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"opendatahub.io/mpijob/internal/podspec"
)

// ValidateResources applies the rules of the API server (k8s.io/kubernetes/pkg/apis/core/validation,
// ValidateContainerResourceRequirements), so that an invalid value is rejected with the job, and not later with its
// pods.
func ValidateResources(r corev1.ResourceRequirements, at *field.Path) field.ErrorList {
	errs := validateQuantities(r.Limits, at.Child("limits"))
	if memory, limited := r.Limits[corev1.ResourceMemory]; limited && memory.Sign() > 0 && memory.Cmp(leastMemory) < 0 {
		errs = append(errs, field.Invalid(at.Child("limits").Key(string(corev1.ResourceMemory)), memory.String(),
			"must be at least 1Mi, since no container starts with less. The unit m means thousandths of a byte, and Mi means mebibytes"))
	}
	errs = append(errs, validateQuantities(r.Requests, at.Child("requests"))...)
	for _, name := range slices.Sorted(maps.Keys(r.Requests)) {
		request, limit := r.Requests[name], r.Limits[name]
		_, limited := r.Limits[name]
		here := at.Child("requests").Key(string(name))
		switch {
		case isDevice(name) && !limited:
			errs = append(errs, field.Required(at.Child("limits").Key(string(name)),
				fmt.Sprintf("must be %s, equal to its request: the request and the limit of a device must be equal", request.String())))
		case isDevice(name) && request.Cmp(limit) != 0:
			errs = append(errs, field.Invalid(here, request.String(),
				fmt.Sprintf("must be %s, equal to its limit: devices are not shared", limit.String())))
		case limited && request.Cmp(limit) > 0:
			errs = append(errs, field.Invalid(here, request.String(),
				fmt.Sprintf("must be at most its limit, %s", limit.String())))
		}
	}
	return errs
}

func validateQuantities(list corev1.ResourceList, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(list)) {
		quantity, here := list[name], at.Key(string(name))
		switch {
		case !isCoreResource(name) && !isDevice(name):
			errs = append(errs, field.Invalid(here, string(name),
				"must be a resource that a container can request: cpu, memory, ephemeral-storage, hugepages-<size>, or a device such as nvidia.com/gpu"))
		case quantity.Sign() < 0:
			errs = append(errs, field.Invalid(here, quantity.String(), "must be 0 or more"))
		case quantity.CmpInt64(maxQuantity) > 0:
			errs = append(errs, field.Invalid(here, quantity.String(), "must be at most 1Pi (2^50), more than any node has"))
		case isDevice(name) && !isWhole(quantity):
			errs = append(errs, field.Invalid(here, quantity.String(), "must be a whole number: devices cannot be divided"))
		}
	}
	return errs
}

// leastMemory is less than any container runtime needs to start a container.
var leastMemory = resource.MustParse("1Mi")

// maxQuantity is more than any node has of any resource: sums of it over pods and time stay within 64 bits.
const maxQuantity = 1 << 50

func isCoreResource(name corev1.ResourceName) bool {
	switch name {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return true
	}
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// isDevice reports whether a resource has a name of the form <domain>/<name>, such as nvidia.com/gpu.
func isDevice(name corev1.ResourceName) bool {
	return strings.Contains(string(name), "/") && len(validation.IsQualifiedName(string(name))) == 0
}

func isWhole(q resource.Quantity) bool { return q.MilliValue()%1000 == 0 }

// SharesCores reports whether the job's ranks may have to share cores: its hosts request less than a CPU for each slot. MPI
// cannot know that, since each pod sees all cores of its node, and ranks of other pods use them as well.
func (j Job) SharesCores() bool {
	shares := func(template corev1.PodTemplateSpec) bool {
		if len(template.Spec.Containers) == 0 {
			return false
		}
		resources := template.Spec.Containers[0].Resources
		cpus, requested := resources.Requests[corev1.ResourceCPU]
		if !requested {
			cpus = resources.Limits[corev1.ResourceCPU]
		}
		return cpus.CmpInt64(int64(j.SlotsPerWorker)) < 0
	}
	return j.Workers.Count > 0 && shares(j.Workers.Template) || j.Launcher.RunsRanks && shares(j.Launcher.Template)
}

// MayHaveGPUs reports whether a pod may have GPUs of its own. Others see all of a node if they are privileged, or if their image asks for them
// (NVIDIA_VISIBLE_DEVICES). What a ResourceClaim requests is unknown.
func MayHaveGPUs(pod corev1.PodSpec) bool {
	return podspec.PodAccelerators(pod) > 0 || len(pod.ResourceClaims) > 0
}

// WorkerCores returns how many CPUs each worker's main container owns if the CPU manager of its node is static: that gives exclusive CPUs
// to containers with whole ones in pods of the QoS class Guaranteed (k8s.io/kubernetes/pkg/kubelet/cm/cpumanager, policy_static.go). It is
// 0 if they share CPUs in any case, and for jobs whose launcher runs ranks, too: MPI's launcher binds those itself.
func (j Job) WorkerCores() int64 {
	spec := j.Workers.Template.Spec
	if j.Launcher.RunsRanks || len(spec.Containers) == 0 || spec.Resources != nil {
		return 0
	}
	for _, container := range slices.Concat(spec.InitContainers, spec.Containers) {
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			limit, request := container.Resources.Limits[name], container.Resources.Requests[name]
			_, requested := container.Resources.Requests[name]
			// A request that is left out is the limit.
			if limit.Sign() <= 0 || requested && request.Cmp(limit) != 0 {
				return 0
			}
		}
	}
	cpus := spec.Containers[0].Resources.Limits[corev1.ResourceCPU]
	if !isWhole(cpus) {
		return 0
	}
	return cpus.Value()
}
