package agent

import (
	"fmt"
	"slices"
	"time"

	"opendatahub.io/mpijob/internal/agentapi"
)

// Some MPI launchers lose a failure. The proxy of MPICH before 4.3 replaces the status of a rank that crashed by 0 if the
// ranks that it kills close their sockets before it has waited for the crashed one (fixed by MPICH's commit 0e9457d2a9):
// mpiexec then does not end the ranks of other hosts, which wait forever, or succeeds although a rank failed. Also in later
// versions, mpiexec does not end the ranks of other hosts when a rank exits with an error without a signal. The agent saw
// the rank itself, so it does what the launcher does otherwise: it ends the launcher, and fails the job.
// mpirun of Open MPI 4 sometimes waits forever if it loses the connections to several hosts at once, as when their node fails.
// The same holds if it cannot connect to many hosts, as when the job was scaled down while it started.

// mpiLauncher is a process that runs an MPI program on all hosts: mpirun, mpiexec or one of their other names.
type mpiLauncher struct {
	pid     int
	started string
	name    string
	// tolerant is set if the launcher continues when a rank fails.
	tolerant bool
	// badEnds is how many ranks of this container had failed when it started.
	badEnds int
	// over is set when it has ended, with code if that is known, otherwise -1.
	over bool
	code int
}

// launches returns what is known of each run of an MPI launcher. launchers are all of this container, oldest first, ended its ranks
// that failed, own is what its ranks do, and records are those of all rsh's.
func launches(launchers []*mpiLauncher, ended []agentapi.RankEnd, records []record, own agentapi.Activity) (all []launch) {
	for i, l := range launchers {
		failed := ended[min(l.badEnds, len(ended)):]
		if i+1 < len(launchers) {
			failed = ended[l.badEnds:max(l.badEnds, launchers[i+1].badEnds)]
		}
		next := launch{mpiLauncher: *l, failed: slices.Clone(failed), quiet: true}
		for _, r := range records {
			if launcherAbove(launchers, r.Ancestors) == l {
				next.add(r)
			}
		}
		if i == len(launchers)-1 && len(own.Ranks) > 0 {
			next.addActivity(own)
		}
		sortByCause(next.failed)
		all = append(all, next)
	}
	return all
}

// launcherAbove returns the MPI launcher among a process's ancestors, or nil.
func launcherAbove(launchers []*mpiLauncher, ancestors []int) *mpiLauncher {
	for _, l := range slices.Backward(launchers) {
		if slices.Contains(ancestors, l.pid) {
			return l
		}
	}
	return nil
}

// launch is a run of an MPI launcher.
type launch struct {
	mpiLauncher
	// failed are the ranks that ended badly, causes before consequences.
	failed []agentapi.RankEnd
	// sessions are the rsh's whose sessions are not over, and survivors the ranks there.
	sessions  []int
	survivors int
	// stopped is set if a session in which a rank was ended by a signal is over: MPI has stopped that host.
	stopped bool
	// lost are the sessions with ranks whose connection was lost: what these ranks showed says nothing about the program.
	lost []record
	// unreached are the sessions that could not be opened, as those with workers that were removed before the launcher started.
	unreached []record
	// quiet is set if no survivor has computed or transferred data since quietSince.
	quiet      bool
	quietSince int64
}

func (l *launch) add(r record) {
	var ranks []agentapi.RankEnd
	if r.Worker != nil {
		ranks = r.Worker.Ranks
	}
	l.failed = append(l.failed, ranks...)
	switch {
	case r.Over:
		// Programs may use ssh as well; sessions that have a summary had ranks.
		if r.Trouble == agentapi.ConnectionLost && r.Worker != nil {
			l.lost = append(l.lost, r)
		}
		if r.Trouble != "" && r.Trouble != agentapi.ConnectionLost && r.Reached.IsZero() {
			l.unreached = append(l.unreached, r)
		}
		l.stopped = l.stopped || slices.ContainsFunc(ranks, func(end agentapi.RankEnd) bool { return end.Signal != 0 })
		return
	case r.Worker == nil || r.Worker.Activity == nil:
		l.quiet = false
	default:
		l.addActivity(*r.Worker.Activity)
	}
	l.sessions = append(l.sessions, r.Process)
}

func (l *launch) addActivity(a agentapi.Activity) {
	l.survivors += len(a.Ranks)
	l.quiet = l.quiet && a.QuietSince > 0
	l.quietSince = max(l.quietSince, a.QuietSince)
}

// cause returns the rank that failed by itself, first; false if there is none: others were ended because of it.
func (l *launch) cause() (agentapi.RankEnd, bool) {
	if len(l.failed) == 0 || afterwards(l.failed[0]) >= toldToEnd {
		return agentapi.RankEnd{}, false
	}
	return l.failed[0], true
}

// missed returns the rank whose end was not observed, since it lasted only for milliseconds: the launcher returned an error code
// and ended all other ranks because of it. mpirun of Open MPI 4 names that rank in nine of ten runs only. false means that there is
// no such rank, or that it is not certain which one it is.
func (l *launch) missed(code int) (agentapi.RankEnd, bool) {
	if len(l.failed) == 0 || l.tolerant || code <= 0 {
		return agentapi.RankEnd{}, false
	}
	end := agentapi.RankEnd{Of: l.failed[0].Of, ExitCode: int32(code)}
	if code > 128 {
		end.Signal = int32(code - 128)
	}
	present := map[int32]bool{}
	for _, other := range l.failed {
		if other.Of != end.Of || afterwards(other) < toldToEnd {
			return agentapi.RankEnd{}, false
		}
		present[other.Rank] = true
	}
	if afterwards(end) >= toldToEnd || len(present) != int(end.Of)-1 {
		return agentapi.RankEnd{}, false
	}
	for present[end.Rank] {
		end.Rank++
	}
	return end, end.Rank < end.Of
}

// hasFailed reports whether the launcher has to end its ranks: one of them failed, or a host was lost or not reached.
func (l *launch) hasFailed() bool { return len(l.failed)+len(l.lost)+len(l.unreached) > 0 }

// isOverdue reports whether the launcher should have ended by now: it failed at failedAt, which is endAfter ago, and a host was
// lost, or one was not reached and no rank was started, or MPI has stopped a host because of a rank that failed, or the other ranks wait. Ranks that compute may be about to end
// as they should.
func (l *launch) isOverdue(failedAt time.Time, endAfter time.Duration, now time.Time) bool {
	switch {
	case l.over || l.tolerant || !l.hasFailed() || now.Sub(failedAt) < endAfter:
		return false
	case len(l.lost) > 0:
		return true
	case len(l.failed) == 0:
		// Ranks may use ssh as well.
		return l.survivors == 0
	case len(l.sessions) == 0 && l.survivors == 0:
		return false
	}
	return l.stopped || l.quiet && now.Sub(time.Unix(l.quietSince, 0)) >= endAfter
}

// failure says what the launcher should have noticed.
func (l *launch) failure() string {
	if end, known := l.cause(); known {
		return rankEnded(end)
	}
	if len(l.lost) > 0 {
		return hostLost(l.lost[0])
	}
	if len(l.unreached) > 0 {
		return hostUnused(l.unreached[0])
	}
	return rankEnded(l.failed[0])
}

// key identifies a launcher: a process id is given to another process later.
func (l *mpiLauncher) key() string { return fmt.Sprint(l.pid, " ", l.started) }
