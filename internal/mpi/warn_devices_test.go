package mpi_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

func TestWarnDevices(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		slots           int32
		variable, value string
		want            string
	}{
		"one of two":            {2, "CUDA_VISIBLE_DEVICES", "0", "worker.spec.containers[0].env[1]: CUDA_VISIBLE_DEVICES=0 shows 1 device to the 2 ranks of each pod"},
		"two of four":           {4, "ROCR_VISIBLE_DEVICES", "0, 1", "shows 2 devices to the 4 ranks of each pod: a rank that takes the device of its local rank finds none; list 4 devices"},
		"by name":               {2, "CUDA_VISIBLE_DEVICES", "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6", "shows 1 device"},
		"tiles":                 {3, "ZE_AFFINITY_MASK", "0.0,0.1", "shows 2 devices"},
		"HIP":                   {2, "HIP_VISIBLE_DEVICES", "1", "HIP_VISIBLE_DEVICES=1"},
		"enough":                {2, "CUDA_VISIBLE_DEVICES", "0,1", ""},
		"one rank":              {1, "CUDA_VISIBLE_DEVICES", "0", ""},
		"no GPU on purpose":     {2, "CUDA_VISIBLE_DEVICES", "-1", ""},
		"none":                  {2, "CUDA_VISIBLE_DEVICES", "", ""},
		"a reference":           {2, "CUDA_VISIBLE_DEVICES", "$(DEVICES)", ""},
		"NVIDIA's own, for all": {2, "NVIDIA_VISIBLE_DEVICES", "0", ""},
	} {
		job := mpitest.Job(2, func(j *mpi.Job) {
			j.SlotsPerWorker = test.slots
			j.Fields.LauncherTemplate, j.Fields.WorkerTemplate = field.NewPath("launcher"), field.NewPath("worker")
			j.Workers.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "0"}, {Name: test.variable, Value: test.value}}
		})
		var got []string
		for _, warning := range mpi.Warnings(job) {
			if strings.Contains(warning, "_VISIBLE_DEVICES") || strings.Contains(warning, "ZE_AFFINITY_MASK") {
				got = append(got, warning)
			}
		}
		if text := strings.Join(got, "\n"); !strings.Contains(text, test.want) || test.want == "" && text != "" || len(got) > 1 {
			t.Errorf("%s: warns %q, want %q", name, text, test.want)
		}
	}
}
