package jobs

import (
	"slices"
	"testing"

	"opendatahub.io/mpijob/api/v1alpha1"
)

func TestParsePhases(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]v1alpha1.Phase{
		"":                  nil,
		"running":           {v1alpha1.PhaseRunning},
		"Failed, SUCCEEDED": {v1alpha1.PhaseFailed, v1alpha1.PhaseSucceeded},
	} {
		if got, err := ParsePhases(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"Runnin":    "phase: Runnin is not a phase; did you mean Running?",
		"Running,x": "phase: x is not a phase; use Pending, Queued, GangScheduling, Initializing, Running, Suspended, Succeeded, Failed",
		"Running,":  "phase: is not a phase; use Pending, Queued, GangScheduling, Initializing, Running, Suspended, Succeeded, Failed",
	} {
		if _, err := ParsePhases(text); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestHasBeen(t *testing.T) {
	t.Parallel()
	status := statusOf(t, "{phase: Running, phaseTimes: [{phase: Queued, since: 2026-11-21T09:00:00Z}]}")
	for phase, want := range map[v1alpha1.Phase]bool{v1alpha1.PhaseRunning: true, v1alpha1.PhaseQueued: true, v1alpha1.PhaseFailed: false} {
		if HasBeen(status, phase) != want {
			t.Errorf("%s: %t", phase, !want)
		}
	}
}
