// Package outcome judges a run: how its launches and ranks ended, what their exit codes mean, which of these ends was the
// cause, and the summary of all hosts.
package outcome

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"opendatahub.io/mpijob/internal/agent/records"
	"opendatahub.io/mpijob/internal/agentapi"
)

// Some MPI launchers lose a failure. The proxy of MPICH before 4.3 replaces the status of a rank that crashed by 0 if the
// ranks that it kills close their sockets before it has waited for the crashed one (fixed by MPICH's commit 0e9457d2a9):
// mpiexec then does not end the ranks of other hosts, which wait forever, or succeeds although a rank failed. Also in later
// versions, mpiexec does not end the ranks of other hosts when a rank exits with an error without a signal. The agent saw
// the rank itself, so it does what the launcher does otherwise: it ends the launcher, and fails the job.
// mpirun of Open MPI 4 sometimes waits forever if it loses the connections to several hosts at once, as when their node fails.
// The same holds if it cannot connect to many hosts, as when the job was scaled down while it started.

// Launcher is a process that runs an MPI program on all hosts: mpirun, mpiexec or one of their other names.
type Launcher struct {
	PID     int
	Started string
	Name    string
	// Args are its arguments, without its name.
	Args []string
	// Tolerant is set if the launcher continues when a rank fails.
	Tolerant bool
	// BadEnds is how many ranks of this container had failed when it started.
	BadEnds int
	// Over is set when it has ended, with code if that is known, otherwise -1.
	Over bool
	Code int
}

// Launches returns what is known of each run of an MPI launcher. launchers are all of this container, oldest first, ended its ranks
// that failed, own is what its ranks do or nil, and sessions are the records of all rsh's.
func Launches(launchers []*Launcher, ended []agentapi.RankEnd, sessions []records.Record, own *agentapi.Activity) (all []Launch) {
	for i, l := range launchers {
		failed := ended[min(l.BadEnds, len(ended)):]
		if i+1 < len(launchers) {
			failed = ended[l.BadEnds:max(l.BadEnds, launchers[i+1].BadEnds)]
		}
		next := Launch{Launcher: *l, Failed: slices.Clone(failed), quiet: true}
		for _, r := range sessions {
			if LauncherAbove(launchers, r.Ancestors) == l {
				next.add(r)
			}
		}
		if i == len(launchers)-1 && own != nil && len(own.Ranks) > 0 {
			next.addActivity(*own)
		}
		sortByCause(next.Failed)
		slices.SortStableFunc(next.Lost, records.CompareTrouble)
		all = append(all, next)
	}
	return all
}

// LauncherAbove returns the MPI launcher among a process's ancestors, or nil.
func LauncherAbove(launchers []*Launcher, ancestors []int) *Launcher {
	for _, l := range slices.Backward(launchers) {
		if slices.Contains(ancestors, l.PID) {
			return l
		}
	}
	return nil
}

// Launch is a run of an MPI launcher.
type Launch struct {
	Launcher
	// Failed are the ranks that ended badly, causes before consequences.
	Failed []agentapi.RankEnd
	// Sessions are the rsh's whose sessions are not over, and survivors the ranks there.
	Sessions  []int
	survivors int
	// stopped is set if a session in which a rank was ended by a signal is over: MPI has stopped that host.
	stopped bool
	// Lost are the sessions with ranks whose connection was lost: what these ranks showed says nothing about the program.
	Lost []records.Record
	// unreached are the sessions that could not be opened, as those with workers that were removed before the launcher started.
	unreached []records.Record
	// quiet is set if no survivor has computed or transferred data since quietSince.
	quiet      bool
	quietSince int64
}

func (l *Launch) add(r records.Record) {
	var ranks []agentapi.RankEnd
	if r.Worker != nil {
		ranks = r.Worker.Ranks
	}
	l.Failed = append(l.Failed, ranks...)
	for _, other := range behind(r) {
		l.addTrouble(other)
	}
	switch {
	case r.Over:
		l.addTrouble(r)
		l.stopped = l.stopped || slices.ContainsFunc(ranks, func(end agentapi.RankEnd) bool { return end.Signal != 0 })
		return
	case r.Worker == nil || r.Worker.Activity == nil:
		l.quiet = false
	default:
		l.addActivity(*r.Worker.Activity)
	}
	l.Sessions = append(l.Sessions, r.Process)
}

// addTrouble adds a session that is over if its host was lost or not reached.
func (l *Launch) addTrouble(r records.Record) {
	// Programs may use ssh as well; sessions that have a summary had ranks.
	if r.Trouble == agentapi.ConnectionLost && r.Worker != nil {
		l.Lost = append(l.Lost, r)
	}
	if r.Trouble != "" && r.Trouble != agentapi.ConnectionLost && r.Reached.IsZero() {
		l.unreached = append(l.unreached, r)
	}
}

