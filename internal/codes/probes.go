package codes

import "opendatahub.io/mpijob/api/v1alpha1"

// HookFailed is the definition of ContainerCreateFailed for a container whose postStart hook failed.
var HookFailed = Entry{
	Code: ContainerCreateFailed, Phase: v1alpha1.PhaseInitializing,
	Summary: "{who} cannot start: the postStart hook of a container failed{hookText}, and Kubernetes stopped the container.",
	Remedies: []v1alpha1.Remedy{
		{Text: "Correct the hook, or remove it.", Action: "{field}.spec.containers[].lifecycle.postStart", Rerun: true, Changes: set("{hookField}", "null")},
		{Text: "See the pod's conditions and events.", Action: describePod},
	},
}
