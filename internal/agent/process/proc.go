package process

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"opendatahub.io/mpijob/internal/agentapi"
)

// All returns the processes that the container shows, without this one.
func All() ([]int, error) {
	entries, err := os.ReadDir("/proc")
	var pids []int
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids, err
}

// StatFields returns the fields of /proc/PID/stat from the state on, the third of proc_pid_stat(5); none if there is no such process.
func StatFields(pid int) []string {
	var buffer [statSize]byte
	return strings.Fields(string(readStat(pid, buffer[:])))
}

// statSize is more than a line of /proc/PID/stat has.
const statSize = 1024

// readStat reads the fields of /proc/PID/stat from the state on into a buffer; none if there is no such process.
func readStat(pid int, buffer []byte) []byte {
	line := readStart(File(pid, "stat"), buffer)
	// The name, in parentheses, may hold anything.
	return line[bytes.LastIndexByte(line, ')')+1:]
}

// Ticks returns the sum of fields of /proc/PID/stat that are times. Their unit is USER_HZ: 100 a second on every architecture of Linux
// that Go supports.
func Ticks(fields ...string) (total time.Duration) {
	const perSecond = 100
	for _, field := range fields {
		n, _ := strconv.ParseInt(field, 10, 64)
		total += time.Duration(n) * time.Second / perSecond
	}
	return total
}

// Stat is some of /proc/PID/stat (proc_pid_stat(5)).
type Stat struct {
	State   byte
	Parent  int
	Started string
	// Program differs after the process has loaded another program, and while it does; "" if this is unknown.
	Program string
	// code is a wait status, of a zombie.
	code int
}

// ReadStat reads the state of a process, with few system calls, since the agent does this often; false if there is no such process.
func ReadStat(pid int) (Stat, bool) {
	const lastField = 49
	var buffer [statSize]byte
	var fields [lastField + 1][]byte
	n := 0
	for field := range bytes.FieldsSeq(readStat(pid, buffer[:])) {
		if n > lastField {
			break
		}
		fields[n] = field
		n++
	}
	if n <= lastField {
		return Stat{}, false
	}
	parent, _ := strconv.Atoi(string(fields[1]))
	code, _ := strconv.Atoi(string(fields[lastField]))
	return Stat{State: fields[0][0], Parent: parent, Started: string(fields[19]), Program: programOf(fields[23], fields[25]), code: code}, true
}

// readStart reads the start of a file, as much as fits into a buffer; none if it cannot be read.
func readStart(path string, buffer []byte) []byte {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer func() { _ = unix.Close(fd) }()
	for {
		n, err := unix.Read(fd, buffer)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return nil
		}
		return buffer[:n]
	}
}

// Load is what the kernel reports of all processes and threads (proc_loadavg(5)).
type Load struct {
	// Newest is the id of the process or thread of the container that was started last: if it is the same as before, no other process was
	// started. It is "" if that is unknown.
	Newest string
	// Runnable is how many threads of the node run or wait for a CPU; 0 if that is unknown.
	Runnable int
}

// ReadLoad returns the load.
func ReadLoad() Load {
	var buffer [128]byte
	return parseLoad(readStart("/proc/loadavg", buffer[:]))
}

// parseLoad reads a line such as "0.20 0.18 0.12 1/80 11206".
func parseLoad(line []byte) (l Load) {
	fields := bytes.Fields(line)
	if len(fields) < 5 {
		return l
	}
	runnable, _, _ := bytes.Cut(fields[3], []byte("/"))
	l.Runnable, _ = strconv.Atoi(string(runnable))
	l.Newest = string(fields[4])
	return l
}

// CPUs is the number of the node's CPUs, of which the container may have a part.
var CPUs = sync.OnceValue(func() int {
	var buffer [4096]byte
	if n := agentapi.CountCPUs(string(readStart("/sys/devices/system/cpu/online", buffer[:]))); n > 0 {
		return n
	}
	return runtime.NumCPU()
})

