package gang_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"opendatahub.io/mpijob/internal/gang"
)

// TestOversized: which pods no node can hold, and how that is told.
func TestOversized(t *testing.T) {
	node := func(name, sizes string, change ...func(*corev1.Node)) corev1.Node {
		node := corev1.Node{}
		node.Name = name
		var cpu, gpu string
		if n, _ := fmt.Sscan(sizes, &cpu, &gpu); n > 0 {
			node.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourcePods: resource.MustParse("110")}
		}
		if gpu != "" {
			node.Status.Allocatable["nvidia.com/gpu"] = resource.MustParse(gpu)
		}
		for _, c := range change {
			c(&node)
		}
		return node
	}
	tainted := func(key string) func(*corev1.Node) {
		return func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: key, Effect: corev1.TaintEffectNoSchedule}}
		}
	}
	labelled := func(n *corev1.Node) { n.Labels = map[string]string{"pool": "big"} }
	tests := map[string]struct {
		cpu, gpu string
		selector map[string]string
		nodes    []corev1.Node
		want     string
	}{
		"one node can":                         {cpu: "4", nodes: []corev1.Node{node("a", "2"), node("b", "4")}, want: "fits"},
		"none can":                             {cpu: "8", nodes: []corev1.Node{node("b", "2"), node("a", "4"), node("c", "4")}, want: "a, 3 of 3 nodes: cpu 8 of 4"},
		"no node":                              {cpu: "8", want: "fits"},
		"a node that is being added":           {cpu: "8", nodes: []corev1.Node{node("a", "")}, want: "fits"},
		"a node that is not ready":             {cpu: "4", nodes: []corev1.Node{node("a", "4", tainted("node.kubernetes.io/not-ready"))}, want: "fits"},
		"a larger node for others":             {cpu: "8", nodes: []corev1.Node{node("a", "4"), node("big", "64", tainted("team"))}, want: "a, 1 of 2 nodes: cpu 8 of 4"},
		"no node that it may run on":           {cpu: "1", selector: map[string]string{"pool": "big"}, nodes: []corev1.Node{node("a", "4")}, want: ", 0 of 1 nodes:"},
		"the nodes of its selector":            {cpu: "8", selector: map[string]string{"pool": "big"}, nodes: []corev1.Node{node("a", "64"), node("b", "4", labelled)}, want: "b, 1 of 2 nodes: cpu 8 of 4"},
		"a device that no node has":            {cpu: "1", gpu: "1", nodes: []corev1.Node{node("a", "4")}, want: "a, 1 of 1 nodes: nvidia.com/gpu 1 of 0 absent"},
		"a device whose driver is being added": {cpu: "1", gpu: "1", nodes: []corev1.Node{node("a", "4 0")}, want: "a, 1 of 1 nodes: nvidia.com/gpu 1 of 0 absent"},
		"too many devices":                     {cpu: "1", gpu: "16", nodes: []corev1.Node{node("a", "64 4"), node("b", "64 8")}, want: "b, 2 of 2 nodes: nvidia.com/gpu 16 of 8"},
		"each on another node":                 {cpu: "32", gpu: "8", nodes: []corev1.Node{node("a", "64 1"), node("b", "2 8")}, want: "a, 2 of 2 nodes: nvidia.com/gpu 8 of 1"},
		"the node that is short of least":      {cpu: "32", gpu: "8", nodes: []corev1.Node{node("a", "2 1"), node("b", "2 8")}, want: "b, 2 of 2 nodes: cpu 32 of 2"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: corev1.PodSpec{NodeSelector: test.selector, Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(test.cpu)},
			}}}}}
			if test.gpu != "" {
				pod.Spec.Containers[0].Resources.Requests["nvidia.com/gpu"] = resource.MustParse(test.gpu)
			}
			got := "fits"
			if found := gang.Oversized(pod, test.nodes); found != nil {
				got = fmt.Sprintf("%s, %d of %d nodes:", found.Node, found.Eligible, found.Nodes)
				for _, short := range found.Short {
					got += fmt.Sprintf(" %s %s of %s", short.Name, short.Requested.String(), short.Have.String())
				}
				if found.Absent {
					got += " absent"
				}
			}
			if got != test.want {
				t.Errorf("it is %q, want %q", got, test.want)
			}
		})
	}
}
