package mpi

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ParseWaitForQuota reads AnnotationWaitForQuota. It returns false if the annotation is missing or invalid.
func ParseWaitForQuota(annotations map[string]string) (bool, field.ErrorList) {
	return parseBool(annotations, AnnotationWaitForQuota)
}

// ParseSuspendInQueue reads AnnotationSuspendInQueue. It returns false if the annotation is missing or invalid.
func ParseSuspendInQueue(annotations map[string]string) (bool, field.ErrorList) {
	return parseBool(annotations, AnnotationSuspendInQueue)
}

// RequiresEncryption reports whether the annotations of a namespace require that the traffic between pods is encrypted. A value other than
// false does: admission refuses others, but may not have been asked.
func RequiresEncryption(annotations map[string]string) bool {
	value, set := annotations[AnnotationRequireEncryption]
	return set && value != "false"
}

// CheckRequireEncryption returns the error of AnnotationRequireEncryption on a namespace.
func CheckRequireEncryption(annotations map[string]string) field.ErrorList {
	_, errs := parseBool(annotations, AnnotationRequireEncryption)
	return errs
}

// ParseProfile reads AnnotationProfile. It returns false if the annotation is missing or invalid.
func ParseProfile(annotations map[string]string) (bool, field.ErrorList) {
	return parseBool(annotations, AnnotationProfile)
}

// parseBool reads an annotation that is true or false; false if it is missing or invalid.
func parseBool(annotations map[string]string, name string) (bool, field.ErrorList) {
	switch text, set := annotations[name]; {
	case !set, text == "false":
		return false, nil
	case text == "true":
		return true, nil
	default:
		return false, field.ErrorList{field.NotSupported(annotationPath(name), text, []string{"true", "false"})}
	}
}

// WaitsForQuota reports whether a job is admitted although its namespace's quota has no room for it now: because it waits for a queue,
// or because its user requested it, or that it is placed as a whole, and the operator holds its pods back.
func (j Job) WaitsForQuota() bool {
	return j.Queue != "" || j.ControlsPods() && (j.WaitForQuota || j.Gang.Wanted)
}

// MinWorkers returns the number of workers that a job needs to run: all, unless its gang needs fewer pods.
func (j Job) MinWorkers() int32 {
	if j.Gang.MinAvailable == nil {
		return j.Workers.Count
	}
	others := int32(1)
	if j.Launcher.None || j.Launcher.AfterWorkers {
		others = 0
	}
	return min(max(j.GangSize()-others, 0), j.Workers.Count)
}
