package progress

import (
	"testing"
	"time"

	"opendatahub.io/mpijob/internal/agent/outcome"
)

// TestCommandWatch: a command that is idle after MPI has ended is reported after a minute, and one that computes or runs MPI again is not.
func TestCommandWatch(t *testing.T) {
	t.Parallel()
	over := []outcome.Launch{{Launcher: outcome.Launcher{Name: "mpirun", Over: true}}}
	failed := []outcome.Launch{{Launcher: outcome.Launcher{Name: "mpiexec", Over: true, Code: 3}}}
	unknown := []outcome.Launch{{Launcher: outcome.Launcher{Name: "mpirun", Over: true, Code: -1}}}
	again := append(over, outcome.Launch{Launcher: outcome.Launcher{Name: "mpirun"}})
	for name, test := range map[string]struct {
		launches []outcome.Launch
		// perSecond is the CPU time that the container uses each second.
		perSecond float64
		want      string
	}{
		"idle":                   {over, 0.01, "mpirun ended with exit code 0, but the launcher's command continues and is idle, since 10:00:00 UTC"},
		"idle after a failure":   {failed, 0, "mpiexec ended with exit code 3, but the launcher's command continues and is idle, since 10:00:00 UTC"},
		"the end is unknown":     {unknown, 0, "mpirun ended, but the launcher's command continues and is idle, since 10:00:00 UTC"},
		"it computes":            {over, 0.5, ""},
		"MPI runs again":         {again, 0, ""},
		"MPI was not called yet": {nil, 0, ""},
	} {
		start := time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)
		var watch CommandWatch
		for at := time.Duration(0); at <= 2*time.Minute; at += SamplePeriod {
			want := test.want
			if at < commandIdleAfter {
				want = ""
			}
			if got := watch.Judge(test.launches, 7+test.perSecond*at.Seconds(), start.Add(at)); got != want {
				t.Fatalf("%s: after %s it is %q, want %q", name, at, got, want)
			}
		}
	}
}
