package agent

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// pages are the marks that the kernel sets on the pages that processes use, and clears on request (proc_pid_clear_refs(5)).
type pages struct{}

// used adds up what processes have used since their marks were cleared.
func (pages) used(pids []int) (total codeUse, ok bool) {
	// On a busy machine, most of the time that passes is that of others.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	started := threadTime()
	for _, pid := range pids {
		text, err := os.ReadFile(procFile(pid, "smaps"))
		if err != nil {
			return codeUse{cost: threadTime() - started}, false
		}
		use := parseUse(string(text))
		total = codeUse{mpi: total.mpi || use.mpi, other: total.other || use.other, bytes: total.bytes + use.bytes}
	}
	total.cost = threadTime() - started
	return total, true
}

// clear clears the marks of processes, and reports whether it could.
func (pages) clear(pids []int) bool {
	cleared := true
	for _, pid := range pids {
		cleared = os.WriteFile(procFile(pid, "clear_refs"), []byte("1"), 0) == nil && cleared
	}
	return cleared
}

// mpiLibraries are the beginnings of the names of libraries that MPI consists of, and systemLibraries those of libraries that do
// nothing by themselves.
var (
	mpiLibraries    = []string{"libmpi", "libpmpi", "libopen-pal", "libopen-rte", "libpmix", "libucp.", "libuct", "libucs", "libucm", "libfabric", "libpsm"}
	systemLibraries = []string{
		"libc.", "libc-", "libm.", "libm-", "ld-", "libpthread", "librt", "libdl", "libgcc_s", "libatomic", "libstdc++", "libibverbs", "librdmacm", "libmlx",
		"libefa", "libnl-", "libhwloc", "libnuma", "libevent", "libxpmem", "libpciaccess", "libudev", "libz.", "[vdso]", "[vsyscall]",
	}
)

// parseUse adds up the marks in the text of /proc/PID/smaps.
func parseUse(smaps string) (use codeUse) {
	isCode, name := false, ""
	for line := range strings.Lines(smaps) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		if !strings.HasSuffix(fields[0], ":") {
			isCode, name = strings.Contains(fields[1], "x"), ""
			if len(fields) >= 6 {
				name = filepath.Base(fields[5])
			}
			continue
		}
		if fields[0] != "Referenced:" {
			continue
		}
		size, _ := strconv.ParseInt(fields[1], 10, 64)
		use.bytes += size << 10
		is := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
		switch {
		case size == 0 || !isCode:
		case slices.ContainsFunc(mpiLibraries, is):
			use.mpi = true
		case !slices.ContainsFunc(systemLibraries, is):
			use.other = true
		}
	}
	return use
}

// threadTime returns the CPU time that the calling thread has used.
func threadTime() time.Duration {
	var usage unix.Rusage
	if unix.Getrusage(unix.RUSAGE_THREAD, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
