package diagnose_test

import (
	"testing"
	"time"

	"opendatahub.io/mpijob/internal/curves"
	"opendatahub.io/mpijob/internal/mpitest"
)

// TestStallsOfProgramsThatGoOn: ranks that sleep between the steps that they print are not reported as idle, until they print none any more.
func TestStallsOfProgramsThatGoOn(t *testing.T) {
	t.Parallel()
	since := mpitest.Now.Add(-5 * time.Minute).UTC().Format("15:04:05 UTC")
	ago := func(d time.Duration) time.Time { return mpitest.Now.Add(-d) }
	const idle, waits, gone = "all 4 ranks are idle, since ", "all 4 ranks wait, since ", "3 of 4 ranks wait for rank 1, since "
	for name, test := range map[string]struct {
		stall   string
		advance curves.Advance
		want    bool
	}{
		"no progress is known":         {idle, curves.Advance{}, true},
		"a step was just printed":      {idle, curves.Advance{Last: ago(15 * time.Second), Longest: 20 * time.Second}, false},
		"one of ranks that wait":       {waits, curves.Advance{Last: ago(15 * time.Second), Longest: 20 * time.Second}, false},
		"steps of minutes":             {idle, curves.Advance{Last: ago(4 * time.Minute), Longest: 3 * time.Minute}, false},
		"none for longer than usual":   {idle, curves.Advance{Last: ago(4 * time.Minute), Longest: 20 * time.Second}, true},
		"the last one was before that": {idle, curves.Advance{Last: ago(6 * time.Minute), Longest: 10 * time.Minute}, true},
		"one rank is behind":           {gone, curves.Advance{Last: ago(15 * time.Second), Longest: 20 * time.Second}, true},
	} {
		s := hanging("mpi-agent: no progress: " + test.stall + since + "; sleeping: 0, 1, 2, 3").with(func(s *scene) { s.evidence.Advance = test.advance })
		if found := s.findings(); len(found) > 0 != test.want {
			t.Errorf("%s: found %+v, want a finding: %v", name, found, test.want)
		}
	}
}
