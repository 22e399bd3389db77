package implementation_test

import (
	"testing"

	"opendatahub.io/mpijob/internal/implementation"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

func TestFlavors(t *testing.T) {
	hosts := []mpi.Host{{Name: "a.pi.ns.svc", Slots: 2}, {Name: "b.pi.ns.svc", Slots: 1}}
	tests := map[mpi.Implementation]string{
		mpi.OpenMPI:  "a.pi.ns.svc slots=2\nb.pi.ns.svc slots=1\n",
		mpi.IntelMPI: "a.pi.ns.svc:2\nb.pi.ns.svc:1\n",
		mpi.MPICH:    "a.pi.ns.svc:2\nb.pi.ns.svc:1\n",
	}
	for name, want := range tests {
		t.Run(string(name), func(t *testing.T) {
			f := implementation.For(name)
			if got := f.Hostfile(hosts); got != want {
				t.Errorf("hostfile is %q, want %q", got, want)
			}
			for _, launch := range []string{mpi.LaunchAgent, mpi.LaunchSSHD} {
				job := mpitest.Job(2, func(j *mpi.Job) { j.SlotsPerWorker, j.Launch = 8, launch })
				mpitest.Golden(t, "launcher-env-"+string(name)+"-"+launch, f.LauncherEnv(job))
			}
		})
	}
}
