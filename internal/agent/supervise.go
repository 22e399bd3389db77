package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"opendatahub.io/mpijob/internal/agentapi"
)

// ignoredCode is the exit code of a launcher whose command succeeded although every rank ran on the launcher: the
// result looks right, but the job did not use its workers.
const ignoredCode = 125

// supervisor runs the launcher's own command and watches the job's hosts and ranks.
type supervisor struct {
	ranks  *ranks
	stderr io.Writer
	// folder is where the rsh's leave their records.
	folder string
	// expected is the hostfile's.
	expected hostfile
	// container is set if records of earlier runs of the container do not count: the supervisor deletes them.
	container   string
	launchWatch launchWatch
	// killed is set if the agent killed the command, because the container was to end.
	killed atomic.Bool
}

// supervise runs a command with everything that MPI needs to find the workers, and ends as it ends.
func supervise(args []string, log *slog.Logger) int {
	s := &supervisor{
		ranks: newRanks(log, cgroupRoot), stderr: os.Stderr, folder: recordsFolder(), expected: readHostfile(agentapi.Hostfile),
		launchWatch: launchWatch{failedAt: map[string]time.Time{}, ended: map[string]time.Time{}, killed: map[string]bool{}},
	}
	processes, err := newProcesses(s.ranks.look)
	if err != nil {
		fmt.Fprintln(s.stderr, "mpi-agent:", err)
		return ignoredCode
	}
	s.ranks.versions = &versionQueries{start: processes.start}
	// An earlier try of this container has left its records.
	for _, name := range []string{"*.json", "*.new"} {
		old, _ := filepath.Glob(filepath.Join(s.folder, name))
		for _, path := range old {
			_ = os.Remove(path)
		}
	}
	env, err := hydraEnv(launcherEnv(os.Environ()), agentapi.Hostfile)
	if err != nil {
		fmt.Fprintln(s.stderr, "mpi-agent:", err)
		return ignoredCode
	}
	program, err := processes.start(command{args: args, env: env, files: [3]*os.File{os.Stdin, os.Stdout, os.Stderr}})
	if err != nil {
		return s.notStarted(args[0], err)
	}
	done := make(chan struct{})
	go s.ranks.watch(done)
	s.ranks.look()
	go serveStatus(log, address(nil, 0, agentapi.StatusPort), s.summary)
	stop := s.passSignals(program.pid)
	defer stop()
	status := s.wait(program)
	close(done)
	s.ranks.versions.end()
	return s.finish(program.pid, status)
}

// notStarted reports why the launcher's command could not be started, and returns a shell's exit code.
func (s *supervisor) notStarted(name string, err error) int {
	code, summary := 126, agentapi.Summary{Role: agentapi.RoleLauncher, Code: agentapi.ProgramMissing}
	interpreter, found := interpreterOf(name)
	because := err.Error()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		code = 127
		summary.Message = fmt.Sprintf("The launcher's command %q is not in its image: %v.", name, err)
	case errors.Is(err, unix.ENOENT) && strings.HasSuffix(interpreter, "\r"):
		summary.Code, because = agentapi.WindowsLineEnds, fmt.Sprintf("the first line, which names the interpreter %s, ends with a carriage return", strings.TrimSuffix(interpreter, "\r"))
	case errors.Is(err, unix.ENOENT) && found:
		because = fmt.Sprintf("its interpreter %s is not in the image", interpreter)
	case errors.Is(err, unix.EACCES):
		because = "the file is not executable"
	case errors.Is(err, unix.ENOEXEC):
		because = "it is a script whose first line names no interpreter, or a program for another CPU architecture"
	}
	if summary.Message == "" {
		summary.Message = fmt.Sprintf("The launcher's command %q cannot be started: %s.", name, because)
	}
	summary.ExitCode = new(int32(code))
	fmt.Fprintln(s.stderr, "mpi-agent:", summary.Message)
	writeTermination(summary)
	return code
}

