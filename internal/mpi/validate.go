package mpi

import (
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/phrase"
	"opendatahub.io/mpijob/internal/podspec"
)

// maxConfigBytes is the size limit of a ConfigMap (k8s.io/api/core/v1: MaxSecretSize applies to both).
const maxConfigBytes = corev1.MaxSecretSize

// maxDomainLength is the assumed maximum length of the cluster's domain, which validation does not know.
const maxDomainLength = 64

// Validate returns everything that prevents a job from running. Each error names the user's field, the value, what is
// allowed, and the next step. It does not check the rest of the pod templates: the API server validates them when the
// job is admitted, and again when the pods are created.
func Validate(j Job) field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, validateName(j)...)
	errs = append(errs, validateSize(j)...)
	errs = append(errs, validateSSHMountPath(j)...)
	errs = append(errs, validateLifecycle(j)...)
	errs = append(errs, validateGang(j)...)
	agent := j.agentPaths()
	errs = append(errs, validateLauncherLabels(j)...)
	errs = append(errs, validateTemplate(j, j.Launcher.Template, j.Fields.LauncherTemplate, append(agent, j.SSHMountPath, ConfigMountPath)...)...)
	if j.Workers.Count > 0 {
		errs = append(errs, validateTemplate(j, j.Workers.Template, j.Fields.WorkerTemplate, append(agent, j.SSHMountPath)...)...)
	}
	return shortened(errs)
}

// shortened limits the length of the values in errors: users know what they wrote.
func shortened(errs field.ErrorList) field.ErrorList {
	const most = 200
	for _, err := range errs {
		if value, is := err.BadValue.(string); is {
			err.BadValue = phrase.Cut(value, most)
		}
	}
	return errs
}

// agentPaths returns the folders that the agent takes in the job's pods.
func (j Job) agentPaths() []string {
	if !j.UsesAgent() {
		return nil
	}
	return []string{agentapi.Path, agentapi.KeyPath}
}

// jobLabels are set by the Job controller, which rejects other values
// (k8s.io/kubernetes/pkg/registry/batch/job/strategy.go).
var jobLabels = []string{batchv1.ControllerUidLabel, batchv1.JobNameLabel, "controller-uid", "job-name"}

func validateLauncherLabels(j Job) (errs field.ErrorList) {
	for _, name := range jobLabels {
		if value, set := j.Launcher.Template.Labels[name]; set {
			errs = append(errs, field.Invalid(j.Fields.LauncherTemplate.Child("metadata", "labels").Key(name), value, "is set by Kubernetes on the launcher's pod; remove this label"))
		}
	}
	return errs
}

// checkLaunch checks AnnotationLaunch.
func checkLaunch(_ string, annotations map[string]string) field.ErrorList {
	switch launch := annotations[AnnotationLaunch]; launch {
	case "", LaunchAgent, LaunchSSHD:
		return nil
	default:
		return field.ErrorList{field.NotSupported(annotationPath(AnnotationLaunch), launch, []string{LaunchAgent, LaunchSSHD})}
	}
}

// FinishedIsFixed is the error for a change of a job that has finished.
func FinishedIsFixed(name string) string {
	return "cannot be changed after the job has finished, because it is the record of what ran; to run it with a change: kubectl odh mpijob clone " + name + " --set FIELD=VALUE"
}

// WarnMemory returns warnings about amounts of memory with which no container starts: "512m" is half a byte.
func WarnMemory(resources corev1.ResourceRequirements, at *field.Path) (warnings []string) {
	const least = 1 << 20
	for _, list := range []struct {
		name   string
		values corev1.ResourceList
	}{{"limits", resources.Limits}, {"requests", resources.Requests}} {
		if amount, set := list.values[corev1.ResourceMemory]; set && amount.Sign() > 0 && amount.CmpInt64(least) < 0 {
			warnings = append(warnings, fmt.Sprintf("%s: %s is less than 1 MiB, with which no container starts; write Mi for mebibytes, such as 512Mi",
				at.Child(list.name).Key(string(corev1.ResourceMemory)), amount.String()))
		}
	}
	return warnings
}

