package mpi

import (
	"fmt"
	"math"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// configLimit is how many bytes a ConfigMap holds (k8s.io/api/core/v1: MaxSecretSize serves for both).
const configLimit = corev1.MaxSecretSize

// domainAllowance is what a host name may grow by for the cluster's domain, which validation does not know.
const domainAllowance = 64

// Validate tells everything that keeps a job from running as it is written, each error at the user's own
// field with the value, what is allowed and what to do. What else is wrong with a pod template only the API
// server knows; it is asked when a job is admitted, and again when its pods are made.
func Validate(j Job) field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, validateName(j)...)
	errs = append(errs, validateSize(j)...)
	errs = append(errs, validateSSHMountPath(j)...)
	errs = append(errs, validateLifecycle(j)...)
	errs = append(errs, validateLaunch(j)...)
	errs = append(errs, validateGang(j)...)
	errs = append(errs, validateTemplate(j.Launcher.Template, j.Fields.LauncherTemplate, j.SSHMountPath, ConfigMountPath)...)
	if j.Workers.Count > 0 {
		errs = append(errs, validateTemplate(j.Workers.Template, j.Fields.WorkerTemplate, j.SSHMountPath)...)
	}
	return errs
}

// validateLaunch checks who is to start ranks.
func validateLaunch(j Job) field.ErrorList {
	switch j.Launch {
	case "", LaunchAgent, LaunchSSHD:
		return nil
	}
	return field.ErrorList{field.NotSupported(j.Fields.Launch, j.Launch, []string{LaunchAgent, LaunchSSHD})}
}

// Warnings are what in a job runs but is hardly what its user means.
func Warnings(j Job) []string {
	var warnings []string
	for _, role := range []struct {
		at       *field.Path
		template corev1.PodTemplateSpec
	}{{j.Fields.LauncherTemplate, j.Launcher.Template}, {j.Fields.WorkerTemplate, j.Workers.Template}} {
		if policy := role.template.Spec.RestartPolicy; policy != "" {
			warnings = append(warnings, fmt.Sprintf("%s: %q has no effect: the restartPolicy beside replicas decides", role.at.Child("spec", "restartPolicy"), policy))
		}
	}
	if j.Ranks() == 0 && j.Workers.Count > 0 {
		warnings = append(warnings, fmt.Sprintf("%s: 0 leaves mpirun no place for a rank", j.Fields.Slots))
	}
	if containers := j.Workers.Template.Spec.Containers; len(containers) > 0 && j.Ranks() > 0 {
		if gpus := GPUs(containers[0].Resources); gpus > 0 && int64(j.SlotsPerWorker) != gpus {
			warnings = append(warnings, fmt.Sprintf("%s: %s on each worker with %s; MPI programs for GPUs mostly want a rank for each GPU", j.Fields.Slots, count(j.SlotsPerWorker, "rank"), count(int32(gpus), "GPU")))
		}
	}
	if len(j.Connections) > 0 && j.Workers.Count > 0 && !j.UsesAgent() {
		warnings = append(warnings, ConnectionsNeedAgent)
	}
	if j.Gang.Wanted && j.Launcher.AfterWorkers && j.Workers.Count > 0 {
		warnings = append(warnings, fmt.Sprintf("%s: the launcher is not among the %d pods that are placed together, since it is made when all workers are ready", j.Fields.Gang, j.GangSize()))
	}
	return warnings
}

// validateName checks the longest host name that the job's name leads to: pods, the Service and the Job
// are named after it.
func validateName(j Job) field.ErrorList {
	longest := j.LauncherName()
	if last := j.WorkerName(int(max(j.Workers.Count, 1)) - 1); len(last) > len(longest) {
		longest = last
	}
	problems := validation.IsDNS1035Label(longest)
	if len(problems) == 0 {
		return nil
	}
	detail := fmt.Sprintf("a pod of this job would be named %q, which is no valid host name: %s", longest, strings.Join(problems, "; "))
	if room := validation.DNS1035LabelMaxLength - (len(longest) - len(j.Name)); len(j.Name) > room {
		detail += fmt.Sprintf("; use a name of at most %d characters, this one has %d", room, len(j.Name))
	}
	return field.ErrorList{field.Invalid(j.Fields.Name, j.Name, detail)}
}