// interpreterOf returns the interpreter that the first line of a script names, as the kernel reads it: up to a space, with the
// carriage return of Windows' line ends.
func interpreterOf(script string) (interpreter string, found bool) {
	const most = 256
	file, err := os.Open(script)
	if err != nil {
		return "", false
	}
	defer file.Close()
	head := make([]byte, most)
	n, _ := io.ReadFull(file, head)
	line, _, _ := strings.Cut(string(head[:n]), "\n")
	line, found = strings.CutPrefix(line, "#!")
	line, _, _ = strings.Cut(strings.Trim(line, " \t"), " ")
	return line, found && line != ""
}

// wait waits for the command, and periodically reports the hosts that are not reachable yet.
func (s *supervisor) wait(program program) unix.WaitStatus {
	ticker := time.NewTicker(sayEvery)
	defer ticker.Stop()
	sample := time.NewTicker(samplePeriod)
	defer sample.Stop()
	check := time.NewTicker(checkEvery)
	defer check.Stop()
	var watch stallWatch
	for {
		select {
		case status := <-program.done:
			return status
		case now := <-check.C:
			s.endOverdue(now)
		case now := <-ticker.C:
			if text := s.waitingText(now); text != "" {
				fmt.Fprintln(s.stderr, "mpi-agent:", text)
			}
		case now := <-sample.C:
			if text := watch.judge(hosts(readRecords(s.folder)), s.ranks.sampleActivity(now), s.summary().Ranks, now); text != "" {
				fmt.Fprintln(s.stderr, agentapi.StallPrefix+text)
			}
		}
	}
}

// waitingText says which hosts are waited for and why, those that share a reason together; empty: none.
func (s *supervisor) waitingText(now time.Time) string {
	var reasons []string
	names := map[string][]string{}
	all, longest := hosts(readRecords(s.folder)), time.Duration(0)
	waited := 0
	for _, r := range all {
		if !r.Reached.IsZero() || r.Over {
			continue
		}
		waited++
		longest = max(longest, now.Sub(r.Since))
		why := r.why()
		if names[why] == nil {
			reasons = append(reasons, why)
		}
		names[why] = append(names[why], short(r.Host))
	}
	if waited == 0 {
		return ""
	}
	var text strings.Builder
	fmt.Fprintf(&text, "waiting for %d of %d hosts for %d s", waited, max(len(all), int(s.expected.others)), int(longest.Seconds()))
	for _, why := range reasons {
		fmt.Fprintf(&text, "; %s: %s", some(names[why]), why)
	}
	return text.String()
}

// why is a record's reason without the address in it, which differs from host to host.
func (r record) why() string {
	if r.Why == "" {
		return "connecting"
	}
	return r.Why
}