// Warnings returns warnings about valid values that are probably unintended.
func Warnings(j Job) []string {
	warnings := warnTemplates(j)
	warnings = append(warnings, warnLauncher(j)...)
	warnings = append(warnings, warnReferences(j)...)
	warnings = append(warnings, warnPaths(j)...)
	if containers := j.Workers.Template.Spec.Containers; len(containers) > 0 && j.Fields.WorkerTemplate != nil {
		warnings = append(warnings, j.WarnDevices(containers[0].Env, j.Fields.WorkerTemplate.Child("spec", "containers").Index(0).Child("env"))...)
	}
	if j.Ranks() == 0 && j.Workers.Count > 0 {
		warnings = append(warnings, fmt.Sprintf("%s: with 0 slots mpirun cannot start ranks; use 1 or more", j.Fields.Slots))
	}
	if containers := j.Workers.Template.Spec.Containers; len(containers) > 0 && j.Ranks() > 0 {
		if gpus := podspec.GPUs(containers[0].Resources); gpus > 0 && int64(j.SlotsPerWorker) != gpus {
			warnings = append(warnings, fmt.Sprintf("%s: %s per worker with %s; most MPI programs for GPUs need one rank per GPU", j.Fields.Slots, phrase.Count(j.SlotsPerWorker, "rank"), phrase.Count(int32(gpus), "GPU")))
		}
	}
	if j.Workers.Count > 1 && j.UsesAgent() && j.Workers.Template.Spec.HostNetwork {
		warnings = append(warnings, fmt.Sprintf("%s: two workers on one node cannot both use port %d; spread the workers over nodes with podAntiAffinity, or remove hostNetwork",
			j.Fields.WorkerTemplate.Child("spec", "hostNetwork"), agentapi.Port))
	}
	warnings = append(warnings, warnServesNothing(j)...)
	if j.Profile && !j.UsesAgent() {
		warnings = append(warnings, annotationPath(AnnotationProfile).String()+": has no effect, because the agent does not start the ranks of this job; remove it, or use the agent")
	}
	if len(j.Connections) > 0 && j.Workers.Count > 0 && !j.UsesAgent() {
		warnings = append(warnings, ConnectionsWithoutAgent)
	}
	if j.Gang.Wanted && j.Launcher.AfterWorkers && j.Workers.Count > 0 {
		warnings = append(warnings, fmt.Sprintf("%s: the launcher is not one of the %d pods that are scheduled together, because it is created when all workers are ready", j.Fields.Gang, j.GangSize()))
	}
	if j.ManagedBy != "" && j.Queue == "" {
		warnings = append(warnings, fmt.Sprintf("%s: %s runs this job, and not this operator; without a queue it never starts: name a queue, or remove the field", j.Fields.ManagedBy, j.ManagedBy))
	}
	return warnings
}

// warnServesNothing returns a warning about workers whose main container, the first one, runs something that starts no ranks.
func warnServesNothing(j Job) []string {
	containers := j.Workers.Template.Spec.Containers
	if len(containers) == 0 || j.UsesAgent() || !j.Workers.ServesNothing() {
		return nil
	}
	instead := "remove the command"
	if len(containers) > 1 {
		instead = fmt.Sprintf("ranks run in the first container, here %s: put that of the program first", phrase.Cut(containers[0].Name, maxShownName))
	}
	at := j.Fields.WorkerTemplate.Child("spec", "containers").Index(0).Child("command")
	return []string{fmt.Sprintf("%s: %s runs in place of the agent, and starts no ranks; %s", at, path.Base(containers[0].Command[0]), instead)}
}

// warnTemplates returns warnings about fields of the pod templates.
func warnTemplates(j Job) (warnings []string) {
	for _, role := range []struct {
		at       *field.Path
		template corev1.PodTemplateSpec
	}{{j.Fields.LauncherTemplate, j.Launcher.Template}, {j.Fields.WorkerTemplate, j.Workers.Template}} {
		if policy := role.template.Spec.RestartPolicy; policy != "" {
			warnings = append(warnings, fmt.Sprintf("%s: %q has no effect; set restartPolicy next to replicas", role.at.Child("spec", "restartPolicy"), policy))
		}
		warnings = append(warnings, warnHostNames(j, role.template.Spec, role.at.Child("spec"))...)
		warnings = append(warnings, warnDNS(role.template.Spec, role.at.Child("spec"))...)
		for i, container := range role.template.Spec.Containers {
			warnings = append(warnings, WarnMemory(container.Resources, role.at.Child("spec", "containers").Index(i).Child("resources"))...)
		}
		if role.template.Spec.HostPID {
			warnings = append(warnings, fmt.Sprintf("%s: the job can see and signal the processes of other pods on its nodes; MPI does not need it: remove it", role.at.Child("spec", "hostPID")))
		}
	}
	return warnings
}

// warnHostNames returns warnings about host names in a pod template, which the operator replaces.
func warnHostNames(j Job, pod corev1.PodSpec, at *field.Path) (warnings []string) {
	for _, name := range []struct{ field, value string }{{"hostname", pod.Hostname}, {"subdomain", pod.Subdomain}} {
		if name.value != "" {
			warnings = append(warnings, fmt.Sprintf("%s: %q has no effect; the operator sets the host names of all pods, such as %s",
				at.Child(name.field), phrase.Cut(name.value, maxShownName), j.HostName(j.LauncherHost(), "")))
		}
	}
	return warnings
}

