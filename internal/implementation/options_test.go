package implementation_test

import (
	"testing"

	"opendatahub.io/mpijob/internal/implementation"
	"opendatahub.io/mpijob/internal/mpi"
)

func TestForeign(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		option string
		job    mpi.Implementation
		want   implementation.ForeignOption
	}{
		{"x", mpi.IntelMPI, implementation.ForeignOption{Option: "-x", Of: "Open MPI", Instead: "-genv NAME VALUE"}},
		{"--hostfile", mpi.MPICH, implementation.ForeignOption{Option: "--hostfile", Of: "Open MPI", Instead: "-f FILE"}},
		{"mca", mpi.MPICH, implementation.ForeignOption{Option: "--mca", Of: "Open MPI"}},
		{"--ppn", mpi.OpenMPI, implementation.ForeignOption{Option: "-ppn", Of: "MPICH and Intel MPI", Instead: "--map-by ppr:N:node"}},
		{"-genv", "", implementation.ForeignOption{Option: "-genv", Of: "MPICH and Intel MPI", Instead: "-x NAME=VALUE"}},
	} {
		if got := implementation.Foreign(test.option, test.job); got == nil || *got != test.want {
			t.Errorf("%s for %s: %+v, want %+v", test.option, test.job, got, test.want)
		}
	}
	for _, option := range []string{"np", "alow-run-as-root", "x", ""} {
		if got := implementation.Foreign(option, mpi.OpenMPI); got != nil {
			t.Errorf("%q is %+v", option, got)
		}
	}
}
