package dashboard

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"opendatahub.io/mpijob/internal/jobs"
	"opendatahub.io/mpijob/internal/phrase"
	"opendatahub.io/mpijob/internal/podspec"
)

// Quantity is an amount of a resource.
type Quantity struct {
	Resource string  `json:"resource"`
	Amount   float64 `json:"amount"`
	Text     string  `json:"text"`
}

// requestsOf returns the sums of what the pods of a job request; nil if the job alone does not determine it.
func requestsOf(job *unstructured.Unstructured) []Quantity {
	size, known := jobs.SizeOf(job)
	if !known {
		return nil
	}
	sum := corev1.ResourceList{}
	podspec.Add(sum, podspec.Requests(size.Worker), int64(size.Workers))
	podspec.Add(sum, podspec.Requests(size.Launcher), 1)
	sum[corev1.ResourcePods] = *quantityOf(int64(size.Workers) + 1)
	var all []Quantity
	for _, name := range sortedNames(sum) {
		amount := sum[name]
		all = append(all, Quantity{string(name), amount.AsApproximateFloat64(), amountText(name, amount)})
	}
	return all
}

// totalText returns what all pods of a job request together, such as "4 workers and the launcher: 32.1 CPUs, 256.1 GiB of
// memory, 8 GPUs"; empty if unknown. The launcher of a TrainJob, which its runtime defines, does not count.
func totalText(job jobs.Job) string {
	var worker, launcher corev1.ResourceList
	workers := job.Status().Workers.Wanted
	if run := job.Status().Run; run != nil {
		worker = podspec.FillIn(maps.Clone(run.Requests), run.Limits)
	}
	if job.Object != nil {
		if size, known := jobs.SizeOf(job.Object); known {
			workers, worker, launcher = size.Workers, podspec.Requests(size.Worker), podspec.Requests(size.Launcher)
		}
	}
	sum := corev1.ResourceList{}
	podspec.Add(sum, worker, int64(workers))
	podspec.Add(sum, launcher, 1)
	var parts []string
	for _, name := range slices.SortedFunc(maps.Keys(sum), byImportance) {
		amount := sum[name]
		if amount.IsZero() {
			continue
		}
		text := amountText(name, amount)
		switch {
		case name == corev1.ResourceCPU:
			text += map[bool]string{true: " CPU", false: " CPUs"}[text == "1"]
		case name == corev1.ResourceMemory, name == corev1.ResourceEphemeralStorage:
			text += " of " + string(name)
		case podspec.IsGPU(name):
			text += map[bool]string{true: " GPU", false: " GPUs"}[text == "1"]
		default:
			text += " " + string(name)
		}
		parts = append(parts, text)
	}
	if len(parts) == 0 || workers == 0 && len(launcher) == 0 {
		return ""
	}
	who := phrase.Count(workers, "worker")
	if len(launcher) > 0 {
		who += " and the launcher"
	}
	return who + ": " + strings.Join(parts, ", ")
}

// byImportance sorts CPUs and memory before other resources.
func byImportance(a, b corev1.ResourceName) int {
	order := []corev1.ResourceName{corev1.ResourceMemory, corev1.ResourceCPU}
	return cmp.Or(cmp.Compare(slices.Index(order, b), slices.Index(order, a)), strings.Compare(string(a), string(b)))
}

func sortedNames(resources corev1.ResourceList) []corev1.ResourceName {
	return slices.Sorted(maps.Keys(resources))
}

// amountText returns an amount as people write it, such as 8.1, or 16.1 GiB.
func amountText(name corev1.ResourceName, amount resource.Quantity) string {
	value := amount.AsApproximateFloat64()
	round := func(value float64) string {
		return strconv.FormatFloat(math.Round(value*10)/10, 'f', -1, 64)
	}
	if name == corev1.ResourceMemory || name == corev1.ResourceEphemeralStorage {
		for _, unit := range []struct {
			name string
			size float64
		}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
			if value >= unit.size {
				return round(value/unit.size) + " " + unit.name
			}
		}
		return round(value) + " B"
	}
	if value > 0 && value < 0.1 {
		return strconv.FormatFloat(math.Round(value*1000)/1000, 'f', -1, 64)
	}
	return round(value)
}

func quantityOf(n int64) *resource.Quantity { return resource.NewQuantity(n, resource.DecimalSI) }
