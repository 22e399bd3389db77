package dashboard

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/jobs"
)

// jobOf returns the job of a manifest, in namespace lab.
func jobOf(t *testing.T, manifest string) jobs.Job {
	t.Helper()
	var object unstructured.Unstructured
	if err := yaml.Unmarshal([]byte(manifest), &object.Object); err != nil {
		t.Fatal(err)
	}
	object.SetNamespace("lab")
	object.SetName("train")
	return jobs.FromObject(&object)
}

const (
	largeMPIJob = `{apiVersion: kubeflow.org/v2beta1, kind: MPIJob, spec: {mpiReplicaSpecs: {
  Launcher: {template: {spec: {containers: [{name: launcher, image: solver, resources: {requests: {cpu: 100m, memory: 128Mi}}}]}}},
  Worker: {replicas: 16, template: {spec: {containers: [{name: worker, image: solver, resources: {requests: {cpu: 8}, limits: {memory: 32Gi, nvidia.com/gpu: 2, rdma/hca: 1}}}]}}}}}}`
	hugeMPIJob = `{apiVersion: kubeflow.org/v2beta1, kind: MPIJob, spec: {mpiReplicaSpecs: {
  Launcher: {template: {spec: {containers: [{name: launcher, image: solver}]}}},
  Worker: {replicas: 2147483647, template: {spec: {containers: [{name: worker, image: solver, resources: {requests: {cpu: 1}}}]}}}}}}`
)

func TestTotalOfAJob(t *testing.T) {
	reported := jobOf(t, `{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, spec: {runtimeRef: {name: mpi}, trainer: {numNodes: 2}}}`)
	reported.Report = &v1alpha1.JobReport{Status: v1alpha1.JobReportStatus{
		Workers: v1alpha1.WorkersStatus{Wanted: 2},
		Run:     &v1alpha1.Run{Requests: corev1.ResourceList{"cpu": resource.MustParse("500m")}, Limits: corev1.ResourceList{"memory": resource.MustParse("1Gi")}},
	}}
	deleted := jobs.Job{Kind: "MPIJob", Report: reported.Report}
	for name, test := range map[string]struct {
		job  jobs.Job
		want string
	}{
		"all pods": {jobOf(t, largeMPIJob), "16 workers and the launcher: 128.1 CPUs, 512.1 GiB of memory, 32 GPUs, 16 rdma/hca"},
		"a TrainJob's own resources": {
			jobOf(t, `{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, spec: {runtimeRef: {name: mpi}, trainer: {numNodes: 4, resourcesPerNode: {requests: {cpu: 250m}, limits: {nvidia.com/gpu: 1}}}}}`),
			"4 workers: 1 CPU, 4 GPUs",
		},
		"a runtime's, from the report": {reported, "2 workers: 1 CPU, 2 GiB of memory"},
		"a deleted job's":              {deleted, "2 workers: 1 CPU, 2 GiB of memory"},
		"unknown":                      {jobOf(t, `{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, spec: {runtimeRef: {name: mpi}}}`), ""},
		"no requests":                  {jobOf(t, `{apiVersion: kubeflow.org/v2beta1, kind: MPIJob, spec: {mpiReplicaSpecs: {Launcher: {template: {spec: {containers: [{name: l, image: x}]}}}}}}`), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := totalText(test.job); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
	// A hostile number of workers takes no time.
	if got := totalText(jobOf(t, hugeMPIJob)); strings.Contains(got, "-") {
		t.Errorf("of too many workers: %q", got)
	}
}

func TestAmountsReadAsPeopleWriteThem(t *testing.T) {
	for _, test := range []struct {
		resource     corev1.ResourceName
		amount, want string
	}{
		{"cpu", "8100m", "8.1"},
		{"cpu", "50m", "0.05"},
		{"cpu", "16", "16"},
		{"memory", "16512Mi", "16.1 GiB"},
		{"memory", "128Mi", "128 MiB"},
		{"memory", "2Ti", "2 TiB"},
		{"memory", "512", "512 B"},
		{"nvidia.com/gpu", "32", "32"},
	} {
		if got := amountText(test.resource, resource.MustParse(test.amount)); got != test.want {
			t.Errorf("%s of %s is %q, want %q", test.amount, test.resource, got, test.want)
		}
	}
}
