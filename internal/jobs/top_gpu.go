package jobs

import (
	"context"
	"encoding/json"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/rest"
)

// GPUMetric is the custom metric of GPU usage: that of NVIDIA's dcgm-exporter, in percent, which an adapter such as
// prometheus-adapter serves in custom.metrics.k8s.io as the sum over a pod's GPUs.
const GPUMetric = "DCGM_FI_DEV_GPU_UTIL"

// metricValues is a MetricValueList of custom.metrics.k8s.io/v1beta1.
type metricValues struct {
	Items []struct {
		DescribedObject struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"describedObject"`
		Value resource.Quantity `json:"value"`
	} `json:"items"`
}

// measureGPUs completes the loads of pods with GPUs by how busy these are. Few clusters have a metric of it; without it, the
// loads stay as they are.
func (c *Client) measureGPUs(ctx context.Context, loads map[types.NamespacedName]Load, selector labels.Selector) {
	server, can := c.discovery.(interface{ RESTClient() rest.Interface })
	if !can {
		return
	}
	namespaces := sets.New[string]()
	for pod, load := range loads {
		if load.GPUs > 0 {
			namespaces.Insert(pod.Namespace)
		}
	}
	for namespace := range namespaces {
		request := server.RESTClient().Get().AbsPath("/apis/custom.metrics.k8s.io/v1beta1/namespaces", namespace, "pods", "*", GPUMetric)
		if selector != nil {
			request.Param("labelSelector", selector.String())
		}
		text, err := request.Do(ctx).Raw()
		if err != nil {
			return // there is no adapter, it has no such metric, or the user may not read it
		}
		var values metricValues
		if json.Unmarshal(text, &values) != nil {
			return
		}
		addGPUUse(loads, values)
	}
}

// addGPUUse adds the values of the metric to the loads of their pods.
func addGPUUse(loads map[types.NamespacedName]Load, values metricValues) {
	for _, item := range values.Items {
		key := types.NamespacedName{Namespace: item.DescribedObject.Namespace, Name: item.DescribedObject.Name}
		if load, runs := loads[key]; runs && load.GPUs > 0 {
			load.GPUUse = new(min(item.Value.AsApproximateFloat64()/100, float64(load.GPUs)))
			loads[key] = load
		}
	}
}