// programOf returns where the code and the stack of a process begin, which the kernel chooses again for each program. A reader that may not
// trace the process gets 0 or 1.
func programOf(code, stack []byte) string {
	if len(code) < 2 || len(stack) < 2 {
		return ""
	}
	return string(code) + " " + string(stack)
}

// Use is what a process has used.
type Use struct {
	Parent int
	// Started is when it was started, since the machine was.
	Started time.Duration
	// CPU is the CPU time of the process and of its children that have ended, and Memory its resident set in bytes.
	CPU    time.Duration
	Memory int64
}

// ReadUse reads what a process has used; false if there is no such process.
func ReadUse(pid int) (Use, bool) {
	fields := StatFields(pid)
	if len(fields) < 22 {
		return Use{}, false
	}
	parent, _ := strconv.Atoi(fields[1])
	pages, _ := strconv.ParseInt(fields[21], 10, 64)
	return Use{Parent: parent, Started: Ticks(fields[19]), CPU: Ticks(fields[11:15]...), Memory: pages * int64(os.Getpagesize())}, true
}

// File returns the path of a file about a process.
func File(pid int, name string) string { return "/proc/" + strconv.Itoa(pid) + "/" + name }

// Environ returns the environment of a process, or nil if it cannot be read.
func Environ(pid int) []string {
	data, err := os.ReadFile(File(pid, "environ"))
	if err != nil {
		return nil
	}
	return strings.Split(string(data), "\x00")
}

// Arguments returns a process's command line, at least one string.
func Arguments(pid int) []string {
	data, _ := os.ReadFile(File(pid, "cmdline"))
	return strings.Split(string(bytes.TrimRight(data, "\x00")), "\x00")
}

// Name returns the name of a process's program: the first of its arguments without the folder, or, of a process that has ended and has none
// any more, what the kernel keeps of the name of its file; "" if it is gone.
func Name(pid int) string {
	if first := Arguments(pid)[0]; first != "" {
		return filepath.Base(first)
	}
	name, _ := os.ReadFile(File(pid, "comm"))
	return strings.TrimSpace(string(name))
}

// Ancestors returns the processes above another one, nearest first, as far as this container shows them.
func Ancestors(pid int) (pids []int) {
	const most = 64
	for len(pids) < most {
		state, ok := ReadStat(pid)
		if !ok || state.Parent <= 1 {
			break
		}
		pid = state.Parent
		pids = append(pids, pid)
	}
	return pids
}

// IsOwn reports whether a process with these ancestors was started by this agent, to which orphans return. With hostPID, a
// pod also sees the processes of other pods.
func IsOwn(ancestors []int) bool {
	self := os.Getpid()
	return self == 1 || slices.Contains(ancestors, self)
}

// Signal signals a process if its id still is that of the process that started then.
func Signal(pid int, started string, signal unix.Signal) {
	if state, ok := ReadStat(pid); ok && state.Started == started {
		_ = unix.Kill(pid, signal)
	}
}

// Launch identifies the run of a launcher of MPI, by its process and when that was started, among those of all containers of a job. It consists
// of digits and dots.
func Launch(pid int, started string) string {
	return ContainerRun() + "." + strconv.Itoa(pid) + "." + started
}

// Runs reports whether a process has not ended.
func Runs(pid int) bool {
	state, ok := ReadStat(pid)
	return ok && state.State != 'Z'
}

// ContainerRun identifies this run of the container: an emptyDir outlives it.
func ContainerRun() string {
	state, _ := ReadStat(1)
	return state.Started
}

// OnEnd calls a function when a process that need not be a child has ended, with its status if that is available. It returns false
// if there is no such process.
func OnEnd(pid int, call func(status unix.WaitStatus, known bool)) bool {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		return false
	}
	// The file becomes readable when the process has ended.
	file := os.NewFile(uintptr(fd), "process "+strconv.Itoa(pid))
	go func() {
		defer file.Close()
		call(awaitEnd(file, pid))
	}()
	return true
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
		if state, ok := ReadStat(pid); ok && state.State == 'Z' {
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
