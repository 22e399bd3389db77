package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"opendatahub.io/mpijob/internal/launch"
)

// ignoredCode is the exit code of a launcher whose command ended well although every rank ran beside it: a result
// that looks right and is not what was asked for.
const ignoredCode = 125

// supervisor runs the launcher's own command and watches over what MPI makes of the job.
type supervisor struct {
	ranks  *ranks
	stderr io.Writer
	// folder is where the rsh's leave their records.
	folder string
	// expected is the hostfile's.
	expected hostfile
}

// supervise runs a command with everything that MPI needs to find the workers, and ends as it ends.
func supervise(args []string, log *slog.Logger) int {
	s := &supervisor{
		ranks: newRanks(log, cgroupRoot), stderr: os.Stderr, folder: setting(launch.EnvRun, launch.Run), expected: readHostfile(launch.Hostfile),
	}
	processes, err := newProcesses(s.ranks.look)
	if err != nil {
		fmt.Fprintln(s.stderr, "mpi-agent:", err)
		return ignoredCode
	}
	// An earlier try of this container has left its records.
	for _, name := range []string{"*.json", "*.new"} {
		old, _ := filepath.Glob(filepath.Join(s.folder, name))
		for _, path := range old {
			_ = os.Remove(path)
		}
	}
	env, err := hydraEnv(launcherEnv(os.Environ()), launch.Hostfile)
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
	go serveStatus(log, address(nil, 0, launch.StatusPort), s.summary)
	stop := passSignals(program.pid)
	defer stop()
	status := s.wait(program)
	close(done)
	return s.finish(status)
}

// notStarted tells why the launcher's command could not be started, with a shell's exit codes.
func (s *supervisor) notStarted(name string, err error) int {
	code, summary := 126, launch.Summary{Role: launch.RoleLauncher, Code: launch.ProgramMissing}
	summary.Message = fmt.Sprintf("The launcher's command %q cannot be started: %v.", name, err)
	if errors.Is(err, exec.ErrNotFound) {
		code = 127
		summary.Message = fmt.Sprintf("The launcher's command %q is not in its image: %v.", name, err)
	}
	summary.ExitCode = new(int32(code))
	fmt.Fprintln(s.stderr, "mpi-agent:", summary.Message)
	writeTermination(summary)
	return code
}

