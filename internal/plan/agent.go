package plan

import (
	"fmt"
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/mpi"
)

// addAgent adds the agent and the job's key to a pod.
func addAgent(job mpi.Job, pod *corev1.PodSpec, settings Settings) {
	main := &pod.Containers[0]
	if seconds := pod.TerminationGracePeriodSeconds; seconds != nil {
		addEnv(main, corev1.EnvVar{Name: agentapi.EnvGrace, Value: fmt.Sprintf("%ds", *seconds)})
	}
	addEnv(main, corev1.EnvVar{Name: agentapi.EnvAddressWait, Value: job.Gang.AddressWait().String()})
	if path := main.TerminationMessagePath; path != "" && path != agentapi.TerminationFile {
		addEnv(main, corev1.EnvVar{Name: agentapi.EnvTermination, Value: path})
	}
	if cores := job.WorkerCores(); cores > 0 {
		addEnv(main, corev1.EnvVar{Name: agentapi.EnvCores, Value: strconv.FormatInt(cores, 10)})
	}
	if !mpi.MayHaveGPUs(*pod) {
		addEnv(main, corev1.EnvVar{Name: agentapi.EnvMeasureGPUs, Value: "false"})
	}
	if job.Profile {
		addEnv(main, corev1.EnvVar{Name: agentapi.EnvProfile, Value: agentapi.ProfileFolder})
	}
	main.VolumeMounts = append(main.VolumeMounts, deliver(pod, main, settings)...)
	main.VolumeMounts = append(main.VolumeMounts, corev1.VolumeMount{Name: agentapi.KeyVolume, MountPath: agentapi.KeyPath, ReadOnly: true})
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: agentapi.KeyVolume, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
		SecretName: job.SecretName(),
		// Any user of the pod can read the key, because the user is unknown in advance.
		DefaultMode: ptr.To[int32](0o444),
		Items:       []corev1.KeyToPath{{Key: corev1.SSHAuthPrivateKey, Path: corev1.SSHAuthPrivateKey}},
	}}})
}

// annotationMain names the container that kubectl uses by default. Without it, kubectl prints the container that it
// selected in a pod with init containers.
const annotationMain = "kubectl.kubernetes.io/default-container"

// withMain sets a pod's first container as the default container, unless the user set another one.
func withMain(annotations map[string]string, pod corev1.PodSpec) map[string]string {
	if _, named := annotations[annotationMain]; named {
		return annotations
	}
	return with(annotations, annotationMain, pod.Containers[0].Name)
}

// resourcesLike returns the main container's resources without devices. The pod does not need more in total, because
// init containers run before the others. It keeps its QoS class, and fits quotas that require limits.
func resourcesLike(main corev1.ResourceRequirements) corev1.ResourceRequirements {
	usual := func(list corev1.ResourceList) corev1.ResourceList {
		list = maps.Clone(list)
		maps.DeleteFunc(list, func(name corev1.ResourceName, _ resource.Quantity) bool {
			return name != corev1.ResourceCPU && name != corev1.ResourceMemory && name != corev1.ResourceEphemeralStorage
		})
		return list
	}
	return corev1.ResourceRequirements{Requests: usual(main.Requests), Limits: usual(main.Limits)}
}

// securityLike returns the main container's user, so that the same policies admit the pod, without privileges that
// copying a file does not need.
func securityLike(main *corev1.SecurityContext) *corev1.SecurityContext {
	context := &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false),
		ReadOnlyRootFilesystem:   new(true),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
	if main != nil {
		context.RunAsUser, context.RunAsGroup, context.RunAsNonRoot = main.RunAsUser, main.RunAsGroup, main.RunAsNonRoot
		context.SeccompProfile, context.SELinuxOptions = main.SeccompProfile, main.SELinuxOptions
	}
	return context
}

// launchThrough makes the agent run and monitor the launcher's command. If the command is only defined in the image,
// it runs without monitoring; the agent still starts its ranks.
func launchThrough(main *corev1.Container) {
	if len(main.Command) > 0 {
		main.Command = append([]string{agentapi.Binary, "launch", "--"}, main.Command...)
	}
}
