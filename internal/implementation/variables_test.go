package implementation_test

import (
	"testing"

	"opendatahub.io/mpijob/internal/implementation"
	"opendatahub.io/mpijob/internal/mpi"
)

func TestMeantVariable(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		written string
		of      mpi.Implementation
		want    string
	}{
		{"OMPI_COMM_WORLD_LOCALRANK", mpi.OpenMPI, "OMPI_COMM_WORLD_LOCAL_RANK"},
		{"OMPI_COMMWORLD_RANK", mpi.OpenMPI, "OMPI_COMM_WORLD_RANK"},
		{"OMPI_COMM_WORD_SIZE", mpi.OpenMPI, "OMPI_COMM_WORLD_SIZE"},
		{"ompi_comm_world_rank", mpi.OpenMPI, "OMPI_COMM_WORLD_RANK"},
		{"OMPI_LOCAL_RANK", mpi.OpenMPI, "OMPI_COMM_WORLD_LOCAL_RANK"},
		{"OMPI_RANK", mpi.OpenMPI, "OMPI_COMM_WORLD_RANK"},
		{"OMPI_COMM_SIZE", mpi.OpenMPI, "OMPI_COMM_WORLD_SIZE"},
		{"MPI_LOCAL_RANK_ID", mpi.MPICH, "MPI_LOCALRANKID"},
		{"MPI_LOCALNRANK", mpi.IntelMPI, "MPI_LOCALNRANKS"},
		// Names of another implementation are no misspellings.
		{"PMI_RANK", mpi.OpenMPI, ""},
		{"OMPI_COMM_WORLD_RANK", mpi.MPICH, ""},
		{"OMPI_COMM_WORLD_LOCALRANK", mpi.MPICH, ""},
		{"OMPI_COMM_WORLD_RANK", mpi.OpenMPI, ""},
		{"RANK", mpi.OpenMPI, ""},
		{"LOCAL_RANK", mpi.OpenMPI, ""},
		{"DATA_DIR", mpi.OpenMPI, ""},
		{"OMPI_MCA_btl", mpi.OpenMPI, ""},
	} {
		if got := implementation.MeantVariable(test.written, test.of); got != test.want {
			t.Errorf("%s of %s: %q, want %q", test.written, test.of, got, test.want)
		}
	}
}
