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

// Ranks that wait for a message in shared memory may look for it without a system call: MPICH's do. Their times do not tell them
// from ranks that compute; the code that they run does. The kernel marks the pages that a process uses, and clears the marks on
// request (proc_pid_clear_refs(5)). A rank that waits uses pages of MPI's libraries, and none of its program's code.

// codeUse is what a process has used since its marks were cleared.
type codeUse struct {
	// mpi is set if code of MPI's libraries was used, and other if other code was, that of the system's libraries excepted: it is
	// called by other code.
	mpi, other bool
	// bytes is the size of all pages that were used.
	bytes int64
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

// codeWatch finds out whether a rank runs only code of MPI.
type codeWatch struct {
	// cleared is when the marks of the processes were cleared, or zero, and next when they are at the earliest.
	cleared, next time.Time
	processes     []int
	// onlyMPI is the latest result.
	onlyMPI bool
}

// runsOnlyMPI reports whether all code that a rank, with the processes that it started, has run since the sample before is MPI's.
// It is called with each sample; computes is whether the rank uses a CPU.
func (w *codeWatch) runsOnlyMPI(pids []int, now time.Time, computes bool) bool {
	const (
		// few is the size of the pages that a rank uses at most if it only waits. One that transfers data uses more.
		few = 16 << 20
		// again is the time after which a rank that ran its program's code is looked at again, and cost the share of the time that
		// this takes at most: processes with much memory have many pages.
		again = 3 * samplePeriod
		cost  = 0.005
	)
	if !computes || now.Before(w.next) {
		w.cleared, w.onlyMPI = time.Time{}, false
		return false
	}
	// On a busy machine, most of the time that passes is that of others.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	started := threadTime()
	known := !w.cleared.IsZero() && slices.Equal(pids, w.processes)
	if known {
		use, ok := readUse(pids)
		if ok && w.onlyMPI && !use.mpi && !use.other {
			// It has hardly had a CPU, and still waits.
			return true
		}
		if !ok || !use.mpi || use.other || use.bytes > few {
			w.cleared, w.onlyMPI, w.next = time.Time{}, false, now.Add(max(again, time.Duration(float64(threadTime()-started)/cost)))
			return false
		}
	}
	w.cleared, w.processes = now, slices.Clone(pids)
	for _, pid := range pids {
		if os.WriteFile(procFile(pid, "clear_refs"), []byte("1"), 0) != nil {
			w.cleared = time.Time{}
		}
	}
	w.onlyMPI = known
	return known
}

// threadTime returns the CPU time that the calling thread has used.
func threadTime() time.Duration {
	var usage unix.Rusage
	if unix.Getrusage(unix.RUSAGE_THREAD, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// readUse adds up what processes have used.
func readUse(pids []int) (total codeUse, ok bool) {
	for _, pid := range pids {
		text, err := os.ReadFile(procFile(pid, "smaps"))
		if err != nil {
			return codeUse{}, false
		}
		use := parseUse(string(text))
		total = codeUse{mpi: total.mpi || use.mpi, other: total.other || use.other, bytes: total.bytes + use.bytes}
	}
	return total, true
}
