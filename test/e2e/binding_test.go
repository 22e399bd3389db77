package e2e

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"opendatahub.io/mpijob/internal/kinds/mpijob"
)

// allowed matches the CPUs that a rank may use, in /proc/self/status.
var allowed = regexp.MustCompile(`Cpus_allowed_list:\s*(\S+)`)

// TestRanksAreNotBound: ranks may use all CPUs of their pod, unless a flag binds them. As an MPIJob and as a TrainJob.
func TestRanksAreNotBound(t *testing.T) {
	t.Parallel()
	program := []string{"grep", "Cpus_allowed_list", "/proc/self/status"}
	for name, test := range map[string]struct {
		sample, flags string
		shell, bound  bool
	}{
		"Open MPI 4":          {sample: "openmpi"},
		"Open MPI 5":          {sample: "openmpi5"},
		"MPICH":               {sample: "mpich"},
		"Intel MPI":           {sample: "intelmpi"},
		"Open MPI 4, bound":   {sample: "openmpi", flags: "--bind-to core", bound: true},
		"Open MPI 5, bound":   {sample: "openmpi5", flags: "--bind-to core", bound: true},
		"Open MPI 4, CPUs":    {sample: "openmpi", flags: "--map-by slot:PE=1"},
		"Open MPI 5, a range": {sample: "openmpi5", flags: "--map-by ppr:1:node"},
		// Each rank is bound to two cores. Open MPI 5 refuses this together with a policy.
		"Open MPI 4, two CPUs":             {sample: "openmpi", flags: "--map-by ppr:1:node:PE=2"},
		"Open MPI 5, two CPUs":             {sample: "openmpi5", flags: "--map-by slot:PE=2"},
		"Open MPI 5, two CPUs, by a shell": {sample: "openmpi5", flags: "--map-by slot:PE=2", shell: true},
	} {
		command := mpiCommand(test.sample, program...)
		command[2] = "2"
		command = slices.Concat(command[:3], strings.Fields(test.flags), command[3:])
		if test.shell {
			command = []string{"sh", "-c", strings.Join(command, " ")}
		}
		check := func(t *testing.T, text string) {
			t.Helper()
			found := allowed.FindAllStringSubmatch(text, -1)
			if len(found) != 2 {
				t.Errorf("%d ranks printed their CPUs, want 2: %s", len(found), text)
			}
			for _, match := range found {
				if bound := !strings.ContainsAny(match[1], "-,"); bound != test.bound {
					t.Errorf("a rank may use the CPUs %s; bound: want %t", match[1], test.bound)
				}
			}
		}
		t.Run(name, func(t *testing.T) {
			parallel(t, 2)
			job := agentJob(newNamespace(t), "job", test.sample, mpiOf(test.sample), 2, command...)
			job.Spec.SlotsPerWorker = new(int32(1))
			create(t, job)
			waitFor(t, job, (mpijob.Kind{}).Name()+" succeeds", succeeded)
			check(t, output(t, job))
		})
		t.Run(name+", TrainJob", func(t *testing.T) {
			parallel(t, 2)
			job := agentJob(newNamespace(t), "job", test.sample, mpiOf(test.sample), 2, command...)
			job.Spec.SlotsPerWorker = new(int32(1))
			object := asTrainJob(t, job)
			createTrainJob(t, object)
			ends(t, object, "Complete")
			check(t, printed(t, object))
		})
	}
}
