package operator_test

import (
	"fmt"
	"strings"
	"testing"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/mpitest"
)

// TestRunIsRecorded: what a job ran is still known when the job is gone, without the secrets in its command.
func TestRunIsRecorded(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	guarded(t, namespace)
	eventually(t, "a job is created, with its creator", func() error {
		job := mpitest.MPIJob(namespace, 2, func(job *kubeflow.MPIJob) {
			launcher := &job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeLauncher].Template.Spec.Containers[0]
			launcher.Command, launcher.Args = []string{"mpirun", "train"}, []string{"--password", "hunter2hunter2"}
			job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Template.Spec.Containers[0].Resources.Limits = amounts("cpu=2 nvidia.com/gpu=1")
		})
		if err := as(t, "ada").Create(t.Context(), job); err != nil {
			return err
		}
		if len(job.Annotations) == 0 {
			_ = api.Delete(t.Context(), job)
			return fmt.Errorf("the webhook has not seen it")
		}
		return nil
	})
	recorded := func() error {
		var list v1alpha1.JobReportList
		if err := api.List(t.Context(), &list, client.InNamespace(namespace)); err != nil {
			return err
		}
		for _, report := range list.Items {
			run := report.Status.Run
			if run != nil && run.Creator == "ada" && strings.HasPrefix(run.Command, "mpirun train --password ") && !strings.Contains(run.Command, "hunter2") &&
				run.Image != "" && run.Limits.Cpu().String() == "2" {
				return nil
			}
		}
		return fmt.Errorf("the reports are %+v", list.Items)
	}
	eventually(t, "the report contains what it runs", recorded)
	if err := api.Delete(t.Context(), get(t, namespace, "pi", &kubeflow.MPIJob{})); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it still does when the job is gone", recorded)
}
