package agent

import (
	"cmp"
	"slices"

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
