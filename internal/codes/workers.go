package codes

import "opendatahub.io/mpijob/api/v1alpha1"

var workers = []Entry{
	{
		Code: WorkerEnded, Phase: v1alpha1.PhaseInitializing,
		Summary: "{who} ended with exit code 0 before the launcher did. MPI can start no rank there.",
		Remedies: []v1alpha1.Remedy{
			{Text: "If the workers have a command, remove it: a worker must keep running, and MPI starts the program there.", Action: "{field}.spec.containers[0].command", Rerun: true, Changes: set("{commandField}", "null", "{argsField}", "null")},
			{Text: "Read its log.", Action: "kubectl -n {namespace} logs {pod}"},
			{Text: "Check the events: they show whether something stopped it.", Action: listEvents},
		},
	},
	{
		Code: WorkersNotReady, Phase: v1alpha1.PhaseInitializing, Severity: v1alpha1.SeverityWarning,
		Summary: "{who} running, but not ready since {since}{message}. The launcher starts when all workers are ready.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Remove the {awaited|readiness} probe, or correct it.", Action: "{field}.spec.containers[].{awaited|readiness}Probe", Rerun: true, Changes: removeProbe},
			{Text: "Or start the launcher at once. It waits for the workers' agents.", Action: "spec.launcherCreationPolicy: AtStartup", Rerun: true, Changes: set("spec.launcherCreationPolicy", "AtStartup")},
		},
	},
}

// removeProbe is the change that removes the probe of a finding.
var removeProbe = set("{probeField}", "null")
