package ranks

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode"

	"opendatahub.io/mpijob/internal/agent/process"
	"opendatahub.io/mpijob/internal/agent/progress"
	"opendatahub.io/mpijob/internal/agentapi"
)

// servers are parts of the names of the kernel's functions in which processes wait for a file server: NFS, SMB, CephFS, Lustre, FUSE.
var servers = []string{"rpc_", "nfs", "cifs_", "smb", "ceph_", "ptlrpc_", "cl_sync_io", "fuse_", "request_wait_answer"}

// disks are parts of those in which processes wait until data is on a disk, or was read from it, of whatever file system.
var disks = []string{"folio_wait", "wait_on_page", "jbd2", "io_schedule", "balance_dirty_pages", "xlog_", "submit_bio"}

// awaitedBy returns what a process waits for that sleeps in a function of the kernel, such as "the lock of /data/index.lock"; "" if that
// is unknown. holder is the process that holds this lock, 0 if it is unknown.
func awaitedBy(pid int, wait string) (what string, holder int) {
	switch {
	case wait == "":
		return "", 0
	case strings.Contains(wait, "lock_inode_wait"), strings.Contains(wait, "setlk"):
		name, holder := lockedFile(pid)
		return "the lock of " + cmp.Or(name, "a file"), holder
	case slices.ContainsFunc(servers, func(part string) bool { return strings.Contains(wait, part) }):
		return agentapi.ForFileServer, 0
	case slices.ContainsFunc(disks, func(part string) bool { return strings.Contains(wait, part) }):
		return agentapi.ForStorage, 0
	case strings.Contains(wait, "pipe_read"):
		return "input from a pipe", 0
	}
	return "", 0
}

// lockedFile returns the file whose lock a process waits for (/proc/locks, proc_locks(5)), "" if it is unknown, and the process that holds the lock,
// 0 if that is unknown or runs in another container.
func lockedFile(pid int) (name string, holder int) {
	table, _ := os.ReadFile("/proc/locks")
	node, holder := awaitedLock(string(table), pid)
	if node == 0 {
		return "", 0
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
			}, target), holder
		}
	}
	return "", holder
}

// awaitedLock returns the inode of the file whose lock a process waits for by /proc/locks, in which waiters are marked by an arrow, and the process
// that holds this lock, which has the same number there; 0 if it waits for none, and if the holder is unknown.
func awaitedLock(table string, pid int) (node uint64, holder int) {
	holders := map[string]int{}
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		switch {
		case len(fields) < 7:
		case fields[1] != "->":
			if owner, err := strconv.Atoi(fields[4]); err == nil && owner > 0 {
				holders[fields[0]] = owner
			}
		case fields[5] == strconv.Itoa(pid):
			parts := strings.Split(fields[6], ":")
			node, _ := strconv.ParseUint(parts[len(parts)-1], 10, 64)
			return node, holders[fields[0]]
		}
	}
	return 0, 0
}

// nameHolders adds the rank that holds a lock to what another one waits for, if one of the rank's processes does.
func nameHolders(usages []progress.RankUsage) {
	for i := range usages {
		used := &usages[i].Used
		for _, other := range usages {
			if used.Holder != 0 && other.Rank != usages[i].Rank && slices.Contains(other.Processes, used.Holder) {
				used.For += fmt.Sprintf(agentapi.LockHolder, other.Rank)
			}
		}
	}
}
