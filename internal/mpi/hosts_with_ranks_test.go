package mpi_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

// TestHostsWithRanks: how many hosts the ranks of a command fill, where that is certain.
func TestHostsWithRanks(t *testing.T) {
	t.Parallel()
	job := mpitest.Job(3, func(j *mpi.Job) { j.SlotsPerWorker = 2 })
	const unknown = "unknown"
	for command, want := range map[string]string{
		"mpirun -n 2 pi": "2 ranks on 1", "mpirun -np 3 pi": "3 ranks on 2", "mpirun --np=6 pi": "6 ranks on 3", "mpiexec -c 1 pi": "1 ranks on 1",
		"mpirun --oversubscribe -n 8 pi": "8 ranks on 3", "mpirun --mca btl tcp,self -n 2 pi": "2 ranks on 1", "set -e; mpirun -n 2 -x A=1 python3 -m mpi4py train.py": "2 ranks on 1",
		"mpirun pi": unknown, "mpirun -n $RANKS pi": unknown, "mpirun -n 0 pi": unknown, "mpirun -n 1 a : -n 1 b": unknown, "mpirun -n 2 a; mpirun -n 4 b": unknown,
		"mpirun -n 2 --map-by node pi": unknown, "mpirun -n 3 -ppn 1 pi": unknown, "mpirun -N 1 -n 3 pi": unknown, "mpirun --bynode -n 3 pi": unknown, "mpirun -rr -n 3 pi": unknown,
		"mpirun -n 2 --host a,b pi": unknown, "mpirun --hostfile h -n 2 pi": unknown, "mpirun -n 2 --rankfile r pi": unknown, "mpirun -n 2 --unheard pi": unknown,
		"mpirun --mca rmaps_base_mapping_policy node -n 2 pi": unknown, "python3 train.py -n 2": unknown,
		"export OMPI_MCA_rmaps_base_mapping_policy=node; mpirun -n 4 train": unknown, "env I_MPI_PERHOST=1 mpirun -n 4 train": unknown, "mpirun -n 2": unknown,
	} {
		got := unknown
		if ranks, hosts, known := job.HostsWithRanks(command, nil); known {
			got = fmt.Sprintf("%d ranks on %d", ranks, hosts)
		}
		if got != want {
			t.Errorf("%s: %s, want %s", command, got, want)
		}
	}
	if _, _, known := job.HostsWithRanks("mpirun -n 3 pi", []corev1.EnvVar{{Name: "I_MPI_PERHOST", Value: "1"}}); known {
		t.Error("the placement is known although a variable decides it")
	}
}
