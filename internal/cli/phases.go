package cli

import (
	"cmp"
	"strings"

	"opendatahub.io/mpijob/internal/mpi"
)

// phases are those of a job, in the order in which it passes through them; GangScheduling is the record's.
var phases = []mpi.Phase{
	mpi.PhasePending, mpi.PhaseQueued, "GangScheduling", mpi.PhaseInitializing, mpi.PhaseRunning, mpi.PhaseSuspended, mpi.PhaseSucceeded, mpi.PhaseFailed,
}

func phaseNames() []string {
	names := make([]string, len(phases))
	for i, phase := range phases {
		names[i] = string(phase)
	}
	return names
}

// parsePhases reads phases that are separated by commas, in any case.
func parsePhases(text string) ([]mpi.Phase, error) {
	var found []mpi.Phase
	if text == "" {
		return nil, nil
	}
	for word := range strings.SplitSeq(text, ",") {
		phase, known := parsePhase(word)
		if !known {
			return nil, usagef("there is no phase %q%s", word, cmp.Or(meant(word, phaseNames()), "; they are "+strings.Join(phaseNames(), ", ")))
		}
		found = append(found, phase)
	}
	return found, nil
}

func parsePhase(word string) (mpi.Phase, bool) {
	for _, phase := range phases {
		if strings.EqualFold(strings.TrimSpace(word), string(phase)) {
			return phase, true
		}
	}
	return "", false
}
