package e2e

import (
	"errors"
	"strings"
	"testing"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
)

// reachManyHosts has mpirun start its daemons on 130 hosts, by a program that only counts how often it is called.
const reachManyHosts = `
printf '#!/bin/sh\necho called >> /tmp/reached\nexit 1\n' > /tmp/reach
chmod +x /tmp/reach
for n in $(seq 130); do echo "10.255.0.$n slots=1"; done > /tmp/hosts
OMPI_MCA_plm_rsh_agent=/tmp/reach PRTE_MCA_plm_ssh_agent=/tmp/reach mpirun --hostfile /tmp/hosts -n 130 --map-by node true
echo "called $(cat /tmp/reached | wc -l) times"
`

// TestManyHosts: Open MPI 4 and 5 reach out to more hosts than the 128 at which they give up by default, if their daemons stay attached. As
// an MPIJob and as a TrainJob.
func TestManyHosts(t *testing.T) {
	t.Parallel()
	for _, sample := range []string{"openmpi", "openmpi5"} {
		check := func(t *testing.T, text string) {
			t.Helper()
			if !strings.Contains(text, " times") || strings.Contains(text, "called 0 times") || strings.Contains(text, "concurrent daemons") {
				t.Errorf("mpirun does not reach out to 130 hosts: %s", text)
			}
		}
		t.Run(sample, func(t *testing.T) {
			parallel(t, 2)
			job := agentJob(newNamespace(t), "job", sample, mpiOf(sample), 1, "sh", "-c", reachManyHosts)
			create(t, job)
			reported(t, kubeflow.Kind, job.Namespace, job.Name, "it ends", isOver)
			check(t, output(t, job))
		})
		t.Run(sample+", TrainJob", func(t *testing.T) {
			parallel(t, 2)
			job := agentJob(newNamespace(t), "job", sample, mpiOf(sample), 1, "sh", "-c", reachManyHosts)
			object := asTrainJob(t, job)
			createTrainJob(t, object)
			reported(t, trainjob.Kind, object.GetNamespace(), object.GetName(), "it ends", isOver)
			check(t, printed(t, object))
		})
	}
}

// isOver returns an error until a report says that its job has ended.
func isOver(status v1alpha1.JobReportStatus) error {
	if status.CompletionTime == nil {
		return errors.New("it has not")
	}
	return nil
}
