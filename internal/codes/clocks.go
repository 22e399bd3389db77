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

// RequestTimeSkewed is the definition of ClockSkew for a server that rejects requests because of their time.
var RequestTimeSkewed = Entry{
	Code: ClockSkew, Phase: v1alpha1.PhaseRunning,
	Summary: "Clock skew: a server rejects requests, because the clocks of the pod's node and the server differ by many minutes.",
	Remedies: []v1alpha1.Remedy{
		{Text: "See which clock is wrong: compare the pod's with the time in UTC.", Action: "kubectl -n {namespace} exec {worker} -- date -u"},
		{Text: "Ask who runs the cluster or the server to synchronize that clock (NTP)."},
	},
}
