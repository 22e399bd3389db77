// Package ranks finds the ranks among the processes of a container, what they do, and how they end.
package ranks

import (
	"cmp"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"opendatahub.io/mpijob/internal/agent/cgroup"
	"opendatahub.io/mpijob/internal/agent/environ"
	"opendatahub.io/mpijob/internal/agent/mpirun"
	"opendatahub.io/mpijob/internal/agent/mpiversion"
	"opendatahub.io/mpijob/internal/agent/outcome"
	"opendatahub.io/mpijob/internal/agent/process"
	"opendatahub.io/mpijob/internal/agent/progress"
	"opendatahub.io/mpijob/internal/agent/records"
	"opendatahub.io/mpijob/internal/agentapi"
)

// How often processes are looked at: as often as possible until ranks begin and while processes are started, since a rank that
// fails may last for milliseconds, and then less and less often.
const (
	lookSoonest = 2 * time.Millisecond
	lookLatest  = time.Second
	// eagerForRanks is how long ranks are expected after something was started, eagerForMore how long more processes are expected
	// after one was found.
	eagerForRanks, eagerForMore = 5 * time.Second, 100 * time.Millisecond
	// lookShare is how much longer a pause lasts than a look, so that at most this part of a core is used, but no longer than
	// lookEagerly: in a container that is throttled, a look takes long. Where more threads want to run than the node has CPUs, pauses are longer
	// by as much as all else is slower: a node has as many agents as pods.
	lookShare   = 20
	lookEagerly = 50 * time.Millisecond
)

// pauseBetweenLooks returns how long the pause after a look lasts while ranks are expected, on a node with so many threads that run or wait for
// its CPUs.
func pauseBetweenLooks(look time.Duration, runnable, cpus int) time.Duration {
	pause := max(lookSoonest, lookShare*look) * time.Duration(max(runnable, cpus)) / time.Duration(cpus)
	return min(pause, lookEagerly)
}

// Ranks holds the processes of the container that are ranks, and how they ended. They are not children of the agent
// but of MPI's own daemons, so the agent has to look for them.
type Ranks struct {
	log    *slog.Logger
	cgroup string
	news   chan struct{}

	mu sync.Mutex
	// processes are those that were seen, by process id.
	processes map[int]*observed
	// newest is the process that was started last when processes were listed, and listed is when; "" has them listed.
	newest string
	listed time.Time
	// runnable is how many threads of the node ran or waited for a CPU at the last look.
	runnable int
	seen     int32
	ended    []agentapi.RankEnd // the first ones that were bad
	failed   int64              // all of them
	kills    int64
	activity progress.Follower
	calls    callWatch
	// noInterface is the setting by which a rank uses none of the pod's network interfaces; nil if there is none.
	noInterface *agentapi.InterfaceSetting
	// bound are the cores to which ranks were bound when they were sampled; nil if they were not.
	bound *agentapi.BoundRanks
	// launchers are the MPI launchers that were seen, oldest first.
	launchers []*outcome.Launcher
	// launches are the runs of those to which processes belong that were ranks, by process id.
	launches map[int]string
	// Versions are the queries for the versions of launchers; nil for none.
	Versions *mpiversion.Queries
	// GPUs returns the share of time, in thousandths, in which each GPU of NVIDIA computed lately, by its number; nil if that is not measured.
	GPUs func() map[int]int64
	// awaited are the processes whose ends are awaited.
	awaited map[int]bool
	// bad is closed, and replaced, when a rank has ended badly; begun when one was seen for the first time.
	bad, begun chan struct{}
	// stacks holds a value while stacks are read.
	stacks chan struct{}
	// sources holds a value while a line of source code is read.
	sources chan struct{}
}

// observed is a process that was seen. A process id is given again to another process later: started tells them apart.
type observed struct {
	started string
	// rank is -1 for what is none.
	rank int32
	// bare is set if it once had no environment: while a process loads its program, the kernel shows none.
	bare bool
	// until is how long it may become a rank: a rank shows its variables when its program has been loaded.
	until time.Time
	// program is the one that it had when it was last looked at, and looks is how often it was looked at with it.
	program string
	looks   int
}

// looksAtProgram is how often a process is looked at with the same program: what its parent is may be seen later.
const looksAtProgram = 3

