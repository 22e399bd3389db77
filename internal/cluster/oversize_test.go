package cluster

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"opendatahub.io/mpijob/internal/mpi"
)

// TestOversized: the error for pods that no node can hold names the field, the figures and the largest node.
func TestOversized(t *testing.T) {
	container := func(requests, limits string) corev1.Container {
		of := corev1.Container{}
		if requests != "" {
			of.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(requests)}
		}
		if limits != "" {
			of.Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(limits)}
		}
		return of
	}
	memory := func(size string) corev1.Container {
		return corev1.Container{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(size)}}}
	}
	device := corev1.Container{Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}}}
	gpuRequest := device
	gpuRequest.Resources.Requests = device.Resources.Limits
	hca := corev1.Container{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"rdma/hca": resource.MustParse("1")}}}
	tests := map[string]struct {
		role       mpi.Role
		containers []corev1.Container
		isPerNode  bool
		selector   map[string]string
		wantError  string
		rdma       mpi.RDMA
		wantWarned string
	}{
		"it fits": {containers: []corev1.Container{container("4", "")}},
		"requests": {
			containers: []corev1.Container{container("1", ""), container("512", "600")},
			wantError: `template.spec.containers[1].resources.requests[cpu]: Invalid value: "512": each worker requests 513 of cpu in total, and of 2 nodes that it may run on, ` +
				`the largest (b) has 8 of cpu; request at most that, or ask the cluster administrator for larger nodes`,
		},
		"the launcher": {
			role: mpi.RoleLauncher, containers: []corev1.Container{container("16", "")},
			wantError: `template.spec.containers[0].resources.requests[cpu]: Invalid value: "16": the launcher requests 16 of cpu in total, and of 2 nodes`,
		},
		"memory in figures that can be read": {
			containers: []corev1.Container{memory("4Ti")},
			wantError:  `template.spec.containers[0].resources.requests[memory]: Invalid value: "4Ti": each worker requests 4Ti of memory in total, and of 2 nodes that it may run on, the largest (a) has 23987Mi of memory;`,
		},
		"a TrainJob": {
			containers: []corev1.Container{container("512", "")}, isPerNode: true,
			wantError: `template.resourcesPerNode.requests[cpu]: Invalid value: "512": each worker requests 512 of cpu`,
		},
		"what no template contains": {
			containers: []corev1.Container{{}},
			wantError:  `template.spec.containers: Forbidden: each worker requests 99 of cpu in total`,
		},
		"no node with such a label":      {containers: []corev1.Container{container("1", "")}, selector: map[string]string{"gpu": "h100"}, wantWarned: "template: none of the cluster's 2 nodes matches the node selector"},
		"a device that no node has, yet": {containers: []corev1.Container{gpuRequest}, wantWarned: "template: no node that the pod may run on offers nvidia.com/gpu"},
		"RDMA that no node has": {
			containers: []corev1.Container{hca},
			wantWarned: "template: no node that the pod may run on offers rdma/hca; set metadata.annotations[mpi.opendatahub.io/rdma] to optional to run over TCP if no node offers RDMA",
		},
		"RDMA of a job that cannot do without": {containers: []corev1.Container{hca}, rdma: mpi.RDMA{Fixed: true}, wantWarned: "template: no node that the pod may run on offers rdma/hca"},
	}
	nodes := []corev1.Node{*aNode("a", 4), *aNode("b", 8)}
	for i := range nodes {
		nodes[i].Status.Allocatable[corev1.ResourcePods] = resource.MustParse("110")
		nodes[i].Status.Allocatable[corev1.ResourceMemory] = resource.MustParse("24563412Ki")
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: test.containers, NodeSelector: test.selector}}
			if test.role == "" {
				test.role = mpi.RoleWorker
			}
			p := newProbe(test.role, 1, template, field.NewPath("template"))
			if test.isPerNode {
				p.containers, p.isPerNode = p.at.Child("resourcesPerNode"), true
			}
			pod := &corev1.Pod{Spec: *template.Spec.DeepCopy()}
			if strings.HasPrefix(name, "what no template") {
				// A LimitRange or a webhook adds it.
				pod.Spec.Containers[0] = container("99", "")
			}
			err, warned := p.oversized(pod, nodes, test.rdma)
			if got := errorText(err); !strings.HasPrefix(got, test.wantError) || test.wantError == "" && got != "" {
				t.Errorf("the error is\n%s\nwant\n%s", got, test.wantError)
			}
			if !strings.HasPrefix(warned, test.wantWarned) || test.wantWarned == "" && warned != "" {
				t.Errorf("the warning is\n%s\nwant\n%s", warned, test.wantWarned)
			}
		})
	}
}

func errorText(err *field.Error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestCrowded: workers each of which fits, but not all of them at once, are a warning with the figures.
func TestCrowded(t *testing.T) {
	nodes := []corev1.Node{*aNode("a", 4), *aNode("b", 8)}
	for i := range nodes {
		nodes[i].Status.Allocatable[corev1.ResourcePods] = resource.MustParse("10")
	}
	for name, test := range map[string]struct {
		cpu   string
		count int32
		nodes []corev1.Node
		want  string
	}{
		"they fit":               {"4", 3, nodes, ""},
		"fractions fit":          {"0.4", 20, nodes, ""},
		"one too many":           {"4", 4, nodes, "template: the job needs 4 workers, and the cluster's 2 nodes that they may run on hold at most 3 at once, even if nothing else runs there."},
		"no room between":        {"3", 4, nodes, "template: the job needs 4 workers, and the cluster's 2 nodes that they may run on hold at most 3 at once"},
		"too many for the nodes": {"1n", 21, nodes, "template: the job needs 21 workers, and the cluster's 2 nodes that they may run on hold at most 20 at once"},
		"no node is known":       {"4", 4, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			container := corev1.Container{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(test.cpu)}}}
			template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{container}}}
			got := newProbe(mpi.RoleWorker, test.count, template, field.NewPath("template")).crowded(&corev1.Pod{Spec: template.Spec}, test.nodes)
			if !strings.HasPrefix(got, test.want) || test.want == "" && got != "" {
				t.Errorf("the warning is\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}
