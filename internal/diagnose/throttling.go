package diagnose

import (
	"fmt"

	"opendatahub.io/mpijob/internal/codes"
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
