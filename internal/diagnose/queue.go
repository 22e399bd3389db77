package diagnose

import (
	"opendatahub.io/mpijob/internal/codes"
)

// queueReasons are the reasons for which waiting in a queue does not help
// (kueue/apis/kueue/v1beta2/workload_types.go).
var queueReasons = map[string]codes.Code{
	"ExceedsMaxQuota": codes.QueueNeverFits, "NoMatchingFlavor": codes.QueueNeverFits,
	"Deactivated": codes.QueueGaveUp,
}

// queued reports why a job in a queue will never be admitted. A job that only waits has no such finding.
func queued(p *input) []Finding {
	queue := p.seen.Queue
	if queue == nil || !queue.Never {
		return nil
	}
	code, known := queueReasons[queue.Reason]
	if !known {
		code = codes.QueueUnusable
	}
	f := p.find(code, nil, map[string]string{"queue": queue.Name, "workload": queue.Object, "said": sentence(queue.Message)})
	f.Evidence = []string{"Queue: " + queue.Reason + ": " + queue.Message}
	return []Finding{f}
}
