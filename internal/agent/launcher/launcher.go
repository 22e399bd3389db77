// Package launcher runs the command of a job's launcher, watches over its hosts and ranks, and judges its end.
package launcher

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"opendatahub.io/mpijob/internal/agent/cgroup"
	"opendatahub.io/mpijob/internal/agent/hostfile"
	"opendatahub.io/mpijob/internal/agent/mpiversion"
	"opendatahub.io/mpijob/internal/agent/nvidia"
	"opendatahub.io/mpijob/internal/agent/outcome"
	"opendatahub.io/mpijob/internal/agent/process"
	"opendatahub.io/mpijob/internal/agent/profile"
	"opendatahub.io/mpijob/internal/agent/progress"
	"opendatahub.io/mpijob/internal/agent/protocol"
	"opendatahub.io/mpijob/internal/agent/ranks"
	"opendatahub.io/mpijob/internal/agent/records"
	"opendatahub.io/mpijob/internal/agent/sampler"
	"opendatahub.io/mpijob/internal/agent/status"
	"opendatahub.io/mpijob/internal/agentapi"
)

const (
	// failedCode is the exit code of a launcher whose command the agent cannot start for a reason of its own.
	failedCode = 125
	// waitingEvery is how often hosts that are waited for are reported, and checkEvery how often the agent checks whether a
	// launcher is overdue.
	waitingEvery, checkEvery = 10 * time.Second, 2 * time.Second
)

// supervisor runs the launcher's own command and watches the job's hosts and ranks.
type supervisor struct {
	ranks   *ranks.Ranks
	sampler *sampler.Sampler
	// profiler profiles the ranks of this pod.
	profiler *profile.Profiler
	stderr   io.Writer
	// folder is where the rsh's leave their records.
	folder string
	// expected is the hostfile's.
	expected    hostfile.Hosts
	launchWatch launchWatch
	// command is the launcher's command with its arguments, and started when it was started.
	command []string
	started time.Time
	// binding is what was decided about binding ranks to cores.
	binding agentapi.Binding
	// clash are the ranks that were found last to be bound to the same cores: at the end they run no more.
	clash atomic.Pointer[agentapi.BoundRanks]
	// killed is set if the agent killed the command, because the container was to end.
	killed atomic.Bool
	// stall is what was written last of ranks that make no progress; nil if they do. stallChanges has a value when it has changed.
	stall        atomic.Pointer[agentapi.Stall]
	stallChanges chan struct{}
}

// summary is what is known of the run so far.
func (s *supervisor) summary() agentapi.Summary {
	var own agentapi.Summary
	s.ranks.Tell(&own, 0)
	if !s.started.IsZero() {
		own.Started = s.started.UnixMilli()
	}
	if own.Binding == nil {
		own.Binding = &agentapi.Binding{}
	}
	own.Binding.Policy, own.Binding.By = s.binding.Policy, s.binding.By
	summary := outcome.Summarize(own, records.Read(s.folder), s.expected, time.Now())
	if b := summary.Binding; b != nil && b.Clash != nil {
		s.clash.Store(b.Clash)
	}
	return summary
}

// container is what was counted in the launcher's container, for its metrics.
func (s *supervisor) container() status.Container {
	return status.Container{Reading: s.sampler.Read(), OOMKills: cgroup.Kills(cgroup.Root), RanksFailed: s.ranks.Failed()}
}

