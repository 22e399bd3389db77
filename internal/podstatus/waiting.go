package podstatus

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Obstacle is why a container waits.
type Obstacle int

// Obstacles of a container that waits. The sources are k8s.io/kubernetes/pkg/kubelet/images/types.go,
// pkg/kubelet/kuberuntime/kuberuntime_container.go, and k8s.io/cri-api/pkg/errors.
const (
	// NoObstacle is that of a container that does not wait, or waits without a problem of its own.
	NoObstacle Obstacle = iota
	// InvalidImageName is an image name that cannot be parsed.
	InvalidImageName
	// ImageNotPulled is an image that is not on the node and cannot be pulled, or must not be used.
	ImageNotPulled
	// CrashLoop is a container that has ended, and is started again later.
	CrashLoop
	// NotCreated is every other problem: the container cannot be created or started. New reasons are of this kind.
	NotCreated
)

// SignatureInvalid is the kubelet's reason for an image whose signature the policy of the node does not accept.
const SignatureInvalid = "SignatureValidationFailed"

// ObstacleOf returns why a container waits.
func ObstacleOf(c corev1.ContainerStatus) Obstacle {
	if c.State.Waiting == nil {
		return NoObstacle
	}
	switch c.State.Waiting.Reason {
	case "", "ContainerCreating", "PodInitializing":
		return NoObstacle
	case "InvalidImageName":
		return InvalidImageName
	case "ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "ImageInspectError", "RegistryUnavailable", SignatureInvalid:
		return ImageNotPulled
	case "CrashLoopBackOff":
		return CrashLoop
	}
	return NotCreated
}

// PullError returns why an image cannot be pulled, without what the kubelet adds while it waits to try again, so that the text does not
// change with each try.
func PullError(message string) string {
	if strings.HasPrefix(message, "Back-off pulling image") {
		if _, rest, found := strings.Cut(message, `": `); found {
			return strings.TrimPrefix(rest, "ErrImagePull: ")
		}
	}
	return message
}
