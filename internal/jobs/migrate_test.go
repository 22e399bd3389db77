package jobs

import (
	"strings"
	"testing"

	"opendatahub.io/mpijob/internal/migrate"
)

// TestMigrate: the limits of the runtime in the cluster count, whatever the job is converted from.
func TestMigrate(t *testing.T) {
	t.Parallel()
	small := object(t, `{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainingRuntime, metadata: {name: small, annotations: {mpi.opendatahub.io/mpi-implementation: OpenMPI, mpi.opendatahub.io/max-workers: "2"}},
  spec: {mlPolicy: {mpi: {}}, template: {spec: {replicatedJobs: [{name: launcher, template: {metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}, spec: {template: {spec: {containers: [{name: node, image: x}]}}}}}, {name: node, template: {spec: {template: {spec: {containers: [{name: node, image: x}]}}}}}]}}}}`)
	const mpiJob = `{apiVersion: kubeflow.org/VERSION, kind: MPIJob, metadata: {name: pi}, spec: {mpiReplicaSpecs: {Launcher: {template: {spec: {containers: [{name: l, image: mine, command: [mpirun, pi]}]}}}, Worker: {replicas: 3, template: {spec: {containers: [{name: w, image: mine}]}}}}}}`
	const sageMaker = `{TrainingJobName: own, AlgorithmSpecification: {TrainingImage: mine}, HyperParameters: {sagemaker_mpi_enabled: "true", sagemaker_program: a.py}, ResourceConfig: {InstanceType: ml.m5.large, InstanceCount: 3}}`
	c, s := newServer(t, small)
	for name, test := range map[string]struct {
		object  string
		to      migrate.Target
		runtime string
		// limited is set if the runtime does not allow the job.
		limited bool
	}{
		"an MPIJob":                    {strings.Replace(mpiJob, "VERSION", "v2beta1", 1), "", "trainingruntime/small", true},
		"an MPIJob of an old version":  {strings.Replace(mpiJob, "VERSION", "v1", 1), migrate.TrainJob, "trainingruntime/small", true},
		"a job of SageMaker":           {sageMaker, "", "trainingruntime/small", true},
		"to an MPIJob":                 {sageMaker, migrate.V2beta1, "trainingruntime/small", false},
		"a runtime that is not there":  {sageMaker, "", "other", false},
		"to an MPIJob of this version": {strings.Replace(mpiJob, "VERSION", "v1", 1), "", "", false},
	} {
		runtime, _ := migrate.ParseRuntime(test.runtime)
		converted, err := c.Migrate(t.Context(), "ns", parsed(t, test.object).Object, test.to, migrate.Options{Runtime: runtime})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		text := ""
		if err := converted.Errors.ToAggregate(); err != nil {
			text = err.Error()
		}
		if test.limited != strings.Contains(text, "must be at most 2") || !test.limited && text != "" {
			t.Errorf("%s: errors %q", name, text)
		}
	}
	s.refuse = func(verb, kind string) error {
		if verb == "get" && strings.Contains(kind, "Runtime") {
			return forbidden(kind)
		}
		return nil
	}
	if _, err := c.Migrate(t.Context(), "ns", parsed(t, strings.Replace(mpiJob, "VERSION", "v2beta1", 1)).Object, "", migrate.Options{}); err == nil {
		t.Error("a runtime that the user may not read is no error")
	}
	if _, err := c.Migrate(t.Context(), "ns", map[string]any{"kind": "Pod"}, "", migrate.Options{}); err == nil {
		t.Error("a Pod is converted")
	}
}
