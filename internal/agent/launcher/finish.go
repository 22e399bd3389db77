package launcher

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"opendatahub.io/mpijob/internal/agent/mpirun"
	"opendatahub.io/mpijob/internal/agent/outcome"
	"opendatahub.io/mpijob/internal/agent/process"
	"opendatahub.io/mpijob/internal/agent/protocol"
	"opendatahub.io/mpijob/internal/agent/records"
	"opendatahub.io/mpijob/internal/agent/resolve"
	"opendatahub.io/mpijob/internal/agentapi"
)

// finish judges the run, writes the termination message, and returns the exit code.
func (s *supervisor) finish(command int, status unix.WaitStatus) int {
	if s.killed.Load() && status.Signaled() {
		status = unix.WaitStatus(unix.SIGTERM)
	}
	code := process.ExitCode(status)
	left := ""
	switch {
	case code == 0:
		left = leftRunning()
		// The last report of what a worker used follows its session's end; MPI's launcher need not wait for that.
		s.settle(time.Second, func(r records.Record) bool { return !r.Reached.IsZero() && time.Since(r.Reached) >= protocol.LeastUse })
	case s.killed.Load():
		s.settle(2*time.Second, nil)
	default:
		s.settle(4*time.Second, nil)
		s.askWorkers()
	}
	s.ranks.Settle()
	sessions := records.Read(s.folder)
	all := s.ranks.Launches(sessions)
	for _, l := range all {
		if s.launchWatch.ended[l.Key()].IsZero() {
			continue
		}
		endSessions(l)
		if end, failed := l.Cause(); failed && code != 0 && l.PID == command {
			// The launcher's own code only shows that the agent ended it.
			code, status = int(end.ExitCode), 0
		}
	}
	summary := s.summary()
	if clash := s.clash.Load(); clash != nil && summary.Binding != nil {
		summary.Binding.Clash = clash
	}
	if status.Signaled() {
		summary.Signal = int32(status.Signal())
	}
	code = outcome.Verdict(&summary, all, s.expected, command, code)
	ends := exitCode(code, sessions)
	if ends != code && !isDisrupted(sessions) {
		fmt.Fprintf(s.stderr, "mpi-agent: The launcher's command ended with exit code %d. The launcher ends with %d, because %d stands for a disruption here (%s).\n", code, ends, code, agentapi.EnvExitDisrupted)
	}
	if code != 0 {
		explainNoRanks(&summary, all)
		explainLineEnds(&summary, s.command, all)
	}
	if summary.LeftRunning = left; left != "" {
		fmt.Fprintf(s.stderr, "mpi-agent: The launcher's command ended while %s was still running in the background. Its ranks end now.\n", left)
	}
	summary.Usage = s.usage()
	if summary.Message != "" {
		fmt.Fprintln(s.stderr, "mpi-agent:", summary.Message)
	}
	records.WriteTermination(summary)
	s.tellEnd(summary.Usage)
	return ends
}

// leftRunning returns the name of an MPI launcher that runs although the command has ended; "" if none does. A process that the command
// has just started becomes the launcher in a moment.
func leftRunning() string {
	const moment, pause = 300 * time.Millisecond, 20 * time.Millisecond
	for deadline := time.Now().Add(moment); ; time.Sleep(pause) {
		pids, _ := process.All()
		others := false
		for _, pid := range pids {
			if pid == os.Getpid() || !process.Runs(pid) || !process.IsOwn(process.Ancestors(pid)) {
				continue
			}
			others = true
			// A launcher that is a script has its interpreter before it.
			words := process.Arguments(pid)
			words = words[:min(2, len(words))]
			if i := slices.IndexFunc(words, mpirun.IsLauncher); i >= 0 {
				return filepath.Base(words[i])
			}
		}
		if !others || time.Now().After(deadline) {
			return ""
		}
	}
}

// exitCode returns the exit code of the launcher for a run that ended with code. With agentapi.EnvExitDisrupted, the code that it names is
// that of a run that failed while a worker's pod was about to end, and of no other: a command's own code of this value is replaced.
func exitCode(code int, sessions []records.Record) int {
	const replacement, other = 1, 2
	disrupted, err := strconv.ParseUint(os.Getenv(agentapi.EnvExitDisrupted), 10, 8)
	switch {
	case code == 0 || err != nil || disrupted == 0:
		return code
	case isDisrupted(sessions):
		return int(disrupted)
	case code != int(disrupted):
		return code
	case code == replacement:
		return other
	}
	return replacement
}

// isDisrupted reports whether a worker's pod was about to end.
func isDisrupted(sessions []records.Record) bool {
	return slices.ContainsFunc(sessions, func(r records.Record) bool { return r.Worker != nil && r.Worker.Ending })
}

// settle gives the rsh's that MPI has left behind up to limit to write down how their hosts ended. counts says whose records are waited
// for, nil: all.
func (s *supervisor) settle(limit time.Duration, counts func(records.Record) bool) {
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		open := slices.ContainsFunc(records.Read(s.folder), func(r records.Record) bool {
			return !r.Over && (counts == nil || counts(r)) && process.Runs(r.Process)
		})
		if !open {
			return
		}
	}
}

// askTime is how long a launcher's end may be delayed to ask workers; askAtOnce is how many are asked at once.
const (
	askTime   = 3 * time.Second
	askAtOnce = 32
)

// askWorkers asks the workers whose rsh was ended before it could report: MPI kills its rsh's as soon as one host has failed, and
// another host may be where the failure began.
func (s *supervisor) askWorkers() {
	silent := slices.DeleteFunc(records.Read(s.folder), func(r records.Record) bool {
		return r.Over || r.Reached.IsZero() || process.Runs(r.Process)
	})
	identity, err := protocol.ReadIdentity("")
	if len(silent) == 0 || err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), askTime)
	defer cancel()
	d := protocol.Dialer{Identity: identity, LookUp: resolve.New(resolve.Conf).Check}
	var all sync.WaitGroup
	places := make(chan struct{}, askAtOnce)
	for _, r := range silent {
		places <- struct{}{}
		all.Go(func() {
			if told, err := d.AskEnds(ctx, r.Host, r.Port); err == nil {
				r.Add(told)
				r.Write(s.folder)
			}
			<-places
		})
	}
	all.Wait()
}
