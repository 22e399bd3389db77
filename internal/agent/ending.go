package agent

import (
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// end ends the processes of a session, or of all of them. Ranks get TERM first, each once, with what they started, and have
// the pod's grace period: MPI's daemons would kill them within a second. Then the rest gets TERM, and KILL after grace. It
// returns when none is left, or says how many the kernel could not end either.
func (w *worker) end(session string) (left int) {
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
	ranks, deadline := w.rankProcesses(session), time.Now().Add(podGrace())
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
func (w *worker) rankProcesses(session string) (found []int) {
	// On a busy machine, some ranks may not have been seen yet.
	w.ranks.scan()
	for _, pid := range members(session) {
		if w.ranks.isRank(pid) || slices.ContainsFunc(ancestorsOf(pid), w.ranks.isRank) {
			found = append(found, pid)
		}
	}
	return found
}