// mayHaveBecome reports whether a process that is no rank may have become one since it was last looked at: it has loaded a program.
func (o *observed) mayHaveBecome(state process.Stat) bool {
	if o.program != state.Program || state.Program == "" {
		o.program, o.looks = state.Program, 0
	}
	o.looks++
	return o.looks <= looksAtProgram
}

// becomesRankWithin is how long a process may take to load its program.
const becomesRankWithin = 15 * time.Second

// New returns the ranks of a container whose cgroup is in a folder. Watch finds them.
func New(log *slog.Logger, root string) *Ranks {
	r := &Ranks{log: log, cgroup: root, calls: newCallWatch("/proc/net"), news: make(chan struct{}, 1), processes: map[int]*observed{}, launches: map[int]string{}, awaited: map[int]bool{}, bad: make(chan struct{}), begun: make(chan struct{}), stacks: make(chan struct{}, 1), sources: make(chan struct{}, 1)}
	r.kills = cgroup.Kills(root)
	return r
}

// Look makes ranks look at once: something was started or has ended.
func (r *Ranks) Look() {
	select {
	case r.news <- struct{}{}:
	default:
	}
}

// Watch looks until done is closed. While there are no processes but the agent it sleeps.
func (r *Ranks) Watch(done <-chan struct{}) {
	var eager time.Time
	pause := lookSoonest
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case <-done:
			return
		case <-r.news:
			eager = time.Now().Add(eagerForRanks)
		case <-timer.C:
		}
		began, begun := time.Now(), r.count()
		found, alone := r.Scan()
		now := time.Now()
		if more := now.Add(eagerForMore); r.count() > begun || found && more.After(eager) {
			eager = more
		}
		pause = min(2*pause, lookLatest)
		if now.Before(eager) {
			pause = pauseBetweenLooks(now.Sub(began), r.crowd(), process.CPUs())
		}
		timer.Stop()
		if !alone {
			timer.Reset(pause)
		}
	}
}

// count is how many ranks were seen.
func (r *Ranks) count() int32 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen
}

// crowd is how many threads of the node ran or waited for a CPU at the last look.
func (r *Ranks) crowd() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.runnable
}

// listAgain is after how long processes are listed again although none was started, to forget those that have ended.
const listAgain = time.Second

// Scan looks once at every process, or, if none was started since the last time, at those that may become ranks. It reports whether it found a
// new one, and whether the agent is alone.
func (r *Ranks) Scan() (found, alone bool) {
	now, load := time.Now(), process.ReadLoad()
	newest := load.Newest
	r.mu.Lock()
	defer r.mu.Unlock()
	r.runnable = load.Runnable
	if newest != "" && newest == r.newest && now.Sub(r.listed) < listAgain {
		r.lookAgain(now)
		return false, len(r.processes) == 0
	}
	pids, err := process.All()
	if err != nil {
		return false, true
	}
	r.newest, r.listed = newest, now
	present := map[int]bool{}
	for _, pid := range pids {
		state, ok := process.ReadStat(pid)
		if !ok {
			continue
		}
		present[pid] = true
		known := r.processes[pid]
		if known == nil || known.started != state.Started {
			known = &observed{started: state.Started, rank: -1, until: now.Add(becomesRankWithin)}
			r.processes[pid] = known
			found = true
		}
		r.look(pid, state, known, now)
	}
	for pid := range r.processes {
		if !present[pid] {
			delete(r.processes, pid)
		}
	}
	return found, len(present) == 0
}

// lookAgain looks at the processes that were listed, as long as they may become ranks. r.mu is held.
func (r *Ranks) lookAgain(now time.Time) {
	for pid, known := range r.processes {
		if known.rank >= 0 || !now.Before(known.until) {
			continue
		}
		if state, ok := process.ReadStat(pid); ok && state.Started == known.started {
			r.look(pid, state, known, now)
		}
	}
}

// look looks at a process that is no rank, as long as it may become one. r.mu is held.
func (r *Ranks) look(pid int, state process.Stat, known *observed, now time.Time) {
	if known.rank < 0 && now.Before(known.until) && state.State != 'Z' && known.mayHaveBecome(state) {
		r.recognize(pid, state, known)
	}
}

