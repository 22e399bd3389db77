package facts

import (
	"maps"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/podspec"
)

// Image returns the image of the first container of a pod; "" if it has none.
func Image(spec corev1.PodSpec) string {
	if len(spec.Containers) == 0 {
		return ""
	}
	return spec.Containers[0].Image
}

// MemoryLimit is what the first container may use of memory at most, by its own limit or by that of the pod (IsLimitOfPod), in bytes; 0 where there
// is no limit.
func MemoryLimit(spec corev1.PodSpec) int64 {
	if len(spec.Containers) == 0 {
		return 0
	}
	limits := spec.Containers[0].Resources.Limits
	if IsLimitOfPod(spec) {
		limits = spec.Resources.Limits
	}
	quantity := limits[corev1.ResourceMemory]
	return quantity.Value()
}

// IsLimitOfPod reports whether the memory of the first container is limited by resources of the pod as a whole, and by none of its own.
func IsLimitOfPod(spec corev1.PodSpec) bool {
	if spec.Resources == nil || len(spec.Containers) == 0 {
		return false
	}
	_, isOwn := spec.Containers[0].Resources.Limits[corev1.ResourceMemory]
	_, isPods := spec.Resources.Limits[corev1.ResourceMemory]
	return isPods && !isOwn
}

// Gpus is how many GPUs each pod of a role asks for.
func (f *Facts) Gpus(role mpi.Role) (count int64) {
	for _, c := range f.Template(role).Containers {
		count += podspec.GPUs(c.Resources)
	}
	return count
}

// RDMA is the first RDMA resource that a pod asks for; empty where it asks for none.
func RDMA(pod corev1.PodSpec) corev1.ResourceName {
	for _, name := range slices.Sorted(maps.Keys(podspec.Requests(pod))) {
		if podspec.IsRDMA(name) {
			return name
		}
	}
	return ""
}

// VolumeOf returns the name of the volume that the first container of a pod mounts at a file or a folder above it; else "".
func VolumeOf(spec corev1.PodSpec, file string) string {
	if mount := MountOf(spec, file); mount != nil {
		return mount.Name
	}
	return ""
}

// MountOf returns the mount of the first container of a pod at a file or a folder above it, the innermost one; nil if there is none.
func MountOf(spec corev1.PodSpec, file string) (innermost *corev1.VolumeMount) {
	if len(spec.Containers) == 0 {
		return nil
	}
	longest := ""
	for i, mount := range spec.Containers[0].VolumeMounts {
		if at := path.Clean(mount.MountPath); mpi.Contains(at, file) && len(at) >= len(longest) {
			innermost, longest = &spec.Containers[0].VolumeMounts[i], at
		}
	}
	return innermost
}

// SourceOf names what is on a volume of a pod, such as "ConfigMap code"; "" if that is of another kind, or the pod has no such volume.
func SourceOf(spec corev1.PodSpec, volume string) string {
	for _, v := range spec.Volumes {
		object, _ := ObjectOf(v)
		switch {
		case v.Name != volume:
		case object != "":
			return object
		case v.PersistentVolumeClaim != nil:
			return "claim " + v.PersistentVolumeClaim.ClaimName
		case v.EmptyDir != nil:
			return "an emptyDir, which is empty when the pod starts"
		}
	}
	return ""
}

// ObjectOf returns the Secret or ConfigMap of a volume, such as "Secret login", and the mode of its files, nil for the default of 0644; ""
// if the volume is another.
func ObjectOf(volume corev1.Volume) (object string, mode *int32) {
	switch {
	case volume.Secret != nil:
		return "Secret " + volume.Secret.SecretName, volume.Secret.DefaultMode
	case volume.ConfigMap != nil:
		return "ConfigMap " + volume.ConfigMap.Name, volume.ConfigMap.DefaultMode
	}
	return "", nil
}

// SetsVariable reports whether the first container of a pod template sets an environment variable.
func SetsVariable(spec corev1.PodSpec, name string) bool {
	return len(spec.Containers) > 0 && name != "" && slices.ContainsFunc(spec.Containers[0].Env, func(env corev1.EnvVar) bool { return env.Name == name })
}

// LauncherCommand returns the launcher's command with its arguments as one line; "" if the image defines it.
func (f *Facts) LauncherCommand() string { return CommandOf(f.Template(mpi.RoleLauncher)) }

// LauncherWords returns the words of the launcher's command with its arguments; none if the image defines them.
func (f *Facts) LauncherWords() []string { return wordsOf(f.Template(mpi.RoleLauncher)) }

// CommandOf returns the command of a pod's first container with its arguments as one line; "" if the image defines it.
func CommandOf(spec corev1.PodSpec) string {
	return strings.Join(wordsOf(spec), " ")
}

func wordsOf(spec corev1.PodSpec) []string {
	if len(spec.Containers) == 0 {
		return nil
	}
	return slices.Concat(spec.Containers[0].Command, spec.Containers[0].Args)
}

// IsImageProgram reports whether only the image defines the program of a pod, which then runs without an agent above it.
func IsImageProgram(pod corev1.PodSpec) bool {
	return len(pod.Containers) > 0 && len(pod.Containers[0].Command) == 0
}
