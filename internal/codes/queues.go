package codes

import "opendatahub.io/mpijob/api/v1alpha1"

var queues = []Entry{
	{
		Code: QueueNeverFits, Phase: v1alpha1.PhaseQueued, Severity: v1alpha1.SeverityError,
		Summary: "The job exceeds the maximum capacity of queue {queue}, so waiting does not help: {said}",
		Remedies: []v1alpha1.Remedy{
			{Text: "Request fewer workers, or fewer resources per worker.", Action: "{workersField}"},
			{Text: "Use a queue with a larger quota.", Action: "kubectl -n {namespace} get localqueues"},
			{Text: "Ask the cluster administrator to raise the quota of the queue.", Action: "kubectl -n {namespace} describe localqueue {queue}"},
		},
	},
	{
		Code: QueueLacksResource, Phase: v1alpha1.PhaseQueued, Severity: v1alpha1.SeverityError,
		Summary: "Queue {queue} can never admit the job: {said}",
		Remedies: []v1alpha1.Remedy{
			{Text: "Use a queue with a quota for this resource.", Action: "kubectl -n {namespace} get localqueues"},
			{Text: "Or do not request it, if the program does not need it: check the resources of the launcher and the workers, and of the runtime.{rdma}"},
			{Text: "Or ask the cluster administrator for a quota for it.", Action: "kubectl -n {namespace} describe localqueue {queue}"},
		},
	},
	{
		Code: QueueNeedsRequests, Phase: v1alpha1.PhaseQueued, Severity: v1alpha1.SeverityError,
		Summary: "Queue {queue} can never admit the job, and others may wait behind it: {said}",
		Remedies: []v1alpha1.Remedy{
			{Text: "Set requests of CPU or memory for the pods of the launcher and the workers.", Action: "{workerTemplate}.spec.containers[0].resources.requests"},
			{Text: "Or ask the administrator of the namespace for a LimitRange with a default, or that of the runtime to add requests to its pods."},
		},
	},
	{
		Code: QueueLacksNodes, Phase: v1alpha1.PhaseQueued, Severity: v1alpha1.SeverityError,
		Summary: "Queue {queue} has no nodes that the job accepts, so waiting does not help: {said}",
		Remedies: []v1alpha1.Remedy{
			{Text: "Change the node selector, affinity, tolerations or topology of the job's pods.", Action: "{field}.spec"},
			{Text: "Or use a queue with other nodes.", Action: "kubectl -n {namespace} get localqueues"},
			{Text: "Or ask the cluster administrator which nodes the queue has.", Action: "kubectl -n {namespace} describe localqueue {queue}"},
		},
	},
	{
		Code: QueueUnusable, Phase: v1alpha1.PhaseQueued, Severity: v1alpha1.SeverityError,
		Summary: "Queue {queue} cannot admit the job: {said}",
		Remedies: []v1alpha1.Remedy{
			{Text: "Use a queue that exists in the namespace and is active.", Action: "kubectl -n {namespace} get localqueues"},
			{Text: "Ask the cluster administrator whether the queue is stopped or misconfigured.", Action: "kubectl -n {namespace} describe localqueue {queue}"},
		},
	},
	{
		Code: QueuePriorityMissing, Phase: v1alpha1.PhaseQueued, Severity: v1alpha1.SeverityError,
		Summary: "Kueue does not queue the job: {said}",
		Remedies: []v1alpha1.Remedy{
			{Text: "Set the label to a class that exists. The job is then queued automatically.", Action: "kubectl -n {namespace} label {kindLower} {job} --overwrite kueue.x-k8s.io/priority-class=CLASS"},
			{Text: "Or ask the cluster administrator to create the class."},
		},
	},
	{
		Code: WorkloadMissing, Phase: v1alpha1.PhaseQueued, Severity: v1alpha1.SeverityWarning,
		Summary: "The job is in no queue: {said}",
		Remedies: []v1alpha1.Remedy{
			{Text: "Check the labels of the job, and its events.", Action: "kubectl -n {namespace} describe {kindLower} {job}"},
			{Text: "Ask the cluster administrator what the log of Kueue says about the job, and whether Kueue runs, and manages jobs of this kind (integrations.frameworks of its configuration) in this namespace (managedJobsNamespaceSelector)."},
		},
	},
	{
		Code: QueueGaveUp, Phase: v1alpha1.PhaseQueued, Severity: v1alpha1.SeverityError,
		Summary: "Queue {queue} deactivated the job's Workload: {said}",
		Remedies: []v1alpha1.Remedy{
			{Text: "Check the Workload's conditions. If the pods did not start in time, find out why.", Action: "kubectl -n {namespace} describe workload {workload}"},
			{Text: "Create the job again. Reactivating the Workload does not help."},
			{Text: "Or delete the Workload: Kueue creates another one, and the job is queued again.", Action: "kubectl -n {namespace} delete workload {workload}"},
		},
	},
}

var gangs = []Entry{
	{
		Code: GangTimeout, Phase: v1alpha1.PhaseGangScheduling, Severity: v1alpha1.SeverityError,
		Summary: "The job failed: its {pods} pods could not be scheduled together in time. {said}",
		Remedies: []v1alpha1.Remedy{
			{Text: "Request fewer workers, or fewer resources per worker.", Action: "{workersField}"},
			{Text: "Allow a longer timeout, or more retries.", Action: "{gangField}.scheduleTimeoutSeconds, mpi.opendatahub.io/gang-requeues"},
			{Text: "See what uses the nodes.", Action: nodeResources},
		},
	},
	{
		Code: GangImpossible, Phase: v1alpha1.PhaseGangScheduling, Severity: v1alpha1.SeverityError,
		Summary:  "The pods cannot be scheduled together, and none is created: {said}",
		Remedies: []v1alpha1.Remedy{{Text: "Correct the setting in the message.", Action: "{gangField}"}},
	},
	{
		Code: GangNeverFits, Phase: v1alpha1.PhaseGangScheduling, Severity: v1alpha1.SeverityError,
		Status:  "Only {have} of {pods} fit on the cluster's {nodes}, even if it is empty{why}. Use fewer or smaller workers, or add nodes.",
		Summary: "The job can never start on this cluster. {said}",
		Remedies: []v1alpha1.Remedy{
			{Text: "Request fewer workers, or fewer resources per worker.", Action: "{workersField}"},
			{Text: "See the capacity of the nodes.", Action: "kubectl describe nodes | grep -A 6 Allocatable"},
			{Text: "Or ask the cluster administrator for larger or additional nodes."},
		},
	},
}
