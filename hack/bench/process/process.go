// Package process runs programs, and reads from /proc what they use.
package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"time"
)

// Process is a program that runs until it is stopped.
type Process struct {
	name string
	log  string
	pid  int
	// exited is closed when the program has ended.
	exited chan struct{}
}

// Start runs a program with additional environment variables. Its output goes to the file log. Should the bench
// die, the kernel ends the program.
func Start(name, path string, args, env []string, log string) (*Process, error) {
	out, err := os.Create(log)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	defer func() { _ = out.Close() }() // the program has its own
	command := exec.Command(path, args...)
	command.Stdout, command.Stderr = out, out
	command.Env = append(os.Environ(), env...)
	command.Dir = filepath.Dir(log)
	// A process group of its own: Ctrl-C is the bench's to answer.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p := &Process{name: name, log: log, pid: command.Process.Pid, exited: make(chan struct{})}
	go func() {
		_ = command.Wait() // how it ended is in its log
		close(p.exited)
	}()
	return p, nil
}

// Exited is closed when the program has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Complaint is an error that shows the end of the log of a program that ended by itself.
func (p *Process) Complaint() error {
	const most = 2000
	log, err := os.ReadFile(p.log)
	if err != nil {
		return fmt.Errorf("%s ended, and its log cannot be read: %w", p.name, err)
	}
	return fmt.Errorf("%s ended by itself; the end of its log:\n%s", p.name, log[max(0, len(log)-most):])
}

// Kill ends the program at once and waits until it has ended.
func (p *Process) Kill() error {
	select {
	case <-p.exited:
		return nil
	default:
	}
	if err := syscall.Kill(p.pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("kill %s: %w", p.name, err)
	}
	<-p.exited
	return nil
}

// Usage is what a process has used so far.
type Usage struct {
	// CPU is the time on a CPU, in user mode and in the kernel.
	CPU time.Duration
	// PeakMemory is the largest resident set, in bytes.
	PeakMemory int64
	// LiveHeap is what the last garbage collection left, in bytes. It is known, and not 0, of a Go program that runs
	// with GCTrace.
	LiveHeap int64
}

// GCTrace in the environment of a Go program has it log its garbage collections.
const GCTrace = "GODEBUG=gctrace=1"

// Usage reads what the program has used so far.
func (p *Process) Usage() (Usage, error) {
	folder := filepath.Join("/proc", strconv.Itoa(p.pid))
	stat, err := os.ReadFile(filepath.Join(folder, "stat"))
	if err != nil {
		return Usage{}, fmt.Errorf("read usage of %s: %w", p.name, err)
	}
	status, err := os.ReadFile(filepath.Join(folder, "status"))
	if err != nil {
		return Usage{}, fmt.Errorf("read usage of %s: %w", p.name, err)
	}
	cpu, err := parseCPU(stat)
	if err != nil {
		return Usage{}, fmt.Errorf("read usage of %s: %w", p.name, err)
	}
	peak, err := parsePeakMemory(status)
	if err != nil {
		return Usage{}, fmt.Errorf("read usage of %s: %w", p.name, err)
	}
	log, err := os.ReadFile(p.log)
	if err != nil {
		return Usage{}, fmt.Errorf("read usage of %s: %w", p.name, err)
	}
	return Usage{CPU: cpu, PeakMemory: peak, LiveHeap: parseLiveHeap(log)}, nil
}

// collection is a garbage collection's line: the heap before, after, and what of it lives (package runtime of Go).
var collection = regexp.MustCompile(`(?m)^gc \d+ @.*, \d+->\d+->(\d+) MB, `)

func parseLiveHeap(log []byte) int64 {
	all := collection.FindAllSubmatch(log, -1)
	if len(all) == 0 {
		return 0
	}
	mib, err := strconv.ParseInt(string(all[len(all)-1][1]), 10, 64)
	if err != nil {
		return 0
	}
	return mib << 20
}

// tick is the unit of times in /proc/PID/stat: USER_HZ is 100 on every architecture Go runs on.
const tick = 10 * time.Millisecond

// parseCPU adds utime and stime, fields 14 and 15 of /proc/PID/stat (proc_pid_stat(5)). Field 2 is the
// program's name in parentheses and may itself hold spaces and parentheses.
func parseCPU(stat []byte) (time.Duration, error) {
	_, rest, found := bytes.Cut(stat[max(0, bytes.LastIndexByte(stat, ')')):], []byte(") "))
	fields := bytes.Fields(rest) // from field 3 on
	if !found || len(fields) < 13 {
		return 0, fmt.Errorf("stat has an unknown form: %q", stat)
	}
	var ticks int64
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("stat has an unknown form: %w", err)
		}
		ticks += n
	}
	return time.Duration(ticks) * tick, nil
}

// parsePeakMemory finds VmHWM in /proc/PID/status (proc_pid_status(5)), in bytes.
func parsePeakMemory(status []byte) (int64, error) {
	for line := range bytes.Lines(status) {
		value, found := bytes.CutPrefix(line, []byte("VmHWM:"))
		if !found {
			continue
		}
		kib, err := strconv.ParseInt(string(bytes.TrimSuffix(bytes.TrimSpace(value), []byte(" kB"))), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("status has an unknown form: %w", err)
		}
		return kib << 10, nil
	}
	return 0, fmt.Errorf("status has no VmHWM: the process has ended")
}
