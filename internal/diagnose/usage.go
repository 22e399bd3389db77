package diagnose

import (
	"time"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/podstatus"
)

// runStart returns when the launcher's container started last; zero if that is unknown.
func (p *input) runStart() time.Time {
	if launcher := p.Launcher(); launcher != nil {
		return podstatus.LatestStart(launcher.Pod)
	}
	return time.Time{}
}

// usageOfRun returns what a running job has used so far; nil if that is unknown, or its present run has been measured for less than a time.
// Workers outlast a run, so that the figures of their pods begin before it: of those of a recent time, at least so much is of this run.
func (p *input) usageOfRun(atLeast time.Duration) *v1alpha1.Usage {
	usage := p.Evidence.Used
	if p.Outcome.Phase != v1alpha1.PhaseRunning || usage == nil {
		return nil
	}
	since := usage.Since.Time
	if start := p.runStart(); start.After(since) {
		since = start
	}
	if usage.Until.Sub(since) < atLeast {
		return nil
	}
	return usage
}
