package cluster_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"opendatahub.io/mpijob/internal/cluster"
	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/mpitest"
)

// TestNodesOfATime: jobs share the nodes that were read, but none sees nodes as they were before a time that it names.
func TestNodesOfATime(t *testing.T) {
	const gpu = corev1.ResourceName("example.com/gpu")
	now := time.Date(2026, 11, 28, 3, 34, 38, 0, time.UTC)
	clock := clocktesting.NewFakePassiveClock(now)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	api := mpitest.FakeAPI().WithObjects(node).WithStatusSubresource(node).Build()
	gatherer := cluster.NewGatherer(api, nil, logs.Masker{}, clock)
	gpus := func(notBefore time.Time) int64 {
		t.Helper()
		nodes := gatherer.Nodes(t.Context(), notBefore)
		if len(nodes) != 1 {
			t.Fatalf("%d nodes, want 1", len(nodes))
		}
		have := nodes[0].Allocatable[gpu]
		return have.Value()
	}
	if n := gpus(time.Time{}); n != 0 {
		t.Fatalf("%d GPUs before the node has any", n)
	}
	node.Status.Allocatable = corev1.ResourceList{gpu: resource.MustParse("4")}
	if err := api.Status().Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	clock.SetTime(now.Add(5 * time.Second))
	if n := gpus(now); n != 0 {
		t.Errorf("%d GPUs: the nodes are read again after 5 s", n)
	}
	if n := gpus(now.Add(2 * time.Second)); n != 4 {
		t.Errorf("%d GPUs for a job that waits since after the nodes were read, want 4", n)
	}
}
