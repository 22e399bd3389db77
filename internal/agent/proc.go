package agent

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"unsafe"

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

// openProcess gives a file that becomes readable when a process has ended.
func openProcess(pid int) (*os.File, error) {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "process "+strconv.Itoa(pid)), nil
}

// awaitEnd waits until a process that is not a child has ended, and returns its status, if that is available: until its
// parent reaps it, from /proc; afterwards from the kernel, if that is Linux 6.15 or newer.
func awaitEnd(file *os.File, pid int) (unix.WaitStatus, bool) {
	conn, err := file.SyscallConn()
	if err != nil {
		return 0, false
	}
	var status unix.WaitStatus
	known := false
	err = conn.Read(func(fd uintptr) bool {
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		if n, err := unix.Poll(poll, 0); (err != nil || n == 0) && !errors.Is(err, unix.ESRCH) {
			return false
		}
		if state, ok := readStat(pid); ok && state.state == 'Z' {
			status, known = unix.WaitStatus(state.code), true
			return true
		}
		status, known = endOf(fd)
		return true
	})
	return status, known && err == nil
}

// pidfdInfo is struct pidfd_info of linux/pidfd.h in its first version.
type pidfdInfo struct {
	mask, cgroup uint64
	ids          [11]uint32
	exitCode     int32
}

// endOf asks the kernel how a process ended whose parent has already asked.
func endOf(fd uintptr) (unix.WaitStatus, bool) {
	const (
		getInfo  = 0xC000FF0B | infoSize<<16 // _IOWR(PIDFS_IOCTL_MAGIC, 11, struct pidfd_info)
		infoExit = 1 << 3                    // PIDFD_INFO_EXIT
	)
	info := pidfdInfo{mask: infoExit}
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, getInfo, uintptr(unsafe.Pointer(&info)))
	return unix.WaitStatus(info.exitCode), errno == 0 && info.mask&infoExit != 0
}

const infoSize = unsafe.Sizeof(pidfdInfo{})
