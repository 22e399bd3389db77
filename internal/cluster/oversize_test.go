package cluster

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/quota"
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

// TestCrowded: pods each of which fits on a node, but not all of them at once, are a warning with the figures.
func TestCrowded(t *testing.T) {
	nodes := []corev1.Node{*aNode("a", 4), *aNode("b", 8)}
	for i := range nodes {
		nodes[i].Status.Allocatable[corev1.ResourcePods] = resource.MustParse("10")
		nodes[i].Labels = map[string]string{"zone": nodes[i].Name}
	}
	for name, test := range map[string]struct {
		launcher, cpu string
		count         int32
		nodes         []corev1.Node
		change        func(*mpi.Job)
		want          string
	}{
		"they fit":               {launcher: "1m", cpu: "3", count: 3, nodes: nodes},
		"fractions fit":          {launcher: "0.4", cpu: "0.4", count: 19, nodes: nodes},
		"one too many":           {launcher: "0", cpu: "4", count: 4, nodes: nodes, want: "template: Only 4 of 5 pods fit on the cluster's 2 nodes, even if it is empty: each worker requests 4 of cpu. Use fewer or smaller workers, or add nodes. Until then, the job waits"},
		"no room between":        {launcher: "0", cpu: "3", count: 4, nodes: nodes, want: "template: Only 4 of 5 pods fit on the cluster's 2 nodes"},
		"too many for the nodes": {launcher: "0", cpu: "1m", count: 20, nodes: nodes, want: "template: Only 20 of 21 pods fit on the cluster's 2 nodes, even if it is empty: each worker requests 1 of pods."},
		"the launcher besides":   {launcher: "4", cpu: "4", count: 3, nodes: nodes, want: "template: Only 3 of 4 pods fit on the cluster's 2 nodes, even if it is empty: each worker requests 4 of cpu."},
		"enough of them fit":     {launcher: "4", cpu: "4", count: 3, nodes: nodes, change: func(j *mpi.Job) { j.Gang.MinAvailable = new(int32(3)) }},
		"not in one zone":        {launcher: "1", cpu: "3", count: 3, nodes: nodes, change: func(j *mpi.Job) { j.Topology = mpi.Topology{Key: "zone", Required: true} }, want: "template: Only 3 of 4 pods fit on the cluster's 2 nodes, even if it is empty: all pods must run on nodes with the same zone, of which b has room for the most;"},
		"not in one of Kueue's domains": {
			launcher: "1", cpu: "3", count: 3, nodes: nodes, change: func(j *mpi.Job) {
				j.Queue = "team"
				for _, template := range []*corev1.PodTemplateSpec{&j.Launcher.Template, &j.Workers.Template} {
					template.Annotations = map[string]string{"kueue.x-k8s.io/podset-required-topology": "zone", "kueue.x-k8s.io/podset-group-name": "all"}
				}
			},
			want: "template: Only 3 of 4 pods fit on the cluster's 2 nodes, even if it is empty: all pods must run on nodes with the same zone, of which b has room for the most;",
		},
		"no node is known": {launcher: "4", cpu: "4", count: 4},
	} {
		t.Run(name, func(t *testing.T) {
			pod := func(cpu string) *corev1.Pod {
				requests := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
				return &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: requests}}}}}
			}
			job := mpitest.Job(test.count)
			job.Fields.WorkerTemplate = field.NewPath("template")
			if test.change != nil {
				test.change(&job)
			}
			got := crowded(job, []quota.Pods{{Role: mpi.RoleLauncher, Count: 1, Pod: pod(test.launcher)}, {Role: mpi.RoleWorker, Count: int64(test.count), Pod: pod(test.cpu)}}, test.nodes)
			if !strings.HasPrefix(got, test.want) || test.want == "" && got != "" {
				t.Errorf("the warning is\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}
