package mpi

import (
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"opendatahub.io/mpijob/internal/phrase"
)

// deviceVariable is a variable with the list of devices that a program sees (CUDA, ROCm and Level Zero), and devices is such a list: numbers,
// names such as GPU-8932f937, and parts of devices such as 0.1.
var (
	deviceVariable = regexp.MustCompile(`^(?:CUDA_VISIBLE_DEVICES|HIP_VISIBLE_DEVICES|ROCR_VISIBLE_DEVICES|ZE_AFFINITY_MASK)$`)
	devices        = regexp.MustCompile(`^(?:\d+(?:\.\d+)?|(?:GPU|MIG)-[\w/-]+)(?:,(?:\d+(?:\.\d+)?|(?:GPU|MIG)-[\w/-]+))*$`)
)

// FewDevices is a variable that lists fewer devices than a pod has ranks.
type FewDevices struct {
	// Variable is with its value, such as CUDA_VISIBLE_DEVICES=0.
	Variable string
	// Devices is how many devices it lists; 1 or more.
	Devices int
	index   int
}

// FindFewDevices returns the first variable that lists fewer devices than a pod has ranks; nil if there is none. A list without a device turns
// GPUs off.
func (j Job) FindFewDevices(env []corev1.EnvVar) *FewDevices {
	for i, v := range env {
		list := strings.ReplaceAll(v.Value, " ", "")
		if !deviceVariable.MatchString(v.Name) || !devices.MatchString(list) {
			continue
		}
		if n := strings.Count(list, ",") + 1; n < int(j.SlotsPerWorker) {
			return &FewDevices{Variable: v.Name + "=" + phrase.Cut(v.Value, maxShownName), Devices: n, index: i}
		}
	}
	return nil
}

// WarnDevices returns a warning about the variable in the list at a path that lists fewer devices than a pod has ranks; nil if none does.
func (j Job) WarnDevices(env []corev1.EnvVar, at *field.Path) []string {
	few := j.FindFewDevices(env)
	if few == nil {
		return nil
	}
	return []string{fmt.Sprintf("%s: %s shows %s to the %d ranks of each pod: a rank that takes the device of its local rank finds none; list %[4]d devices, use fewer slots, or let the ranks share the device",
		at.Index(few.index), few.Variable, phrase.Count(int32(few.Devices), "device"), j.SlotsPerWorker)}
}
