package mpi_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

func TestParseRDMA(t *testing.T) {
	for text, want := range map[string]bool{"optional": true, "required": false} {
		if got, errs := mpi.ParseRDMA(map[string]string{mpi.AnnotationRDMA: text}); got != want || len(errs) > 0 {
			t.Errorf("%q: %v %v, want %v", text, got, errs, want)
		}
	}
	if got, errs := mpi.ParseRDMA(nil); !got || len(errs) > 0 {
		t.Errorf("without the annotation: %v %v", got, errs)
	}
	for _, text := range []string{"", "true", "Optional", "never"} {
		got, errs := mpi.ParseRDMA(map[string]string{mpi.AnnotationRDMA: text})
		if !got || len(errs) != 1 || !strings.Contains(errs[0].Error(), `metadata.annotations[mpi.opendatahub.io/rdma]: Unsupported value: "`+text+`": supported values: "required", "optional"`) {
			t.Errorf("%q: %v %v", text, got, errs)
		}
	}
}

func offered(of ...string) corev1.ResourceList {
	all := corev1.ResourceList{}
	for _, entry := range of {
		name, value, _ := strings.Cut(entry, "=")
		all[corev1.ResourceName(name)] = resource.MustParse(value)
	}
	return all
}

func TestLacksRDMA(t *testing.T) {
	cpu := offered("cpu=8")
	for name, test := range map[string]struct {
		launcher, worker corev1.ResourceList
		offers           []corev1.ResourceList
		want             bool
	}{
		"offered":                    {worker: offered("rdma/hca=1"), offers: []corev1.ResourceList{cpu, offered("cpu=8", "rdma/hca=1")}},
		"not offered":                {worker: offered("rdma/hca=1"), offers: []corev1.ResourceList{cpu, cpu}, want: true},
		"a plug-in without devices":  {worker: offered("rdma/hca=1"), offers: []corev1.ResourceList{offered("rdma/hca=0")}, want: true},
		"too few on each":            {worker: offered("rdma/hca=2"), offers: []corev1.ResourceList{offered("rdma/hca=1"), offered("rdma/hca=1")}, want: true},
		"under another name":         {worker: offered("rdma/hca=1"), offers: []corev1.ResourceList{offered("rdma/hca_shared=8")}, want: true},
		"one of two":                 {worker: offered("rdma/a=1", "rdma/b=1"), offers: []corev1.ResourceList{offered("rdma/a=1")}, want: true},
		"for the launcher":           {launcher: offered("vpc.amazonaws.com/efa=1"), worker: cpu, offers: []corev1.ResourceList{cpu}, want: true},
		"not requested":              {worker: offered("nvidia.com/gpu=1"), offers: []corev1.ResourceList{cpu}},
		"requests of zero":           {worker: offered("rdma/hca=0"), offers: []corev1.ResourceList{cpu}},
		"the nodes are not known":    {worker: offered("rdma/hca=1")},
		"other devices are not RDMA": {worker: offered("example.com/fpga=1"), offers: []corev1.ResourceList{cpu}},
	} {
		t.Run(name, func(t *testing.T) {
			job := mpitest.Job(2)
			job.Launcher.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: test.launcher}
			job.Workers.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: test.worker}
			if got := mpi.LacksRDMA(job.PodSpecs(), test.offers); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// TestWithoutRDMA: every request for RDMA is removed from all containers, and the job that was given stays as it is.
func TestWithoutRDMA(t *testing.T) {
	job := mpitest.Job(2)
	worker := &job.Workers.Template.Spec
	worker.Containers[0].Resources = corev1.ResourceRequirements{Limits: offered("cpu=2", "rdma/hca=1"), Requests: offered("cpu=1", "rdma/hca=1", "openshift.io/mlx5_rdma=1")}
	worker.InitContainers = []corev1.Container{{Name: "init", Resources: corev1.ResourceRequirements{Limits: offered("rdma/hca=1")}}}
	before := job.Workers.Template.DeepCopy()
	got := job.WithoutRDMA()
	if diff := cmp.Diff([]corev1.ResourceName{"openshift.io/mlx5_rdma", "rdma/hca"}, got.RDMA.Removed); diff != "" {
		t.Errorf("removed (-want +got):\n%s", diff)
	}
	want := before.DeepCopy()
	want.Spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: offered("cpu=2"), Requests: offered("cpu=1")}
	want.Spec.InitContainers[0].Resources.Limits = corev1.ResourceList{}
	if diff := cmp.Diff(*want, got.Workers.Template); diff != "" {
		t.Errorf("the worker (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(*before, job.Workers.Template); diff != "" {
		t.Errorf("the job before has changed (-want +got):\n%s", diff)
	}
	if labels := got.PodLabels(mpi.RoleWorker); labels[mpi.LabelWithoutRDMA] != "true" || job.PodLabels(mpi.RoleWorker)[mpi.LabelWithoutRDMA] != "" {
		t.Errorf("its pods have the labels %v", labels)
	}
	if text := mpi.ResourceNames(got.RDMA.Removed); text != "openshift.io/mlx5_rdma and rdma/hca" {
		t.Errorf("the text is %q", text)
	}
}

// TestStripRDMA: requests for RDMA are removed from the fields of jobs of both kinds and added again, with whatever was changed since.
func TestStripRDMA(t *testing.T) {
	for name, test := range map[string]struct{ job, stripped string }{
		"MPIJob": {
			`{"spec":{"mpiReplicaSpecs":{"Worker":{"template":{"spec":{"containers":[{"name":"a","resources":{"limits":{"cpu":"1","rdma/hca":"1"},"requests":{"rdma/hca":1}}},{"name":"b"}]}}}}}}`,
			`{"spec":{"mpiReplicaSpecs":{"Worker":{"template":{"spec":{"containers":[{"name":"a","resources":{"limits":{"cpu":"1"}}},{"name":"b"}]}}}}}}`,
		},
		"TrainJob": {
			`{"spec":{"trainer":{"resourcesPerNode":{"limits":{"openshift.io/mlx5_rdma":"2"}},"env":[{"name":"rdma/hca","value":"1"}]}}}`,
			`{"spec":{"trainer":{"resourcesPerNode":{},"env":[{"name":"rdma/hca","value":"1"}]}}}`,
		},
		"none": {`{"spec":{"trainer":{"numNodes":2}}}`, `{"spec":{"trainer":{"numNodes":2}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			read := func(text string) (object map[string]any) {
				if err := json.Unmarshal([]byte(text), &object); err != nil {
					t.Fatal(err)
				}
				return object
			}
			job := read(test.job)
			removed := mpi.StripRDMA(job)
			if diff := cmp.Diff(read(test.stripped), job); diff != "" {
				t.Errorf("it is (-want +got):\n%s", diff)
			}
			value, err := mpi.WithRemovedRDMA(removed, mpi.StripRDMA(job))
			if err != nil || (value == "") != (len(removed) == 0) {
				t.Fatalf("the annotation is %q (%v)", value, err)
			}
			mpi.RestoreRDMA(job, mpi.RemovedRDMA(map[string]string{mpi.AnnotationRemovedRDMA: value}))
			if diff := cmp.Diff(read(test.job), job); diff != "" {
				t.Errorf("it is restored as (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRemovedRDMA: an annotation that a user has written restores nothing but requests for RDMA, and only where the fields are.
func TestRemovedRDMA(t *testing.T) {
	for _, text := range []string{
		"", "x", "{}", "[1]", `[{"op":"remove","path":"/spec/a/limits/rdma~1hca","value":"1"}]`, `[{"op":"add","path":"/metadata/a/limits/rdma~1hca","value":"1"}]`,
		`[{"op":"add","path":"/spec/a/limits/cpu","value":"1"}]`, `[{"op":"add","path":"/spec/a/labels/rdma~1hca","value":"1"}]`, `[{"op":"add","path":"","value":"1"}]`,
		`[{"op":"add","path":"/spec/a/limits/rdma~1hca","value":{"x":1}}]`,
		"[" + strings.Repeat(`{"op":"add","path":"/spec/a/limits/rdma~1hca","value":"1"},`, 100) + `{"op":"add","path":"/spec/a/limits/rdma~1hca","value":"1"}]`,
	} {
		if got := mpi.RemovedRDMA(map[string]string{mpi.AnnotationRemovedRDMA: text}); len(got) > 0 {
			t.Errorf("%.80s: read as %v", text, got)
		}
	}
	job := map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"limits": map[string]any{"rdma/hca": "4"}}}}}
	mpi.RestoreRDMA(job, mpi.RemovedRDMA(map[string]string{mpi.AnnotationRemovedRDMA: `[
{"op":"add","path":"/spec/containers/0/limits/rdma~1hca","value":"1"},{"op":"add","path":"/spec/containers/1/limits/rdma~1hca","value":"1"},
{"op":"add","path":"/spec/containers/-1/limits/rdma~1hca","value":"1"},{"op":"add","path":"/spec/other/a/limits/rdma~1hca","value":"1"}]`}))
	want := map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"limits": map[string]any{"rdma/hca": "4"}}}}}
	if diff := cmp.Diff(want, job); diff != "" {
		t.Errorf("it is restored as (-want +got):\n%s", diff)
	}
}
