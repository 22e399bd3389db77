package agent

import (
	"slices"
	"time"
)

// Ranks that wait for a message in shared memory may look for it without a system call: MPICH's do. Their times do not tell them
// from ranks that compute; the code that they run does. A rank that waits uses pages of MPI's libraries, and none of its program's code.

// codeUse is what a process has used since its marks were cleared.
type codeUse struct {
	// mpi is set if code of MPI's libraries was used, and other if other code was, that of the system's libraries excepted: it is
	// called by other code.
	mpi, other bool
	// bytes is the size of all pages that were used.
	bytes int64
	// cost is the CPU time that it took to find out.
	cost time.Duration
}

// marks are those of the pages that processes use.
type marks interface {
	// used returns what processes have used since their marks were cleared, and clear clears them; false if it is not possible.
	used(pids []int) (codeUse, bool)
	clear(pids []int) bool
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
func (w *codeWatch) runsOnlyMPI(of marks, pids []int, now time.Time, computes bool) bool {
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
	known := !w.cleared.IsZero() && slices.Equal(pids, w.processes)
	if known {
		use, ok := of.used(pids)
		if ok && w.onlyMPI && !use.mpi && !use.other {
			// It has hardly had a CPU, and still waits.
			return true
		}
		if !ok || !use.mpi || use.other || use.bytes > few {
			w.cleared, w.onlyMPI, w.next = time.Time{}, false, now.Add(max(again, time.Duration(float64(use.cost)/cost)))
			return false
		}
	}
	w.cleared, w.processes, w.onlyMPI = now, slices.Clone(pids), known
	if !of.clear(pids) {
		w.cleared = time.Time{}
	}
	return known
}