// some are names as people read them.
func some(names []string) string {
	const most = 4
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// short is a host's name without its domain.
func short(host string) string {
	if net.ParseIP(host) != nil {
		return host
	}
	first, _, _ := strings.Cut(host, ".")
	return first
}

// finish judges the run, writes the termination message, and returns the exit code.
func (s *supervisor) finish(command int, status unix.WaitStatus) int {
	if s.killed.Load() && status.Signaled() {
		status = unix.WaitStatus(unix.SIGTERM)
	}
	code := exitCode(status)
	if code != 0 {
		s.settle()
		if !s.killed.Load() {
			s.askWorkers()
		}
	}
	s.ranks.settle()
	all := s.ranks.launches(readRecords(s.folder))
	for _, l := range all {
		if !s.launchWatch.wasEnded(l) {
			continue
		}
		l.endSessions()
		if end, failed := l.cause(); failed && code != 0 && l.pid == command {
			// The launcher's own code only shows that the agent ended it.
			code, status = int(end.ExitCode), 0
		}
	}
	summary := s.summary()
	if status.Signaled() {
		summary.Signal = int32(status.Signal())
	}
	addMissed(&summary, all, command, code)
	if code == 0 {
		// What did not matter to the program is no finding.
		summary.Code, summary.Message = "", ""
		if l, end, lost := lostFailure(all, command); lost {
			code, summary.Code = int(end.ExitCode), agentapi.RankFailed
			summary.Message = fmt.Sprintf("%s %s did not notice, and reported success. The job is failed so that its result is not used.", rankEnded(end), l.name)
		} else if s.hostfileIgnored(summary) {
			code, summary.Code = ignoredCode, agentapi.HostfileIgnored
			summary.Message = fmt.Sprintf("The command succeeded, but all of the %d ranks that it started ran on the launcher and none on the job's %d workers. "+
				"The MPI in this image did not read the job's list of hosts (%s): is it the implementation that the job names, and does the command not name "+
				"hosts of its own? The job is failed so that this is not taken for a result.", summary.RanksSeen, s.expected.others, agentapi.Hostfile)
		}
	}
	summary.ExitCode = new(int32(code))
	if code != 0 {
		summary.HostsIdle = 0
	}
	summary.Launches = int32(len(all))
	if summary.Message != "" {
		fmt.Fprintln(s.stderr, "mpi-agent:", summary.Message)
	}
	writeTermination(summary)
	return code
}

// addMissed adds the rank whose end was not observed, if it is the cause. code is that of the job's command, the process command.
func addMissed(summary *agentapi.Summary, all []launch, command, code int) {
	if len(all) != 1 || summary.Code != "" && summary.Code != agentapi.RankFailed {
		return
	}
	l := all[0]
	if l.pid == command {
		l.code = code
	}
	if end, missed := l.missed(l.code); missed {
		summary.Ranks = slices.Insert(summary.Ranks, 0, end)
		summary.Ranks = summary.Ranks[:min(len(summary.Ranks), mostRankEnds)]
		summary.Code, summary.Message = agentapi.RankFailed, rankEnded(end)
	}
}

// settle gives the rsh's that MPI has left behind the time to write down how their hosts ended: less if the container is about to
// end.
func (s *supervisor) settle() {
	limit := 4 * time.Second
	if s.killed.Load() {
		limit = 2 * time.Second
	}
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		open := slices.ContainsFunc(readRecords(s.folder), func(r record) bool {
			return !r.Over && countAlive([]int{r.Process}) > 0
		})
		if !open {
			return
		}
	}
}

// hostfileIgnored reports whether ranks ran, none on a worker, and more than a launcher that is a host itself takes.
func (s *supervisor) hostfileIgnored(summary agentapi.Summary) bool {
	return s.expected.others > 0 && summary.HostsReached == 0 && summary.RanksSeen > s.expected.ownSlots
}

// summary is what is known of the run so far.
func (s *supervisor) summary() agentapi.Summary {
	summary := agentapi.Summary{Role: agentapi.RoleLauncher, HostsExpected: s.expected.others, SlotsExpected: s.expected.slots}
	s.ranks.tell(&summary, 0)
	var found []record
	records := readRecords(s.folder)
	if s.container != "" {
		summary.MPIVersions = keptVersions(s.folder, s.container)
		records = slices.DeleteFunc(records, func(r record) bool { return r.Container != s.container })
	}
	all := hosts(records)
	summary.HostsIdle = idleHosts(records, s.expected, time.Now())
	summary.ConnectSeconds = seconds(connectTime(all))
	for _, use := range uses(records) {
		summary.HostsReached++
		summary.SlotsFound += s.expected.slotsOf[use.Host]
	}
	for _, r := range all {
		if isEnding := r.Worker != nil && r.Worker.Ending; r.Trouble != "" && (r.Over || isEnding || r.Reached.IsZero()) {
			summary.Hosts = append(summary.Hosts, agentapi.HostTrouble{Host: short(r.Host), Code: r.Trouble, Message: r.Why, Seconds: r.Seconds})
			found = append(found, r)
		}
		if r.Worker != nil {
			summary.Ranks = append(summary.Ranks, r.Worker.Ranks...)
			summary.OOMKills += r.Worker.OOMKills
			summary.CPUSeconds += r.Worker.CPUSeconds
			summary.ThrottledSeconds += r.Worker.ThrottledSeconds
			summary.InitSeconds = max(summary.InitSeconds, r.Worker.InitSeconds)
		}
	}
	s.judge(&summary, found)
	summary.Hosts = summary.Hosts[:min(len(summary.Hosts), mostHosts)]
	summary.Ranks = summary.Ranks[:min(len(summary.Ranks), mostRankEnds)]
	return summary
}

