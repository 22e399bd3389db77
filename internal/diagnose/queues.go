package diagnose

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose/facts"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/podspec"
)

// queued reports why a job in a queue will never be admitted. A job that only waits has no such finding.
func queued(p *input) []Finding {
	queue := p.Seen.Queue
	switch {
	case queue == nil:
		return nil
	case queue.NeverFits != "":
		return []Finding{p.find(codes.GangNeverFits, nil, map[string]string{"said": facts.Sentence(queue.NeverFits)}, "Queue: "+queue.Message)}
	case !queue.Never:
		return nil
	}
	code, known := queueReasons[queue.Reason]
	if !known {
		code = codes.QueueUnusable
	}
	values := map[string]string{"queue": queue.Name, "workload": queue.Object, "said": facts.Sentence(cmp.Or(queue.Why, queue.Message))}
	if code == codes.QueueLacksResource && p.Job.RDMA.Optional && lacksRDMA(p.Job, cmp.Or(queue.Why, queue.Message)) {
		values["rdma"] = " Without RDMA, ranks communicate over TCP."
	}
	evidence := []string{"Queue: " + queue.Reason + ": " + queue.Message}
	if code == codes.WorkloadMissing {
		for _, event := range p.Evidence.Events {
			if event.Warning {
				evidence = append(evidence, facts.EventLine(event))
			}
		}
	}
	return []Finding{p.find(code, nil, values, evidence...)}
}

// lacksRDMA reports whether a text names an RDMA resource that the job's pods request.
func lacksRDMA(job mpi.Job, text string) bool {
	for _, pod := range job.PodSpecs() {
		for name := range podspec.Requests(pod) {
			if podspec.IsRDMA(name) && strings.Contains(text, string(name)) {
				return true
			}
		}
	}
	return slices.ContainsFunc(job.RDMA.Removed, func(name corev1.ResourceName) bool { return strings.Contains(text, string(name)) })
}

// queueReasons are the reasons for which waiting in a queue does not help, of Kueue and of the package kueue
// (kueue/apis/kueue/v1beta2/workload_types.go).
var queueReasons = map[string]codes.Code{
	"ExceedsMaxQuota": codes.QueueNeverFits, "NoMatchingFlavor": codes.QueueLacksNodes, "LacksResource": codes.QueueLacksResource, "NeedsRequests": codes.QueueNeedsRequests,
	"Deactivated": codes.QueueGaveUp, "NoPriority": codes.QueuePriorityMissing, "NoWorkload": codes.WorkloadMissing,
}
