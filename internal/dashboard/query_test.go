package dashboard_test

import (
	"fmt"
	"testing"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"opendatahub.io/mpijob/api/v1alpha1"
)

func TestListPagesSortsAndFilters(t *testing.T) {
	needsServer(t)
	user := caller{t, namespace(t, "pages", "user")["user"]}
	for i := range 7 {
		job := mpiJob(t, "pages", fmt.Sprintf("job-%d", i), func(job *kubeflow.MPIJob) {
			job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Replicas = new(7 - int32(i))
			job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Template.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("2")}
		})
		phase := v1alpha1.PhaseRunning
		if i%2 == 1 {
			phase = v1alpha1.PhaseFailed
		}
		report(t, job, v1alpha1.JobReportStatus{Phase: phase, Workers: v1alpha1.WorkersStatus{Wanted: 7 - int32(i)}, Findings: []v1alpha1.Finding{{Code: "OutOfMemory", Severity: "Error"}}})
	}
	eventually(t, "all jobs and reports are listed", func() bool {
		return get[jobList](user, "jobs?namespace=pages&phase=Running,Failed").Total == 7
	})
	for query, want := range map[string]string{
		"sort=name&size=3":            "job-0 job-1 job-2",
		"sort=name&size=3&page=3":     "job-6",
		"sort=name&size=3&page=9":     "",
		"sort=-name&size=2":           "job-6 job-5",
		"sort=workers&size=2":         "job-6 job-5",
		"sort=-gpus&size=1":           "job-0",
		"sort=name&phase=Failed":      "job-1 job-3 job-5",
		"q=JOB-3":                     "job-3",
		"q=outofmem&size=1&sort=name": "job-0",
		"framework=PyTorch":           "",
	} {
		if got := names(get[jobList](user, "jobs?namespace=pages&"+query)); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	list := get[jobList](user, "jobs?namespace=pages&phase=Failed&sort=name")
	if list.Total != 3 || list.Facets["phase"]["Running"] != 4 || list.Rows[0].GPUs != 12 || list.Rows[0].Framework != "MPI" {
		t.Errorf("the list is %+v", list)
	}
}
