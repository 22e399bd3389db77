package mpi_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

func TestParseTopology(t *testing.T) {
	const zone = "topology.kubernetes.io/zone"
	tests := map[string]struct {
		annotations map[string]string
		want        mpi.Topology
		wrong       string
	}{
		"none":      {},
		"required":  {annotations: map[string]string{mpi.AnnotationRequiredTopology: zone}, want: mpi.Topology{Key: zone, Required: true}},
		"preferred": {annotations: map[string]string{mpi.AnnotationPreferredTopology: "rack"}, want: mpi.Topology{Key: "rack"}},
		"both":      {annotations: map[string]string{mpi.AnnotationRequiredTopology: zone, mpi.AnnotationPreferredTopology: zone}, wrong: "cannot be combined with"},
		"empty":     {annotations: map[string]string{mpi.AnnotationRequiredTopology: ""}, wrong: "must be the key of a node label"},
		"no key":    {annotations: map[string]string{mpi.AnnotationPreferredTopology: "zone=a"}, wrong: "must be the key of a node label"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, errs := mpi.ParseTopology(test.annotations)
			if got != test.want || (len(errs) > 0) != (test.wrong != "") || len(errs) > 0 && !strings.Contains(errs[0].Error(), test.wrong) {
				t.Errorf("it is %+v with %v", got, errs)
			}
		})
	}
}

func TestWithTopologyAffinity(t *testing.T) {
	job := mpitest.Job(2)
	if got := job.WithTopologyAffinity(nil, nil); got != nil {
		t.Errorf("without a topology there is %v", got)
	}
	job.Topology = mpi.Topology{Key: "rack"}
	own := &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}, PodAffinity: &corev1.PodAffinity{}}
	got := job.WithTopologyAffinity(own, nil)
	if len(got.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution) != 1 || got.NodeAffinity == nil {
		t.Errorf("it becomes %v", got)
	}
	if len(own.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution) != 0 {
		t.Error("what the user wrote was changed")
	}
	if got := job.WithTopologyAffinity(own, map[string]string{"kueue.x-k8s.io/podset-required-topology": "rack"}); got != own {
		t.Errorf("although Kueue chooses the nodes it becomes %v", got)
	}
}

// TestWithKueueTopology: a job's own topology gives way to that which its pods require from Kueue.
func TestWithKueueTopology(t *testing.T) {
	const required, group = "kueue.x-k8s.io/podset-required-topology", "kueue.x-k8s.io/podset-group-name"
	tests := map[string]struct {
		launcher, workers map[string]string
		want              mpi.Topology
		alone             bool
	}{
		"none":                   {want: mpi.Topology{Key: "zone"}},
		"the workers":            {workers: map[string]string{required: "rack"}, want: mpi.Topology{Key: "rack", Required: true}, alone: true},
		"preferred":              {workers: map[string]string{"kueue.x-k8s.io/podset-preferred-topology": "rack"}},
		"all pods":               {launcher: map[string]string{required: "rack", group: "a"}, workers: map[string]string{required: "rack", group: "a"}, want: mpi.Topology{Key: "rack", Required: true}},
		"each in one, not alike": {launcher: map[string]string{required: "rack"}, workers: map[string]string{required: "rack"}, want: mpi.Topology{Key: "rack", Required: true}, alone: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			job := mpitest.Job(2, func(j *mpi.Job) {
				j.Topology = mpi.Topology{Key: "zone"}
				j.Launcher.Template.Annotations, j.Workers.Template.Annotations = test.launcher, test.workers
			})
			if got := job.WithKueueTopology(); got.Topology != test.want || got.Launcher.None != test.alone {
				t.Errorf("it is %+v, without a launcher: %t", got.Topology, got.Launcher.None)
			}
		})
	}
}
