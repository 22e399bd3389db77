package diagnose

import (
	"fmt"
	"strconv"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose/facts"
)

// throttled reports that CPU limits slowed the ranks down, as the launcher's agent counted when its command ended.
func throttled(p *input) []Finding {
	// worth is the share from which it is worth a finding, and atLeast the seconds.
	const worth, atLeast = 0.2, 5
	s := p.LauncherSummary()
	if s == nil || s.ThrottledSeconds < atLeast || s.ThrottledSeconds < worth*(s.CPUSeconds+s.ThrottledSeconds) {
		return nil
	}
	f := p.find(codes.CPUThrottled, p.Pods[:1], map[string]string{
		"seconds": fmt.Sprintf("%.0f", s.ThrottledSeconds), "share": fmt.Sprintf("%.0f", 100*s.ThrottledSeconds/(s.CPUSeconds+s.ThrottledSeconds)),
	})
	f.Evidence = []string{fmt.Sprintf("Launcher's agent: the ranks' containers used %.0f s of CPU time, and were stopped by their CPU limit for %.0f s.", s.CPUSeconds, s.ThrottledSeconds)}
	return []Finding{f}
}

// throttling warns while a job runs that CPU limits stop its ranks, as the agents measured recently in its pods.
func throttling(p *input) []Finding {
	// worth is the share of the time, in thousandths, from which it is worth a finding.
	const worth = 200
	usage := p.usageOfRun(agentapi.RecentTime / 2)
	if usage == nil {
		return nil
	}
	var pods []facts.Pod
	most := int64(0)
	for _, used := range usage.PerPod {
		m := v1alpha1.FindMetric(used.Metrics, v1alpha1.MetricThrottled)
		if pod := p.Known(used.Pod); pod != nil && m != nil && m.Recent != nil && *m.Recent >= worth {
			pods, most = append(pods, *pod), max(most, *m.Recent)
		}
	}
	if len(pods) == 0 {
		return nil
	}
	// The text stays the same while the share is about the same.
	share := strconv.FormatInt(most/100*10, 10)
	f := p.findAs(codes.Throttling, pods, map[string]string{"share": share, "whoLower": lower(subject(pods))})
	f.Evidence = []string{fmt.Sprintf("Agents: in the last 10 minutes, %s was stopped for at least %s %% of the time in which it needed a CPU.", subjectOrMost(pods), share)}
	return []Finding{f}
}

// subjectOrMost is the only pod, or the one of several that was stopped most.
func subjectOrMost(pods []facts.Pod) string {
	if len(pods) == 1 {
		return "pod " + pods[0].Name
	}
	return fmt.Sprintf("the most throttled of %d pods", len(pods))
}
