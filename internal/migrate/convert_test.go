package migrate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func TestConvert(t *testing.T) {
	t.Parallel()
	const old = `{apiVersion: kubeflow.org/v1, kind: MPIJob, metadata: {name: old}, spec: {mpiReplicaSpecs: {Launcher: {template: {spec: {containers: [{name: l, image: mine, command: [mpirun, pi]}]}}}, Worker: {replicas: 3, template: {spec: {containers: [{name: w, image: mine, command: [sleep, 365d]}]}}}}}}`
	const sageMaker = `{TrainingJobName: own, AlgorithmSpecification: {TrainingImage: mine}, HyperParameters: {sagemaker_mpi_enabled: "true", sagemaker_program: a.py}, ResourceConfig: {InstanceType: ml.m5.large, InstanceCount: 2}}`
	v2beta1 := strings.Replace(old, "kubeflow.org/v1", "kubeflow.org/v2beta1", 1)
	for name, test := range map[string]struct {
		object string
		to     Target
		// want are the kinds and API versions of the steps, then the target or the error.
		want string
	}{
		"an old MPIJob":                    {old, "", "MPIJob kubeflow.org/v2beta1, v2beta1"},
		"an old MPIJob, to a TrainJob":     {old, TrainJob, "MPIJob kubeflow.org/v2beta1, TrainJob trainer.kubeflow.org/v1alpha1, trainjob"},
		"an MPIJob":                        {v2beta1, "", "TrainJob trainer.kubeflow.org/v1alpha1, trainjob"},
		"an MPIJob, to what it is":         {v2beta1, V2beta1, "it is already an MPIJob of v2beta1"},
		"a job of SageMaker":               {sageMaker, "", "TrainJob trainer.kubeflow.org/v1alpha1, trainjob"},
		"a job of SageMaker, to an MPIJob": {sageMaker, V2beta1, "MPIJob kubeflow.org/v2beta1, v2beta1"},
		"another kind":                     {"{apiVersion: v1, kind: Pod}", "", `apiVersion "v1", kind "Pod" is neither an MPIJob nor a SageMaker training job`},
		"an error in the first step":       {strings.Replace(old, "replicas: 3", "replicas: x", 1), TrainJob, "errors"},
	} {
		var object map[string]any
		if err := yaml.Unmarshal([]byte(test.object), &object); err != nil {
			t.Fatal(err)
		}
		c, err := Convert(object, test.to, Options{})
		var parts []string
		for _, step := range c.Steps {
			parts = append(parts, fmt.Sprint(step.Object["kind"], " ", step.Object["apiVersion"]))
		}
		got := strings.Join(append(parts, string(c.Target)), ", ")
		switch {
		case err != nil:
			got = err.Error()
		case len(c.Errors) > 0:
			if got = "errors"; c.Object() != nil {
				t.Errorf("%s: there is a new job in spite of %v", name, c.Errors)
			}
		case c.Object()["kind"] != c.Steps[len(c.Steps)-1].Object["kind"]:
			t.Errorf("%s: the new job is %v", name, c.Object())
		}
		if got != test.want {
			t.Errorf("%s: %s, want %s (%v)", name, got, test.want, c.Errors)
		}
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": " ", "own": "own ", "TrainingRuntime/own": "own TrainingRuntime", "clustertrainingruntime/own": "own ", "pod/own": "unknown",
	} {
		ref, known := ParseRuntime(text)
		got := ref.Name + " " + ref.Kind
		if !known {
			got = "unknown"
		}
		if got != want {
			t.Errorf("the runtime %q is %q, want %q", text, got, want)
		}
	}
	for text, want := range map[string][2]bool{
		"": {false, true}, "v2.1": {true, true}, "2.1.3": {true, true}, "v2.10": {false, true}, "v2.3": {false, true}, "new": {false, false}, "v1.9": {false, false},
	} {
		if overrides, known := ParseTrainer(text); [2]bool{overrides, known} != want {
			t.Errorf("Trainer %q: %t, %t, want %v", text, overrides, known, want)
		}
	}
	for name, test := range map[string]struct {
		cpu, memory string
		devices     int64
		want        *Instance
		known       bool
	}{
		"none":          {known: true},
		"all":           {"96", "1152Gi", 8, &Instance{CPUs: 96, MemoryGiB: 1152, Devices: 8, Device: "gpu"}, true},
		"no GPUs":       {"2", "4Gi", 0, &Instance{CPUs: 2, MemoryGiB: 4, Device: "gpu"}, true},
		"no memory":     {cpu: "2"},
		"no quantity":   {cpu: "many", memory: "4Gi"},
		"too small":     {cpu: "1", memory: "4Mi"},
		"negative GPUs": {cpu: "1", memory: "4Gi", devices: -1},
		"only GPUs":     {devices: 1},
	} {
		got, known := ParseInstance(test.cpu, test.memory, test.devices, "gpu")
		if diff := cmp.Diff(test.want, got); diff != "" || known != test.known {
			t.Errorf("%s: %t (-want +got)\n%s", name, known, diff)
		}
	}
}