// validateName validates the longest host name that is derived from the job's name: pods, the Service and the Job
// contain it.
func validateName(j Job) field.ErrorList {
	longest := j.LauncherName()
	if last := j.WorkerName(int(max(j.Workers.Count, 1)) - 1); len(last) > len(longest) {
		longest = last
	}
	problems := validation.IsDNS1035Label(longest)
	if len(problems) == 0 {
		return nil
	}
	detail := fmt.Sprintf("a pod of this job would be named %q, which is not a valid host name: %s", longest, strings.Join(problems, "; "))
	if room := validation.DNS1035LabelMaxLength - (len(longest) - len(j.Name)); len(j.Name) > room {
		detail += fmt.Sprintf("; use a name of at most %d characters instead of %d", room, len(j.Name))
	}
	return field.ErrorList{field.Invalid(j.Fields.Name, j.Name, detail)}
}

func validateSize(j Job) field.ErrorList {
	var errs field.ErrorList
	if j.SlotsPerWorker < 0 {
		errs = append(errs, field.Invalid(j.Fields.Slots, j.SlotsPerWorker, "must be 0 or more: it is the number of ranks per worker"))
	}
	if j.Workers.Count < 0 {
		errs = append(errs, field.Invalid(j.Fields.WorkerCount, j.Workers.Count, "must be 1 or more"))
	}
	if ranks := j.Ranks(); ranks > math.MaxInt32 {
		errs = append(errs, field.Invalid(j.Fields.Slots, j.SlotsPerWorker,
			fmt.Sprintf("%d workers with this number of slots have %d ranks; MPI supports at most %d ranks", j.Workers.Count, ranks, math.MaxInt32)))
	}
	// Each host is listed in the hostfile and, when it runs, in discover_hosts.sh.
	perHost := 2*(len(j.HostName(j.WorkerName(int(max(j.Workers.Count, 1))-1), ""))+maxDomainLength) + len("echo \n slots=2147483647\n")
	if most := maxConfigBytes / perHost; int(j.Workers.Count) > most {
		errs = append(errs, field.Invalid(j.Fields.WorkerCount, j.Workers.Count,
			fmt.Sprintf("must be at most %d: the hostfile is stored in a ConfigMap, which is limited to 1 MiB", most)))
	}
	return errs
}

func validateSSHMountPath(j Job) field.ErrorList {
	const longest = 512
	invalid := func(detail string) field.ErrorList {
		return field.ErrorList{field.Invalid(j.Fields.SSHMountPath, j.SSHMountPath, detail)}
	}
	switch {
	case len(j.SSHMountPath) > longest:
		return invalid(fmt.Sprintf("must be at most %d bytes long, not %d; the default is %s", longest, len(j.SSHMountPath), DefaultSSHPath))
	case !path.IsAbs(j.SSHMountPath):
		return invalid("must be an absolute path, such as " + DefaultSSHPath)
	case strings.Contains(j.SSHMountPath, ":"):
		return invalid("must not contain ':'")
	case path.Clean(j.SSHMountPath) == ConfigMountPath:
		return invalid("is the mount path of the hostfile; choose another path")
	}
	for _, taken := range []string{"/proc", "/sys", "/dev"} {
		if Contains(taken, j.SSHMountPath) {
			return invalid("is a folder of the kernel; choose another path, such as " + DefaultSSHPath)
		}
	}
	for _, taken := range append(j.agentPaths(), ConfigMountPath) {
		if Contains(taken, j.SSHMountPath) || Contains(j.SSHMountPath, taken) {
			return invalid(fmt.Sprintf("conflicts with %s, which the operator mounts; choose another path, such as %s", taken, DefaultSSHPath))
		}
	}
	return nil
}

// Contains reports whether a folder is another folder or file, or contains it.
func Contains(folder, other string) bool {
	folder, other = path.Clean(folder), path.Clean(other)
	return folder == other || folder == "/" || strings.HasPrefix(other, folder+"/")
}

