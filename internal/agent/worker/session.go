package worker

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"

	"opendatahub.io/mpijob/internal/agent/environ"
	"opendatahub.io/mpijob/internal/agent/outcome"
	"opendatahub.io/mpijob/internal/agent/process"
	"opendatahub.io/mpijob/internal/agent/progress"
	"opendatahub.io/mpijob/internal/agent/protocol"
	"opendatahub.io/mpijob/internal/agent/sampler"
	"opendatahub.io/mpijob/internal/agentapi"
)

// session is one program that a client has started on this worker, a remote daemon of MPI as a rule (RFC 4254, 6).
type session struct {
	worker  *worker
	log     *slog.Logger
	id      string
	channel ssh.Channel
	// env is what the client asked to set.
	env []string
	// program is nil until it is started, at start.
	program *process.Program
	start   time.Time
	// binding is what was decided about binding the program's ranks to cores; "" if that is up to MPI.
	binding agentapi.BindingPolicy
	// init is how many nanoseconds after that the first rank was seen, 0 until then.
	init atomic.Int64
}

// serve answers the requests of a session's channel until its program has ended or the client has gone.
func (s *session) serve(requests <-chan *ssh.Request) {
	defer s.channel.Close()
	ended := make(chan struct{})
	for {
		select {
		case <-ended:
			return
		case request, open := <-requests:
			if !open {
				s.gone(ended)
				return
			}
			ok := s.answer(request, ended)
			if request.WantReply {
				_ = request.Reply(ok, nil)
			}
		}
	}
}

// gone ends what a client has left behind.
func (s *session) gone(ended <-chan struct{}) {
	if s.program == nil {
		return
	}
	select {
	case <-ended:
		return
	default:
	}
	s.log.Info("client gone, ending its processes")
	if left := s.worker.end(s.id); left > 0 {
		s.log.Warn("processes do not end", "count", left)
	}
}

func (s *session) answer(request *ssh.Request, ended chan<- struct{}) bool {
	switch request.Type {
	case "env":
		var pair struct{ Name, Value string }
		if s.program != nil || ssh.Unmarshal(request.Payload, &pair) != nil || strings.ContainsAny(pair.Name, "=\x00") || pair.Name == "" {
			return false
		}
		s.env = environ.Set(s.env, pair.Name, pair.Value)
		return true
	case "exec":
		var line struct{ Command string }
		if s.program != nil || ssh.Unmarshal(request.Payload, &line) != nil || strings.ContainsRune(line.Command, 0) {
			return false
		}
		return s.run([]string{"/bin/sh", "-c", line.Command}, ended)
	case "shell":
		return s.program == nil && s.run([]string{"/bin/sh"}, ended)
	case "signal":
		var signal struct{ Name string }
		if s.program == nil || ssh.Unmarshal(request.Payload, &signal) != nil {
			return false
		}
		number := unix.SignalNum("SIG" + signal.Name)
		if ranks := s.worker.rankProcesses(s.id); number == unix.SIGTERM && len(ranks) > 0 {
			// MPI's daemon would kill its ranks soon after; it ends when they have ended.
			for _, pid := range ranks {
				_ = unix.Kill(pid, number)
			}
			return true
		}
		return number != 0 && unix.Kill(-s.program.PID, number) == nil
	}
	// No terminals and no subsystems: ranks need none.
	return false
}

// run starts a program whose input and output are the channel's.
func (s *session) run(args []string, ended chan<- struct{}) bool {
	env := slices.Concat(s.worker.env, s.env)
	env, s.binding = bindEnv(env, agentapi.BindingPolicy(environ.Get(s.env, agentapi.EnvBind)), s.worker.cores)
	since, _ := s.worker.ranks.BadEnds()
	firstRank, start := s.worker.ranks.NextRank(), time.Now()
	var pipes pipes
	program, err := pipes.start(s.worker.processes, process.Command{
		Args: args, Env: environ.Set(env, process.EnvSession, process.SessionMark(s.id)), OwnSession: true,
	})
	if err != nil {
		s.log.Error("cannot start a program for a client", "error", err)
		return false
	}
	s.program, s.start = &program, start
	s.worker.ranks.Look()
	s.worker.sampler.Start(s.worker.connected)
	// Not what it runs: tools put their users' environment into the command, secrets included.
	s.log.Info("started", "pid", program.PID)
	finished := make(chan struct{})
	go s.tellEvents(since, start, firstRank, finished)
	go s.tellActivity(since, finished)
	go s.tellUsages(finished)
	go func() {
		defer close(ended)
		status := pipes.carry(s.channel, program.Done)
		close(finished)
		s.worker.ranks.Settle()
		s.log.Info("ended", "pid", program.PID, "exitCode", process.ExitCode(status), "seconds", int(time.Since(start).Seconds()))
		s.tellSummary(since)
		if time.Since(start) >= protocol.LeastUse {
			s.tellUsage()
		}
		protocol.SendExit(s.channel, status)
	}()
	return true
}

