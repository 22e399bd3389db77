package jobs

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestChangeGPUs: the number of GPUs is changed where the job requests them, whoever made them.
func TestChangeGPUs(t *testing.T) {
	t.Parallel()
	for limits, test := range map[string]struct{ want, wrong string }{
		"{cpu: 1}":                                  {want: `nvidia.com/gpu: "4"`},
		"{nvidia.com/gpu: 1}":                       {want: `nvidia.com/gpu: "4"`},
		"{amd.com/gpu: 1}":                          {want: `amd.com/gpu: "4"`},
		"{habana.ai/gaudi: 8}":                      {want: `habana.ai/gaudi: "4"`},
		"{nvidia.com/mig-1g.5gb: 2}":                {want: `nvidia.com/mig-1g.5gb: "4"`},
		"{nvidia.com/gpu: 1, nvidia.com/gpumem: 9}": {want: `nvidia.com/gpu: "4"`},
		"{nvidia.com/gpu: 1, amd.com/gpu: 1}":       {wrong: "several kinds of GPUs (amd.com/gpu, nvidia.com/gpu)"},
	} {
		job := object(t, `{apiVersion: kubeflow.org/v2beta1, kind: MPIJob, metadata: {name: pi}, spec: {mpiReplicaSpecs: {
			Launcher: {template: {spec: {containers: [{name: a, image: i}]}}},
			Worker: {replicas: 2, template: {spec: {containers: [{name: a, image: i, resources: {limits: `+limits+`}}]}}}}}}`)
		err := applyText(job, "gpu=4")
		text, _ := yaml.Marshal(job.Object)
		switch {
		case test.wrong != "":
			if err == nil || !strings.Contains(err.Error(), test.wrong) {
				t.Errorf("%s: the error is %v, want %q", limits, err, test.wrong)
			}
		case err != nil:
			t.Errorf("%s: %v", limits, err)
		case strings.Count(string(text), `"4"`) != 1 || !strings.Contains(string(text), test.want):
			t.Errorf("%s became\n%s", limits, text)
		}
	}
}