// wait waits for the command, and meanwhile tells now and then which hosts are being waited for.
func (s *supervisor) wait(program program) unix.WaitStatus {
	ticker := time.NewTicker(sayEvery)
	defer ticker.Stop()
	for {
		select {
		case status := <-program.done:
			return status
		case <-ticker.C:
			if text := s.waitingText(time.Now()); text != "" {
				fmt.Fprintln(s.stderr, "mpi-agent:", text)
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
	first, _, _ := strings.Cut(host, ".")
	return first
}

// finish judges the run, tells of it in the termination message, and gives the exit code.
func (s *supervisor) finish(status unix.WaitStatus) int {
	code := exitCode(status)
	if code != 0 {
		s.settle()
	}
	summary := s.summary()
	if status.Signaled() {
		summary.Signal = int32(status.Signal())
	}
	if code == 0 {
		// What did not matter to the program is no finding.
		summary.Code, summary.Message = "", ""
		if s.hostfileIgnored(summary) {
			code, summary.Code = ignoredCode, launch.HostfileIgnored
			summary.Message = fmt.Sprintf("The command ended well, but all of the %d ranks that it started ran beside the launcher and none on the job's %d workers. "+
				"The MPI in this image did not read the job's list of hosts (%s): is it the implementation that the job names, and does the command not name "+
				"hosts of its own? The job is failed so that this is not taken for a result.", summary.RanksSeen, s.expected.others, launch.Hostfile)
		}
	}
	summary.ExitCode = new(int32(code))
	if summary.Message != "" {
		fmt.Fprintln(s.stderr, "mpi-agent:", summary.Message)
	}
	writeTermination(summary)
	return code
}

// settle gives the rsh's that MPI has left behind the time to write down how their hosts ended.
func (s *supervisor) settle() {
	for deadline := time.Now().Add(2 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		open := slices.ContainsFunc(readRecords(s.folder), func(r record) bool {
			state, runs := readStat(r.Process)
			return !r.Over && runs && state.state != 'Z'
		})
		if !open {
			return
		}
	}
}

// hostfileIgnored tells whether ranks ran, none on a worker, and more than a launcher that is a host itself takes.
func (s *supervisor) hostfileIgnored(summary launch.Summary) bool {
	return s.expected.others > 0 && summary.HostsReached == 0 && summary.RanksSeen > s.expected.ownSlots
}

// summary is what is known of the run so far.
func (s *supervisor) summary() launch.Summary {
	summary := launch.Summary{Role: launch.RoleLauncher, HostsExpected: s.expected.others, SlotsExpected: s.expected.slots}
	s.ranks.tell(&summary, 0)
	var found []record
	all := hosts(readRecords(s.folder))
	summary.ConnectSeconds = seconds(connectTime(all))
	for _, r := range all {
		if !r.Reached.IsZero() {
			summary.HostsReached++
			summary.SlotsFound += s.expected.slotsOf[short(r.Host)]
		}
		if r.Trouble != "" && (r.Over || r.Reached.IsZero()) {
			summary.Hosts = append(summary.Hosts, launch.HostTrouble{Host: short(r.Host), Code: r.Trouble, Message: r.Why, Seconds: r.Seconds})
			found = append(found, r)
		}
		if r.Worker != nil {
			summary.Ranks = append(summary.Ranks, r.Worker.Ranks...)
			summary.OOMKills += r.Worker.OOMKills
			summary.InitSeconds = max(summary.InitSeconds, r.Worker.InitSeconds)
		}
	}
	s.judge(&summary, found)
	summary.Hosts = summary.Hosts[:min(len(summary.Hosts), mostHosts)]
	summary.Ranks = summary.Ranks[:min(len(summary.Ranks), mostRankEnds)]
	return summary
}

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

// seconds are those of a duration, to the millisecond and at least one, so that 0 stays for what is not known.
func seconds(d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return max(1, float64(d.Milliseconds())) / 1000
}

// judge names the cause: memory first, then a rank that failed by itself, then a host, and last ranks that were told
// to end, as MPI tells all others when one has failed.
func (s *supervisor) judge(summary *launch.Summary, lost []record) {
	slices.SortStableFunc(summary.Ranks, func(a, b launch.RankEnd) int { return afterwards(a) - afterwards(b) })
	first := 0
	if len(summary.Ranks) > 0 {
		first = afterwards(summary.Ranks[0])
	}
	switch {
	case len(summary.Ranks) > 0 && summary.Ranks[0].OOM:
		summary.Code, summary.Message = launch.OutOfMemory, rankEnded(summary.Ranks[0])
	case len(lost) > 0 && lost[0].Reached.IsZero():
		summary.Code, summary.Message = lost[0].Trouble, fmt.Sprintf("Host %s could not be used: %s.", short(lost[0].Host), lost[0].Why)
	case len(summary.Ranks) > 0 && (first < toldToEnd || len(lost) == 0):
		summary.Code, summary.Message = launch.RankFailed, rankEnded(summary.Ranks[0])
	case len(lost) > 0:
		summary.Code, summary.Message = lost[0].Trouble, fmt.Sprintf("Host %s was lost: %s.", short(lost[0].Host), lost[0].Why)
	}
}

// toldToEnd is the place of ranks that others have ended.
const toldToEnd = 2

// afterwards orders the ends of ranks, causes before consequences.
func afterwards(r launch.RankEnd) int {
	switch unix.Signal(r.Signal) {
	case unix.SIGTERM, unix.SIGKILL, unix.SIGINT, unix.SIGHUP:
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
	env = setVariable(env, "PATH", filepath.Dir(launch.Shim)+":"+path)
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
	return setVariable(env, "TMPDIR", setting(launch.EnvRun, launch.Run))
}

// passSignals passes what the container is told on to its command.
func passSignals(pid int) (stop func()) {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2, unix.SIGCONT, unix.SIGWINCH)
	go func() {
		for received := range signals {
			if number, is := received.(syscall.Signal); is {
				_ = unix.Kill(pid, number)
			}
		}
	}()
	return func() { signal.Stop(signals); close(signals) }
}

// setting is a variable's value, or what holds without it.
func setting(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}

// writeTermination leaves a summary where the kubelet picks it up. Where the file cannot be written the summary is
// lost, and nothing else.
func writeTermination(summary launch.Summary) {
	_ = os.WriteFile("/dev/termination-log", terminationMessage(summary), 0o644) //nolint:gosec // the kubelet reads it
}

// untilTold waits for the signal to end.
func untilTold() context.Context {
	ctx, _ := signal.NotifyContext(context.Background(), unix.SIGTERM, unix.SIGINT)
	return ctx
}