func (l *Launch) addActivity(a agentapi.Activity) {
	l.survivors += len(a.Ranks)
	since := a.QuietSince()
	l.quiet = l.quiet && since > 0
	l.quietSince = max(l.quietSince, since)
}

// Cause returns the rank that failed by itself, first; false if there is none: others were ended because of it.
func (l *Launch) Cause() (agentapi.RankEnd, bool) {
	if len(l.Failed) == 0 || afterwards(l.Failed[0]) >= toldToEnd {
		return agentapi.RankEnd{}, false
	}
	return l.Failed[0], true
}

// missed returns the rank whose end was not observed, since it lasted only for milliseconds: the launcher returned an error code
// and ended all other ranks because of it. mpirun of Open MPI 4 names that rank in nine of ten runs only. false means that there is
// no such rank, or that it is not certain which one it is.
func (l *Launch) missed(code int) (agentapi.RankEnd, bool) {
	if len(l.Failed) == 0 || l.Tolerant || code <= 0 {
		return agentapi.RankEnd{}, false
	}
	// signal(7)
	const lastSignal = 64
	end := agentapi.RankEnd{Of: l.Failed[0].Of, ExitCode: int32(code)}
	if code > 128 && code <= 128+lastSignal {
		end.Signal = int32(code - 128)
	}
	present := map[int32]bool{}
	for _, other := range l.Failed {
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

// HasFailed reports whether the launcher has to end its ranks: one of them failed, or a host was lost or not reached.
func (l *Launch) HasFailed() bool { return len(l.Failed)+len(l.Lost)+len(l.unreached) > 0 }

// IsOverdue reports whether the launcher should have ended by now: it failed at failedAt, which is endAfter ago, and a host was
// lost, or one was not reached and no rank was started, or MPI has stopped a host because of a rank that failed, or the other ranks wait. Ranks that compute may be about to end
// as they should.
func (l *Launch) IsOverdue(failedAt time.Time, endAfter time.Duration, now time.Time) bool {
	switch {
	case l.Over || l.Tolerant || !l.HasFailed() || now.Sub(failedAt) < endAfter:
		return false
	case len(l.Lost) > 0:
		return true
	case len(l.Failed) == 0:
		// Ranks may use ssh as well.
		return l.survivors == 0
	case len(l.Sessions) == 0 && l.survivors == 0:
		return false
	}
	return l.stopped || l.quiet && now.Sub(time.Unix(l.quietSince, 0)) >= endAfter
}

// Failure says what the launcher should have noticed.
func (l *Launch) Failure() string {
	if end, known := l.Cause(); known {
		return RankEnded(end)
	}
	if len(l.Lost) > 0 {
		return hostLost(l.Lost[0])
	}
	if len(l.unreached) > 0 {
		return hostUnused(l.unreached[0])
	}
	return RankEnded(l.Failed[0])
}

// Key identifies a launcher: a process id is given to another process later.
func (l *Launcher) Key() string { return fmt.Sprint(l.PID, " ", l.Started) }

// sortByCause orders the ends of ranks: causes before consequences, and of the same kind the first one. Others often crash when
// the connection to a rank that has failed is closed.
//
// The kernel closes the connections of a rank before the rank has ended. On a busy machine the end of another rank may therefore be
// seen first: one to which MPI reported the lost connection, or which crashed in MPI because of it.
func sortByCause(ends []agentapi.RankEnd) {
	const together = 2000
	slices.SortStableFunc(ends, func(a, b agentapi.RankEnd) int {
		return cmp.Or(afterwards(a)-afterwards(b), cmp.Compare(a.At, b.At))
	})
	var isCause func(agentapi.RankEnd) bool
	switch {
	case len(ends) == 0 || ends[0].OOM:
		return
	case ends[0].LostPeer():
		isCause = func(end agentapi.RankEnd) bool { return !end.LostPeer() && afterwards(end) < toldToEnd }
	case crashed(ends[0]):
		isCause = hasOwnCode
	default:
		return
	}
	cause := slices.IndexFunc(ends, isCause)
	if cause > 0 && ends[cause].At-ends[0].At <= together {
		end := ends[cause]
		copy(ends[1:], ends[:cause])
		ends[0] = end
	}
}

// OutOfMemory describes processes that the kernel killed.
func OutOfMemory(s agentapi.Summary) string {
	text := fmt.Sprintf("The kernel killed %d of this container's processes, which had no memory left", s.OOMKills)
	if s.MemoryLimit > 0 {
		text += " below the limit of " + Mebibytes(s.MemoryLimit)
	}
	for _, rank := range s.Ranks {
		if rank.OOM {
			return fmt.Sprintf("%s; rank %d (%s) was one of them.", text, rank.Rank, rank.Program)
		}
	}
	return text + "."
}

// Mebibytes returns an amount of memory as people read it.
func Mebibytes(bytes int64) string { return fmt.Sprintf("%d MiB", bytes>>20) }

// Some are names as people read them.
func Some(names []string) string {
	const most = 4
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