// tellEvents reports that the session's first rank was seen, and each rank that fails during the session: when MPI notices it, it
// may end the client before the session is over.
func (s *session) tellEvents(since int, start time.Time, firstRank, finished <-chan struct{}) {
	for {
		ends, next := s.worker.ranks.BadEnds()
		if ends > since || s.init.Load() > 0 {
			s.tellSummary(since)
		}
		select {
		case <-next:
		case <-firstRank:
			s.init.Store(int64(time.Since(start)))
			firstRank = nil
		case <-finished:
			return
		}
	}
}

// tellActivity reports each change of what the ranks do during the session.
func (s *session) tellActivity(since int, finished <-chan struct{}) {
	ticker := time.NewTicker(progress.SamplePeriod)
	defer ticker.Stop()
	var told agentapi.Activity
	var through []agentapi.HostUse
	var bound *agentapi.BoundRanks
	var lost []agentapi.HostTrouble
	for {
		select {
		case <-finished:
			return
		case now := <-ticker.C:
			activity, uses, hosts := s.worker.activityAt(now), s.worker.through(), s.worker.lost(s.start)
			cores := s.worker.ranks.Bound()
			if !reflect.DeepEqual(activity, told) || !slices.Equal(uses, through) || !slices.Equal(hosts, lost) || !reflect.DeepEqual(cores, bound) {
				told, through, lost, bound = activity, uses, hosts, cores
				s.tellSummary(since)
			}
		}
	}
}

// tellUsages reports periodically what the worker used, during the session.
func (s *session) tellUsages(finished <-chan struct{}) {
	ticker := time.NewTicker(sampler.ReportPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-finished:
			return
		case <-ticker.C:
			s.tellUsage()
		}
	}
}

func (s *session) tellUsage() {
	if data := s.worker.usages(); data != nil {
		_, _ = s.channel.SendRequest(protocol.RequestUsage, false, data)
	}
}

func (s *session) tellSummary(since int) {
	summary := s.worker.sessionSummary(since)
	summary.InitSeconds, summary.Through, summary.Hosts = outcome.Seconds(time.Duration(s.init.Load())), s.worker.through(), s.worker.lost(s.start)
	if s.binding != "" {
		if summary.Binding == nil {
			summary.Binding = &agentapi.Binding{}
		}
		summary.Binding.Policy = s.binding
	}
	if len(summary.Ranks)+len(summary.Through)+len(summary.Hosts) == 0 && summary.OOMKills == 0 && summary.InitSeconds == 0 && summary.Activity == nil && summary.Binding == nil && !summary.Ending {
		return
	}
	data, err := json.Marshal(summary)
	if err == nil {
		_, _ = s.channel.SendRequest(protocol.RequestSummary, false, data)
	}
}

// endedBefore returns the ranks that ended before a time in milliseconds since 1970, or were killed for lack of memory:
// others did so because their pod ends.
func endedBefore(ranks []agentapi.RankEnd, at int64) []agentapi.RankEnd {
	return slices.DeleteFunc(slices.Clone(ranks), func(end agentapi.RankEnd) bool { return end.At >= at && !end.OOM })
}

// pipes connect a program with a channel.
type pipes struct{ input, output, errors *os.File }

// start starts a program at the other ends of the pipes.
func (p *pipes) start(processes *process.Parent, c process.Command) (process.Program, error) {
	var inherited [3]*os.File
	var errs [3]error
	inherited[0], p.input, errs[0] = os.Pipe()
	p.output, inherited[1], errs[1] = os.Pipe()
	p.errors, inherited[2], errs[2] = os.Pipe()
	err := errors.Join(errs[:]...)
	c.Files = inherited
	var started process.Program
	if err == nil {
		started, err = processes.Start(c)
	}
	closeFiles(inherited[:]...)
	if err != nil {
		p.close()
	}
	return started, err
}

func (p *pipes) close() { closeFiles(p.input, p.output, p.errors) }

func closeFiles(files ...*os.File) {
	for _, file := range files {
		if file != nil {
			file.Close()
		}
	}
}

// idle is how long output may still come after a program has ended, from others that hold its pipes.
const idle = 300 * time.Millisecond

// carry carries bytes both ways until the program has ended and all of its output has gone.
func (p *pipes) carry(channel ssh.Channel, done <-chan unix.WaitStatus) unix.WaitStatus {
	defer p.close()
	go func() {
		_, _ = io.Copy(p.input, channel)
		p.input.Close()
	}()
	finished := make(chan struct{})
	var outputs sync.WaitGroup
	outputs.Go(func() { drain(channel, p.output, finished) })
	outputs.Go(func() { drain(channel.Stderr(), p.errors, finished) })
	status := <-done
	close(finished)
	// Wakes those that wait for output right now.
	soon := time.Now().Add(idle)
	_ = p.output.SetReadDeadline(soon)
	_ = p.errors.SetReadDeadline(soon)
	outputs.Wait()
	return status
}

// drain copies a program's output until its end. Once the program has finished, what holds the pipe may be a daemon
// that it left behind, which need not ever close it: then silence is the end.
func drain(to io.Writer, from *os.File, finished <-chan struct{}) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if _, failed := to.Write(buffer[:n]); failed != nil {
				// The client is gone; discard the output so that the program does not block on it.
				to = io.Discard
			}
			select {
			case <-finished:
				_ = from.SetReadDeadline(time.Now().Add(idle))
			default:
			}
		}
		if err != nil {
			return
		}
	}
}