// recognize takes note of a process that has become a rank. What a rank itself starts has its variables too, but is
// none: only the uppermost process counts.
func (r *Ranks) recognize(pid int, state process.Stat, known *observed) {
	if r.recognizeLauncher(pid, state, known) {
		return
	}
	env := process.Environ(pid)
	rank, is := mpirun.RankOf(env, os.Environ())
	above := process.Ancestors(pid)
	if !is || !process.IsOwn(above) {
		return
	}
	if parent := r.processes[state.Parent]; parent != nil && parent.rank >= 0 {
		known.until = time.Time{}
		return
	}
	if mpirun.HasRankOf(env, process.Environ(state.Parent), os.Environ()) {
		return
	}
	known.rank = rank
	r.keepLaunch(pid, above)
	r.noInterface = cmp.Or(r.noInterface, withoutInterface(env))
	r.seen++
	close(r.begun)
	r.begun = make(chan struct{})
	end := agentapi.RankEnd{Rank: rank, Of: mpirun.SizeOf(env), Program: process.Name(pid)}
	r.log.Info("rank started", "rank", rank, "pid", pid, "program", end.Program)
	r.awaited[pid] = process.OnEnd(pid, func(status unix.WaitStatus, known bool) {
		r.keepEnd(pid, end, mpirun.IsRestarted(env), status, known)
	})
}

// keepLaunch keeps to which run of a launcher a rank belongs, if it is one of this container. r.mu is held.
func (r *Ranks) keepLaunch(pid int, above []int) {
	const most = 4096
	l := outcome.LauncherAbove(r.launchers, above)
	if l == nil {
		return
	}
	if len(r.launches) >= most {
		maps.DeleteFunc(r.launches, func(pid int, _ string) bool { return r.processes[pid] == nil })
	}
	r.launches[pid] = process.Launch(l.PID, l.Started)
}

// LaunchOf returns the run of a launcher of this container to which a process belongs that is a rank, or was one; "" if there is none.
func (r *Ranks) LaunchOf(pid int) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.launches[pid]
}

// keepEnd keeps the end of a rank if it was a bad one. The program goes on if the rank is restarted.
func (r *Ranks) keepEnd(pid int, end agentapi.RankEnd, isRestarted bool, status unix.WaitStatus, known bool) {
	end.At = time.Now().UnixMilli()
	switch {
	case !known:
		end.ExitCode = -1
	case status.Signaled():
		end.ExitCode, end.Signal = int32(128+int(status.Signal())), int32(status.Signal())
	default:
		end.ExitCode = int32(status.ExitStatus())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.awaited, pid)
	r.newest = ""
	kills := cgroup.Kills(r.cgroup)
	if kills > r.kills && mayBeKilled(end) {
		// The kernel counts its own kills; one of them is this rank's.
		r.kills, end.OOM = r.kills+1, true
	}
	r.log.Info("rank ended", "rank", end.Rank, "pid", pid, "exitCode", end.ExitCode, "signal", end.Signal, "outOfMemory", end.OOM)
	if (end.ExitCode > 0 || end.OOM) && !isRestarted {
		r.failed++
		if len(r.ended) < outcome.MostRankEnds {
			r.ended = append(r.ended, end)
		}
		close(r.bad)
		r.bad = make(chan struct{})
	}
}

// mayBeKilled reports whether the end of a rank may be that of a process which the kernel killed: its own, that of the program
// that it ran as a shell, which exits with 128 and the signal, or an unknown one.
func mayBeKilled(end agentapi.RankEnd) bool {
	return end.Signal == int32(unix.SIGKILL) || end.ExitCode == 128+int32(unix.SIGKILL) || end.ExitCode < 0
}

// Settle waits until the ends of all processes that have ended are known, at most a second: what ends with a rank may be
// noticed first.
func (r *Ranks) Settle() {
	for deadline := time.Now().Add(time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		r.mu.Lock()
		open := false
		for pid, awaited := range r.awaited {
			open = open || awaited && !process.Runs(pid)
		}
		r.mu.Unlock()
		if !open {
			return
		}
	}
}

// Tell writes what is known of ranks and memory into a summary. The bad ends are those after the first since.
func (r *Ranks) Tell(summary *agentapi.Summary, since int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	summary.RanksSeen, summary.NoInterface = r.seen, r.noInterface
	if r.Versions != nil {
		summary.MPIVersions = r.Versions.Answers()
	}
	if since < len(r.ended) {
		summary.Ranks = append(summary.Ranks, r.ended[since:]...)
	}
	if r.bound != nil {
		summary.Binding = &agentapi.Binding{Bound: r.bound}
	}
	cgroup.Tell(r.cgroup, summary)
	summary.Activity = r.activity.Latest
}

