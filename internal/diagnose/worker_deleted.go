package diagnose

import (
	"fmt"

	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose/facts"
)

// workersDeleted reports workers whose pods something else deleted while the launcher ran. That the launcher then lost the connection to them
// is a consequence.
func workersDeleted(p *input) []Finding {
	var pods []facts.Pod
	var evidence []string
	for _, worker := range p.DeletedWorkers {
		pods = append(pods, worker.Pod)
		if worker.At.IsZero() {
			evidence = append(evidence, fmt.Sprintf("Pod %s was created at %s, when the launcher already ran. The pod before it was deleted.", worker.Name, facts.TimeText(worker.CreationTimestamp.Time)))
		} else {
			evidence = append(evidence, fmt.Sprintf("Pod %s was deleted at %s.", worker.Name, facts.TimeText(worker.At)))
		}
	}
	if len(pods) == 0 {
		return nil
	}
	return []Finding{p.find(codes.WorkerDeleted, pods, nil, evidence...)}
}
