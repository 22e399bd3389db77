package codes

import "opendatahub.io/mpijob/api/v1alpha1"

// NodeNetworkDown is the definition of ContainerCreateFailed for a pod on a node whose network plugin does not run.
var NodeNetworkDown = Entry{
	Code: ContainerCreateFailed, Phase: v1alpha1.PhaseInitializing,
	Summary: "{who} cannot start: the network of node {node} is not ready: {message}",
	Remedies: []v1alpha1.Remedy{
		{Text: "Report it to the cluster administrator: the node's network plugin does not run.", Action: "kubectl describe node {node}"},
		{Text: "Or let the job run on other nodes.", Action: "{field}.spec.nodeSelector"},
	},
}

// DevicesNotPrepared is the definition of ContainerCreateFailed for a pod whose ResourceClaims the driver on its node cannot prepare.
var DevicesNotPrepared = Entry{
	Code: ContainerCreateFailed, Phase: v1alpha1.PhaseInitializing,
	Summary: "{who} cannot start: the driver on node {node} cannot prepare the devices of its ResourceClaims: {message}",
	Remedies: []v1alpha1.Remedy{
		{Text: "See whether the driver's pod runs on the node, and report its errors to the cluster administrator.", Action: "kubectl get pods -A --field-selector spec.nodeName={node}"},
		{Text: "See the claims and the devices that are allocated to them.", Action: "kubectl -n {namespace} get resourceclaims -o yaml"},
	},
}

// SandboxFailed is the definition of ContainerCreateFailed for a pod whose sandbox cannot be created: its network, or its namespaces.
var SandboxFailed = Entry{
	Code: ContainerCreateFailed, Phase: v1alpha1.PhaseInitializing,
	Summary: "{who} cannot start: node {node} cannot create the pod's sandbox: {message}",
	Remedies: []v1alpha1.Remedy{
		{Text: "{first|If other pods start on this node, correct what the message names in the pod template, such as hostUsers, runtimeClassName or sysctls.}", Action: "{field}.spec"},
		{Text: "If no pods start on this node, report it to the cluster administrator: its network or container runtime does not work.", Action: "kubectl describe node {node}"},
	},
}
