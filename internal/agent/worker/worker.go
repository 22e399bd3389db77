// Package worker runs what the job's other pods start on a worker, and ends it.
package worker

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"

	"opendatahub.io/mpijob/internal/agent/cgroup"
	"opendatahub.io/mpijob/internal/agent/environ"
	"opendatahub.io/mpijob/internal/agent/mpirun"
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
	"opendatahub.io/mpijob/internal/agent/usage"
	"opendatahub.io/mpijob/internal/agentapi"
)

// worker runs the programs of the job's other pods, and watches the ranks among them.
type worker struct {
	server    *protocol.Server
	processes *process.Parent
	ranks     *ranks.Ranks
	sampler   *sampler.Sampler
	profiler  *profile.Profiler
	// connected is closed when the worker ends.
	connected <-chan struct{}
	// env is what programs start with: the container's own.
	env []string

	// sampling guards the samples of what ranks do, which all sessions share.
	sampling  sync.Mutex
	sampledAt time.Time
	sampled   agentapi.Activity

	// endingSince is when the end of the pod was requested, in milliseconds since 1970; 0 if it has not been.
	endingSince atomic.Int64
}

// Run serves until the pod is to end, then ends what runs and leaves a summary.
func Run(log *slog.Logger, listen, statusAddress string, env []string) error {
	identity, err := protocol.ReadIdentity("")
	if err != nil {
		return err
	}
	if _, err := identity.Job(); err != nil {
		return err
	}
	ctx, _ := signal.NotifyContext(context.Background(), unix.SIGTERM, unix.SIGINT)
	w := &worker{ranks: ranks.New(log, cgroup.Root), profiler: profile.New(nil)}
	w.env = w.profiler.Env(env)
	w.sampler = sampler.New(w.ranks, nvidia.New(log, func(c process.Command) (process.Program, error) { return w.processes.Start(c) }))
	w.server = &protocol.Server{Log: log, Identity: identity, Session: w.session, Ends: w.ends, Usage: func(job agentapi.Usage) {
		// The operator reads it there.
		log.Info(agentapi.UsageMessage, agentapi.UsageMessage, job)
	}, Stacks: w.ranks.Stacks}
	if w.processes, err = process.NewParent(w.ranks.Look); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return fmt.Errorf("take connections: %w", err)
	}
	// Connections stay open while ranks use their grace period: without them, MPI takes the host for lost.
	connected, disconnect := context.WithCancel(context.Background())
	defer disconnect()
	w.connected = connected.Done()
	go w.ranks.Watch(connected.Done())
	go status.Server{Summary: w.summary, Usage: w.usage, Container: w.container, Counters: w.counts, Token: identity.Token}.Serve(log, statusAddress)
	log.Info("ready", "address", listener.Addr().String())
	err = w.server.Serve(ctx, connected, listener)
	log.Info("ending")
	w.endingSince.Store(time.Now().UnixMilli())
	w.end("")
	ended := make(chan struct{})
	go func() { w.server.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(time.Second):
		// Clients that have started nothing, or do not read.
		disconnect()
		<-ended
	}
	records.WriteTermination(w.summary())
	return err
}

// cores returns what shows whether the container owns its cores.
func (w *worker) cores() cgroup.Cores {
	expected, _ := strconv.Atoi(environ.Get(w.env, agentapi.EnvCores))
	return cgroup.ReadCores("/", expected)
}

// bindEnv returns the environment in which MPI's daemons bind ranks to cores, or do not, and what was decided. asked is what the launcher's
// agent decided (agentapi.EnvBind).
func bindEnv(env []string, asked agentapi.BindingPolicy, read func() cgroup.Cores) ([]string, agentapi.BindingPolicy) {
	switch {
	case asked == "":
		return env, ""
	case asked != agentapi.BindCore:
		return mpirun.UnboundHere(env), asked
	}
	cores, policy := read(), agentapi.BindShared
	switch {
	case cores.Owned():
		return mpirun.BoundHere(env), agentapi.BindCore
	case cores.Hidden():
		policy = agentapi.BindHidden
	}
	return mpirun.UnboundHere(env), policy
}

// session serves one session.
func (w *worker) session(log *slog.Logger, id string, channel ssh.Channel, requests <-chan *ssh.Request) {
	s := &session{worker: w, id: id, channel: channel, log: log}
	s.serve(requests)
}

// ends reports how the ranks have ended.
func (w *worker) ends() agentapi.Summary {
	w.ranks.Settle()
	summary := w.sessionSummary(0)
	summary.Usage, summary.Hosts = w.usage(), w.lost(time.Time{})
	return summary
}

// sessionSummary returns the summary of the worker's ranks for a session's client. It leaves out the first bad ends, as many as
// since says.
func (w *worker) sessionSummary(since int) agentapi.Summary {
	summary := agentapi.Summary{Role: agentapi.RoleWorker}
	w.ranks.Tell(&summary, since)
	if ending := w.endingSince.Load(); ending > 0 {
		summary.Ending, summary.Ranks = true, endedBefore(summary.Ranks, ending)
	}
	return summary
}