// SampleActivity samples what the ranks do.
func (r *Ranks) SampleActivity(now time.Time) agentapi.Activity {
	r.mu.Lock()
	defer r.mu.Unlock()
	running := map[int]int32{}
	for pid, p := range r.processes {
		// A rank that has ended waits for nothing, although its parent has not collected it yet.
		if p.rank >= 0 && process.Runs(pid) {
			running[pid] = p.rank
		}
	}
	r.bound = boundRanks(running)
	network, started := progress.Network{Bytes: NetworkBytes(), Connecting: r.calls.connecting()}, startedBy(running)
	var busy map[int]int64
	if r.GPUs != nil {
		busy = r.GPUs()
	}
	var usages []progress.RankUsage
	for pid, rank := range running {
		pids := append([]int{pid}, started[pid]...)
		used, known := readUsages(pids, now)
		used.GPU = useOf(used.GPUs, busy)
		usages = append(usages, progress.RankUsage{Rank: rank, Processes: pids, Used: used, Known: known})
	}
	nameHolders(usages)
	return r.activity.Sample(now, usages, network, podCounts(r.cgroup), pages{})
}

// Bound returns the cores to which ranks were bound when they were sampled; nil if they were not.
func (r *Ranks) Bound() *agentapi.BoundRanks {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bound
}

// Uses returns what the ranks that run have used, with the processes that they started. Every process is read once.
func (r *Ranks) Uses() []agentapi.RankUse {
	r.mu.Lock()
	ranks := map[int]int32{}
	for pid, p := range r.processes {
		if p.rank >= 0 {
			ranks[pid] = p.rank
		}
	}
	r.mu.Unlock()
	if len(ranks) == 0 {
		return nil
	}
	pids, _ := process.All()
	read := map[int]process.Use{}
	for _, pid := range pids {
		if use, ok := process.ReadUse(pid); ok {
			read[pid] = use
		}
	}
	return addUses(ranks, read, bootTime())
}

// IsRank reports whether a process is a rank.
func (r *Ranks) IsRank(pid int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.processes[pid]
	return p != nil && p.rank >= 0
}

// Failed returns how many ranks have ended badly.
func (r *Ranks) Failed() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

// BadEnds returns how many bad ends are kept by now, and a channel that is closed when a further rank has ended badly.
func (r *Ranks) BadEnds() (count int, next <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.ended), r.bad
}

// NextRank gives a channel that is closed when a further rank is seen.
func (r *Ranks) NextRank() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.begun
}

// Running is how many ranks run now.
func (r *Ranks) Running() (count int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.processes {
		if p.rank >= 0 {
			count++
		}
	}
	return count
}

// recognizeLauncher takes note of a process that is an MPI launcher. r.mu is held.
func (r *Ranks) recognizeLauncher(pid int, state process.Stat, known *observed) bool {
	args := process.Arguments(pid)
	if !mpirun.IsLauncher(args[0]) {
		return false
	}
	above := process.Ancestors(pid)
	env := process.Environ(pid)
	if strings.Join(env, "") == "" && !known.bare {
		known.bare = true
		return false
	}
	if !process.IsOwn(above) || environ.Get(env, mpiversion.EnvQuery) != "" {
		return false
	}
	// A launcher's child looks like it until it has loaded its own program, and Intel MPI's launcher starts another one.
	for _, above := range above {
		if mpirun.IsLauncher(process.Arguments(above)[0]) {
			return false
		}
	}
	known.until = time.Time{}
	l := &outcome.Launcher{
		PID: pid, Started: state.Started, Name: filepath.Base(args[0]), Args: args[1:], Tolerant: mpirun.ToleratesFailures(args[1:], env),
		BadEnds: len(r.ended), Code: -1,
	}
	r.launchers = append(r.launchers, l)
	if r.Versions != nil {
		r.Versions.Ask(pid, env)
	}
	r.awaited[pid] = process.OnEnd(pid, func(status unix.WaitStatus, known bool) {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.awaited, pid)
		l.Over = true
		if known {
			l.Code = process.ExitCode(status)
		}
	})
	return true
}

// Launches returns what is known of each run of an MPI launcher in this container, oldest first.
func (r *Ranks) Launches(sessions []records.Record) []outcome.Launch {
	r.mu.Lock()
	defer r.mu.Unlock()
	return outcome.Launches(r.launchers, r.ended, sessions, r.activity.Latest)
}
