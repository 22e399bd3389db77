package progress

import (
	"fmt"
	"slices"
	"time"

	"opendatahub.io/mpijob/internal/agent/outcome"
)

// CommandWatch observes a launcher's command that goes on after its launchers of MPI have ended. Its zero value is ready to use.
type CommandWatch struct {
	// since is when the container was found idle first; zero if it is not, or a launcher of MPI runs.
	since time.Time
	// used is the container's CPU time in seconds at the last call.
	used float64
}

const (
	// commandIdleAfter is how long a command is idle until that is reported: scripts end soon after MPI, or compute.
	commandIdleAfter = time.Minute
	// commandIdleShare is the share of a CPU that an idle container uses at most, the agent included.
	commandIdleShare = 0.05
)

// Judge returns the line to write if all launches of the command have ended and the container is idle since, or "". used is the
// container's CPU time in seconds. It is called every SamplePeriod.
func (w *CommandWatch) Judge(launches []outcome.Launch, used float64, now time.Time) string {
	before := w.used
	w.used = used
	running := slices.ContainsFunc(launches, func(l outcome.Launch) bool { return !l.Over })
	switch {
	case len(launches) == 0 || running:
		w.since = time.Time{}
		return ""
	case w.since.IsZero() || used-before > commandIdleShare*SamplePeriod.Seconds():
		w.since = now
		return ""
	case now.Sub(w.since) < commandIdleAfter:
		return ""
	}
	last, code := launches[len(launches)-1], ""
	if last.Code >= 0 {
		code = fmt.Sprintf(" with exit code %d", last.Code)
	}
	return fmt.Sprintf("%s ended%s, but the launcher's command continues and is idle, since %s", last.Name, code, clockTime(w.since))
}
