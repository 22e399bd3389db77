package launcher

import (
	"cmp"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"opendatahub.io/mpijob/internal/agent/outcome"
	"opendatahub.io/mpijob/internal/agent/process"
	"opendatahub.io/mpijob/internal/agent/records"
	"opendatahub.io/mpijob/internal/agentapi"
)

// endAfterDefault is how long ranks may continue after one failed or a host was lost until the agent ends their launcher. MPI
// launchers end them within a few seconds.
const endAfterDefault = 20 * time.Second

// endAfter returns the time after which a launcher is ended whose ranks wait for one that failed; 0 means never.
func endAfter() time.Duration {
	value := os.Getenv(agentapi.EnvEndAfter)
	if value == "never" {
		return 0
	}
	d, err := time.ParseDuration(value)
	if err != nil || d <= 0 {
		return endAfterDefault
	}
	return d
}

// launchWatch ends launchers that lost a failure.
type launchWatch struct {
	// failedAt is when a failure of a launch was first observed, by the launcher's process.
	failedAt map[string]time.Time
	// ended is when a launcher got TERM, and killed which of them got KILL.
	ended  map[string]time.Time
	killed map[string]bool
}

// endOverdue ends each launcher that is overdue: TERM, and after grace KILL, for it and for its sessions.
func (s *supervisor) endOverdue(now time.Time) {
	after, w := endAfter(), &s.launchWatch
	if after == 0 {
		return
	}
	for _, l := range s.ranks.Launches(records.Read(s.folder)) {
		key := l.Key()
		if l.HasFailed() && w.failedAt[key].IsZero() {
			w.failedAt[key] = now
		}
		since := w.ended[key]
		switch {
		case since.IsZero() && l.IsOverdue(w.failedAt[key], after, now):
			w.ended[key] = now
			omitted := "end the other ranks"
			if len(l.Failed)+len(l.Lost) == 0 {
				omitted = "end"
			}
			fmt.Fprintf(s.stderr, "mpi-agent: %s %s did not %s within %d s; the agent ends it.\n",
				l.Failure(), cmp.Or(l.Name, "The launcher"), omitted, int(now.Sub(w.failedAt[key]).Seconds()))
			process.Signal(l.PID, l.Started, unix.SIGTERM)
		case !since.IsZero() && now.Sub(since) >= process.Grace && !w.killed[key]:
			w.killed[key] = true
			process.Signal(l.PID, l.Started, unix.SIGKILL)
			endSessions(l)
		}
	}
}

// endSessions ends a launcher's rsh's. The workers end the ranks of a session whose connection ends.
func endSessions(l outcome.Launch) {
	for _, pid := range l.Sessions {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}

// wasEnded reports whether the agent ended a launch.
func (w *launchWatch) wasEnded(l outcome.Launch) bool { return !w.ended[l.Key()].IsZero() }
