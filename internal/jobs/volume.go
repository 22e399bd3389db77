package jobs

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
)

// VolumeSource is where the files of a volume are.
type VolumeSource string

// The sources of volumes.
const (
	// VolumeClaim is a PersistentVolumeClaim. All pods of a job mount it, so it needs the access mode ReadWriteMany if they
	// run on several nodes.
	VolumeClaim     VolumeSource = "claim"
	VolumeConfigMap VolumeSource = "configmap"
	VolumeSecret    VolumeSource = "secret"
	// VolumeMemory is memory of each pod, which counts towards the pod's memory limit.
	VolumeMemory VolumeSource = "memory"
	// VolumeScratch is disk of the node of each pod, which is deleted with the pod.
	VolumeScratch VolumeSource = "scratch"
)

// VolumeSources returns all sources.
func VolumeSources() []VolumeSource {
	return []VolumeSource{VolumeClaim, VolumeConfigMap, VolumeSecret, VolumeMemory, VolumeScratch}
}

// Volume is mounted by every pod of a job.
type Volume struct {
	Source VolumeSource `json:"source"`
	// Name is the name of the claim, ConfigMap or Secret.
	Name string `json:"name,omitempty"`
	// Size limits memory and scratch, such as 8Gi.
	Size string `json:"size,omitempty"`
	// Path is the absolute path in the pods.
	Path string `json:"path"`
	// SubPath is a folder of the volume to mount; empty for the volume as a whole.
	SubPath  string `json:"subPath,omitempty"`
	ReadOnly bool   `json:"readOnly,omitempty"`
}

// ParseVolume reads [SOURCE/]NAME:PATH[:ro], such as data:/data, secret/token:/etc/token or memory/8Gi:/dev/shm. Without a
// source it is a claim.
func ParseVolume(text string) (Volume, error) {
	const form = "must be [SOURCE/]NAME:PATH[:ro], such as data:/data, secret/token:/etc/token:ro or scratch/50Gi:/scratch"
	wrong := func(reason string) (Volume, error) {
		return Volume{}, Invalid(FieldError{Field: "volume", Value: text, Reason: reason})
	}
	parts := strings.Split(text, ":")
	if len(parts) < 2 || len(parts) > 3 || len(parts) == 3 && parts[2] != "ro" && parts[2] != "rw" {
		return wrong(form)
	}
	volume := Volume{Source: VolumeClaim, Path: parts[1], ReadOnly: len(parts) == 3 && parts[2] == "ro"}
	source, name, qualified := strings.Cut(parts[0], "/")
	if qualified {
		volume.Source = VolumeSource(strings.ToLower(source))
	} else {
		name = source
	}
	switch volume.Source {
	case VolumeMemory, VolumeScratch:
		volume.Size = name
	case VolumeClaim, VolumeConfigMap, VolumeSecret:
		volume.Name = name
	}
	if problem := volume.problem(); problem != "" {
		return wrong(problem)
	}
	return volume, nil
}

// problem returns what is wrong with a volume; empty if nothing is.
func (v Volume) problem() string {
	switch v.Source {
	case VolumeMemory, VolumeScratch:
		if size, err := resource.ParseQuantity(v.Size); err != nil || size.Sign() <= 0 {
			return fmt.Sprintf("has the size %q, which is not a quantity; use a value such as %s/8Gi:%s", v.Size, v.Source, v.Path)
		}
	case VolumeClaim, VolumeConfigMap, VolumeSecret:
		if problems := validation.IsDNS1123Subdomain(v.Name); len(problems) > 0 {
			return fmt.Sprintf("has the name %q, which is not valid: %s", v.Name, problems[0])
		}
	default:
		return fmt.Sprintf("has the unknown source %q; use claim, configmap, secret, memory or scratch", v.Source)
	}
	if !path.IsAbs(v.Path) || path.Clean(v.Path) == "/" {
		return fmt.Sprintf("has the path %q; use an absolute path other than /", v.Path)
	}
	return ""
}

// pod returns the volume of a pod, under a name.
func (v Volume) pod(name string) corev1.Volume {
	volume := corev1.Volume{Name: name}
	switch v.Source {
	case VolumeConfigMap:
		volume.ConfigMap = &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: v.Name}}
	case VolumeSecret:
		volume.Secret = &corev1.SecretVolumeSource{SecretName: v.Name}
	case VolumeMemory, VolumeScratch:
		size := resource.MustParse(v.Size)
		volume.EmptyDir = &corev1.EmptyDirVolumeSource{SizeLimit: &size}
		if v.Source == VolumeMemory {
			volume.EmptyDir.Medium = corev1.StorageMediumMemory
		}
	default:
		volume.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: v.Name}
	}
	return volume
}

// volumes returns the volumes of a pod and where its container mounts them. A claim that is mounted twice is one volume, except
// with a runtime: the mounts in a patch of a runtime have different names.
func (s Spec) volumes() (volumes []corev1.Volume, mounts []corev1.VolumeMount) {
	all := s.Volumes
	if s.Output != nil {
		all = append(slices.Clip(all), *s.Output)
	}
	names := map[string]string{}
	for i, v := range all {
		source := string(v.Source) + "/" + v.Name
		name, known := names[source]
		if !known || v.Name == "" || s.Runtime != "" {
			name = fmt.Sprintf("volume-%d", i)
			names[source] = name
			volumes = append(volumes, v.pod(name))
		}
		mounts = append(mounts, corev1.VolumeMount{Name: name, MountPath: v.Path, SubPath: v.SubPath, ReadOnly: v.ReadOnly})
	}
	return volumes, mounts
}

// ParseToleration reads a toleration in the form of a taint: KEY, KEY=VALUE, KEY:EFFECT or KEY=VALUE:EFFECT.
func ParseToleration(text string) (corev1.Toleration, error) {
	pair, effect, _ := strings.Cut(text, ":")
	key, value, equal := strings.Cut(pair, "=")
	toleration := corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffect(effect)}
	if equal {
		toleration.Operator, toleration.Value = corev1.TolerationOpEqual, value
	}
	problems := validation.IsQualifiedName(key)
	problems = append(problems, validation.IsValidLabelValue(value)...)
	switch toleration.Effect {
	case "", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
	default:
		problems = append(problems, fmt.Sprintf("unknown effect %q", effect))
	}
	if len(problems) > 0 {
		return corev1.Toleration{}, Invalid(FieldError{Field: "toleration", Value: text, Reason: "must be KEY[=VALUE][:EFFECT] with effect NoSchedule, PreferNoSchedule or NoExecute: " + problems[0]})
	}
	return toleration, nil
}

// TolerationText returns the text of which ParseToleration reads a toleration; false if there is none.
func TolerationText(toleration corev1.Toleration) (string, bool) {
	text := toleration.Key
	if toleration.Operator == corev1.TolerationOpEqual {
		text += "=" + toleration.Value
	}
	if toleration.Effect != "" {
		text += ":" + string(toleration.Effect)
	}
	parsed, err := ParseToleration(text)
	return text, err == nil && parsed == toleration
}

// String returns the text of which ParseVolume reads a volume, without its folder.
func (v Volume) String() string {
	text := string(v.Source) + "/" + cmp.Or(v.Name, v.Size) + ":" + v.Path
	if v.Source == VolumeClaim {
		text = v.Name + ":" + v.Path
	}
	if v.ReadOnly {
		text += ":ro"
	}
	return text
}
