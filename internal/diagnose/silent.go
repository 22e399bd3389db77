package diagnose

import (
	"fmt"
	"slices"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose/facts"
)

// silent reports that a running job has printed nothing for long. The launcher's log contains the output of the ranks.
func silent(p *input) []Finding {
	launcher := p.Launcher()
	if p.Outcome.Phase != v1alpha1.PhaseRunning || launcher == nil || !p.QuietSince(*launcher) {
		return nil
	}
	for _, pod := range p.Pods {
		if !p.LastWord(pod).IsZero() && !p.QuietSince(pod) {
			return nil
		}
	}
	entry := codes.Lookup(codes.NoOutput)
	if !p.Job.UsesAgent() {
		entry.Remedies = slices.Clone(entry.Remedies)
		entry.Remedies[slices.IndexFunc(entry.Remedies, isShowStacks)] = codes.PrintStacks
	}
	f := p.findAs(entry, []facts.Pod{*launcher}, map[string]string{"since": facts.TimeText(p.LastWord(*launcher))})
	if f.Evidence = facts.LastLines(*launcher); len(f.Evidence) == 0 {
		f.Evidence = []string{fmt.Sprintf("The log of %s is empty.", launcher.Name)}
	}
	return []Finding{f}
}