func validateSize(j Job) field.ErrorList {
	var errs field.ErrorList
	if j.SlotsPerWorker < 0 {
		errs = append(errs, field.Invalid(j.Fields.Slots, j.SlotsPerWorker, "must be 0 or more: it is how many ranks each worker takes"))
	}
	if j.Workers.Count < 0 {
		errs = append(errs, field.Invalid(j.Fields.WorkerCount, j.Workers.Count, "must be 1 or more"))
	}
	if ranks := j.Ranks(); ranks > math.MaxInt32 {
		errs = append(errs, field.Invalid(j.Fields.Slots, j.SlotsPerWorker,
			fmt.Sprintf("%d workers with so many slots each make %d ranks; MPI counts ranks in 31 bits, at most %d", j.Workers.Count, ranks, math.MaxInt32)))
	}
	// Each host stands in the hostfile and, once it runs, in discover_hosts.sh.
	perHost := 2*(len(j.HostName(j.WorkerName(int(max(j.Workers.Count, 1))-1), ""))+domainAllowance) + len("echo \n slots=2147483647\n")
	if most := configLimit / perHost; int(j.Workers.Count) > most {
		errs = append(errs, field.Invalid(j.Fields.WorkerCount, j.Workers.Count,
			fmt.Sprintf("must be at most %d: the list of hosts is kept in a ConfigMap, which holds 1 MiB", most)))
	}
	return errs
}

func validateSSHMountPath(j Job) field.ErrorList {
	switch {
	case !path.IsAbs(j.SSHMountPath):
		return field.ErrorList{field.Invalid(j.Fields.SSHMountPath, j.SSHMountPath, "must be an absolute path, such as "+DefaultSSHPath)}
	case strings.Contains(j.SSHMountPath, ":"):
		return field.ErrorList{field.Invalid(j.Fields.SSHMountPath, j.SSHMountPath, "must not contain ':'")}
	case path.Clean(j.SSHMountPath) == ConfigMountPath:
		return field.ErrorList{field.Invalid(j.Fields.SSHMountPath, j.SSHMountPath, "is where the hostfile is mounted; choose another")}
	}
	return nil
}

func validateLifecycle(j Job) field.ErrorList {
	var errs field.ErrorList
	if ttl := j.Lifecycle.TTL; ttl != nil {
		errs = append(errs, apivalidation.ValidateNonnegativeField(int64(ttl.Seconds()), j.Fields.TTL)...)
	}
	if deadline := j.Lifecycle.Deadline; deadline != nil {
		errs = append(errs, apivalidation.ValidateNonnegativeField(*deadline, j.Fields.Deadline)...)
	}
	if limit := j.Lifecycle.BackoffLimit; limit != nil {
		errs = append(errs, apivalidation.ValidateNonnegativeField(int64(*limit), j.Fields.BackoffLimit)...)
	}
	return errs
}

// validateTemplate checks a pod template where the job adds to it and where numbers can be out of range.
// Everything else in it is the API server's to judge.
func validateTemplate(template corev1.PodTemplateSpec, at *field.Path, mounts ...string) field.ErrorList {
	errs := metav1validation.ValidateLabels(template.Labels, at.Child("metadata", "labels"))
	errs = append(errs, apivalidation.ValidateAnnotations(template.Annotations, at.Child("metadata", "annotations"))...)
	spec := at.Child("spec")
	if len(template.Spec.Containers) == 0 {
		return append(errs, field.Required(spec.Child("containers"), "must define at least one container"))
	}
	for i, volume := range template.Spec.Volumes {
		if volume.Name == SSHVolume || volume.Name == ConfigVolume {
			errs = append(errs, field.Invalid(spec.Child("volumes").Index(i).Child("name"), volume.Name,
				"is the name of a volume that the operator adds; choose another"))
		}
	}
	for i, mount := range template.Spec.Containers[0].VolumeMounts {
		for _, taken := range mounts {
			if path.Clean(mount.MountPath) == path.Clean(taken) {
				errs = append(errs, field.Invalid(spec.Child("containers").Index(0).Child("volumeMounts").Index(i).Child("mountPath"), mount.MountPath,
					"is where the operator mounts what the job needs; choose another"))
			}
		}
	}
	errs = append(errs, validateContainers(template.Spec.InitContainers, spec.Child("initContainers"))...)
	return append(errs, validateContainers(template.Spec.Containers, spec.Child("containers"))...)
}

func validateContainers(containers []corev1.Container, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := map[string]bool{}
	for i, container := range containers {
		here := at.Index(i)
		if problems := validation.IsDNS1123Label(container.Name); len(problems) > 0 {
			errs = append(errs, field.Invalid(here.Child("name"), container.Name, strings.Join(problems, "; ")))
		} else if names[container.Name] {
			errs = append(errs, field.Duplicate(here.Child("name"), container.Name))
		}
		names[container.Name] = true
		if strings.TrimSpace(container.Image) == "" {
			errs = append(errs, field.Required(here.Child("image"), "must name the image to run"))
		}
		errs = append(errs, validateResources(container.Resources, here.Child("resources"))...)
	}
	return errs
}
