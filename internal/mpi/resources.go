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
)

// validateResources follows the rules of the API server (k8s.io/kubernetes/pkg/apis/core/validation,
// ValidateContainerResourceRequirements), so that a number out of range is refused with the job and not with
// its pods, when the job is there already.
func validateResources(r corev1.ResourceRequirements, at *field.Path) field.ErrorList {
	errs := validateQuantities(r.Limits, at.Child("limits"))
	errs = append(errs, validateQuantities(r.Requests, at.Child("requests"))...)
	for _, name := range slices.Sorted(maps.Keys(r.Requests)) {
		request, limit := r.Requests[name], r.Limits[name]
		_, limited := r.Limits[name]
		here := at.Child("requests").Key(string(name))
		switch {
		case extended(name) && !limited:
			errs = append(errs, field.Required(at.Child("limits").Key(string(name)),
				fmt.Sprintf("must be %s too: a device is requested and limited by the same number", request.String())))
		case extended(name) && request.Cmp(limit) != 0:
			errs = append(errs, field.Invalid(here, request.String(),
				fmt.Sprintf("must equal its limit, %s: devices are not shared", limit.String())))
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
		case !known(name) && !extended(name):
			errs = append(errs, field.Invalid(here, string(name),
				"is no resource that a container can ask for: use cpu, memory, ephemeral-storage, hugepages-<size>, or a device such as nvidia.com/gpu"))
		case quantity.Sign() < 0:
			errs = append(errs, field.Invalid(here, quantity.String(), "must be 0 or more"))
		case extended(name) && !whole(quantity):
			errs = append(errs, field.Invalid(here, quantity.String(), "must be a whole number: devices are not divided"))
		}
	}
	return errs
}

func known(name corev1.ResourceName) bool {
	switch name {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return true
	}
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// extended tells whether a resource is a device or the like, named <domain>/<name>, such as nvidia.com/gpu.
func extended(name corev1.ResourceName) bool {
	return strings.Contains(string(name), "/") && len(validation.IsQualifiedName(string(name))) == 0
}

func whole(q resource.Quantity) bool { return q.MilliValue()%1000 == 0 }
