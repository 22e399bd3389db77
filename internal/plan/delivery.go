package plan

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/utils/ptr"

	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
)

// Delivery is how the agent gets into a job's pods.
type Delivery string

const (
	// InitContainer copies the agent into a volume before the pod's own containers start. It works on every cluster.
	InitContainer Delivery = "init-container"
	// ImageVolume mounts the agent's image (KEP-4639), so that the pod's own containers start at once.
	ImageVolume Delivery = "image-volume"
	// AutoDelivery is ImageVolume where it is known to work, and InitContainer elsewhere.
	AutoDelivery Delivery = "auto"
)

// CheckDelivery refuses what is no way to deliver; empty is InitContainer.
func CheckDelivery(wanted Delivery) error {
	if all := []Delivery{AutoDelivery, ImageVolume, InitContainer}; wanted != "" && !slices.Contains(all, wanted) {
		return fmt.Errorf("--agent-delivery: %q is not allowed; use one of %q", wanted, all)
	}
	return nil
}

// Runtime is what mounts images on a node, by the versions that the node reports.
type Runtime struct {
	// Kubelet is such as v1.37.1, Container such as containerd://2.4.2.
	Kubelet, Container string
}

// DeliveryFacts are what is known of a cluster when a job's pods are created.
type DeliveryFacts struct {
	// Admitted is set if the API server admits a pod of the job with an image volume and keeps the volume.
	Admitted bool
	// Runtimes are those of the nodes that the job's pods may run on.
	Runtimes []Runtime
}

// DeliveryFor decides for a job whose pods are created now.
func DeliveryFor(wanted Delivery, facts DeliveryFacts) Delivery {
	switch {
	case wanted != AutoDelivery:
		return wanted
	case !facts.Admitted, len(facts.Runtimes) == 0:
		return InitContainer
	}
	if slices.ContainsFunc(facts.Runtimes, func(r Runtime) bool { return !r.mountsImages() }) {
		return InitContainer
	}
	return ImageVolume
}

// The first versions that mount images unless told otherwise, in a way that programs can be started from. CRI-O is not
// among them: earlier versions mount images noexec.
var (
	firstKubelet    = version.MustParseGeneric("1.35")
	firstContainerd = version.MustParseGeneric("2.1")
)

// NeedsDelivery reports whether the plan of a job depends on the way to deliver the agent: pods are missing, or the launcher
// is suspended, so that its template may be outdated.
func NeedsDelivery(job mpi.Job, seen jobstate.Observed) bool {
	if job.External || job.Recorded.Finish != nil || !job.UsesAgent() {
		return false
	}
	if seen.Launcher == nil || ptr.Deref(seen.Launcher.Spec.Suspend, false) {
		return true
	}
	workers := 0
	for _, worker := range seen.Workers {
		if worker.Index < int(job.Workers.Count) {
			workers++
		}
	}
	return workers < int(job.Workers.Count)
}

func (r Runtime) mountsImages() bool {
	kubelet, err := version.ParseGeneric(r.Kubelet)
	if err != nil || kubelet.LessThan(firstKubelet) {
		return false
	}
	name, found := strings.CutPrefix(r.Container, "containerd://")
	if !found {
		return false
	}
	containerd, err := version.ParseGeneric(name)
	return err == nil && containerd.AtLeast(firstContainerd)
}

// deliver adds the volumes that bring the agent into a pod, and returns where its main container mounts them.
func deliver(pod *corev1.PodSpec, main *corev1.Container, settings Settings) []corev1.VolumeMount {
	if settings.Delivery == ImageVolume {
		pod.Volumes = append(
			pod.Volumes,
			corev1.Volume{Name: agentapi.Volume, VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: settings.AgentImage}}},
			corev1.Volume{Name: agentapi.RunVolume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		)
		return []corev1.VolumeMount{
			{Name: agentapi.Volume, MountPath: agentapi.Path, ReadOnly: true},
			{Name: agentapi.RunVolume, MountPath: agentapi.Run},
		}
	}
	mount := corev1.VolumeMount{Name: agentapi.Volume, MountPath: agentapi.Path}
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: agentapi.Volume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	// The first of the init containers: the user's own may want to reach other hosts too.
	pod.InitContainers = slices.Insert(pod.InitContainers, 0, corev1.Container{
		Name:  agentapi.Container,
		Image: settings.AgentImage,
		// The image's own program; its folder is the volume.
		Args:            []string{"install", agentapi.Path},
		VolumeMounts:    []corev1.VolumeMount{mount},
		Resources:       resourcesLike(main.Resources),
		SecurityContext: securityLike(main.SecurityContext),
	})
	return []corev1.VolumeMount{mount}
}

// KeepsImageVolume reports whether the API server has kept a pod's image volume: servers without the feature drop the field.
func KeepsImageVolume(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == agentapi.Volume && v.Image != nil })
}
