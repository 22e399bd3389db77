package codes

import "opendatahub.io/mpijob/api/v1alpha1"

var networks = []Entry{
	{
		Code: NetworkMissing, Phase: v1alpha1.PhaseInitializing,
		Summary: "{who} cannot start: network {network} of annotation k8s.v1.cni.cncf.io/networks does not exist in namespace {in}.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Correct the name. Write a network of another namespace as namespace/name.", Action: "kubectl get network-attachment-definitions -A"},
			{Text: "The annotation is set here.", Action: "{field}.metadata.annotations"},
		},
	},
}
