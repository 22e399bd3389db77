package cluster_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"opendatahub.io/mpijob/internal/cluster"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

// TestConnectionsThatSetPath: they are evidence if a program was not found, and are not read otherwise.
func TestConnectionsThatSetPath(t *testing.T) {
	t.Parallel()
	secret := func(name, key string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Data: map[string][]byte{key: []byte("/opt/tools")}}
	}
	live := mpitest.FakeAPI().WithObjects(secret("data", "AWS_S3_BUCKET"), secret("tools", "PATH")).Build()
	job := mpitest.Job(1, func(j *mpi.Job) {
		j.Connections = []string{"data", "tools", "missing"}
		j.Launcher.Template.Spec.Containers = nil // no log is read
	})
	for code, want := range map[int32][]string{127: {"tools"}, 1: nil} {
		seen := jobstate.Observed{LauncherPods: []*corev1.Pod{mpitest.LauncherPod(job, 0, corev1.PodFailed, mpitest.Exited(code, "Error"))}}
		evidence := cluster.NewGatherer(live, nil, logs.Masker{}, clock.RealClock{}).Gather(t.Context(), job, seen, nil)
		if !slices.Equal(evidence.PathFrom, want) {
			t.Errorf("exit code %d: %v, want %v", code, evidence.PathFrom, want)
		}
	}
}
