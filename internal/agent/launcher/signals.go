package launcher

import (
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"opendatahub.io/mpijob/internal/agent/process"
	"opendatahub.io/mpijob/internal/agent/records"
)

// passSignals passes the container's signals on to its command. If that is an MPI launcher with ranks on other hosts, TERM goes
// to the ranks, and to the launcher only when they have ended or their grace period is over: it would kill them within a
// second. A second TERM goes to the launcher at once.
func (s *supervisor) passSignals(pid int) (stop func()) {
	held := false
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2, unix.SIGCONT, unix.SIGWINCH)
	go func() {
		for received := range signals {
			number, is := received.(syscall.Signal)
			if !is {
				continue
			}
			if sessions := s.sessionsOf(pid); number == unix.SIGTERM && !held && len(sessions) > 0 {
				held = true
				for _, session := range sessions {
					_ = unix.Kill(session, number)
				}
				go s.endAfterRanks(pid)
				continue
			}
			_ = unix.Kill(pid, number)
		}
	}()
	return func() { signal.Stop(signals); close(signals) }
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
