package codes

import "opendatahub.io/mpijob/api/v1alpha1"

// FinishedBefore are the first remedies for pods that were removed after the launcher of a failed job had ended well.
var FinishedBefore = []v1alpha1.Remedy{
	{Text: "The launcher had ended before with exit code 0: the program has probably finished. Read its output and check the results.", Action: launcherLog},
	{Text: "If results are missing, start the job again."},
}

// whoDeleted is the first remedy for a pod that something else deleted. Neither the pod nor its events name the user.
var whoDeleted = v1alpha1.Remedy{
	Text:   "Find out who deleted it. Only the API server's audit log names the user: give the administrators the name of the pod and the time.",
	Action: "verb: delete, objectRef.resource: pods, objectRef.name: {pod}",
}

var disruptions = []Entry{
	{
		Code: Evicted, Phase: v1alpha1.PhaseRunning, Severity: v1alpha1.SeverityError, Traits: RemovesPods,
		Summary: "{who} evicted{onNode}: {cause}. An MPI program ends when it loses a worker.",
		Remedies: []v1alpha1.Remedy{
			{Text: "{advice|Start the job again.}", Action: "{action}", Rerun: true},
			{Text: "Save checkpoints, so that the next run resumes from there."},
		},
	},
	{
		Code: Preempted, Phase: v1alpha1.PhaseRunning, Severity: v1alpha1.SeverityError, Traits: RemovesPods,
		Status:  "Its pods were stopped at {time} to make room for a job of a higher priority ({want}, over {have}).",
		Summary: "{who} preempted{onNode} by pods with a higher priority.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Start the job again when there is more capacity. Save checkpoints, so that it resumes from there.", Rerun: true},
			{Text: "Or use a higher priority class, if permitted.", Action: "spec.runPolicy.schedulingPolicy.priorityClass"},
		},
	},
	{
		Code: NodeLost, Phase: v1alpha1.PhaseRunning, Severity: v1alpha1.SeverityError, Traits: RemovesPods,
		Summary: "{who} lost with {node|the node}, which does not respond or is being removed. The job is not the cause.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Start the job again. It runs on other nodes.", Rerun: true},
			{Text: "Report the node to the cluster administrator.", Action: "kubectl describe node {node}"},
		},
	},
	{
		Code: NodeMissing, Phase: v1alpha1.PhaseInitializing, Severity: v1alpha1.SeverityError, Traits: RemovesPods,
		Summary: "{who} cannot start: there is no node named {node}, which the job's nodeName requires.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Remove nodeName. The scheduler then selects a node.", Action: "{field}.spec.nodeName", Rerun: true, Changes: set("{field}.spec.nodeName", "null")},
			{Text: "Or correct the name. See the nodes.", Action: "kubectl get nodes"},
		},
	},
	{
		Code: PodRejected, Phase: v1alpha1.PhaseInitializing, Severity: v1alpha1.SeverityError, Traits: RemovesPods,
		Summary: "{who} rejected by the kubelet{onNode}: {message}",
		Remedies: []v1alpha1.Remedy{
			{Text: "{advice|Correct what the message names in the pod template. If it does not concern the job, start the job again.}", Action: "{action}"},
			{Text: "If other jobs are rejected as well, report the node to the cluster administrator.", Action: "kubectl describe node {node}"},
		},
	},
	{
		Code: PodDeadlineExceeded, Phase: v1alpha1.PhaseRunning, Severity: v1alpha1.SeverityError, Traits: RemovesPods,
		Summary: "{who} stopped by the kubelet{onNode}: active for longer than activeDeadlineSeconds of the pod template{deadline}.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Remove activeDeadlineSeconds from the pod template.", Action: "{field}.spec.activeDeadlineSeconds", Rerun: true, Changes: set("{field}.spec.activeDeadlineSeconds", "null")},
			{Text: "To limit the time of the job as a whole, set the deadline of the job.", Action: "{deadlineField}"},
		},
	},
	{
		Code: LauncherDeleted, Phase: v1alpha1.PhaseRunning, Severity: v1alpha1.SeverityWarning, Traits: RemovesPods,
		Summary: "The launcher pod was deleted by something else while the job was running. A retry starts from the beginning.",
		Remedies: []v1alpha1.Remedy{
			whoDeleted,
			{Text: "If no one did, check the events: a node may have been drained for maintenance.", Action: listEvents},
			{Text: "To stop a job, suspend or delete the job itself.", Action: "kubectl -n {namespace} patch {kindLower} {job} --type merge -p '{\"spec\":{\"runPolicy\":{\"suspend\":true}}}'"},
		},
	},
	{
		Code: WorkerDeleted, Phase: v1alpha1.PhaseRunning, Severity: v1alpha1.SeverityWarning, Traits: RemovesPods,
		Summary: "{who} deleted by something else while the job was running. An MPI program ends when it loses a worker.",
		Remedies: []v1alpha1.Remedy{
			whoDeleted,
			{Text: "If no one did, check the events: a node may have been drained for maintenance.", Action: listEvents},
			{Text: "To stop a job, suspend or delete the job itself.", Action: "kubectl -n {namespace} patch {kindLower} {job} --type merge -p '{\"spec\":{\"runPolicy\":{\"suspend\":true}}}'"},
			{Text: "Start the job again.", Rerun: true},
		},
	},
	{
		Code: ProbeFailed, Phase: v1alpha1.PhaseRunning, Severity: v1alpha1.SeverityError, Traits: RemovesPods,
		Summary: "{who} stopped by Kubernetes: a {probe} probe failed{message}. An MPI program ends when it loses a worker.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Remove the probe. The operator notices ranks that end or wait without it.", Action: "{field}.spec.containers[].{probe}Probe", Rerun: true, Changes: removeProbe},
			{Text: "Or let the program answer it in time, from its start on: increase initialDelaySeconds, timeoutSeconds and failureThreshold."},
		},
	},
	{
		Code: RestartedTooOften, Phase: v1alpha1.PhaseRunning, Severity: v1alpha1.SeverityError,
		Summary: "The job was started again {tries|too many} times, more often than it may be, mostly because its pods were evicted, preempted or drained. Its program is not the cause.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Find out what takes the pods away: the timeline has the cause of each restart.", Action: "kubectl -n {namespace} get jobreport {report} -o jsonpath='{.status.timeline}'"},
			{Text: "Start the job again when that is over. Save checkpoints, so that it resumes from there.", Rerun: true},
			{Text: "If jobs of a higher priority take its nodes, use a higher priority class, if permitted.", Action: "spec.runPolicy.schedulingPolicy.priorityClass"},
		},
	},
	{
		Code: DeadlineExceeded, Phase: v1alpha1.PhaseRunning, Severity: v1alpha1.SeverityError,
		Summary: "The job exceeded its deadline of {deadline|activeDeadlineSeconds} and was stopped.",
		Remedies: []v1alpha1.Remedy{
			{Text: "If the program was making progress, increase the deadline.", Action: "{deadlineField}", Rerun: true, Changes: set("{deadlineField}", "{enough}")},
			{Text: "If it was stuck, check the end of the log in this report: a rank that waits for another prints nothing.", Action: "kubectl -n {namespace} get jobreport {report} -o jsonpath='{.status.failure.logTail}'"},
		},
	},
	{
		Code: DeadlineNear, Phase: v1alpha1.PhaseRunning, Severity: v1alpha1.SeverityWarning, Traits: Warns,
		Summary: "The deadline of {deadline} ends the job at {at}{pace}.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Write a checkpoint before that time: a running job keeps its deadline."},
			{Text: "In a copy of the job, increase the deadline, or remove it.", Action: "{deadlineField}", Rerun: true, Changes: set("{deadlineField}", "{enough}")},
		},
	},
	{
		Code: QueueEndsJob, Phase: v1alpha1.PhaseRunning, Severity: v1alpha1.SeverityWarning, Traits: Warns,
		Summary: "Queue {queue} ends the job at {at}{pace}: it may be admitted for {deadline} in all, and is not admitted again.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Write a checkpoint before that time: an admitted job keeps its limit."},
			{Text: "In a copy of the job, increase the limit of Kueue, or remove it.", Action: "metadata.labels[kueue.x-k8s.io/max-exec-time-seconds]", Rerun: true, Changes: set("metadata.labels[kueue.x-k8s.io/max-exec-time-seconds]", "{enough}")},
		},
	},
	{
		Code: NodeCordoned, Phase: v1alpha1.PhaseRunning, Severity: v1alpha1.SeverityInfo, Traits: Warns,
		Summary: "{nodesAre|A node is} cordoned: a drain evicts {whoLower|pods of the job} and ends this run of the job.",
		Remedies: []v1alpha1.Remedy{
			{Text: "Write a checkpoint now, or often, so that the job can go on from there."},
			{Text: "Ask the administrators when the node is drained.", Action: "kubectl describe node {node}"},
		},
	},
}

