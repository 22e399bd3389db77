package agent

import (
	"errors"
	"os"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

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
