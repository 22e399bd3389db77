package agent

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// processes starts programs and takes note of how they end. It also takes in every process of the container whose
// own parent has ended before it, so that none is left as a zombie and none is lost from sight.
type processes struct {
	mu sync.Mutex
	// waiting has a place for each program that was started here, by process id.
	waiting map[int]chan unix.WaitStatus
	// changed is called after the end of any process.
	changed func()
}

// newProcesses takes over the ending of processes from the Go runtime: nothing else in this program may wait for a
// child.
func newProcesses(changed func()) (*processes, error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("become the parent of orphaned processes: %w", err)
	}
	p := &processes{waiting: map[int]chan unix.WaitStatus{}, changed: changed}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, unix.SIGCHLD)
	go func() {
		for range ended {
			p.reap()
		}
	}()
	return p, nil
}

// reap collects all that has ended. One signal may stand for several ends.
func (p *processes) reap() {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		p.mu.Lock()
		done := p.waiting[pid]
		delete(p.waiting, pid)
		p.mu.Unlock()
		if done != nil {
			done <- status
		}
		p.changed()
	}
}

// program is one that runs.
type program struct {
	pid int
	// done gives its status once, when it has ended.
	done <-chan unix.WaitStatus
}

// command is a program to start.
type command struct {
	// args begin with the program: a path, or a name to look for in the PATH of env.
	args []string
	env  []string
	// files are its standard input, output and error.
	files [3]*os.File
	// ownSession puts it and its children into a session of their own, out of reach of signals meant for the agent.
	ownSession bool
}

// start starts a program. An error is exec.ErrNotFound where there is none of that name.
func (p *processes) start(c command) (program, error) {
	path, err := lookPath(c.args[0], c.env)
	if err != nil {
		return program{}, err
	}
	attributes := &syscall.ProcAttr{Env: c.env, Sys: &syscall.SysProcAttr{Setsid: c.ownSession}}
	for _, file := range c.files {
		attributes.Files = append(attributes.Files, file.Fd())
	}
	// Held until the process is known, since it may have ended by then.
	p.mu.Lock()
	defer p.mu.Unlock()
	pid, err := syscall.ForkExec(path, c.args, attributes)
	if err != nil {
		return program{}, fmt.Errorf("start %s: %w", path, err)
	}
	done := make(chan unix.WaitStatus, 1)
	p.waiting[pid] = done
	return program{pid: pid, done: done}, nil
}

// lookPath finds a program as a shell with that environment would.
func lookPath(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		if _, err := os.Stat(name); err != nil {
			return "", fmt.Errorf("%s: %w", name, exec.ErrNotFound)
		}
		return name, nil
	}
	folders := variable(env, "PATH")
	for _, folder := range filepath.SplitList(folders) {
		path := filepath.Join(folder, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && unix.Access(path, unix.X_OK) == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s: %w (PATH is %s)", name, exec.ErrNotFound, folders)
}

// startProcess starts a program in a process that has no processes.
func startProcess(c command) (program, error) {
	attributes := &os.ProcAttr{Env: c.env, Files: c.files[:], Sys: &syscall.SysProcAttr{Setsid: c.ownSession}}
	started, err := os.StartProcess(c.args[0], c.args, attributes)
	if err != nil {
		return program{}, err
	}
	go func() { _, _ = started.Wait() }()
	return program{pid: started.Pid}, nil
}

// exitCode is a status as a shell returns it: the code, or 128 plus the signal.
func exitCode(status unix.WaitStatus) int {
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}
