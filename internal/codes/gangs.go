package codes

import "opendatahub.io/mpijob/api/v1alpha1"

// gangWaits are the reasons for which a gang waits for places. Their texts are the details of WaitingForPlaces. Those of
// other back ends than the operator's own scheduler are reported as they are, except coscheduling's, which has only phases.
var gangWaits = []Entry{
	{Code: CapacityUnknown, Phase: v1alpha1.PhaseGangScheduling, Status: "The operator is checking the capacity of the cluster."},
	{Code: InsufficientCapacity, Phase: v1alpha1.PhaseGangScheduling, Status: "Workers request {want} of {resource} in total, {have} is free on matching nodes{most}."},
	{Code: LauncherUnplaced, Phase: v1alpha1.PhaseGangScheduling, Status: "The launcher does not fit."},
	{Code: TopologyFull, Phase: v1alpha1.PhaseGangScheduling, Status: "All pods must run on nodes with the same {resource}."},
	{Code: CapacityReserved, Phase: v1alpha1.PhaseGangScheduling, Status: "The free capacity is reserved for jobs ahead in the queue; the first is {first}, which needs {pods}."},
	{Code: Preempting, Phase: v1alpha1.PhaseGangScheduling, Status: "Waiting for preempted pods to terminate."},
	{Code: NoNodes, Phase: v1alpha1.PhaseGangScheduling, Status: "The cluster has no nodes."},
	{Code: PodGroupPending, Phase: v1alpha1.PhaseGangScheduling, Status: "The scheduler has not placed all pods yet."},
	{Code: PodGroupIncomplete, Phase: v1alpha1.PhaseGangScheduling, Status: "The scheduler has placed some pods and finds no nodes for the others."},
}
