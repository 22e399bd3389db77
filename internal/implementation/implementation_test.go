package implementation_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

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

// TestBindingIsOff: the launcher's container has the variables that turn binding off only if the agent does not run its command, and if no
// variable there asks for binding.
func TestBindingIsOff(t *testing.T) {
	t.Parallel()
	names := map[mpi.Implementation]string{mpi.OpenMPI: "PRTE_MCA_hwloc_default_binding_policy", mpi.IntelMPI: "I_MPI_PIN"}
	for name, test := range map[string]struct {
		launch, env string
		command     []string
		want        bool
	}{
		"the agent runs the command":    {launch: mpi.LaunchAgent, command: []string{"mpirun", "train"}},
		"the image has the command":     {launch: mpi.LaunchAgent, want: true},
		"sshd":                          {launch: mpi.LaunchSSHD, command: []string{"mpirun", "train"}, want: true},
		"a domain":                      {launch: mpi.LaunchSSHD, env: "I_MPI_PIN_DOMAIN=omp"},
		"a mapping to cores":            {launch: mpi.LaunchSSHD, env: "OMPI_MCA_rmaps_base_mapping_policy=slot:PE=2"},
		"a mapping to hosts":            {launch: mpi.LaunchSSHD, env: "OMPI_MCA_rmaps_base_mapping_policy=node", want: true},
		"off for Open MPI 4 by the job": {launch: mpi.LaunchSSHD, env: "OMPI_MCA_hwloc_base_binding_policy=none", want: true},
	} {
		for of, variable := range names {
			t.Run(name+", "+string(of), func(t *testing.T) {
				t.Parallel()
				job := mpitest.Job(2, func(j *mpi.Job) {
					j.Launch = test.launch
					main := &j.Launcher.Template.Spec.Containers[0]
					main.Command = test.command
					if key, value, set := strings.Cut(test.env, "="); set {
						main.Env = append(main.Env, corev1.EnvVar{Name: key, Value: value})
					}
				})
				env := implementation.For(of).LauncherEnv(job)
				if got := slices.ContainsFunc(env, func(v corev1.EnvVar) bool { return v.Name == variable }); got != test.want {
					t.Errorf("%s is in %+v: %t", variable, env, got)
				}
			})
		}
	}
}
