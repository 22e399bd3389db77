package diagnose

import (
	"cmp"

	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose/facts"
)

// queued reports why a job in a queue will never be admitted. A job that only waits has no such finding.
func queued(p *input) []Finding {
	queue := p.Seen.Queue
	if queue == nil || !queue.Never {
		return nil
	}
	code, known := queueReasons[queue.Reason]
	if !known {
		code = codes.QueueUnusable
	}
	return []Finding{p.find(code, nil, map[string]string{"queue": queue.Name, "workload": queue.Object, "said": facts.Sentence(cmp.Or(queue.Why, queue.Message))},
		"Queue: "+queue.Reason+": "+queue.Message)}
}

// queueReasons are the reasons for which waiting in a queue does not help, of Kueue and of the package kueue
// (kueue/apis/kueue/v1beta2/workload_types.go).
var queueReasons = map[string]codes.Code{
	"ExceedsMaxQuota": codes.QueueNeverFits, "NoMatchingFlavor": codes.QueueLacksNodes, "LacksResource": codes.QueueLacksResource,
	"Deactivated": codes.QueueGaveUp,
}
