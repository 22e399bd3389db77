package agent

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// allProcesses returns the processes that the container shows, without this one.
func allProcesses() ([]int, error) {
	entries, err := os.ReadDir("/proc")
	var pids []int
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids, err
}

// stat is some of /proc/PID/stat (proc_pid_stat(5)).
type stat struct {
	state   byte
	parent  int
	started string
	// code is a wait status, of a zombie.
	code int
}

func readStat(pid int) (stat, bool) {
	data, err := os.ReadFile(procFile(pid, "stat"))
	if err != nil {
		return stat{}, false
	}
	// The name, in parentheses, may hold anything.
	end := bytes.LastIndexByte(data, ')')
	fields := strings.Fields(string(data[end+1:]))
	if end < 0 || len(fields) < 50 {
		return stat{}, false
	}
	parent, _ := strconv.Atoi(fields[1])
	code, _ := strconv.Atoi(fields[49])
	return stat{state: fields[0][0], parent: parent, started: fields[19], code: code}, true
}

func procFile(pid int, name string) string { return "/proc/" + strconv.Itoa(pid) + "/" + name }

func readEnviron(pid int) []string {
	data, err := os.ReadFile(procFile(pid, "environ"))
	if err != nil {
		return nil
	}
	return strings.Split(string(data), "\x00")
}

// argumentsOf returns a process's command line, at least one string.
func argumentsOf(pid int) []string {
	data, _ := os.ReadFile(procFile(pid, "cmdline"))
	return strings.Split(string(bytes.TrimRight(data, "\x00")), "\x00")
}

// ancestorsOf returns the processes above another one, nearest first, as far as this container shows them.
func ancestorsOf(pid int) (pids []int) {
	const most = 64
	for len(pids) < most {
		state, ok := readStat(pid)
		if !ok || state.parent <= 1 {
			break
		}
		pid = state.parent
		pids = append(pids, pid)
	}
	return pids
}

// isOwn reports whether a process with these ancestors was started by this agent, to which orphans return. With hostPID, a
// pod also sees the processes of other pods.
func isOwn(ancestors []int) bool {
	self := os.Getpid()
	return self == 1 || slices.Contains(ancestors, self)
}

// signalProcess signals a process if its id still is that of the process that started then.
func signalProcess(pid int, started string, signal unix.Signal) {
	if state, ok := readStat(pid); ok && state.started == started {
		_ = unix.Kill(pid, signal)
	}
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

// containerRun identifies this run of the container: an emptyDir outlives it.
func containerRun() string {
	state, _ := readStat(1)
	return state.started
}
