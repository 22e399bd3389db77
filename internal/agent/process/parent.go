// Package process starts programs, and reads from /proc what the container's processes are and how they end.
package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"opendatahub.io/mpijob/internal/agent/environ"
)

// Parent starts programs and takes note of how they end. It also takes in every process of the container whose
// own parent has ended before it, so that none is left as a zombie and none is lost from sight.
type Parent struct {
	mu sync.Mutex
	// waiting has a place for each program that was started here, by process id.
	waiting map[int]chan unix.WaitStatus
	// changed is called after the end of any process.
	changed func()
}

// NewParent takes over the ending of processes from the Go runtime: nothing else in this program may wait for a
// child.
func NewParent(changed func()) (*Parent, error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("become the parent of orphaned processes: %w", err)
	}
	p := &Parent{waiting: map[int]chan unix.WaitStatus{}, changed: changed}
	OnSignals(func(unix.Signal) { p.reap() }, unix.SIGCHLD)
	return p, nil
}

// reap collects all that has ended. One signal may stand for several ends.
func (p *Parent) reap() {
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

// Program is one that runs.
type Program struct {
	PID int
	// Done gives its status once, when it has ended.
	Done <-chan unix.WaitStatus
}

// Command is a program to start.
type Command struct {
	// Args begin with the program: a path, or a name to look for in the PATH of env.
	Args []string
	Env  []string
	// Files are its standard input, output and error.
	Files [3]*os.File
	// OwnSession puts it and its children into a session of their own, out of reach of signals meant for the agent.
	OwnSession bool
}

// Start starts a program. An error is exec.ErrNotFound where there is none of that name.
func (p *Parent) Start(c Command) (Program, error) {
	path, err := lookPath(c.Args[0], c.Env)
	if err != nil {
		return Program{}, err
	}
	attributes := &syscall.ProcAttr{Env: c.Env, Sys: &syscall.SysProcAttr{Setsid: c.OwnSession}}
	for _, file := range c.Files {
		attributes.Files = append(attributes.Files, file.Fd())
	}
	// Held until the process is known, since it may have ended by then.
	p.mu.Lock()
	defer p.mu.Unlock()
	pid, err := syscall.ForkExec(path, c.Args, attributes)
	if err != nil {
		return Program{}, fmt.Errorf("start %s: %w", path, err)
	}
	done := make(chan unix.WaitStatus, 1)
	p.waiting[pid] = done
	return Program{PID: pid, Done: done}, nil
}

// lookPath finds a program as a shell with that environment would.
func lookPath(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		if _, err := os.Stat(name); err != nil {
			return "", fmt.Errorf("%s: %w", name, exec.ErrNotFound)
		}
		return name, nil
	}
	folders := environ.Get(env, "PATH")
	for _, folder := range filepath.SplitList(folders) {
		path := filepath.Join(folder, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && unix.Access(path, unix.X_OK) == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s: %w (PATH is %s)", name, exec.ErrNotFound, folders)
}

// Start starts a program in a process that has no processes.
func Start(c Command) (Program, error) {
	attributes := &os.ProcAttr{Env: c.Env, Files: c.Files[:], Sys: &syscall.SysProcAttr{Setsid: c.OwnSession}}
	started, err := os.StartProcess(c.Args[0], c.Args, attributes)
	if err != nil {
		return Program{}, err
	}
	go func() { _, _ = started.Wait() }()
	return Program{PID: started.Pid}, nil
}

// ExitCode is a status as a shell returns it: the code, or 128 plus the signal.
func ExitCode(status unix.WaitStatus) int {
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

// OnSignals calls a function with each of some signals that this process gets, until stop is called.
func OnSignals(call func(unix.Signal), signals ...os.Signal) (stop func()) {
	received := make(chan os.Signal, 8)
	signal.Notify(received, signals...)
	go func() {
		for number := range received {
			if number, is := number.(unix.Signal); is {
				call(number)
			}
		}
	}()
	return func() { signal.Stop(received); close(received) }
}

// Head returns the first bytes of a program's file, fewer if it is shorter or cannot be read.
func Head(path string, length int) []byte {
	file, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer file.Close()
	head := make([]byte, length)
	n, _ := io.ReadFull(file, head)
	return head[:n]
}
