package codes

import "opendatahub.io/mpijob/api/v1alpha1"

// Definitions of ContainerCreateFailed for what the node of a pod lacks.
var (
	// NodeWithoutDriver is the one for an NVIDIA driver. The last remedy is for pods that request a GPU, the others for those that do not.
	NodeWithoutDriver = Entry{
		Code: ContainerCreateFailed, Phase: v1alpha1.PhaseInitializing,
		Summary: "{who} cannot start: the node has no NVIDIA driver that works ({reason}), and the container runtime needs it.",
		Remedies: []v1alpha1.Remedy{
			{Text: "If the program uses GPUs, request them: the pod is then placed on a node that has some.", Action: "{field}.spec.containers[0].resources.limits[nvidia.com/gpu]"},
			{Text: "If it does not, remove runtimeClassName: nvidia, or turn GPUs off for the container.", Action: "env: NVIDIA_VISIBLE_DEVICES=void"},
			{Text: "Ask the cluster administrator to repair the driver of the node, or to exclude the node: its GPUs cannot be used.", Action: "kubectl describe node {node|NODE}"},
		},
	}
	// DriverTooOld is the one for an NVIDIA driver that is older than the image requires.
	DriverTooOld = Entry{
		Code: ContainerCreateFailed, Phase: v1alpha1.PhaseInitializing,
		Summary: "{who} cannot start: the NVIDIA driver of the node is too old for the image, which requires {wanted}.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Use an image that is built for an older CUDA.", Action: "{field}.spec.containers[0].image"},
			{Text: "Or select nodes whose driver supports this CUDA, if the cluster has some.", Action: "kubectl get nodes -L nvidia.com/cuda.runtime-version.full"},
			{Text: "Or ask the cluster administrator to update the driver of the nodes."},
		},
	}
	// SeccompProfileMissing is the one for a seccomp profile of type Localhost.
	SeccompProfileMissing = Entry{
		Code: ContainerCreateFailed, Phase: v1alpha1.PhaseInitializing,
		Summary: "{who} cannot start: the node does not have the seccomp profile {file}.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Use the profile of the container runtime, which every node has.", Action: "securityContext: {seccompProfile: {type: RuntimeDefault}}"},
			{Text: "Or ask the cluster administrator to install this profile on all nodes, or select the nodes that have it.", Action: "{field}.spec.nodeSelector"},
		},
	}
	// DeviceGone is the one for a device that the device plugin of the node has given to the container.
	DeviceGone = Entry{
		Code: ContainerCreateFailed, Phase: v1alpha1.PhaseInitializing,
		Summary: "{who} cannot start: the node does not have {file}, a device that the device plugin has assigned to the pod.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Ask the cluster administrator to restart the device plugin on the node, or to exclude the node: its driver was unloaded, or the device has failed.", Action: "kubectl describe node {node|NODE}"},
			{Text: "Or start the job on other nodes.", Action: "{field}.spec.affinity.nodeAffinity"},
		},
	}
)