// ProbeNotExecuted is the definition of ProbeFailed for a probe that cannot be executed, by which Kubernetes stops nothing. It uses
// {message} and {effect}.
var ProbeNotExecuted = Entry{
	Code: ProbeFailed, Phase: v1alpha1.PhaseInitializing, Severity: v1alpha1.SeverityWarning,
	Summary: "{who}: the {probe} probe cannot be executed: {message}. {effect}",
	Remedies: []v1alpha1.Remedy{
		{Text: "Remove the probe. The operator notices ranks that end or wait without it.", Action: "{field}.spec.{containers|containers}[].{probe}Probe", Rerun: true, Changes: removeProbe},
		{Text: "Or name a program that is in the image and that the pod's user may execute, or a port that the container has."},
	},
}

// DeadlineTooShort is the definition of DeadlineExceeded for a program that made progress. It uses progress, how far it was, and time, how long all of it
// takes at its pace.
var DeadlineTooShort = Entry{
	Code: DeadlineExceeded, Phase: v1alpha1.PhaseRunning, Severity: v1alpha1.SeverityError,
	Summary: "The job exceeded its deadline of {deadline} and was stopped at {progress}: at this pace, all of it takes {time}.",
	Remedies: []v1alpha1.Remedy{
		{Text: "Increase the deadline: the program made progress, and needs {time}. {enough} seconds leave a reserve of a quarter.", Action: "{deadlineField}", Rerun: true, Changes: set("{deadlineField}", "{enough}")},
		{Text: "Or save checkpoints, and start the job again from the last one."},
		Lookup(DeadlineExceeded).Remedies[1],
	},
}

// DeadlineTooShortFor is DeadlineTooShort for a program that may have gone on from a checkpoint, so that its pace is known only from above.
var DeadlineTooShortFor = Entry{
	Code: DeadlineExceeded, Phase: v1alpha1.PhaseRunning, Severity: v1alpha1.SeverityError, Summary: DeadlineTooShort.Summary,
	Remedies: []v1alpha1.Remedy{
		{Text: "Increase the deadline: the program made progress, and needs {time}, more if it went on from a checkpoint.", Action: "{deadlineField}"},
		DeadlineTooShort.Remedies[1],
		DeadlineTooShort.Remedies[2],
	},
}
