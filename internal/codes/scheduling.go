package codes

import "opendatahub.io/mpijob/api/v1alpha1"

// ClaimsMissing is the definition of MissingReference for pods that the scheduler does not look at until their ResourceClaims exist.
var ClaimsMissing = Entry{
	Code: MissingReference, Phase: v1alpha1.PhaseInitializing, Severity: v1alpha1.SeverityWarning, Traits: BlocksScheduling,
	Summary: "{who} not scheduled since {since}: the scheduler waits for {claims}, and reports nothing meanwhile.",
	Remedies: []v1alpha1.Remedy{
		{Text: "See whether the claim exists. The pods are then scheduled automatically.", Action: "kubectl -n {namespace} get resourceclaims,resourceclaimtemplates"},
		{Text: "Or correct its name in the job.", Action: "{field}.spec.resourceClaims"},
	},
}

var scheduling = []Entry{
	{
		Code: InsufficientResources, Phase: v1alpha1.PhaseInitializing, Severity: v1alpha1.SeverityWarning, Traits: BlocksScheduling,
		Summary: "{who} cannot be scheduled: {want} requested per pod, {have|which no node has free}.",
		Remedies: []v1alpha1.Remedy{
			{Text: "{first|Wait until other workloads end, or request less per pod.}", Action: "{field}.spec.containers[0].resources"},
			{Text: "{second|Or use fewer workers.}", Action: "{secondAction}"},
			{Text: "See the capacity and usage of the nodes.", Action: nodeResources},
		},
	},
	{
		Code: NoMatchingNode, Phase: v1alpha1.PhaseInitializing, Severity: v1alpha1.SeverityError, Traits: BlocksScheduling,
		Status:  "No node matches its pods: compare their nodeSelector, affinity and tolerations with the nodes' labels and taints.",
		Summary: "{who} cannot be scheduled on any of {nodes|the nodes}: {why}.",
		Remedies: []v1alpha1.Remedy{
			{Text: "{first|Compare the pod's nodeSelector, affinity and tolerations with the nodes' labels and taints.}", Action: "{field}.spec.{at|nodeSelector}"},
			{Text: "{second|See the labels and taints of the nodes.}", Action: "{secondAction|kubectl get nodes --show-labels}"},
		},
	},
	{
		Code: Unschedulable, Phase: v1alpha1.PhaseInitializing, Severity: v1alpha1.SeverityWarning, Traits: BlocksScheduling,
		Status:  "{who} cannot be scheduled: {message}",
		Summary: "{who} cannot be scheduled: {message}",
		Remedies: []v1alpha1.Remedy{
			{Text: "{first|Compare the pod's requests with the nodes' capacity.}", Action: "{firstAction|kubectl describe nodes}"},
			{Text: "See the pod's conditions and events.", Action: describePod},
		},
	},
	{
		Code: SchedulingGated, Phase: v1alpha1.PhaseInitializing, Severity: v1alpha1.SeverityWarning, Traits: BlocksScheduling,
		Summary: "{who} not scheduled since {since}: held by {gates|a scheduling gate}, which another controller must remove.",
		Remedies: []v1alpha1.Remedy{
			{Text: "If no controller removes it, remove the gate from the pod template.", Action: "{field}.spec.schedulingGates", Rerun: true, Changes: set("{gatesField}", "null")},
			{Text: "See the gates of the pod.", Action: "kubectl -n {namespace} get pod {pod} -o jsonpath='{.spec.schedulingGates}'"},
		},
	},
	{
		Code: NoScheduler, Phase: v1alpha1.PhaseInitializing, Severity: v1alpha1.SeverityWarning, Traits: BlocksScheduling,
		Summary: "{who} not scheduled since {since}: no scheduler named {scheduler} responds.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Remove schedulerName. The scheduler of the cluster then places the pods.", Action: "{field}.spec.schedulerName", Rerun: true, Changes: set("{field}.spec.schedulerName", "null")},
			{Text: "Or correct the name. See which schedulers run.", Action: "kubectl get pods -A | grep -i scheduler"},
		},
	},
	{
		Code: RDMANotOffered, Phase: v1alpha1.PhaseInitializing, Severity: v1alpha1.SeverityError,
		Summary: "{who} cannot be scheduled: {want} requested per pod, which no node provides{offer}.",
		Remedies: []v1alpha1.Remedy{
			{Text: "{first|Remove the request. The job then uses TCP, which is slower.}", Action: "{field}.spec.containers[0].resources.limits[{resource}]"},
			{Text: "Or let the job run over TCP, which is slower.", Action: "metadata.annotations[mpi.opendatahub.io/rdma]: optional", Rerun: true, Changes: setRDMA("optional")},
			{Text: rdmaOfNodes, Action: nodesWithRDMA},
		},
	},
	{
		Code: RDMAFallback, Phase: v1alpha1.PhaseRunning, Severity: v1alpha1.SeverityWarning,
		Summary: "The job runs without RDMA, over TCP, and is slower: no node of the cluster offered the {resource} that its pods request.",
		Remedies: []v1alpha1.Remedy{
			{Text: rdmaOfNodes, Action: nodesWithRDMA},
			{Text: "To wait for nodes with RDMA instead, run the job again with this annotation.", Action: "metadata.annotations[mpi.opendatahub.io/rdma]: required", Rerun: true, Changes: setRDMA("required")},
		},
	},
	{
		Code: VolumeClaimPending, Phase: v1alpha1.PhaseInitializing, Severity: v1alpha1.SeverityError,
		Summary: "{who} cannot start: {claimText|a PersistentVolumeClaim is not bound}.",
		Remedies: []v1alpha1.Remedy{
			{Text: "{first|Find out why the claim is not bound.}", Action: "{firstAction}"},
			{Text: "Or use another claim.", Action: "{field}.spec.volumes"},
		},
	},
}