// Run runs a command with everything that MPI needs to find the workers, serves the status at an address, and ends as the
// command ends. env is the environment for the command.
func Run(args, env []string, statusAddress string) int {
	log := slog.New(slog.DiscardHandler)
	s := &supervisor{
		command: args, ranks: ranks.New(log, cgroup.Root), stderr: os.Stderr, folder: records.Folder(), expected: hostfile.Read(agentapi.Hostfile),
		stallChanges: make(chan struct{}, 1),
		launchWatch:  launchWatch{failedAt: map[string]time.Time{}, ended: map[string]time.Time{}, killed: map[string]bool{}},
	}
	if restarts, most := restartsLeft(env); restarts > most {
		return s.refuse(restarts)
	}
	s.profiler = profile.New(s.ranks.LaunchOf)
	processes, err := process.NewParent(s.ranks.Look)
	if err == nil {
		env, s.binding = bindEnv(launcherEnv(env), args, s.expected)
		env, err = hydraEnv(s.profiler.Env(env), agentapi.Hostfile)
	}
	if err != nil {
		fmt.Fprintln(s.stderr, "mpi-agent:", err)
		return failedCode
	}
	s.sampler = sampler.New(s.ranks, nvidia.New(log, processes.Start))
	s.ranks.Versions = &mpiversion.Queries{Start: processes.Start}
	// An earlier try of this container has left its records.
	for _, name := range []string{"*.json", records.UsagePattern, "*.new"} {
		old, _ := filepath.Glob(filepath.Join(s.folder, name))
		for _, path := range old {
			_ = os.Remove(path)
		}
	}
	s.started = time.Now()
	program, err := processes.Start(process.Command{Args: args, Env: env, Files: [3]*os.File{os.Stdin, os.Stdout, os.Stderr}})
	if err != nil {
		return s.notStarted(args[0], err)
	}
	done := make(chan struct{})
	go s.ranks.Watch(done)
	s.ranks.Look()
	s.sampler.Start(done)
	go s.tellUsages(done)
	serving := status.Server{Summary: s.summary, Usage: s.usage, Container: s.container}
	if identity, err := protocol.ReadIdentity(""); err == nil {
		serving.Stacks, serving.Token = s.ranks.Stacks, identity.Token
	}
	go serving.Serve(log, statusAddress)
	stop := s.passSignals(program.PID)
	defer stop()
	ended := s.wait(program)
	close(done)
	s.stall.Store(nil)
	s.ranks.Versions.End()
	return s.finish(program.PID, ended)
}

// wait waits for the command, and periodically reports the hosts that are not reachable yet.
func (s *supervisor) wait(program process.Program) unix.WaitStatus {
	ticker := time.NewTicker(waitingEvery)
	defer ticker.Stop()
	sample := time.NewTicker(progress.SamplePeriod)
	defer sample.Stop()
	check := time.NewTicker(checkEvery)
	defer check.Stop()
	var watch progress.StallWatch
	var command progress.CommandWatch
	stalls := s.newStallReport()
	for {
		select {
		case status := <-program.Done:
			return status
		case now := <-check.C:
			s.endOverdue(now)
		case now := <-ticker.C:
			if text := s.waitingText(now); text != "" {
				fmt.Fprintln(s.stderr, "mpi-agent:", text)
			}
		case now := <-sample.C:
			sessions := records.Read(s.folder)
			var own agentapi.Summary
			cgroup.Tell(cgroup.Root, &own)
			idle := command.Judge(s.ranks.Launches(sessions), own.CPUSeconds, now)
			if text := watch.Judge(records.ByHost(sessions), s.ranks.SampleActivity(now), s.summary(), idle, now); text != "" {
				stalls.report(text, now)
			}
		case hosts := <-stalls.answers:
			stalls.add(hosts, time.Now())
		}
	}
}

// waitingText says which hosts are waited for and why, those that share a reason together; empty: none.
func (s *supervisor) waitingText(now time.Time) string {
	var reasons []string
	names := map[string][]string{}
	all, longest := records.ByHost(records.Read(s.folder)), time.Duration(0)
	waited := 0
	for _, r := range all {
		if !r.Reached.IsZero() || r.Over {
			continue
		}
		waited++
		longest = max(longest, now.Sub(r.Since))
		// The reason does not contain the address, which differs from host to host.
		why := cmp.Or(r.Why, "connecting")
		if names[why] == nil {
			reasons = append(reasons, why)
		}
		names[why] = append(names[why], hostfile.Short(r.Host))
	}
	if waited == 0 {
		return ""
	}
	var text strings.Builder
	fmt.Fprintf(&text, "waiting for %d of %d hosts for %d s", waited, max(len(all), int(s.expected.Others)), int(longest.Seconds()))
	for _, why := range reasons {
		fmt.Fprintf(&text, "; %s: %s", outcome.Some(names[why]), why)
	}
	return text.String()
}