// checkEvery is how often the agent checks whether a launcher is overdue.
const checkEvery = 2 * time.Second

const mostHosts = 8

// connectTime is how long it took to reach all hosts that were asked for; 0 where one was not reached.
func connectTime(hosts []record) time.Duration {
	var first, last time.Time
	for _, r := range hosts {
		if r.Reached.IsZero() {
			return 0
		}
		if first.IsZero() || r.Since.Before(first) {
			first = r.Since
		}
		if r.Reached.After(last) {
			last = r.Reached
		}
	}
	return last.Sub(first)
}

// seconds returns a duration in seconds, rounded to milliseconds and at least 0.001, because 0 means unknown.
func seconds(d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return max(1, float64(d.Milliseconds())) / 1000
}

// judge names the cause: memory first, then a rank that failed by itself, then a host, and last ranks that were
// terminated, as MPI terminates all others when one has failed.
func (s *supervisor) judge(summary *agentapi.Summary, lost []record) {
	sortByCause(summary.Ranks)
	first := 0
	if len(summary.Ranks) > 0 {
		first = afterwards(summary.Ranks[0])
	}
	switch {
	case len(summary.Ranks) > 0 && summary.Ranks[0].OOM:
		summary.Code, summary.Message = agentapi.OutOfMemory, rankEnded(summary.Ranks[0])
	case len(lost) > 0 && lost[0].Reached.IsZero():
		summary.Code, summary.Message = lost[0].Trouble, fmt.Sprintf("Host %s could not be used: %s.", short(lost[0].Host), lost[0].Why)
	case len(summary.Ranks) > 0 && (first < toldToEnd || len(lost) == 0):
		summary.Code, summary.Message = agentapi.RankFailed, rankEnded(summary.Ranks[0])
	case len(lost) > 0:
		summary.Code, summary.Message = lost[0].Trouble, hostLost(lost[0])
	}
}

// hostLost says how the connection to a host was lost.
func hostLost(r record) string { return fmt.Sprintf("Host %s was lost: %s.", short(r.Host), r.Why) }

// sortByCause orders the ends of ranks: causes before consequences, and of the same kind the first one. Others often crash when
// the connection to a rank that has failed is closed.
//
// The kernel closes the connections of a rank before the rank has ended, so that on a busy machine the end of another rank, to
// which MPI reported the lost connection, may be seen first.
func sortByCause(ends []agentapi.RankEnd) {
	const together = 2000
	slices.SortStableFunc(ends, func(a, b agentapi.RankEnd) int {
		return cmp.Or(afterwards(a)-afterwards(b), cmp.Compare(a.At, b.At))
	})
	if len(ends) == 0 || !lostPeer(ends[0]) {
		return
	}
	cause := slices.IndexFunc(ends, func(end agentapi.RankEnd) bool { return !lostPeer(end) && afterwards(end) < toldToEnd })
	if cause > 0 && ends[cause].At-ends[0].At <= together {
		end := ends[cause]
		copy(ends[1:], ends[:cause])
		ends[0] = end
	}
}

