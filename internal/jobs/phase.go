package jobs

import (
	"cmp"
	"slices"
	"strings"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/phrase"
)

// Phases returns the phases of a report, in the order in which a job passes through them.
func Phases() []v1alpha1.Phase {
	return []v1alpha1.Phase{
		v1alpha1.PhasePending, v1alpha1.PhaseQueued, v1alpha1.PhaseGangScheduling, v1alpha1.PhaseInitializing, v1alpha1.PhaseRunning,
		v1alpha1.PhaseSuspended, v1alpha1.PhaseSucceeded, v1alpha1.PhaseFailed,
	}
}

// PhaseNames returns the names of Phases.
func PhaseNames() []string {
	var names []string
	for _, phase := range Phases() {
		names = append(names, string(phase))
	}
	return names
}

// ParsePhases reads phases that are separated by commas, in any case; none from an empty text.
func ParsePhases(text string) ([]v1alpha1.Phase, error) {
	if text == "" {
		return nil, nil
	}
	var found []v1alpha1.Phase
	for word := range strings.SplitSeq(text, ",") {
		word = strings.TrimSpace(word)
		i := slices.IndexFunc(Phases(), func(phase v1alpha1.Phase) bool { return strings.EqualFold(word, string(phase)) })
		if i < 0 {
			return nil, Invalid(FieldError{Field: "phase", Value: word, Reason: "is not a phase" + cmp.Or(phrase.DidYouMean(phrase.Similar(word, PhaseNames())), "; use "+strings.Join(PhaseNames(), ", "))})
		}
		found = append(found, Phases()[i])
	}
	return found, nil
}

// HasBeen reports whether a job is or was in a phase.
func HasBeen(status v1alpha1.JobReportStatus, phase v1alpha1.Phase) bool {
	return status.Phase == phase ||
		slices.ContainsFunc(status.PhaseTimes, func(t v1alpha1.PhaseTime) bool { return t.Phase == phase })
}
