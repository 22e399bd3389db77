package agent

import (
	"crypto/rand"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"opendatahub.io/mpijob/internal/agentapi"
)

// envSession marks every process that a session has started, and what these start in turn: MPI's daemons give their
// environment to their ranks, and put both into process groups of their own, out of reach of a signal to a group.
// Its value is a sessionMark.
const envSession = "MPI_AGENT_SESSION"

// agentMark begins the marks of this agent's sessions. It is unguessable and differs from every other agent's: a pod with
// hostPID, and a process outside of pods, sees the processes of other pods too, and must not signal them.
var agentMark = rand.Text() + "."

// sessionMark returns the value of envSession for the processes of a session of this agent.
func sessionMark(session string) string { return agentMark + session }

// grace is how long processes have between TERM and KILL, once ranks have had the pod's grace period.
const grace = 5 * time.Second

// podGrace returns how long ranks have between TERM and KILL: the pod's grace period (agentapi.EnvGrace) without the time
// that it takes to end the rest, and to report.
func podGrace() time.Duration {
	total, err := time.ParseDuration(os.Getenv(agentapi.EnvGrace))
	if err != nil || total < 0 {
		total = agentapi.DefaultGrace
	}
	return total - min(grace+time.Second, total/2)
}

// members returns the processes of a session of this agent, or of all its sessions if session is empty, without the
// agent itself. Processes that removed the mark are found by their parents.
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
		processes[pid] = &process{parent: state.parent, member: mark == sessionMark(session) || session == "" && strings.HasPrefix(mark, agentMark)}
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

// end ends the processes of a session, or of all of them. Ranks get TERM first, each once, with what they started, and have
// the pod's grace period: MPI's daemons would kill them within a second. Then the rest gets TERM, and KILL after grace. It
// returns when none is left, or says how many the kernel could not end either.
func (s *server) end(session string) (left int) {
	told := map[int]bool{}
	signal := func(pids []int, signal unix.Signal) (alive int) {
		for _, pid := range pids {
			if signal != unix.SIGTERM || !told[pid] {
				told[pid] = true
				_ = unix.Kill(pid, signal)
			}
		}
		return len(pids)
	}
	await := func(limit time.Duration, alive func() int) {
		for deadline := time.Now().Add(limit); alive() > 0 && time.Now().Before(deadline); {
			time.Sleep(100 * time.Millisecond)
		}
	}
	ranks, deadline := s.rankProcesses(session), time.Now().Add(podGrace())
	signal(ranks, unix.SIGTERM)
	await(podGrace(), func() int { return countAlive(ranks) })
	if session == "" && len(ranks) > 0 {
		// Ranks of other hosts may take longer, and MPI ends them when it loses a daemon. Its launcher ends the daemons.
		await(time.Until(deadline), func() int { return len(members(session)) })
	}
	await(grace, func() int { return signal(members(session), unix.SIGTERM) })
	for deadline := time.Now().Add(2 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if left = signal(members(session), unix.SIGKILL); left == 0 || time.Now().After(deadline) {
			return left
		}
	}
}

// rankProcesses returns the members of a session, or of all of them, that are ranks or below one.
func (s *server) rankProcesses(session string) (found []int) {
	// On a busy machine, some ranks may not have been seen yet.
	s.ranks.scan()
	for _, pid := range members(session) {
		if s.ranks.isRank(pid) || slices.ContainsFunc(ancestorsOf(pid), s.ranks.isRank) {
			found = append(found, pid)
		}
	}
	return found
}

// countAlive returns how many of some processes run.
func countAlive(pids []int) (count int) {
	for _, pid := range pids {
		if state, ok := readStat(pid); ok && state.state != 'Z' {
			count++
		}
	}
	return count
}
