package codes

import "opendatahub.io/mpijob/api/v1alpha1"

var sidecars = []Entry{
	{
		Code: SidecarFailed, Phase: v1alpha1.PhaseRunning, Severity: v1alpha1.SeverityWarning,
		Summary: "Container {container} of {whoLower} failed with exit code {code}. It is not the container that runs MPI.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Read its log.", Action: "kubectl -n {namespace} logs {pod} -c {container}"},
			{Text: "If the job does not need it, remove it.", Action: "{field}.spec.containers"},
		},
	},
	{
		Code: SidecarRunning, Phase: v1alpha1.PhaseRunning, Severity: v1alpha1.SeverityWarning,
		Summary: "The launcher's program has ended, but container {container} keeps its pod running.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Remove the container from the job's pods.", Action: "{sidecarAction|Remove it from the pod template}"},
			{Text: "Or make it a sidecar that Kubernetes stops: an init container with restartPolicy Always.", Action: "initContainers[].restartPolicy: Always"},
		},
	},
	{
		Code: ServiceMesh, Phase: v1alpha1.PhaseInitializing,
		Summary: "A service mesh (Istio) intercepts the connections between the job's pods, which breaks MPI.",
		Remedies: []v1alpha1.Remedy{{
			Text: "Exclude the job's pods from the mesh.", Action: "{field}.metadata.labels: {sidecar.istio.io/inject: \"false\"}", Rerun: true,
			Changes: leaveMesh,
		}},
	},
}

// leaveMesh is the change that excludes the job's pods from a service mesh.
var leaveMesh = set("{workerTemplate}.metadata.labels[sidecar.istio.io/inject]", "\"false\"", "{launcherTemplate}.metadata.labels[sidecar.istio.io/inject]", "\"false\"")
