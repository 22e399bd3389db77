package mpijob

import (
	"os"
	"path/filepath"
	"testing"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/plan"
)

// FuzzMPIJob takes any object through conversion, validation, judgement and planning: nothing in a specification
// makes the operator panic.
func FuzzMPIJob(f *testing.F) {
	samples, err := filepath.Glob(filepath.Join("..", "..", "..", "config", "samples", "*.yaml"))
	if err != nil || len(samples) == 0 {
		f.Fatalf("no samples: %v", err)
	}
	for _, sample := range samples {
		data, err := os.ReadFile(sample)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, seed := range []string{
		"{}", "spec: {mpiReplicaSpecs: {Launcher: null, Worker: {}}}", "spec: {mpiReplicaSpecs: {Launcher: {template: {spec: {containers: [{}]}}}, Worker: {replicas: 2147483647}}}",
		"spec: {slotsPerWorker: -2147483648, runPolicy: {suspend: true, ttlSecondsAfterFinished: -1}, mpiReplicaSpecs: {Master: {}}}",
		"status: {conditions: [{type: Failed, status: 'True'}]}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var object kubeflow.MPIJob
		if yaml.Unmarshal(data, &object) != nil {
			return
		}
		job, errs := Kind{}.Convert(&object)
		errs = append(errs, mpi.Validate(job)...)
		mpi.Warnings(job)
		Kind{}.Change(&object, &object)
		out := jobstate.Invalid(errs)
		if len(errs) == 0 {
			seen := jobstate.Observed{Now: mpitest.Now}
			out = jobstate.Judge(job, seen)
			if job.Workers.Count > 1000 {
				return // as good as a thousand
			}
			plan.For(job, seen, out, plan.Settings{})
		}
		if next, _ := status(&object, out, mpitest.Now); next != nil {
			if again, events := status(next.(*kubeflow.MPIJob), out, mpitest.Now); again != nil || events != nil {
				t.Errorf("the same outcome was written twice, with events %v", events)
			}
		}
	})
}
