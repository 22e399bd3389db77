package ranks

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"opendatahub.io/mpijob/internal/agent/process"
	"opendatahub.io/mpijob/internal/agent/pystack"
	"opendatahub.io/mpijob/internal/agentapi"
)

const (
	// stacksTime is how long reading the stacks of all ranks may take. It takes milliseconds, but the memory of a process may be a file
	// of a server that does not answer.
	stacksTime = 5 * time.Second
	// mostProcesses is the number of a rank's processes that are looked at.
	mostProcesses = 16
	// mostMaps is the size of the list of a process's mappings that is read.
	mostMaps = 4 << 20
)

// Stacks returns where the ranks that run are in their Python code, by number: one rank, or all if it is nil. No process is stopped: the
// stack of one that computes is that of some moment.
func (r *Ranks) Stacks(rank *int32) []agentapi.RankStack {
	r.mu.Lock()
	running, doings := map[int]int32{}, map[int32]agentapi.RankActivity{}
	for pid, p := range r.processes {
		if p.rank >= 0 && (rank == nil || p.rank == *rank) && process.Runs(pid) {
			running[pid] = p.rank
		}
	}
	if latest := r.activity.Latest; latest != nil {
		for _, a := range latest.Ranks {
			doings[a.Rank] = a
		}
	}
	r.mu.Unlock()
	started := startedBy(running)
	var all []agentapi.RankStack
	processes := map[int][]int{}
	for pid, rank := range running {
		pids := append([]int{pid}, started[pid]...)
		processes[pid] = pids[:min(len(pids), mostProcesses)]
		all = append(all, agentapi.RankStack{Rank: rank, Process: pid, Doing: doings[rank].Doing, For: doings[rank].For, Error: "reading its memory takes too long"})
	}
	slices.SortFunc(all, func(a, b agentapi.RankStack) int { return int(a.Rank - b.Rank) })
	deadline := time.NewTimer(stacksTime)
	defer deadline.Stop()
	select {
	case r.stacks <- struct{}{}:
	case <-deadline.C:
		return all
	}
	// The kernel may not return from a read. The next one then waits for it in vain.
	results := make(chan agentapi.RankStack, len(all))
	asked := slices.Clone(all)
	go func() {
		defer func() { <-r.stacks }()
		defer r.LookedInto()
		r.LookedInto()
		lines := &sources{read: sourceLine, reading: r.sources}
		for _, of := range asked {
			of.Error = ""
			readStack(&of, processes[of.Process], lines)
			results <- of
		}
	}()
	for i := range all {
		select {
		case all[i] = <-results:
		case <-deadline.C:
			return all
		}
	}
	return all
}

// LookedInto notes that the ranks' memory was read, or that stacks were sent or received: until the next sample, marks of pages and traffic
// are not those of the ranks alone.
func (r *Ranks) LookedInto() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.activity.LookedInto()
}

// readStack reads the stack of the first of a rank's processes that runs Python.
func readStack(of *agentapi.RankStack, pids []int, lines *sources) {
	failed := pystack.ErrNoPython
	for _, pid := range pids {
		found, err := stackOf(pid)
		if err == nil {
			of.Process, of.Python, of.Threads = pid, found.Python, found.Threads
			of.Inline = inlineText(pid)
			if len(of.Threads) > 0 {
				lines.addTo(pid, &of.Threads[0])
			}
			return
		}
		if errors.Is(failed, pystack.ErrNoPython) {
			failed = err
		}
	}
	of.Error = failed.Error()
}

// stackOf reads the stack of a process from its memory, without stopping it (proc_pid_mem(5)). The kernel permits this to processes of
// the same user; with kernel.yama.ptrace_scope=1, only to those above it, as the agent is.
func stackOf(pid int) (pystack.Stacks, error) {
	before, _ := process.ReadStat(pid)
	file, err := os.Open(process.File(pid, "maps"))
	if err != nil {
		return pystack.Stacks{}, explainRefusal(err, ptraceScope())
	}
	defer file.Close()
	maps, err := io.ReadAll(io.LimitReader(file, mostMaps))
	if err != nil {
		return pystack.Stacks{}, explainRefusal(err, ptraceScope())
	}
	memory, err := os.Open(process.File(pid, "mem"))
	if err != nil {
		return pystack.Stacks{}, explainRefusal(err, ptraceScope())
	}
	defer memory.Close()
	found, err := pystack.Read(memory, string(maps), pid)
	if program, _ := os.Readlink(process.File(pid, "exe")); err != nil {
		err = explainNoCode(err, program)
	}
	if after, runs := process.ReadStat(pid); !runs || after.Started != before.Started {
		return pystack.Stacks{}, errors.New("it has ended")
	}
	return found, err
}

// explainNoCode explains why no Python code runs in a process of a program that has Python as a library, and may be anywhere in its own code:
// only of the interpreter, this shows that its program has ended. program is its file.
func explainNoCode(err error, program string) error {
	if err.Error() != agentapi.NoPythonCode || strings.HasPrefix(filepath.Base(program), "python") || strings.HasPrefix(filepath.Base(program), "pypy") {
		return err
	}
	return errors.New("it has Python as a library, and runs no Python code now")
}

// ptraceScope returns the node's setting kernel.yama.ptrace_scope; "" if it has none.
func ptraceScope() string {
	scope, _ := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope")
	return strings.TrimSpace(string(scope))
}

// explainRefusal explains why the kernel does not permit reading the memory of a process, on a node with a ptrace scope.
func explainRefusal(err error, scope string) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("it has ended")
	case scope == "2" || scope == "3":
		return errors.New("the node does not permit reading the memory of other processes (kernel.yama.ptrace_scope is " + scope + ")")
	}
	return errors.New("the kernel does not permit reading its memory: it runs as another user, or with capabilities")
}
