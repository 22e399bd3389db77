package launcher

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"opendatahub.io/mpijob/internal/agent/outcome"
	"opendatahub.io/mpijob/internal/agent/process"
	"opendatahub.io/mpijob/internal/agent/records"
	"opendatahub.io/mpijob/internal/agentapi"
)

// passSignals passes the container's signals on to its command. If that is an MPI launcher with ranks on other hosts, TERM goes
// to the ranks, and to the launcher only when they have ended or their grace period is over: it would kill them within a
// second. A second TERM goes to the launcher at once.
func (s *supervisor) passSignals(pid int) (stop func()) {
	held := false
	return process.OnSignals(func(number unix.Signal) {
		sessions := s.sessionsOf(pid)
		if number != unix.SIGTERM || held || len(sessions) == 0 {
			_ = unix.Kill(pid, number)
			return
		}
		held = true
		for _, session := range sessions {
			_ = unix.Kill(session, number)
		}
		go s.endAfterRanks(pid)
	}, unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2, unix.SIGCONT, unix.SIGWINCH)
}

// endAfterRanks ends an MPI launcher when its ranks have ended or their grace period is over.
func (s *supervisor) endAfterRanks(pid int) {
	number := unix.SIGTERM
	if s.awaitRanks(pid) {
		// TERM crashes an mpirun of Open MPI 4 that ends its ranks already.
		number = unix.SIGKILL
	}
	if _, runs := process.ReadStat(pid); runs {
		s.killed.Store(number == unix.SIGKILL)
		_ = unix.Kill(pid, number)
	}
}

// ranksEndWithin is how long ranks that do not handle TERM take to end, and their launcher to end by itself afterwards.
const ranksEndWithin = 2 * time.Second

// awaitRanks waits until no rank of an MPI launcher is known to run, at most for the ranks' grace period. It returns false if
// ranks still run. The launcher may not notice that they have ended if they had just started.
func (s *supervisor) awaitRanks(pid int) bool {
	for deadline := time.Now().Add(process.PodGrace()); time.Now().Before(deadline); {
		time.Sleep(min(ranksEndWithin, time.Until(deadline)))
		if !s.haveRanks(pid) {
			return true
		}
	}
	return false
}

// haveRanks reports whether ranks of an MPI launcher are known to run, here or on the hosts of its sessions.
func (s *supervisor) haveRanks(pid int) bool {
	if s.ranks.Running() > 0 {
		return true
	}
	return slices.ContainsFunc(records.Read(s.folder), func(r records.Record) bool {
		return !r.Over && slices.Contains(r.Ancestors, pid) && r.Worker != nil && int(r.Worker.RanksSeen) > len(r.Worker.Ranks)
	})
}

// sessionsOf returns the rsh's of a process that is an MPI launcher. Ranks may run there although none was seen yet.
func (s *supervisor) sessionsOf(pid int) []int {
	s.ranks.Scan()
	for _, l := range s.ranks.Launches(records.Read(s.folder)) {
		if l.PID == pid && !l.Over {
			return l.Sessions
		}
	}
	return nil
}

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
