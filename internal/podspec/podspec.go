// Package podspec computes what the pods of a template request.
package podspec

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	helpers "k8s.io/component-helpers/resource"
)

// Requests returns the sum of the requests of a pod's containers. A limit counts as a request if the container has no
// request of that resource, as in the API server. Init containers do not count, because they end before the others run.
func Requests(spec corev1.PodSpec) corev1.ResourceList {
	sum := corev1.ResourceList{}
	for _, c := range spec.Containers {
		for name, quantity := range c.Resources.Limits {
			if _, found := c.Resources.Requests[name]; !found {
				add(sum, name, quantity.DeepCopy())
			}
		}
		for name, quantity := range c.Resources.Requests {
			add(sum, name, quantity.DeepCopy())
		}
	}
	return sum
}

// Held returns what a pod holds of its node, as kube-scheduler counts it: with the requests that the API server or others have added,
// sidecars, and the overhead of its runtime class. A pod without its containers has them in its Resources, devices included. The list
// must not be changed.
func Held(pod *corev1.Pod) corev1.ResourceList {
	if len(pod.Spec.Containers) == 0 && pod.Spec.Resources != nil {
		return pod.Spec.Resources.Requests
	}
	list := helpers.PodRequests(pod, helpers.PodResourcesOptions{UseStatusResources: true})
	if pod.Spec.Resources != nil {
		for name, quantity := range pod.Spec.Resources.Requests {
			if !helpers.IsSupportedPodLevelResource(name) {
				list[name] = quantity
			}
		}
	}
	return list
}

// RequestsNothing reports whether a pod requests no resource, not even an amount of 0. It returns false if its runtime class may add requests, or if it
// claims devices in another way.
func RequestsNothing(pod *corev1.Pod) bool {
	spec := &pod.Spec
	if spec.RuntimeClassName != nil || len(spec.ResourceClaims) > 0 || spec.Resources != nil && len(spec.Resources.Limits) > 0 {
		return false
	}
	return len(helpers.PodRequests(pod, helpers.PodResourcesOptions{})) == 0
}

// Text returns resources as a text, such as "cpu 2, memory 1Gi", or "no requests".
func Text(list corev1.ResourceList) string {
	parts := make([]string, 0, len(list))
	for _, name := range slices.Sorted(maps.Keys(list)) {
		quantity := list[name]
		parts = append(parts, string(name)+" "+quantity.String())
	}
	return cmp.Or(strings.Join(parts, ", "), "no requests")
}

// PodOf returns a pod of a template. Its containers request their limits where they set no request, as in the API server.
func PodOf(template corev1.PodTemplateSpec) *corev1.Pod {
	copied := template.DeepCopy()
	pod := &corev1.Pod{ObjectMeta: copied.ObjectMeta, Spec: copied.Spec}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			list[i].Resources.Requests = FillIn(list[i].Resources.Requests, list[i].Resources.Limits)
		}
	}
	return pod
}

// FillIn adds the resources that list lacks from another list, and returns it. If list is nil it creates one.
func FillIn(list, from corev1.ResourceList) corev1.ResourceList {
	for name, quantity := range from {
		if _, set := list[name]; !set {
			if list == nil {
				list = corev1.ResourceList{}
			}
			list[name] = quantity
		}
	}
	return list
}

// GPUs returns how many GPUs a container requests; limits count first, as for all extended resources.
func GPUs(r corev1.ResourceRequirements) int64 { return countOf(r, IsGPU) }

func countOf(r corev1.ResourceRequirements, counts func(corev1.ResourceName) bool) (count int64) {
	for _, list := range []corev1.ResourceList{r.Limits, r.Requests} {
		for name, quantity := range list {
			if counts(name) {
				count += quantity.Value()
			}
		}
		if count > 0 {
			return count
		}
	}
	return 0
}

// PodGPUs returns how many GPUs a pod requests: those of its containers, or of an init container that requests more. An init container that
// goes on counts with those that start after it.
func PodGPUs(spec corev1.PodSpec) int64 { return podCount(spec, IsGPU) }

// PodAccelerators returns how many GPUs and other accelerators a pod requests, as PodGPUs does.
func PodAccelerators(spec corev1.PodSpec) int64 { return podCount(spec, IsAccelerator) }

