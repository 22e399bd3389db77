package cli

import (
	"cmp"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/api/resource"

	"opendatahub.io/mpijob/internal/jobs"
)

// loadHeader are the columns of a load.
var loadHeader = []string{"CPU", "MEMORY", "GPU"}

// printPodLoads prints the loads of a job's pods.
func printPodLoads(to io.Writer, output valueOutput, loads []jobs.PodLoad) error {
	if output.structured() {
		values := make([]loadValue, len(loads))
		for i, load := range loads {
			values[i] = valueOf(load.Load)
			values[i].Name = load.Pod
		}
		return output.print(to, map[string]any{"pods": values})
	}
	t := table{header: append([]string{"POD", "RANKS", "NODE"}, loadHeader...)}
	for _, load := range loads {
		t.rows = append(t.rows, append(plain(load.Pod, cmp.Or(load.Ranks, "-"), cmp.Or(load.Node, "-")), loadCells(load.Load)...))
	}
	return t.write(to, "", true)
}

// printJobLoads prints the loads of jobs, with their namespaces if wanted.
func printJobLoads(to io.Writer, output valueOutput, loads []jobs.JobLoad, namespaces bool) error {
	if output.structured() {
		values := make([]loadValue, len(loads))
		for i, load := range loads {
			values[i] = valueOf(load.Load)
			values[i].Name = load.Job.Name
			if namespaces {
				values[i].Namespace = load.Job.Namespace
			}
		}
		return output.print(to, map[string]any{"jobs": values})
	}
	t := table{header: append([]string{"NAME", "KIND", "PHASE", "PODS"}, loadHeader...)}
	if namespaces {
		t.header = append([]string{"NAMESPACE"}, t.header...)
	}
	for _, load := range loads {
		phase := load.Job.Phase()
		row := []cell{{text: load.Job.Name}, {text: load.Job.Kind}, {text: string(phase), colour: phaseColour(phase)}, {text: fmt.Sprint(load.Pods)}}
		if namespaces {
			row = append(plain(load.Job.Namespace), row...)
		}
		t.rows = append(t.rows, append(row, loadCells(load.Load)...))
	}
	return t.write(to, "", true)
}

func loadCells(load jobs.Load) []cell {
	gpus := fmt.Sprint(load.GPUs)
	if load.GPUUse != nil {
		gpus = fmt.Sprintf("%d (%.0f%%)", load.GPUs, *load.GPUUse/float64(load.GPUs)*100)
	}
	if !load.Measured {
		return plain("-", "-", gpus)
	}
	return plain(
		shareText(fmt.Sprintf("%dm", load.CPU.MilliValue()), load.CPU, load.CPURequest),
		shareText(fmt.Sprintf("%dMi", load.Memory.Value()>>20), load.Memory, load.MemoryRequest),
		gpus,
	)
}

// shareText returns a figure with its share of the request.
func shareText(text string, used, requested resource.Quantity) string {
	if requested.IsZero() {
		return text
	}
	return fmt.Sprintf("%s (%d%%)", text, used.MilliValue()*100/requested.MilliValue())
}

// loadValue is a load in the output of -o json. Usage is omitted if it was not
// measured.
type loadValue struct {
	Namespace string `json:"namespace,omitempty"`
	// Name is the name of the pod or the job, by the list that contains the value.
	Name          string   `json:"name"`
	CPUCores      *float64 `json:"cpuCores,omitempty"`
	MemoryBytes   *int64   `json:"memoryBytes,omitempty"`
	CPURequest    float64  `json:"cpuRequest"`
	MemoryRequest int64    `json:"memoryRequest"`
	GPUs          int64    `json:"gpus"`
	GPUUse        *float64 `json:"gpuUse,omitempty"`
}

func valueOf(load jobs.Load) loadValue {
	value := loadValue{CPURequest: load.CPURequest.AsApproximateFloat64(), MemoryRequest: load.MemoryRequest.Value(), GPUs: load.GPUs, GPUUse: load.GPUUse}
	if load.Measured {
		value.CPUCores, value.MemoryBytes = new(load.CPU.AsApproximateFloat64()), new(load.Memory.Value())
	}
	return value
}
