package outcome

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"opendatahub.io/mpijob/internal/agentapi"
)

// sortByCause orders the ends of ranks: causes before consequences, and of the same kind the first one. Others often crash when
// the connection to a rank that has failed is closed.
//
// The kernel closes the connections of a rank before the rank has ended, so that on a busy machine the end of another rank, to
// which MPI reported the lost connection, may be seen first.
func sortByCause(ends []agentapi.RankEnd) {
	const together = 2000
	slices.SortStableFunc(ends, func(a, b agentapi.RankEnd) int {
		return cmp.Or(afterwards(a)-afterwards(b), cmp.Compare(a.At, b.At))
	})
	if len(ends) == 0 || !lostPeer(ends[0]) {
		return
	}
	cause := slices.IndexFunc(ends, func(end agentapi.RankEnd) bool { return !lostPeer(end) && afterwards(end) < toldToEnd })
	if cause > 0 && ends[cause].At-ends[0].At <= together {
		end := ends[cause]
		copy(ends[1:], ends[:cause])
		ends[0] = end
	}
}

// lostPeer reports whether a rank ended as MPI ends ranks that lost a connection. The default error handler exits with the class
// of the error: MPI_ERR_UNKNOWN, MPI_ERR_OTHER or MPI_ERR_INTERN, which are 14, 16 and 17 in Open MPI (ompi/include/mpi.h.in),
// and 13, 15 and 16 in MPICH and Intel MPI (src/binding/c/mpi.h.in).
func lostPeer(end agentapi.RankEnd) bool {
	return end.Signal == 0 && end.ExitCode >= 13 && end.ExitCode <= 17
}

// toldToEnd is the place of ranks that others have ended.
const toldToEnd = 2

// afterwards orders the ends of ranks, causes before consequences.
func afterwards(r agentapi.RankEnd) int {
	switch unix.Signal(r.Signal) {
	case unix.SIGTERM, unix.SIGKILL, unix.SIGINT, unix.SIGHUP, unix.SIGPIPE:
		if r.OOM {
			return 0
		}
		return toldToEnd
	}
	return 1
}

// OutOfMemory describes processes that the kernel killed.
func OutOfMemory(s agentapi.Summary) string {
	text := fmt.Sprintf("The kernel killed %d of this container's processes, which had no memory left", s.OOMKills)
	if s.MemoryLimit > 0 {
		text += " below the limit of " + Mebibytes(s.MemoryLimit)
	}
	for _, rank := range s.Ranks {
		if rank.OOM {
			return fmt.Sprintf("%s; rank %d (%s) was one of them.", text, rank.Rank, rank.Program)
		}
	}
	return text + "."
}

// RankEnded describes how a rank ended.
func RankEnded(r agentapi.RankEnd) string {
	who := fmt.Sprintf("Rank %d ", r.Rank)
	if r.Program != "" {
		who += "(" + r.Program + ") "
	}
	switch {
	case r.OOM:
		return who + "was killed by the kernel for lack of memory."
	case r.Signal != 0:
		return fmt.Sprintf("%sended by signal %d (%s).", who, r.Signal, unix.SignalName(unix.Signal(r.Signal)))
	case r.ExitCode < 0:
		return who + "ended."
	}
	return fmt.Sprintf("%sended with code %d.", who, r.ExitCode)
}

// Mebibytes returns an amount of memory as people read it.
func Mebibytes(bytes int64) string { return fmt.Sprintf("%d MiB", bytes>>20) }

// Some are names as people read them.
func Some(names []string) string {
	const most = 4
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
