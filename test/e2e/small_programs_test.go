package e2e

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
)

// sumInPool adds up a series in the pool of processes that mpi4py makes of the ranks. Its result does not depend on their number.
const sumInPool = `
import math
from mpi4py import MPI
from mpi4py.futures import MPICommExecutor
with MPICommExecutor(MPI.COMM_WORLD) as pool:
    if pool is not None:
        parts = [[4 * (-1) ** k / (2 * k + 1) for k in range(i, 100000, 64)] for i in range(64)]
        print("sum", repr(math.fsum(pool.map(math.fsum, parts))), flush=True)
`

// TestSmallPrograms: programs that others wrote run in the images that all tests have: mpi4py's own benchmark and its pool of processes, with
// four ranks as with one, and the Intel MPI Benchmarks between two pods. Unlike the others of the suite Programs, CI runs them.
func TestSmallPrograms(t *testing.T) {
	t.Parallel()
	t.Run("mpi4py", func(t *testing.T) {
		const script = `for ranks in 1 4; do echo "== $ranks"; mpirun -n $ranks python3 -m mpi4py.bench ringtest -n 65536 -l 100; mpirun -n $ranks python3 -c "$1"; done`
		asBothKinds(t, "mpi4py: its bench and futures", func(t *testing.T) *kubeflow.MPIJob {
			t.Helper()
			parallel(t, 4)
			return openMPI(newNamespace(t), 2, "sh", "-ec", script, "sh", sumInPool)
		}, checkMPI4Py)
	})
	t.Run("Intel MPI Benchmarks", func(t *testing.T) {
		asBothKinds(t, "Intel MPI Benchmarks 2021", func(t *testing.T) *kubeflow.MPIJob {
			t.Helper()
			parallel(t, 2)
			// Ranks of Intel MPI wait by computing: with more than there are cores, this takes minutes.
			job := agentJob(newNamespace(t), "job", "intelmpi", kubeflow.MPIImplementationIntel, 2,
				"mpiexec", "-n", "2", "IMB-MPI1", "PingPong", "Allreduce", "Alltoall", "-npmin", "2", "-iter", "50", "-iter_policy", "off", "-time", "60", "-msglog", "2:12")
			job.Spec.SlotsPerWorker = new(int32(1))
			return job
		}, checkIMB)
	})
}

// checkMPI4Py checks that four ranks have computed the same as one, and that the ring has had as many.
func checkMPI4Py(t *testing.T, text string) string {
	t.Helper()
	sums := regexp.MustCompile(`(?m)^(?:\[.*\] ?)?sum (\S+)`).FindAllStringSubmatch(text, -1)
	if len(sums) != 2 || sums[0][1] != sums[1][1] || !strings.HasPrefix(sums[0][1], "3.1415") {
		t.Fatalf("one rank and four have computed %v: %s", sums, text)
	}
	for _, ranks := range []int{1, 4} {
		if want := fmt.Sprintf("(%d processes, 65536 bytes)", ranks); !strings.Contains(text, want) {
			t.Errorf("it has not printed %q: %s", want, text)
		}
	}
	return "the sum of 100,000 terms as with one rank, 4 ranks"
}

// rowOfIMB matches a size of messages with the number of repetitions and the times.
var rowOfIMB = regexp.MustCompile(`(?m)^\s+\d+\s+\d+(?:\s+[\d.]+){2,3}\s*$`)

// checkIMB checks that the benchmarks have measured all sizes of messages.
func checkIMB(t *testing.T, text string) string {
	t.Helper()
	var measured []string
	for _, table := range strings.Split(text, "# Benchmarking ")[1:] {
		name, _, _ := strings.Cut(table, "\n")
		measured = append(measured, strings.TrimSpace(name))
		// 0 bytes, and the powers of two from 4 to 4,096.
		if rows := len(rowOfIMB.FindAllString(table, -1)); rows != 12 || !strings.Contains(table, "#processes = 2") {
			t.Errorf("%s has %d rows, want 12 with 2 processes: %s", name, rows, table)
		}
	}
	if strings.Join(measured, " ") != "PingPong Allreduce Alltoall" || !strings.Contains(text, "All processes entering MPI_Finalize") {
		t.Errorf("it has measured %q: %s", measured, text)
	}
	return "PingPong, Allreduce and Alltoall with messages of 0 to 4,096 bytes, 2 ranks"
}
