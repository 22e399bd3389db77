package v1alpha1

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Usage is what the pods of a job used over time, as the agents in the pods measured it. It describes the launcher's latest run.
type Usage struct {
	// since and until are the times of the first and the last measurement.
	Since metav1.Time `json:"since"`
	Until metav1.Time `json:"until"`
	// pointsSince is when the first point of each metric begins.
	PointsSince metav1.Time `json:"pointsSince"`
	// pointSeconds is the length of a point.
	PointSeconds int64 `json:"pointSeconds"`
	// pods is the number of pods that were measured: those with ranks.
	Pods int32 `json:"pods"`
	// metrics are the sums of all pods, and the means of those that are shares of time. Metrics that the kernel of a pod does not
	// count are left out, and so are those that were always 0, except CPU, Memory and GPU. With more than one pod, p95 and max are those
	// of the points.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=metric
	// +optional
	Metrics []UsageMetric `json:"metrics,omitempty"`
	// perPod are the pods. If there are more than 32, those are listed that differ most from the others.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	PerPod []PodUsage `json:"perPod,omitempty"`
	// perRank are the ranks. If there are more than 32, those are listed that differ most from the others.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	PerRank []RankUsage `json:"perRank,omitempty"`
	// earlier are the runs of the launcher before this one, oldest first. If there are more than 16, the oldest ones are added up.
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	Earlier []EarlierUsage `json:"earlier,omitempty"`
}

// EarlierUsage is what the pods of a job used in an earlier run of its launcher.
type EarlierUsage struct {
	// since and until are the times of the first and the last measurement.
	Since metav1.Time `json:"since"`
	Until metav1.Time `json:"until"`
	// cpuCoreSeconds is the used CPU cores multiplied by seconds.
	CPUCoreSeconds int64 `json:"cpuCoreSeconds"`
	// memoryGiBSeconds is the used memory in GiB multiplied by seconds.
	MemoryGiBSeconds int64 `json:"memoryGiBSeconds"`
	// gpuSeconds is the busy GPUs multiplied by seconds. It is unset if they were not measured.
	// +optional
	GPUSeconds *int64 `json:"gpuSeconds,omitempty"`
}

// UsageMetric is what was measured of a metric, in whole numbers of its unit.
type UsageMetric struct {
	// metric is the name of the metric.
	Metric MetricName `json:"metric"`
	// mean is the mean of all samples by time.
	Mean int64 `json:"mean"`
	// p95 is the value that was not exceeded for 95 % of the time.
	P95 int64 `json:"p95"`
	// max is the maximum.
	Max int64 `json:"max"`
	// limit is the most that can be used. It is unset if there is no limit.
	// +optional
	Limit int64 `json:"limit,omitempty"`
	// recent is the mean of the last 10 minutes, of the metrics Throttled and GPU of a pod. It is unset if much less was measured.
	// +optional
	Recent *int64 `json:"recent,omitempty"`
	// points are means, oldest first; -1 for times in which nothing was measured.
	// +kubebuilder:validation:MaxItems=120
	// +listType=atomic
	// +optional
	Points []int64 `json:"points,omitempty"`
}

// MetricName is the name of a metric. CPU is in thousandths of a core and GPU in thousandths of a GPU. Memory, the working set, and
// GPUMemory are in MiB. Network and IO are in KiB per second, and MajorFaults in page faults per minute that read from a disk. Throttled
// is the share, in thousandths, of the time that processes needed a CPU in which the CPU limit stopped them. CPUPressure, MemoryPressure
// and IOPressure are the share of time in thousandths in which a process waited for the resource.
// +kubebuilder:validation:Enum=CPU;Memory;Throttled;MajorFaults;CPUPressure;MemoryPressure;IOPressure;Network;IO;GPU;GPUMemory
type MetricName string

// The metrics.
const (
	MetricCPU            MetricName = "CPU"
	MetricMemory         MetricName = "Memory"
	MetricThrottled      MetricName = "Throttled"
	MetricMajorFaults    MetricName = "MajorFaults"
	MetricCPUPressure    MetricName = "CPUPressure"
	MetricMemoryPressure MetricName = "MemoryPressure"
	MetricIOPressure     MetricName = "IOPressure"
	MetricNetwork        MetricName = "Network"
	MetricIO             MetricName = "IO"
	MetricGPU            MetricName = "GPU"
	MetricGPUMemory      MetricName = "GPUMemory"
)

// PodUsage is what a pod used.
type PodUsage struct {
	// pod is the name of the pod.
	Pod string `json:"pod"`
	// metrics are the figures of the pod's samples. Of several pods, the memory of the one that reaches its limit first has points.
	// +kubebuilder:validation:MaxItems=8
	// +listType=atomic
	// +optional
	Metrics []UsageMetric `json:"metrics,omitempty"`
}

// RankUsage is what a rank used, with the processes that it started.
type RankUsage struct {
	// rank is the number of the rank.
	Rank int32 `json:"rank"`
	// cpuMillicores is the mean of its CPU usage in thousandths of a core.
	CPUMillicores int64 `json:"cpuMillicores"`
	// memoryMiB is the maximum of its resident memory in MiB.
	MemoryMiB int64 `json:"memoryMiB"`
}

// FindMetric returns what was measured of a metric; nil if it was not.
func FindMetric(metrics []UsageMetric, name MetricName) *UsageMetric {
	i := slices.IndexFunc(metrics, func(m UsageMetric) bool { return m.Metric == name })
	if i < 0 {
		return nil
	}
	return &metrics[i]
}
