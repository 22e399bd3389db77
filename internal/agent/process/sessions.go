package process

import (
	"crypto/rand"
	"os"
	"slices"
	"strings"
	"time"

	"opendatahub.io/mpijob/internal/agent/environ"
	"opendatahub.io/mpijob/internal/agentapi"
)

// EnvSession marks every process that a session has started, and what these start in turn: MPI's daemons give their
// environment to their ranks, and put both into process groups of their own, out of reach of a signal to a group.
// Its value is a SessionMark.
const EnvSession = "MPI_AGENT_SESSION"

// agentMark begins the marks of this agent's sessions. It is unguessable and differs from every other agent's: a pod with
// hostPID, and a process outside of pods, sees the processes of other pods too, and must not signal them.
var agentMark = rand.Text() + "."

// SessionMark returns the value of EnvSession for the processes of a session of this agent.
func SessionMark(session string) string { return agentMark + session }

// Grace is how long processes have between TERM and KILL, once ranks have had the pod's grace period.
const Grace = 5 * time.Second

// PodGrace returns how long ranks have between TERM and KILL: the pod's grace period (agentapi.EnvGrace) without the time
// that it takes to end the rest, and to report.
func PodGrace() time.Duration {
	total, err := time.ParseDuration(os.Getenv(agentapi.EnvGrace))
	if err != nil || total < 0 {
		total = agentapi.DefaultGrace
	}
	return total - min(Grace+time.Second, total/2)
}

// Members returns the processes of a session of this agent, or of all its sessions if session is empty, without the
// agent itself. Processes that removed the mark are found by their parents.
func Members(session string) []int {
	pids, err := All()
	if err != nil {
		return nil
	}
	type process struct {
		parent int
		member bool
	}
	processes := map[int]*process{}
	pids = slices.DeleteFunc(pids, func(pid int) bool {
		state, ok := ReadStat(pid)
		if !ok || state.State == 'Z' {
			return true
		}
		mark := environ.Get(Environ(pid), EnvSession)
		processes[pid] = &process{parent: state.Parent, member: mark == SessionMark(session) || session == "" && strings.HasPrefix(mark, agentMark)}
		return false
	})
	for again := true; again; {
		again = false
		for _, p := range processes {
			if parent := processes[p.parent]; !p.member && parent != nil && parent.member {
				p.member, again = true, true
			}
		}
	}
	return slices.DeleteFunc(pids, func(pid int) bool { return !processes[pid].member })
}
