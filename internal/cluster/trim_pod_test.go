package cluster_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/internal/cluster"
	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/mpi"
)

// TestCachedPods: cached pods have the host that they are, and those of initializers what decides whether they start.
func TestCachedPods(t *testing.T) {
	t.Parallel()
	pod := func(name string) *corev1.Pod {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{mpi.LabelJobSetJob: name}},
			Spec: corev1.PodSpec{
				Hostname: "pi-" + name + "-0-0", SchedulerName: "volcano", Volumes: []corev1.Volume{{Name: "data"}},
				Containers: []corev1.Container{{Name: name, Image: "registry/train", Env: []corev1.EnvVar{{Name: "TOKEN", Value: "hunter2"}}}},
			},
		}
		cluster.AsCached(logs.Masker{}, pod)
		return pod
	}
	if spec := pod("node").Spec; spec.Hostname != "pi-node-0-0" || len(spec.Containers) > 0 || len(spec.Volumes) > 0 {
		t.Errorf("a worker has %+v", spec)
	}
	spec := pod("dataset-initializer").Spec
	if spec.Hostname == "" || spec.SchedulerName != "volcano" || len(spec.Volumes) != 1 || len(spec.Containers) != 1 || spec.Containers[0].Image != "registry/train" {
		t.Errorf("an initializer has %+v", spec)
	}
	if len(spec.Containers) > 0 && len(spec.Containers[0].Env) > 0 {
		t.Errorf("an initializer's environment is cached: %+v", spec.Containers[0].Env)
	}
}
