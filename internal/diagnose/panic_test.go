package diagnose_test

import (
	"strings"
	"testing"

	"opendatahub.io/mpijob/internal/diagnose"
	"opendatahub.io/mpijob/internal/jobstate"
)

// TestPanic: an error in a check ends no process.
func TestPanic(t *testing.T) {
	s := failed(1, "ValueError: no").with(func(s *scene) {
		s.seen.LauncherPods = append(s.seen.LauncherPods, nil)
	})
	found, err := diagnose.TryJob(s.job, s.seen, s.evidence, jobstate.Outcome{})
	if err == nil || !strings.HasPrefix(err.Error(), "panic: ") || len(found) > 0 {
		t.Errorf("found %v, error %v", found, err)
	}
}