func validateLifecycle(j Job) field.ErrorList {
	var errs field.ErrorList
	if ttl := j.Lifecycle.TTL; ttl != nil {
		errs = append(errs, apivalidation.ValidateNonnegativeField(int64(ttl.Seconds()), j.Fields.TTL)...)
	}
	if deadline := j.Lifecycle.Deadline; deadline != nil {
		errs = append(errs, apivalidation.ValidateNonnegativeField(*deadline, j.Fields.Deadline)...)
		if *deadline > math.MaxInt32 {
			// The Job controller computes the deadline in nanoseconds, which overflow beyond 292 years.
			errs = append(errs, field.Invalid(j.Fields.Deadline, *deadline, fmt.Sprintf("must be at most %d seconds (68 years); omit it for no deadline", math.MaxInt32)))
		}
	}
	if limit := j.Lifecycle.BackoffLimit; limit != nil {
		errs = append(errs, apivalidation.ValidateNonnegativeField(int64(*limit), j.Fields.BackoffLimit)...)
	}
	return errs
}

// validateTemplate validates the parts of a pod template that the operator extends, and the ranges of numbers. The
// API server validates the rest.
func validateTemplate(j Job, template corev1.PodTemplateSpec, at *field.Path, mounts ...string) field.ErrorList {
	errs := metav1validation.ValidateLabels(template.Labels, at.Child("metadata", "labels"))
	errs = append(errs, apivalidation.ValidateAnnotations(template.Annotations, at.Child("metadata", "annotations"))...)
	spec := at.Child("spec")
	if len(template.Spec.Containers) == 0 {
		return append(errs, field.Required(spec.Child("containers"), "must define at least one container"))
	}
	for i, volume := range template.Spec.Volumes {
		if slices.Contains(j.addedVolumes(), volume.Name) {
			errs = append(errs, field.Invalid(spec.Child("volumes").Index(i).Child("name"), volume.Name,
				"is the name of a volume that the operator adds; choose another name"))
		}
	}
	for i, mount := range template.Spec.Containers[0].VolumeMounts {
		for _, taken := range mounts {
			if path.Clean(mount.MountPath) == path.Clean(taken) {
				why := "is a mount path that the operator uses; choose another path"
				if taken == j.SSHMountPath {
					why = fmt.Sprintf("is the path of %s, where the operator mounts a key that it makes for each job; remove this volume, or choose another path", j.Fields.SSHMountPath)
				}
				errs = append(errs, field.Invalid(spec.Child("containers").Index(0).Child("volumeMounts").Index(i).Child("mountPath"), mount.MountPath, why))
			}
		}
	}
	if j.UsesAgent() {
		errs = append(errs, validateAddedName(template.Spec.InitContainers, spec.Child("initContainers"))...)
		errs = append(errs, validateAddedName(template.Spec.Containers, spec.Child("containers"))...)
	}
	errs = append(errs, validateContainers(template.Spec.InitContainers, spec.Child("initContainers"))...)
	return append(errs, validateContainers(template.Spec.Containers, spec.Child("containers"))...)
}

// addedVolumes returns the names of the volumes that the operator adds.
func (j Job) addedVolumes() []string {
	names := []string{SSHVolume, ConfigVolume}
	if j.UsesAgent() {
		names = append(names, agentapi.Volume, agentapi.RunVolume, agentapi.KeyVolume)
	}
	return names
}

// validateAddedName rejects containers with the name of the container that the operator adds.
func validateAddedName(containers []corev1.Container, at *field.Path) (errs field.ErrorList) {
	for i, container := range containers {
		if container.Name == agentapi.Container {
			errs = append(errs, field.Invalid(at.Index(i).Child("name"), container.Name, "is the name of a container that the operator adds; choose another name"))
		}
	}
	return errs
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
			errs = append(errs, field.Required(here.Child("image"), "must be the image to run"))
		}
		errs = append(errs, ValidateResources(container.Resources, here.Child("resources"))...)
		errs = append(errs, validateWords(container.Command, here.Child("command"))...)
		errs = append(errs, validateWords(container.Args, here.Child("args"))...)
	}
	return errs
}

// validateWords rejects words of a command with which no program can be started: the kernel ends a word at a NUL.
func validateWords(words []string, at *field.Path) (errs field.ErrorList) {
	for i, word := range words {
		if strings.Contains(word, "\x00") {
			errs = append(errs, field.Invalid(at.Index(i), field.OmitValueType{}, "must not contain a NUL character (\\x00); remove it"))
		}
	}
	return errs
}

// SplitNew splits the errors of a changed object into those that it did not have before, and the others: what was admitted once
// can still be changed, so that a queue can suspend and resume it.
func SplitNew(before, after field.ErrorList) (added, kept field.ErrorList) {
	for _, err := range after {
		if slices.ContainsFunc(before, func(old *field.Error) bool { return old.Error() == err.Error() }) {
			kept = append(kept, err)
		} else {
			added = append(added, err)
		}
	}
	return added, kept
}