// lostPeer reports whether a rank ended as MPI ends ranks that lost a connection. The default error handler exits with the class
// of the error: MPI_ERR_UNKNOWN, MPI_ERR_OTHER or MPI_ERR_INTERN, which are 14, 16 and 17 in Open MPI (ompi/include/mpi.h.in),
// and 13, 15 and 16 in MPICH and Intel MPI (src/binding/c/mpi.h.in).
func lostPeer(end agentapi.RankEnd) bool {
	return end.Signal == 0 && end.ExitCode >= 13 && end.ExitCode <= 17
}

// toldToEnd is the place of ranks that others have ended.
const toldToEnd = 2

// afterwards orders the ends of ranks, causes before consequences.
func afterwards(r agentapi.RankEnd) int {
	switch unix.Signal(r.Signal) {
	case unix.SIGTERM, unix.SIGKILL, unix.SIGINT, unix.SIGHUP, unix.SIGPIPE:
		if r.OOM {
			return 0
		}
		return toldToEnd
	}
	return 1
}

// launcherEnv is the environment of the launcher's command: with the shim first in PATH, for tools that look for an
// ssh; and with a shell's name, by which Open MPI spares itself a warning where the user has no entry in passwd.
func launcherEnv(env []string) []string {
	path := variable(env, "PATH")
	if path == "" {
		path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	}
	env = setVariable(env, "PATH", filepath.Dir(agentapi.Shim)+":"+path)
	env = setVariable(env, envSupervised, "1")
	if variable(env, "SHELL") == "" {
		shell := "/bin/sh"
		if _, err := os.Stat("/bin/bash"); err == nil {
			shell = "/bin/bash"
		}
		env = setVariable(env, "SHELL", shell)
	}
	return temporaryFolder(env)
}

// temporaryFolder names a folder for temporary files where /tmp cannot be written to, as with a read-only image:
// MPI keeps its sockets and shared memory there.
func temporaryFolder(env []string) []string {
	if variable(env, "TMPDIR") != "" || unix.Access("/tmp", unix.W_OK) == nil {
		return env
	}
	return setVariable(env, "TMPDIR", recordsFolder())
}

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
	if _, runs := readStat(pid); runs {
		s.killed.Store(number == unix.SIGKILL)
		_ = unix.Kill(pid, number)
	}
}

// ranksEndWithin is how long ranks that do not handle TERM take to end, and their launcher to end by itself afterwards.
const ranksEndWithin = 2 * time.Second

// awaitRanks waits until no rank of an MPI launcher is known to run, at most for the ranks' grace period. It returns false if
// ranks still run. The launcher may not notice that they have ended if they had just started.
func (s *supervisor) awaitRanks(pid int) bool {
	for deadline := time.Now().Add(podGrace()); time.Now().Before(deadline); {
		time.Sleep(min(ranksEndWithin, time.Until(deadline)))
		if !s.haveRanks(pid) {
			return true
		}
	}
	return false
}

// haveRanks reports whether ranks of an MPI launcher are known to run, here or on the hosts of its sessions.
func (s *supervisor) haveRanks(pid int) bool {
	if s.ranks.areRunning() {
		return true
	}
	return slices.ContainsFunc(readRecords(s.folder), func(r record) bool {
		return !r.Over && slices.Contains(r.Ancestors, pid) && r.Worker != nil && int(r.Worker.RanksSeen) > len(r.Worker.Ranks)
	})
}

// sessionsOf returns the rsh's of a process that is an MPI launcher. Ranks may run there although none was seen yet.
func (s *supervisor) sessionsOf(pid int) []int {
	s.ranks.scan()
	for _, l := range s.ranks.launches(readRecords(s.folder)) {
		if l.pid == pid && !l.over {
			return l.sessions
		}
	}
	return nil
}

// untilTold waits for the signal to end.
func untilTold() context.Context {
	ctx, _ := signal.NotifyContext(context.Background(), unix.SIGTERM, unix.SIGINT)
	return ctx
}
