package loglines_test

import (
	"strings"
	"testing"

	"opendatahub.io/mpijob/internal/diagnose/loglines"
)

// TestAborted: of several ranks that call MPI_Abort, Open MPI names the first one. Another rank is told by its exit code, and no rank that was killed.
func TestAborted(t *testing.T) {
	t.Parallel()
	const (
		first = "MPI_ABORT was invoked on rank 2 in communicator MPI_COMM_WORLD\nwith errorcode 14.\n"
		five  = "MPI_ABORT was invoked on rank 2 in communicator MPI_COMM_WORLD\n  Proc: [[5,1],2]\n  Errorcode: -1\n"
		more  = "[pi-launcher:00007] 1 more process has sent help message help-mpi-api.txt / mpi-abort\n"
		mpich = "application called MPI_Abort(MPI_COMM_WORLD, 3) - process 2\n"
	)
	for name, test := range map[string]struct {
		log, rank string
		exit      *int32
		want      bool
	}{
		"the first one":                      {first, "2", nil, true},
		"the first one, with others":         {first + more, "2", new(int32(14)), true},
		"another one":                        {first + more, "3", new(int32(14)), true},
		"another one, with all bits":         {five + more, "3", new(int32(255)), true},
		"another one, alone":                 {first, "3", new(int32(14)), false},
		"one that ended otherwise":           {first + more, "3", new(int32(1)), false},
		"one that was killed, or is unknown": {first + more, "3", nil, false},
		"without the first one":              {more, "3", new(int32(0)), false},
		"MPICH":                              {mpich, "2", nil, true},
		"MPICH, another one":                 {mpich, "3", new(int32(3)), false},
	} {
		if got := loglines.Aborted(strings.Split(test.log, "\n"), test.rank, test.exit); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
