package agent

import (
	"path/filepath"
	"time"
)

// recognizeLauncher takes note of a process that is an MPI launcher. r.mu is held.
func (r *ranks) recognizeLauncher(pid int, state stat, known *process) bool {
	args := argumentsOf(pid)
	if !isLauncher(args[0]) {
		return false
	}
	above := ancestorsOf(pid)
	env := readEnviron(pid)
	if !isOwn(above) || variable(env, envVersionQuery) != "" {
		return false
	}
	// A launcher's child looks like it until it has loaded its own program, and Intel MPI's launcher starts another one.
	for _, above := range above {
		if isLauncher(argumentsOf(above)[0]) {
			return false
		}
	}
	known.until = time.Time{}
	l := &mpiLauncher{
		pid: pid, started: state.started, name: filepath.Base(args[0]), tolerant: toleratesFailures(args[1:], env),
		badEnds: len(r.ended), code: -1,
	}
	r.launchers = append(r.launchers, l)
	if r.versions != nil {
		r.versions.ask(pid, env, r.versions.add)
	}
	if file, err := openProcess(pid); err == nil {
		r.awaited[pid] = true
		go func() {
			defer file.Close()
			status, is := awaitEnd(file, pid)
			r.mu.Lock()
			defer r.mu.Unlock()
			delete(r.awaited, pid)
			l.over = true
			if is {
				l.code = exitCode(status)
			}
		}()
	}
	return true
}

// launches returns what is known of each run of an MPI launcher in this container, oldest first.
func (r *ranks) launches(records []record) []launch {
	r.mu.Lock()
	defer r.mu.Unlock()
	return launches(r.launchers, r.ended, records, r.activity.latest)
}
