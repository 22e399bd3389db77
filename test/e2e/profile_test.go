package e2e

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
)

// hasProfile checks that a job has succeeded and has a profile.
func hasProfile(status v1alpha1.JobReportStatus) error {
	if status.Phase != v1alpha1.PhaseSucceeded || status.Profile == nil {
		return fmt.Errorf("it is %s: %s, its findings are %+v, its usage is %+v, and its profile is %+v", status.Phase, status.Message, status.Findings, status.Usage, status.Profile)
	}
	return nil
}

// TestProfileOfAnyMPI: the calls of ranks are counted with each MPI library, by the same library for profiles.
func TestProfileOfAnyMPI(t *testing.T) {
	t.Parallel()
	for _, with := range implementations {
		t.Run(with.sample, func(t *testing.T) {
			t.Parallel()
			namespace := newNamespace(t)
			job := agentJob(namespace, "job", with.sample, with.implementation, 2, with.mpirun, "-n", "4", "ranks", "--sleep", "15")
			job.Annotations = map[string]string{mpi.AnnotationProfile: "true"}
			create(t, job)
			profile := reported(t, kubeflow.Kind, namespace, "job", "the record of the job that ended has a profile", hasProfile).Status.Profile
			t.Logf("%+v", profile)
			isAllreduce := func(c v1alpha1.ProfileCall) bool { return c.Call == "MPI_Allreduce" }
			i := slices.IndexFunc(profile.Calls, isAllreduce)
			// Each rank takes part in one, with an integer.
			if profile.Ranks != 4 || i < 0 || profile.Calls[i].Count != 4 || profile.Calls[i].Bytes != 16 || profile.Milliseconds < 4*15_000 {
				t.Errorf("the profile is %+v", profile)
			}
		})
	}
}

// TestProfileOfTheLatestRun: the profile of a job that runs mpirun twice is that of the second run, in which fewer ranks and workers take part.
func TestProfileOfTheLatestRun(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	job := openMPI(namespace, 2, "sh", "-c", "mpirun -n 4 ranks --sleep 5 && mpirun -n 2 ranks --sleep 15")
	job.Annotations = map[string]string{mpi.AnnotationProfile: "true"}
	create(t, job)
	profile := reported(t, kubeflow.Kind, namespace, "job", "the record of the job that ended has a profile", hasProfile).Status.Profile
	t.Logf("%+v", profile)
	i := slices.IndexFunc(profile.Calls, func(c v1alpha1.ProfileCall) bool { return c.Call == "MPI_Allreduce" })
	if profile.Ranks != 2 || profile.Runs != 2 || profile.Since == nil || i < 0 || profile.Calls[i].Count != 2 || profile.Milliseconds > 2*60_000 {
		t.Errorf("the profile is %+v", profile)
	}
}

// unbalancedProgram has all ranks wait for rank 1 in each of 12 steps.
const unbalancedProgram = `
import time
from mpi4py import MPI
comm = MPI.COMM_WORLD
for step in range(12):
    if comm.rank == 1:
        time.sleep(1)
    comm.allreduce(step)
    comm.Barrier()
`

// TestProfileOfAnUnbalancedProgram: the profile names the rank that the others wait for, for both kinds of jobs.
func TestProfileOfAnUnbalancedProgram(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("kubectl-odh-mpijob"); err != nil {
		t.Skip("SKIPPED: kubectl-odh-mpijob is not in PATH; make e2e puts it there")
	}
	for _, kind := range []string{kubeflow.Kind, trainjob.Kind} {
		t.Run(kind, func(t *testing.T) {
			// Ranks that wait use a CPU each.
			parallel(t, 3)
			namespace, name := newNamespace(t), "job"
			annotations := map[string]string{mpi.AnnotationProfile: "true"}
			if kind == kubeflow.Kind {
				job := openMPI(namespace, 3, "mpirun", "-n", "3", "--map-by", "node", "python3", "-c", unbalancedProgram)
				job.Annotations = annotations
				create(t, job)
			} else {
				needTrainer(t)
				runtimeIn(t, namespace, "mpi-openmpi")
				job := trainJob(t, namespace, fmt.Sprintf("{numNodes: 3, numProcPerNode: 1, command: [mpirun, -n, '3', python3, -c, %q]}", unbalancedProgram))
				job.SetAnnotations(annotations)
				createTrainJob(t, job)
				name = "pi"
			}
			profile := reported(t, kind, namespace, name, "the record of the job that ended has a profile", hasProfile).Status.Profile
			t.Logf("%+v", profile)
			if late := profile.LateRank; late == nil || late.Rank != 1 || late.WaitedMilliseconds < 3000 || profile.CommunicationPercent < 30 || profile.ImbalancePercent < 30 || len(profile.PerRank) != 3 {
				t.Errorf("rank 1 is not late in %+v", profile)
			}
			s := shell{t, namespace}
			s.run(0, []string{"3 ranks", "The others may wait for rank 1", "CALL", "MPI_", "RANK"}, "profile", name)
			s.run(0, []string{`"communicationPercent"`}, "profile", name, "-o", "json")
			s.run(0, []string{"Profile ", "wait for rank 1"}, "describe", name)
		})
	}
}

// TestProfileOfAProgramWithoutMPI: a job that asks for a profile and gets none succeeds, and says why.
func TestProfileOfAProgramWithoutMPI(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	job := openMPI(namespace, 1, "mpirun", "-n", "2", "sleep", "15")
	job.Annotations = map[string]string{mpi.AnnotationProfile: "true"}
	create(t, job)
	reported(t, kubeflow.Kind, namespace, "job", "the record of the job that ended says why it has no profile", func(status v1alpha1.JobReportStatus) error {
		isMissing := func(f v1alpha1.Finding) bool {
			return f.Code == codes.ProfileMissing && strings.Contains(f.Summary, "does not use MPI")
		}
		if status.Phase != v1alpha1.PhaseSucceeded || status.Profile != nil || !slices.ContainsFunc(status.Findings, isMissing) {
			return fmt.Errorf("it is %s, with the profile %+v and the findings %+v", status.Phase, status.Profile, status.Findings)
		}
		return nil
	})
}
