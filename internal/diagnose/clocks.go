package diagnose

import (
	"fmt"
	"time"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose/facts"
)

// clocks reports a node whose clock is ahead: what happened there is in the future.
func clocks(p *input) []Finding {
	const tolerated = 2 * time.Minute
	for _, pod := range p.Pods {
		for _, c := range facts.ContainersOf(pod) {
			started := time.Time{}
			if c.State.Running != nil {
				started = c.State.Running.StartedAt.Time
			}
			if ahead := started.Sub(p.Seen.Now); !started.IsZero() && ahead > tolerated {
				f := p.find(codes.ClockSkew, []facts.Pod{pod}, nil)
				f.Severity = v1alpha1.SeverityWarning
				f.Evidence = []string{fmt.Sprintf("Container %s of %s on node %s reports a start time in the future: %s.", c.Name, pod.Name, pod.Spec.NodeName, facts.TimeText(started))}
				return []Finding{f}
			}
		}
	}
	return nil
}
