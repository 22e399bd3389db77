package e2e

import (
	"slices"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/kinds/mpijob"
)

// computing is a program without output in which ranks compute, and one that waits for another that computes.
const computing = `import sys, time
from mpi4py import MPI
comm = MPI.COMM_WORLD
until = time.time() + 75
if sys.argv[1] == "all" or comm.Get_rank() == 1:
    x = 0
    while time.time() < until:
        x += sum(i * i for i in range(10000))
comm.Barrier()`

// TestQuietProgramsAreNotReported: ranks that compute without output, themselves or as scripts that started programs, are not taken
// for ranks that wait, and a rank that waits for one that computes is a hint.
func TestQuietProgramsAreNotReported(t *testing.T) {
	t.Parallel()
	for who, program := range map[string][]string{
		"all": {"sh", "-c", `python3 -c "$0" "$1" && echo done`},
		"one": {"python3", "-c"},
	} {
		t.Run(who, func(t *testing.T) {
			parallel(t, 2)
			job := openMPI(newNamespace(t), 2, "mpirun", "-n", "2", "--map-by", "node")
			launcher(job).Command = slices.Concat(launcher(job).Command, program, []string{computing, who})
			create(t, job)
			eventuallyAfter(t, "it succeeds without a finding", 75*time.Second, time.Minute, func() error {
				if report := reportOf(t, (mpijob.Kind{}).Name(), job.Namespace, job.Name); report != nil && slices.ContainsFunc(report.Status.Findings, func(f v1alpha1.Finding) bool { return who == "all" || f.Code != codes.Straggler }) {
					t.Fatalf("findings are %+v", report.Status.Findings)
				}
				if err := api.Get(t.Context(), client.ObjectKeyFromObject(job), job); err != nil {
					return err
				}
				return succeeded(job)
			})
		})
	}
}