func podCount(spec corev1.PodSpec, counts func(corev1.ResourceName) bool) int64 {
	var sidecars, first, main int64
	for _, c := range spec.InitContainers {
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			sidecars += countOf(c.Resources, counts)
		} else {
			first = max(first, sidecars+countOf(c.Resources, counts))
		}
	}
	for _, c := range spec.Containers {
		main += countOf(c.Resources, counts)
	}
	return max(sidecars+main, first)
}

// IsGPU reports whether a resource counts GPUs, MIG slices or similar accelerators: those with "gpu" in their name, as
// Kubeflow Trainer counts them, and nvidia.com/mig-* and habana.ai/gaudi. Resources that measure a share of a GPU, or only
// give access to monitor it, do not count.
func IsGPU(name corev1.ResourceName) bool {
	lower := strings.ToLower(string(name))
	_, device, _ := strings.Cut(lower, "/")
	if slices.ContainsFunc(partsOfGPUs, func(part string) bool { return strings.Contains(device, part) }) && !strings.HasPrefix(device, "mig-") {
		return false
	}
	return strings.Contains(lower, "gpu") || strings.HasPrefix(lower, "nvidia.com/mig-") || lower == "habana.ai/gaudi"
}

// The names of resources, in lower case, that count as accelerators for limits. The API server compares the same patterns
// (config/webhook/limits.yaml).
const (
	// Accelerators matches those that count although NoAccelerators matches: MIG slices, and AWS Neuron's cores.
	Accelerators = `^nvidia\.com/mig-|/neuron`
	// NoAccelerators matches resources of Kubernetes itself, networks, devices of virtual machines, enclaves, files, and shares of GPUs.
	NoAccelerators = `^[^/]*$|^([^/]+\.)?kubernetes\.io/|rdma|/hca|infiniband|roce|/ib_|/efa|sriov|network|netdev|hostdev|mlnx|mellanox|[/_-]nic|nics$|` +
		`^(openshift\.io|vpc\.amazonaws\.com|devices\.kubevirt\.io|sgx\.intel\.com|qat\.intel\.com|smarter-devices)/|/(fuse|kvm|tun)$|` +
		`/.*(mem|core|tiles|percent|ratio|monitoring)`
)

var accelerators, noAccelerators = regexp.MustCompile(Accelerators), regexp.MustCompile(NoAccelerators)

// IsAccelerator reports whether a resource counts for the limit of GPUs of a runtime or a namespace: GPUs and other accelerators of any
// vendor. Unknown devices count, because a limit that misses a vendor's accelerators is none.
func IsAccelerator(name corev1.ResourceName) bool {
	lower := strings.ToLower(string(name))
	return accelerators.MatchString(lower) || !noAccelerators.MatchString(lower)
}

// IsRDMA reports whether a resource is a device for RDMA, or a network that has it, by the names of device plugins and
// clouds. Other names that administrators choose are unknown.
func IsRDMA(name corev1.ResourceName) bool {
	lower := strings.ToLower(string(name))
	if !strings.Contains(lower, "/") {
		return false
	}
	return slices.ContainsFunc([]string{"rdma", "/hca", "infiniband", "roce", "/ib_", "/efa"}, func(part string) bool { return strings.Contains(lower, part) })
}

// partsOfGPUs are in the names of resources that do not count devices: those of Intel's plug-in (memory.max, millicores, tiles,
// i915_monitoring), HAMi (gpumem, gpumem-percentage, gpucores), Volcano (vgpu-memory, vgpu-cores), Alibaba (gpu-mem) and
// Koordinator (gpu-core, gpu-memory-ratio).
var partsOfGPUs = []string{"mem", "core", "tiles", "percent", "ratio", "monitoring"}

// Add adds to a sum what several pods request that request the same.
func Add(sum, each corev1.ResourceList, pods int64) {
	for name, quantity := range each {
		all := quantity.DeepCopy()
		all.Mul(pods)
		add(sum, name, all)
	}
}

func add(sum corev1.ResourceList, name corev1.ResourceName, quantity resource.Quantity) {
	quantity.Add(sum[name])
	sum[name] = quantity
}
