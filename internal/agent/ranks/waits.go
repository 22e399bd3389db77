package ranks

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode"

	"opendatahub.io/mpijob/internal/agent/process"
	"opendatahub.io/mpijob/internal/agentapi"
)

// servers are parts of the names of the kernel's functions in which processes wait for a file server: NFS, SMB, CephFS, Lustre, FUSE.
var servers = []string{"rpc_", "nfs", "cifs_", "smb", "ceph_", "ptlrpc_", "cl_sync_io", "fuse_", "request_wait_answer"}

// disks are parts of those in which processes wait until data is on a disk, or was read from it, of whatever file system.
var disks = []string{"folio_wait", "wait_on_page", "jbd2", "io_schedule", "balance_dirty_pages", "xlog_", "submit_bio"}

// awaitedBy returns what a process waits for that sleeps in a function of the kernel, such as "the lock of /data/index.lock"; "" if that
// is unknown.
func awaitedBy(pid int, wait string) string {
	switch {
	case wait == "":
		return ""
	case strings.Contains(wait, "lock_inode_wait"), strings.Contains(wait, "setlk"):
		if name := lockedFile(pid); name != "" {
			return "the lock of " + name
		}
		return "the lock of a file"
	case slices.ContainsFunc(servers, func(part string) bool { return strings.Contains(wait, part) }):
		return agentapi.ForFileServer
	case slices.ContainsFunc(disks, func(part string) bool { return strings.Contains(wait, part) }):
		return agentapi.ForStorage
	case strings.Contains(wait, "pipe_read"):
		return "input from a pipe"
	}
	return ""
}

// lockedFile returns the file whose lock a process waits for (/proc/locks, proc_locks(5)); "" if it is unknown.
func lockedFile(pid int) string {
	table, _ := os.ReadFile("/proc/locks")
	node := waitedNode(string(table), pid)
	if node == 0 {
		return ""
	}
	entries, _ := os.ReadDir(process.File(pid, "fd"))
	for _, entry := range entries {
		path := process.File(pid, "fd/"+entry.Name())
		info, err := os.Stat(path)
		if err != nil {
			continue
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Ino == node {
			target, _ := os.Readlink(path)
			return strings.Map(func(r rune) rune {
				if unicode.IsPrint(r) {
					return r
				}
				return '?'
			}, target)
		}
	}
	return ""
}

// waitedNode returns the inode of the file whose lock a process waits for by /proc/locks, in which waiters are marked by an arrow; 0 if
// it waits for none.
func waitedNode(table string, pid int) uint64 {
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if len(fields) < 7 || fields[1] != "->" || fields[5] != strconv.Itoa(pid) {
			continue
		}
		parts := strings.Split(fields[6], ":")
		node, _ := strconv.ParseUint(parts[len(parts)-1], 10, 64)
		return node
	}
	return 0
}
