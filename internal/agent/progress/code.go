package progress

import (
	"slices"
	"time"
)

// Ranks that wait for a message in shared memory may look for it without a system call: MPICH's do. Their times do not tell them
// from ranks that compute; the code that they run does. A rank that waits uses pages of MPI's libraries, and none of its program's code.

// CodeUse is what a process has used since its marks were cleared.
type CodeUse struct {
	// MPI is set if code of MPI's libraries was used, and Other if other code was, that of the system's libraries excepted: it is
	// called by other code.
	MPI, Other bool
	// Bytes is the size of all pages that were used.
	Bytes int64
	// Cost is the CPU time that it took to find out.
	Cost time.Duration
}

// Marks are those of the pages that processes use.
type Marks interface {
	// Used returns what processes have used since their marks were cleared, and Clear clears them; false if it is not possible.
	Used(pids []int) (CodeUse, bool)
	Clear(pids []int) bool
}

// CodeWatch finds out whether a rank runs only code of MPI.
type CodeWatch struct {
	// cleared is when the marks of the processes were cleared, or zero, and next when they are at the earliest.
	cleared, next time.Time
	processes     []int
	// onlyMPI is the latest result.
	onlyMPI bool
}

// RunsOnlyMPI reports whether all code that a rank, with the processes that it started, has run since the sample before is MPI's.
// It is called with each sample; computes is whether the rank uses a CPU.
func (w *CodeWatch) RunsOnlyMPI(of Marks, pids []int, now time.Time, computes bool) bool {
	const (
		// few is the size of the pages that a rank uses at most if it only waits. One that transfers data uses more.
		few = 16 << 20
		// again is the time after which a rank that ran its program's code is looked at again, and cost the share of the time that
		// this takes at most: processes with much memory have many pages.
		again = 3 * SamplePeriod
		cost  = 0.005
	)
	if !computes || now.Before(w.next) {
		w.cleared, w.onlyMPI = time.Time{}, false
		return false
	}
	known := !w.cleared.IsZero() && slices.Equal(pids, w.processes)
	if known {
		use, ok := of.Used(pids)
		if ok && w.onlyMPI && !use.MPI && !use.Other {
			// It has hardly had a CPU, and still waits.
			return true
		}
		if !ok || !use.MPI || use.Other || use.Bytes > few {
			w.cleared, w.onlyMPI, w.next = time.Time{}, false, now.Add(max(again, time.Duration(float64(use.Cost)/cost)))
			return false
		}
	}
	w.cleared, w.processes, w.onlyMPI = now, slices.Clone(pids), known
	if !of.Clear(pids) {
		w.cleared = time.Time{}
	}
	return known
}
