package plan

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"opendatahub.io/mpijob/internal/launch"
	"opendatahub.io/mpijob/internal/mpi"
)

// addAgent puts the agent into a pod: an init container copies it to where the main container finds it, beside the
// job's key.
func addAgent(job mpi.Job, pod *corev1.PodSpec, settings Settings) {
	main := &pod.Containers[0]
	pod.Volumes = append(
		pod.Volumes,
		corev1.Volume{Name: launch.Volume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		corev1.Volume{Name: launch.KeyVolume, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
			SecretName: job.SecretName(),
			// Whoever runs in the pod may read it: no user needs to be known beforehand, and none outside sees it.
			DefaultMode: ptr.To[int32](0o444),
			Items:       []corev1.KeyToPath{{Key: corev1.SSHAuthPrivateKey, Path: corev1.SSHAuthPrivateKey}},
		}}},
	)
	main.VolumeMounts = append(
		main.VolumeMounts,
		corev1.VolumeMount{Name: launch.Volume, MountPath: launch.Path},
		corev1.VolumeMount{Name: launch.KeyVolume, MountPath: launch.KeyPath, ReadOnly: true},
	)
	// The first of the init containers: the user's own may want to reach other hosts too.
	pod.InitContainers = slices.Insert(pod.InitContainers, 0, corev1.Container{
		Name:  launch.Container,
		Image: settings.AgentImage,
		// The image's own program; its folder is the volume.
		Args:            []string{"install", launch.Path},
		VolumeMounts:    []corev1.VolumeMount{{Name: launch.Volume, MountPath: launch.Path}},
		Resources:       resourcesLike(main.Resources),
		SecurityContext: securityLike(main.SecurityContext),
	})
}

// annotationMain names the container that kubectl means where none is named. A pod with an init container would have
// kubectl say at each call which one it has taken.
const annotationMain = "kubectl.kubernetes.io/default-container"

// withMain names a pod's first container as the one that people mean, unless they have named another.
func withMain(annotations map[string]string, pod corev1.PodSpec) map[string]string {
	if _, named := annotations[annotationMain]; named {
		return annotations
	}
	named := maps.Clone(annotations)
	if named == nil {
		named = map[string]string{}
	}
	named[annotationMain] = pod.Containers[0].Name
	return named
}

// resourcesLike are as much as the main container has, devices left out. The pod needs no more for it, since init
// containers run before the others; it keeps its class of service; and quotas that want limits are content.
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

// securityLike runs as the main container does, so that the pod is admitted wherever it was before, with nothing
// that copying a file does not need.
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

// launchThrough has the agent run the launcher's command and watch over it. A command that only the image knows is
// left to run by itself: the agent still starts its ranks.
func launchThrough(main *corev1.Container) {
	if len(main.Command) > 0 {
		main.Command = append([]string{launch.Binary, "launch", "--"}, main.Command...)
	}
}
