package agent

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"opendatahub.io/mpijob/internal/agentapi"
)

// Some MPI launchers lose a failure. The proxy of MPICH before 4.3 replaces the status of a rank that crashed by 0 if the
// ranks that it kills close their sockets before it has waited for the crashed one (fixed by MPICH's commit 0e9457d2a9):
// mpiexec then does not end the ranks of other hosts, which wait forever, or succeeds although a rank failed. Also in later
// versions, mpiexec does not end the ranks of other hosts when a rank exits with an error without a signal. The agent saw
// the rank itself, so it does what the launcher does otherwise: it ends the launcher, and fails the job.
// mpirun of Open MPI 4 sometimes waits forever if it loses the connections to several hosts at once, as when their node fails.
// The same holds if it cannot connect to many hosts, as when the job was scaled down while it started.

// endAfterDefault is how long ranks may continue after one failed or a host was lost until the agent ends their launcher. MPI
// launchers end them within a few seconds.
const endAfterDefault = 20 * time.Second

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

// isLauncher reports whether a program is an MPI launcher.
func isLauncher(program string) bool {
	first, _, _ := strings.Cut(filepath.Base(program), ".")
	return slices.Contains([]string{"mpirun", "mpiexec", "orterun", "prterun"}, first)
}

// toleratesFailures reports whether an MPI launcher with these arguments and this environment continues when a rank fails:
// with an option of Hydra, Open MPI 4 (mpirun(1)) or Open MPI 5 (prterun(1)), a parameter of Open MPI, or a variable of Intel
// MPI. Their values do not matter: a user who names one decides about failures.
func toleratesFailures(args, env []string) bool {
	options := []string{"disable-auto-cleanup", "enable-recovery", "continuous", "with-ft", "rtos", "runtime-options"}
	parameters := []string{"orte_enable_recovery", "orte_abort_on_non_zero_status", "mpi_ft_enable"}
	for _, arg := range args {
		name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if strings.HasPrefix(arg, "-") && slices.Contains(options, name) || slices.Contains(parameters, name) {
			return true
		}
	}
	for _, parameter := range parameters {
		if variable(env, "OMPI_MCA_"+parameter) != "" {
			return true
		}
	}
	return variable(env, "I_MPI_FAULT_CONTINUE") != ""
}

// recognizeLauncher takes note of a process that is an MPI launcher. r.mu is held.
func (r *ranks) recognizeLauncher(pid int, state stat, known *process) bool {
	args := argumentsOf(pid)
	if !isLauncher(args[0]) {
		return false
	}
	above := ancestorsOf(pid)
	env := readEnviron(pid)
	if !isOwn(above) || variable(env, envVersionQuery) != "" {
		return false
	}
	// A launcher's child looks like it until it has loaded its own program, and Intel MPI's launcher starts another one.
	for _, above := range above {
		if isLauncher(argumentsOf(above)[0]) {
			return false
		}
	}
	known.until = time.Time{}
	l := &mpiLauncher{
		pid: pid, started: state.started, name: filepath.Base(args[0]), tolerant: toleratesFailures(args[1:], env),
		badEnds: len(r.ended), code: -1,
	}
	r.launchers = append(r.launchers, l)
	if r.versions != nil {
		r.versions.ask(pid, env, r.versions.add)
	}
	if file, err := openProcess(pid); err == nil {
		r.awaited[pid] = true
		go func() {
			defer file.Close()
			status, is := awaitEnd(file, pid)
			r.mu.Lock()
			defer r.mu.Unlock()
			delete(r.awaited, pid)
			l.over = true
			if is {
				l.code = exitCode(status)
			}
		}()
	}
	return true
}

// launches returns what is known of each run of an MPI launcher in this container, oldest first.
func (r *ranks) launches(records []record) []launch {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []launch
	for i, l := range r.launchers {
		own := r.ended[min(l.badEnds, len(r.ended)):]
		if i+1 < len(r.launchers) {
			own = r.ended[l.badEnds:max(l.badEnds, r.launchers[i+1].badEnds)]
		}
		next := launch{mpiLauncher: *l, failed: slices.Clone(own), quiet: true}
		for _, record := range records {
			if r.launcherAbove(record.Ancestors) == l {
				next.add(record)
			}
		}
		if i == len(r.launchers)-1 && len(r.activity.latest.Ranks) > 0 {
			next.addActivity(r.activity.latest)
		}
		sortByCause(next.failed)
		all = append(all, next)
	}
	return all
}

// launcherAbove returns the MPI launcher among a process's ancestors, or nil.
func (r *ranks) launcherAbove(ancestors []int) *mpiLauncher {
	for _, l := range slices.Backward(r.launchers) {
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
		return fmt.Sprintf("Host %s could not be used: %s.", short(l.unreached[0].Host), l.unreached[0].Why)
	}
	return rankEnded(l.failed[0])
}

// lostFailure returns the rank whose failure an MPI launcher has lost: it succeeded although the rank failed. command is the
// process of the job's command, which succeeded; false means that none was lost. A script that starts a launcher may handle
// its failure, so that only what the launcher itself returned counts.
func lostFailure(all []launch, command int) (launch, agentapi.RankEnd, bool) {
	for _, l := range all {
		if end, failed := l.cause(); failed && !l.tolerant && (l.pid == command || l.over && l.code == 0) {
			return l, end, true
		}
	}
	return launch{}, agentapi.RankEnd{}, false
}

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
	for _, l := range s.ranks.launches(readRecords(s.folder)) {
		key := l.key()
		if l.hasFailed() && w.failedAt[key].IsZero() {
			w.failedAt[key] = now
		}
		since := w.ended[key]
		switch {
		case since.IsZero() && l.isOverdue(w.failedAt[key], after, now):
			w.ended[key] = now
			omitted := "end the other ranks"
			if len(l.failed)+len(l.lost) == 0 {
				omitted = "end"
			}
			fmt.Fprintf(s.stderr, "mpi-agent: %s %s did not %s within %d s; the agent ends it.\n",
				l.failure(), cmp.Or(l.name, "The launcher"), omitted, int(now.Sub(w.failedAt[key]).Seconds()))
			signalProcess(l.pid, l.started, unix.SIGTERM)
		case !since.IsZero() && now.Sub(since) >= grace && !w.killed[key]:
			w.killed[key] = true
			signalProcess(l.pid, l.started, unix.SIGKILL)
			l.endSessions()
		}
	}
}

// endSessions ends the launcher's rsh's. The workers end the ranks of a session whose connection ends.
func (l *launch) endSessions() {
	for _, pid := range l.sessions {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}

// wasEnded reports whether the agent ended a launch.
func (w *launchWatch) wasEnded(l launch) bool { return !w.ended[l.key()].IsZero() }

// key identifies a launcher: a process id is given to another process later.
func (l *mpiLauncher) key() string { return fmt.Sprint(l.pid, " ", l.started) }
