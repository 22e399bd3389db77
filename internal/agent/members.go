package agent

import (
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// envSession marks every process that a session has started, and what these start in turn: MPI's daemons give their
// environment to their ranks, and put both into process groups of their own, out of reach of a signal to a group.
const envSession = "MPI_AGENT_SESSION"

// grace is how long processes have between TERM and KILL.
const grace = 5 * time.Second

// members are the processes of a session, or of all sessions if it is empty, the agent not among them. Those that
// took the mark off are found by their parents.
func members(session string) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	type process struct {
		parent int
		member bool
	}
	self, processes := os.Getpid(), map[int]*process{}
	var pids []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == self {
			continue
		}
		state, ok := readStat(pid)
		if !ok || state.state == 'Z' {
			continue
		}
		mark := variable(readEnviron(pid), envSession)
		processes[pid] = &process{parent: state.parent, member: mark != "" && (session == "" || mark == session)}
		pids = append(pids, pid)
	}
	for again := true; again; {
		again = false
		for _, p := range processes {
			if parent := processes[p.parent]; !p.member && parent != nil && parent.member {
				p.member, again = true, true
			}
		}
	}
	var found []int
	for _, pid := range pids {
		if processes[pid].member {
			found = append(found, pid)
		}
	}
	return found
}

// end asks the processes of a session, or of all of them, to end, and makes them after a while. It returns when none
// is left, or says how many the kernel could not end either.
func end(session string) (left int) {
	signal := func(s unix.Signal) int {
		pids := members(session)
		for _, pid := range pids {
			_ = unix.Kill(pid, s)
		}
		return len(pids)
	}
	for deadline := time.Now().Add(grace); signal(unix.SIGTERM) > 0 && time.Now().Before(deadline); {
		time.Sleep(100 * time.Millisecond)
	}
	for deadline := time.Now().Add(2 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if left = signal(unix.SIGKILL); left == 0 || time.Now().After(deadline) {
			return left
		}
	}
}