// activityAt returns what the ranks do. It samples them at most once in half a period, however many sessions ask.
func (w *worker) activityAt(now time.Time) agentapi.Activity {
	w.sampling.Lock()
	defer w.sampling.Unlock()
	if now.Sub(w.sampledAt) > progress.SamplePeriod/2 {
		w.sampledAt, w.sampled = now, w.ranks.SampleActivity(now)
	}
	return w.sampled
}

// through returns the hosts on which processes of this worker started processes. MPI's tree of daemons has few branches;
// the limit bounds what a session's message takes.
func (w *worker) through() []agentapi.HostUse {
	const most = 1024
	all := records.Uses(records.Read(records.Folder()))
	return all[:min(len(all), most)]
}

// lost returns the hosts that processes of this worker lost or gave up since a time, with those behind them.
func (w *worker) lost(since time.Time) []agentapi.HostTrouble {
	return outcome.LostHosts(records.Read(records.Folder()), since)
}

// usage returns what the worker used since its first session; nil if it had none.
func (w *worker) usage() *agentapi.Usage {
	if used, measured := w.sampler.Usage(); measured {
		used.Profile = w.profiler.Get()
		return &used
	}
	return nil
}

// usages returns what the worker used, first, and the hosts on which its processes started others, in a message.
func (w *worker) usages() []byte {
	own := w.usage()
	if own == nil {
		return nil
	}
	name, _ := os.Hostname()
	hosts := append([]agentapi.HostUsage{{Host: name, Usage: *own}}, records.ReadUsage(records.Folder(), "")...)
	return usage.Fit(hosts, protocol.MaxUsage)
}

// summary is what the server knows of its worker.
func (w *worker) summary() agentapi.Summary {
	summary := agentapi.Summary{Role: agentapi.RoleWorker, Refused: w.server.Refused.Load()}
	w.ranks.Tell(&summary, 0)
	switch {
	case summary.OOMKills > 0:
		summary.Code = agentapi.OutOfMemory
		summary.Message = outcome.OutOfMemory(summary)
	case len(summary.Ranks) > 0:
		summary.Code = agentapi.RankFailed
		summary.Message = outcome.RankEnded(summary.Ranks[0])
	}
	return summary
}

// container is what was counted in the worker's container, for its metrics.
func (w *worker) container() status.Container {
	return status.Container{Reading: w.sampler.Read(), OOMKills: cgroup.Kills(cgroup.Root), RanksFailed: w.ranks.Failed()}
}

// counts are the worker's own, for the status.
func (w *worker) counts() status.Counts {
	s := w.server
	return status.Counts{Accepted: s.Accepted.Load(), Refused: s.Refused.Load(), Dropped: s.Dropped.Load(), Sessions: s.Active.Load(), Ranks: w.ranks.Running()}
}

// end ends the processes of a session, or of all of them. Ranks get TERM first, each once, with what they started, and have
// the pod's grace period: MPI's daemons would kill them within a second. Then the rest gets TERM, and KILL after grace. It
// returns when none is left, or says how many the kernel could not end either.
func (w *worker) end(session string) (left int) {
	told := map[int]bool{}
	signal := func(pids []int, signal unix.Signal) (some bool) {
		for _, pid := range pids {
			if signal != unix.SIGTERM || !told[pid] {
				told[pid] = true
				_ = unix.Kill(pid, signal)
			}
		}
		return len(pids) > 0
	}
	await := func(limit time.Duration, running func() bool) {
		for deadline := time.Now().Add(limit); running() && time.Now().Before(deadline); {
			time.Sleep(100 * time.Millisecond)
		}
	}
	ranks, deadline := w.rankProcesses(session), time.Now().Add(process.PodGrace())
	signal(ranks, unix.SIGTERM)
	await(process.PodGrace(), func() bool { return slices.ContainsFunc(ranks, process.Runs) })
	if session == "" && len(ranks) > 0 {
		// Ranks of other hosts may take longer, and MPI ends them when it loses a daemon. Its launcher ends the daemons.
		await(time.Until(deadline), func() bool { return len(process.Members(session)) > 0 })
	}
	await(process.Grace, func() bool { return signal(process.Members(session), unix.SIGTERM) })
	for deadline := time.Now().Add(2 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		all := process.Members(session)
		if !signal(all, unix.SIGKILL) || time.Now().After(deadline) {
			return len(all)
		}
	}
}

// rankProcesses returns the members of a session, or of all of them, that are ranks or below one.
func (w *worker) rankProcesses(session string) (found []int) {
	// On a busy machine, some ranks may not have been seen yet.
	w.ranks.Scan()
	for _, pid := range process.Members(session) {
		if w.ranks.IsRank(pid) || slices.ContainsFunc(process.Ancestors(pid), w.ranks.IsRank) {
			found = append(found, pid)
		}
	}
	return found
}
