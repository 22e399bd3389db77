package diagnose

import "opendatahub.io/mpijob/internal/mpi"

var queueTexts = map[mpi.Code]text{
	mpi.CodeQueueNeverFits: {
		summary: "The job asks for more than its queue {queue} can ever give, so that waiting does not help: {said}",
		remedies: []Remedy{
			{Text: "Ask for fewer workers, or for less in each.", Action: "{workersField}"},
			{Text: "Name a queue with a larger quota.", Action: "kubectl -n {namespace} get localqueues"},
			{Text: "Ask whoever runs the cluster to raise the quota of the queue.", Action: "kubectl -n {namespace} describe localqueue {queue}"},
		},
	},
	mpi.CodeQueueMissing: {
		summary: "The queue {queue} cannot let the job in: {said}",
		remedies: []Remedy{
			{Text: "Name a queue that the namespace has and that takes jobs.", Action: "kubectl -n {namespace} get localqueues"},
			{Text: "Ask whoever runs the cluster whether the queue is stopped or set up in part.", Action: "kubectl -n {namespace} describe localqueue {queue}"},
		},
	},
	mpi.CodeDeactivated: {
		summary: "The queue {queue} has given the job up: {said}",
		remedies: []Remedy{
			{Text: "See what happened to it there. If its pods did not start in time, look why.", Action: "kubectl -n {namespace} describe workload {workload}"},
			{Text: "Start the job again, as a new one: to make its Workload active again does not help."},
			{Text: "Or delete its Workload: Kueue makes another one, and the job waits for its turn again.", Action: "kubectl -n {namespace} delete workload {workload}"},
		},
	},
}

// queueReasons are the reasons for which waiting in a queue does not help
// (kueue/apis/kueue/v1beta2/workload_types.go).
var queueReasons = map[string]mpi.Code{
	"ExceedsMaxQuota": mpi.CodeQueueNeverFits, "NoMatchingFlavor": mpi.CodeQueueNeverFits,
	"Deactivated": mpi.CodeDeactivated,
}

// queued tells why a job that waits in a queue will never be let in. That one simply waits is nothing wrong.
func queued(p *patient) []Finding {
	queue := p.seen.Queue
	if queue == nil || !queue.Never {
		return nil
	}
	code, known := queueReasons[queue.Reason]
	if !known {
		code = mpi.CodeQueueMissing
	}
	f := p.find(code, Error, nil, map[string]string{"queue": queue.Name, "workload": queue.Object, "said": sentence(queue.Message)})
	f.Evidence = []string{"The queue says " + queue.Reason + ": " + queue.Message}
	return []Finding{f}
}
