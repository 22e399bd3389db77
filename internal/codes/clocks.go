package codes

import "opendatahub.io/mpijob/api/v1alpha1"

var clocks = []Entry{
	{
		Code: ClockSkew, Phase: v1alpha1.PhaseRunning,
		Summary: "Clock skew between nodes: a certificate or token is rejected as expired or not yet valid.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Ask the cluster administrator to synchronize the node's clock (NTP).", Action: "kubectl get nodes"},
			{Text: "If all clocks are correct, a certificate that the program uses has expired; renew it."},
		},
	},
}
