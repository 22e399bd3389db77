package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/kinds/mpijob"
)

// TestNoWorkers: a job of a launcher alone runs its ranks there, with each MPI.
func TestNoWorkers(t *testing.T) {
	t.Parallel()
	for _, used := range implementations {
		t.Run(used.sample, func(t *testing.T) {
			t.Parallel()
			job := agentJob(newNamespace(t), "job", used.sample, used.implementation, 1, used.mpirun, "-n", "1", "ranks")
			delete(job.Spec.MPIReplicaSpecs, kubeflow.MPIReplicaTypeWorker)
			create(t, job)
			waitFor(t, job, "it succeeds", succeeded)
			if text := output(t, job); !strings.Contains(text, "rank 0 of 1 on job-launcher") {
				t.Errorf("it prints %q", text)
			}
		})
	}
}

// TestLongNames: names up to the limit of host names work, although Open MPI 4 has a buffer of 50 bytes for their letters.
func TestLongNames(t *testing.T) {
	t.Parallel()
	for _, letters := range []int{42, 43, 48, 54} {
		t.Run(fmt.Sprint(letters), func(t *testing.T) {
			parallel(t, 2)
			job := openMPI(newNamespace(t), 2, "mpirun", "-n", "4", "ranks")
			job.Name = strings.Repeat("a", letters)
			create(t, job)
			waitFor(t, job, "it succeeds", succeeded)
		})
	}
}

// TestCrashLoopIsNotRunning: between two attempts a job is not Running, and its status counts them.
func TestCrashLoopIsNotRunning(t *testing.T) {
	t.Parallel()
	job := openMPI(newNamespace(t), 1, "sh", "-c", "sleep 1; exit 7")
	job.Spec.RunPolicy.BackoffLimit, job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeLauncher].RestartPolicy = nil, ""
	create(t, job)
	eventually(t, "it is not running in its second back-off", time.Minute, func() error {
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(job), job); err != nil {
			return err
		}
		running := condition(job, kubeflow.JobRunning)
		if running.Status != "False" || running.Reason != codes.CrashLoop || !strings.Contains(running.Message, "exited with code 7 in attempt 3 of 6") {
			return fmt.Errorf("it is %+v", running)
		}
		return nil
	})
	report := reported(t, (mpijob.Kind{}).Name(), job.Namespace, job.Name, "its report has the attempts", func(status v1alpha1.JobReportStatus) error {
		if status.Phase == v1alpha1.PhaseRunning || len(status.Findings) == 0 || status.Findings[0].Code != codes.ApplicationFailed {
			return fmt.Errorf("it is %s with %+v", status.Phase, status.Findings)
		}
		return nil
	})
	attempts := 0
	for _, entry := range report.Status.Timeline {
		if strings.Contains(entry.Detail, "The previous one ended: ApplicationFailed, exit code 7.") {
			attempts++
		}
	}
	if attempts < 2 {
		t.Errorf("the timeline is %+v", report.Status.Timeline)
	}
}
