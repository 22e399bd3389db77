package diagnose

import (
	"fmt"
	"slices"

	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/phrase"
)

// Bounds of what Job returns.
const (
	MaxFindings = 6
	MaxEvidence = 8
	MaxAffected = 16
	MaxRemedies = 5
	// MaxText and MaxLine are bytes of a summary, and of a line of evidence or a remedy.
	MaxText = 1000
	MaxLine = 500
)

func bound(f *Finding) {
	f.Summary = phrase.Cut(phrase.OneLine(f.Summary), MaxText)
	f.Evidence = f.Evidence[:min(len(f.Evidence), MaxEvidence)]
	for i := range f.Evidence {
		f.Evidence[i] = phrase.Cut(phrase.OneLine(f.Evidence[i]), MaxLine)
	}
	if more := len(f.Affected) - MaxAffected; more > 0 {
		f.Affected = append(f.Affected[:MaxAffected:MaxAffected], fmt.Sprintf("and %d more", more))
	}
	f.Remedies = slices.Clone(f.Remedies[:min(len(f.Remedies), MaxRemedies)])
	for i := range f.Remedies {
		f.Remedies[i].Text, f.Remedies[i].Action = phrase.Cut(phrase.OneLine(f.Remedies[i].Text), MaxLine), boundAction(f.Remedies[i].Action)
	}
}

// boundAction shortens an action. A command is not cut but left out, because the end of a quotation could be lost.
func boundAction(action string) string {
	action = phrase.OneLine(action)
	if codes.IsCommand(action) && len(action) > MaxLine {
		return ""
	}
	return phrase.Cut(action, MaxLine)
}
