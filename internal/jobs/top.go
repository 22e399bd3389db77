package jobs

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"opendatahub.io/mpijob/internal/podspec"
)

// PodMetrics is the kind in which the metrics server reports the usage of a pod's containers.
var PodMetrics = schema.GroupVersionKind{Group: "metrics.k8s.io", Version: "v1beta1", Kind: "PodMetrics"}

// Load is the current usage and the requests of a running pod, or of all running pods of a job.
type Load struct {
	// CPU and Memory are the usage in cores and bytes, CPURequest and MemoryRequest what was requested.
	CPU, Memory, CPURequest, MemoryRequest resource.Quantity
	// GPUs is the number of requested GPUs.
	GPUs int64
	// GPUUse is how many of them were busy: the sum of their utilizations, 1 for a GPU that is fully used. It is nil if the
	// cluster has no metric of it.
	GPUUse *float64
	// Measured is false if the metrics server has no figures yet; CPU and Memory are then zero.
	Measured bool
}

// Add adds a load to another.
func (l *Load) Add(other Load) {
	l.CPU.Add(other.CPU)
	l.Memory.Add(other.Memory)
	l.CPURequest.Add(other.CPURequest)
	l.MemoryRequest.Add(other.MemoryRequest)
	l.GPUs += other.GPUs
	if other.GPUUse != nil {
		l.GPUUse = new(ptr.Deref(l.GPUUse, 0) + *other.GPUUse)
	}
	l.Measured = l.Measured || other.Measured
}

// PodLoad is the load of a pod.
type PodLoad struct {
	Pod string
	// Ranks and Node are those of the job's report; empty if unknown.
	Ranks, Node string
	Load
}

// JobLoad is the load of a job.
type JobLoad struct {
	Job Job
	// Pods is the number of running pods.
	Pods int
	Load
}

// LoadSorts are the values that loads can be sorted by.
func LoadSorts() []string { return []string{"name", "cpu", "memory"} }

// MeasurePods returns the loads of a job's running pods, sorted by a value of LoadSorts; name is the order of the report. It
// fails with NoMetricsError if the cluster has no metrics server.
func (c *Client) MeasurePods(ctx context.Context, job Job, sortBy string) ([]PodLoad, error) {
	loads, err := c.loads(ctx, job.Namespace, labels.SelectorFromSet(job.PodLabels()))
	if err != nil {
		return nil, err
	}
	var measured []PodLoad
	for _, pod := range job.Status().Pods {
		if load, runs := loads[types.NamespacedName{Namespace: job.Namespace, Name: pod.Name}]; runs {
			measured = append(measured, PodLoad{Pod: pod.Name, Ranks: pod.Ranks, Node: pod.Node, Load: load})
		}
	}
	sortLoads(measured, sortBy, func(l PodLoad) Load { return l.Load })
	return measured, nil
}

// MeasureJobs returns the loads of jobs that have running pods, sorted by a value of LoadSorts. It fails with NoMetricsError
// if the cluster has no metrics server.
func (c *Client) MeasureJobs(ctx context.Context, namespace string, jobs []Job, sortBy string) ([]JobLoad, error) {
	loads, err := c.loads(ctx, namespace, nil)
	if err != nil {
		return nil, err
	}
	var measured []JobLoad
	for _, job := range jobs {
		if sum := sumLoads(job, loads); sum.Pods > 0 {
			measured = append(measured, sum)
		}
	}
	sortLoads(measured, sortBy, func(l JobLoad) Load { return l.Load })
	return measured, nil
}

// sumLoads adds up the loads of a job's pods.
func sumLoads(job Job, loads map[types.NamespacedName]Load) JobLoad {
	sum := JobLoad{Job: job}
	for _, pod := range job.Status().Pods {
		if load, runs := loads[types.NamespacedName{Namespace: job.Namespace, Name: pod.Name}]; runs {
			sum.Add(load)
			sum.Pods++
		}
	}
	return sum
}

// sortLoads sorts by usage, the highest first. By name, the order is kept.
func sortLoads[L any](loads []L, by string, of func(L) Load) {
	slices.SortStableFunc(loads, func(a, b L) int {
		first, second := of(a), of(b)
		switch by {
		case "cpu":
			return second.CPU.Cmp(first.CPU)
		case "memory":
			return second.Memory.Cmp(first.Memory)
		}
		return 0
	})
}

// PodUsage returns the current usage of a job's pods by their names, without requests. Pods without figures are missing. It
// fails with NoMetricsError if the cluster has no metrics server.
func (c *Client) PodUsage(ctx context.Context, job Job) (map[string]Load, error) {
	usage, err := c.usage(ctx, job.Namespace, labels.SelectorFromSet(job.PodLabels()))
	if err != nil {
		return nil, err
	}
	byName := make(map[string]Load, len(usage))
	for key, load := range usage {
		byName[key.Name] = load
	}
	return byName, nil
}

// usage reads the usage of the pods in a namespace (empty: in all).
func (c *Client) usage(ctx context.Context, namespace string, selector labels.Selector) (map[types.NamespacedName]Load, error) {
	usage := map[types.NamespacedName]Load{}
	metrics := &unstructured.UnstructuredList{}
	metrics.SetGroupVersionKind(PodMetrics.GroupVersion().WithKind(PodMetrics.Kind + "List"))
	err := EachPage(ctx, c.api, metrics, namespace, selector, func() {
		for _, item := range metrics.Items {
			usage[types.NamespacedName{Namespace: item.GetNamespace(), Name: item.GetName()}] = usageOf(item)
		}
	})
	switch {
	case err == nil:
		return usage, nil
	case c.NotInstalled(err, PodMetrics), strings.Contains(err.Error(), "currently unable to handle the request"):
		return nil, &NoMetricsError{}
	}
	return nil, fmt.Errorf("list PodMetrics: %w", err)
}

// loads reads the loads of running pods in a namespace (empty: in all).
func (c *Client) loads(ctx context.Context, namespace string, selector labels.Selector) (map[types.NamespacedName]Load, error) {
	usage, err := c.usage(ctx, namespace, selector)
	if err != nil {
		return nil, err
	}
	loads := map[types.NamespacedName]Load{}
	var pods corev1.PodList
	err = EachPage(ctx, c.api, &pods, namespace, selector, func() {
		for _, pod := range pods.Items {
			if pod.Status.Phase == corev1.PodRunning {
				key := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
				loads[key] = withRequests(usage[key], pod.Spec)
			}
		}
	})
	if err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	c.measureGPUs(ctx, loads, selector)
	return loads, nil
}

// usageOf returns the sum of the usage of a pod's containers.
func usageOf(metrics unstructured.Unstructured) Load {
	load := Load{Measured: true}
	containers, _, _ := unstructured.NestedSlice(metrics.Object, "containers")
	for _, entry := range containers {
		container, _ := entry.(map[string]any)
		for name, sum := range map[string]*resource.Quantity{"cpu": &load.CPU, "memory": &load.Memory} {
			text, _, _ := unstructured.NestedString(container, "usage", name)
			if quantity, err := resource.ParseQuantity(text); err == nil {
				sum.Add(quantity)
			}
		}
	}
	return load
}

// withRequests completes a pod's load by what the pod requests.
func withRequests(load Load, spec corev1.PodSpec) Load {
	requests := podspec.Requests(spec)
	load.CPURequest, load.MemoryRequest = *requests.Cpu(), *requests.Memory()
	for _, container := range spec.Containers {
		load.GPUs += podspec.GPUs(container.Resources)
	}
	return load
}
