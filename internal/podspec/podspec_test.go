package podspec_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"

	"opendatahub.io/mpijob/internal/podspec"
)

// resources builds a list from pairs of names and quantities.
func resources(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

func container(requests, limits corev1.ResourceList) corev1.Container {
	return corev1.Container{Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits}}
}

func TestRequests(t *testing.T) {
	tests := map[string]struct {
		spec corev1.PodSpec
		want corev1.ResourceList
	}{
		"no containers": {want: resources()},
		"sum of containers": {
			spec: corev1.PodSpec{Containers: []corev1.Container{
				container(resources("cpu", "1", "memory", "1Gi"), nil), container(resources("cpu", "500m"), nil),
			}},
			want: resources("cpu", "1500m", "memory", "1Gi"),
		},
		"limit without a request": {
			spec: corev1.PodSpec{Containers: []corev1.Container{container(resources("cpu", "1"), resources("cpu", "2", "memory", "1Gi"))}},
			want: resources("cpu", "1", "memory", "1Gi"),
		},
		"init containers do not count": {
			spec: corev1.PodSpec{InitContainers: []corev1.Container{container(resources("cpu", "8"), nil)}},
			want: resources(),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, podspec.Requests(test.spec)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPodOf(t *testing.T) {
	template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		InitContainers: []corev1.Container{container(nil, resources("cpu", "1"))},
		Containers:     []corev1.Container{container(resources("cpu", "1"), resources("cpu", "2", "memory", "1Gi"))},
	}}
	template.Labels = map[string]string{"a": "b"}
	before := template.DeepCopy()
	pod := podspec.PodOf(template)
	if diff := cmp.Diff(resources("cpu", "1"), pod.Spec.InitContainers[0].Resources.Requests); diff != "" {
		t.Error("init container:", diff)
	}
	if diff := cmp.Diff(resources("cpu", "1", "memory", "1Gi"), pod.Spec.Containers[0].Resources.Requests); diff != "" {
		t.Error("container:", diff)
	}
	if pod.Labels["a"] != "b" {
		t.Errorf("labels are %v", pod.Labels)
	}
	if diff := cmp.Diff(*before, template); diff != "" {
		t.Error("the template was changed:", diff)
	}
}

func TestAdd(t *testing.T) {
	sum, each := resources("cpu", "500m"), resources("cpu", "250m", "memory", "1Gi")
	podspec.Add(sum, each, 1<<31)
	if got, want := sum, resources("cpu", "536870912500m", "memory", "2Ei"); !equality.Semantic.DeepEqual(got, want) {
		t.Errorf("the sum is %v, want %v", got, want)
	}
	if want := resources("cpu", "250m", "memory", "1Gi"); !equality.Semantic.DeepEqual(each, want) {
		t.Errorf("each is %v, want %v", each, want)
	}
}

func TestFillIn(t *testing.T) {
	if got := podspec.FillIn(nil, nil); got != nil {
		t.Errorf("nothing from nothing is %v", got)
	}
	if diff := cmp.Diff(resources("cpu", "1"), podspec.FillIn(nil, resources("cpu", "1"))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(resources("cpu", "1", "memory", "1Gi"), podspec.FillIn(resources("cpu", "1"), resources("cpu", "2", "memory", "1Gi"))); diff != "" {
		t.Error(diff)
	}
}

func TestGPUs(t *testing.T) {
	tests := map[string]struct {
		requests, limits corev1.ResourceList
		want             int64
	}{
		"none":                          {requests: resources("cpu", "8"), want: 0},
		"NVIDIA":                        {limits: resources("nvidia.com/gpu", "2"), want: 2},
		"AMD":                           {limits: resources("amd.com/gpu", "4"), want: 4},
		"Intel":                         {limits: resources("gpu.intel.com/i915", "1"), want: 1},
		"Gaudi":                         {limits: resources("habana.ai/gaudi", "8"), want: 8},
		"MIG slices":                    {limits: resources("nvidia.com/mig-1g.5gb", "3"), want: 3},
		"two kinds":                     {limits: resources("nvidia.com/gpu", "1", "nvidia.com/mig-1g.5gb", "2"), want: 3},
		"limit and request":             {requests: resources("nvidia.com/gpu", "2"), limits: resources("nvidia.com/gpu", "2"), want: 2},
		"request alone":                 {requests: resources("nvidia.com/gpu", "2"), want: 2},
		"a share of a GPU":              {limits: resources("gpu.intel.com/millicores", "500", "nvidia.com/gpumem", "4000"), want: 0},
		"MIG slices with media engines": {limits: resources("nvidia.com/mig-1g.10gb.me", "2"), want: 2},
		"time-sliced":                   {limits: resources("nvidia.com/gpu.shared", "2"), want: 2},
		"virtual GPUs":                  {limits: resources("volcano.sh/vgpu-number", "2", "volcano.sh/vgpu-memory", "8000", "volcano.sh/vgpu-cores", "50"), want: 2},
		"a GPU and its share":           {limits: resources("nvidia.com/gpu", "1", "nvidia.com/gpumem-percentage", "50", "nvidia.com/gpucores", "30"), want: 1},
		"GiB of GPU memory":             {limits: resources("aliyun.com/gpu-mem", "16"), want: 0},
		"monitoring":                    {limits: resources("gpu.intel.com/xe", "2", "gpu.intel.com/xe_monitoring", "1"), want: 2},
		"another accelerator":           {limits: resources("example.com/fpga", "1"), want: 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := podspec.GPUs(corev1.ResourceRequirements{Requests: test.requests, Limits: test.limits}); got != test.want {
				t.Errorf("%d GPUs, want %d", got, test.want)
			}
		})
	}
}

// TestPodGPUs: what a pod holds at any time counts.
func TestPodGPUs(t *testing.T) {
	gpus := func(n string) corev1.Container { return container(nil, resources("nvidia.com/gpu", n)) }
	sidecar := gpus("2")
	sidecar.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
	for name, test := range map[string]struct {
		inits, containers []corev1.Container
		want              int64
	}{
		"none":                    {want: 0},
		"containers":              {containers: []corev1.Container{gpus("1"), gpus("2")}, want: 3},
		"a larger init container": {inits: []corev1.Container{gpus("4")}, containers: []corev1.Container{gpus("1")}, want: 4},
		"a sidecar":               {inits: []corev1.Container{sidecar}, containers: []corev1.Container{gpus("1")}, want: 3},
		"an init container that a sidecar follows": {inits: []corev1.Container{gpus("2"), sidecar}, want: 2},
		"an init container that follows a sidecar": {inits: []corev1.Container{sidecar, gpus("2")}, want: 4},
	} {
		if got := podspec.PodGPUs(corev1.PodSpec{InitContainers: test.inits, Containers: test.containers}); got != test.want {
			t.Errorf("%s: %d GPUs, want %d", name, got, test.want)
		}
	}
}

// TestIsAccelerator: accelerators of any vendor count for limits, and no other resources do.
func TestIsAccelerator(t *testing.T) {
	for name, want := range map[corev1.ResourceName]bool{
		"nvidia.com/gpu": true, "amd.com/gpu": true, "gpu.intel.com/i915": true, "gpu.intel.com/xe": true, "habana.ai/gaudi": true,
		"nvidia.com/mig-1g.5gb": true, "nvidia.com/mig-1g.10gb.me": true, "nvidia.com/gpu.shared": true, "volcano.sh/vgpu-number": true,
		"huawei.com/Ascend910": true, "google.com/tpu": true, "aws.amazon.com/neuron": true, "aws.amazon.com/neuroncore": true, "aws.amazon.com/neurondevice": true,
		"cambricon.com/mlu": true, "furiosa.ai/npu": true, "graphcore.ai/ipu": true, "qualcomm.com/qaic": true, "example.com/fpga": true,
		"cpu": false, "memory": false, "hugepages-2Mi": false, "ephemeral-storage": false, "node.kubernetes.io/x": false, "kubernetes.io/batch-cpu": false,
		"rdma/hca_shared_devices_a": false, "vpc.amazonaws.com/efa": false, "vpc.amazonaws.com/pod-eni": false, "intel.com/intel_sriov_netdevice": false,
		"openshift.io/mlnxnics": false, "nvidia.com/hostdev": false, "networking.gke.io.networks/rdma-0": false, "example.com/roce": false, "example.com/dpdk-nic": false,
		"gpu.intel.com/millicores": false, "nvidia.com/gpumem": false, "nvidia.com/gpucores": false, "volcano.sh/vgpu-memory": false, "aliyun.com/gpu-mem": false,
		"gpu.intel.com/xe_monitoring": false, "devices.kubevirt.io/kvm": false, "sgx.intel.com/epc": false, "github.com/fuse": false,
		"management.workload.openshift.io/cores": false,
	} {
		if got := podspec.IsAccelerator(name); got != want {
			t.Errorf("%s is an accelerator: %t", name, got)
		}
	}
}

// TestPolicyCountsAccelerators: the API server counts by the same patterns.
func TestPolicyCountsAccelerators(t *testing.T) {
	text, err := os.ReadFile("../../config/webhook/limits.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{podspec.Accelerators, podspec.NoAccelerators} {
		if !strings.Contains(string(text), "matches('"+strings.ReplaceAll(pattern, `\`, `\\`)+"')") {
			t.Errorf("config/webhook/limits.yaml does not have %s", pattern)
		}
	}
}

// TestRequestsNothing: a pod requests nothing if no container does, and nothing else may.
func TestRequestsNothing(t *testing.T) {
	pod := func(change func(*corev1.PodSpec)) *corev1.Pod {
		spec := corev1.PodSpec{Containers: []corev1.Container{container(nil, nil), container(nil, nil)}}
		change(&spec)
		return podspec.PodOf(corev1.PodTemplateSpec{Spec: spec})
	}
	for name, test := range map[string]struct {
		change func(*corev1.PodSpec)
		want   bool
	}{
		"nothing":             {func(*corev1.PodSpec) {}, true},
		"one container":       {func(s *corev1.PodSpec) { s.Containers[1] = container(resources("cpu", "1m"), nil) }, false},
		"a limit":             {func(s *corev1.PodSpec) { s.Containers[0] = container(nil, resources("nvidia.com/gpu", "1")) }, false},
		"0":                   {func(s *corev1.PodSpec) { s.Containers[0] = container(resources("cpu", "0"), nil) }, false},
		"an init container":   {func(s *corev1.PodSpec) { s.InitContainers = []corev1.Container{container(resources("cpu", "1"), nil)} }, false},
		"the pod as a whole":  {func(s *corev1.PodSpec) { s.Resources = &corev1.ResourceRequirements{Requests: resources("cpu", "1")} }, false},
		"a limit of the pod":  {func(s *corev1.PodSpec) { s.Resources = &corev1.ResourceRequirements{Limits: resources("cpu", "1")} }, false},
		"a runtime class":     {func(s *corev1.PodSpec) { s.RuntimeClassName = new("kata") }, false},
		"a claim of a device": {func(s *corev1.PodSpec) { s.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu"}} }, false},
	} {
		if got := podspec.RequestsNothing(pod(test.change)); got != test.want {
			t.Errorf("%s: got %t, want %t", name, got, test.want)
		}
	}
}
