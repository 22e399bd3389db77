package diagnose

import (
	"fmt"

	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose/facts"
)

// unknown returns what is known about a job that failed or needs action without a known cause.
func unknown(p *input) []Finding {
	if !p.Failed() && !p.Outcome.NeedsAction {
		return nil
	}
	figures := map[string]string{"state": "The job is stuck.", "known": facts.Sentence(p.Outcome.Message)}
	if p.Failed() {
		figures["state"] = "The job failed."
	}
	var pods []facts.Pod
	if launcher := p.Launcher(); launcher != nil {
		pods = []facts.Pod{*launcher}
	}
	f := p.find(codes.Unknown, pods, figures)
	if len(pods) > 0 {
		f.Evidence = append(f.Evidence, fmt.Sprintf("Pod %s is %s.", pods[0].Name, pods[0].Status.Phase))
		f.Evidence = append(f.Evidence, facts.LastLines(pods[0])...)
	} else {
		f.Evidence = append(f.Evidence, "No launcher pod exists, so there is no log.")
	}
	for _, event := range p.Evidence.Events {
		if event.Warning {
			f.Evidence = append(f.Evidence, facts.EventLine(event))
		}
	}
	return []Finding{f}
}
