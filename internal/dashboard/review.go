package dashboard

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"opendatahub.io/mpijob/internal/jobs"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/phrase"
)

// words describes a job in sentences.
func words(request *SpecRequest, job *unstructured.Unstructured) []string {
	spec := request.Spec
	all := slices.Concat([]string{sizeWords(spec)}, programWords(spec, job), scheduleWords(spec), nodeWords(spec), dataWords(spec), environmentWords(spec), limitWords(spec))
	if request.Description != "" {
		all = append(all, "Its description is: "+phrase.OneLine(request.Description))
	}
	if spec.Suspend {
		all = append(all, "It is created suspended and starts when you resume it.")
	}
	return all
}

// sizeWords describes the workers of a job.
func sizeWords(spec jobs.Spec) string {
	var each []string
	if cpu, err := resource.ParseQuantity(spec.CPU); err == nil {
		text := amountText(corev1.ResourceCPU, cpu)
		each = append(each, text+map[bool]string{true: " CPU", false: " CPUs"}[text == "1"])
	}
	if memory, err := resource.ParseQuantity(spec.Memory); err == nil {
		each = append(each, amountText(corev1.ResourceMemory, memory)+" of memory")
	}
	if spec.GPU > 0 {
		each = append(each, phrase.Count(spec.GPU, "GPU"))
	}
	size := fmt.Sprintf("The job %s runs %s in namespace %s", spec.Name, phrase.Count(spec.Workers, "worker"), spec.Namespace)
	return size + prefixed(", each with ", strings.Join(each, ", ")) + "."
}

// programWords describes the image and the command of a job.
func programWords(spec jobs.Spec, job *unstructured.Unstructured) []string {
	image := fmt.Sprintf("All pods use the image %s, with %s.", spec.Image, cmp.Or(spec.Implementation, string(mpi.OpenMPI)))
	if spec.Runtime != "" {
		image = fmt.Sprintf("It uses the runtime %s%s.", spec.Runtime, prefixed(" with the image ", spec.Image))
	}
	if jobs.StartsRanks(spec.Command) {
		return []string{image, fmt.Sprintf("The launcher runs %s.", phrase.QuoteCommand(jobs.FromObject(job).Summary().Command))}
	}
	slots := max(1, spec.GPU)
	if spec.Slots != nil {
		slots = *spec.Slots
	}
	all := []string{image, fmt.Sprintf("%s run %s: %d on each worker.", phrase.Count(int64(slots)*int64(spec.Workers), "rank"), phrase.QuoteCommand(spec.Command), slots)}
	if len(spec.MPIFlags) > 0 {
		all = append(all, fmt.Sprintf("mpirun gets the flags %s.", phrase.QuoteCommand(spec.MPIFlags)))
	}
	return all
}

// scheduleWords describes when a job starts.
func scheduleWords(spec jobs.Spec) []string {
	all := []string{"It starts as soon as all of its pods fit, or as your cluster schedules it."}
	if spec.Queue != "" {
		all = []string{fmt.Sprintf("It waits in the queue %s until all of its pods can run.", spec.Queue)}
	}
	if spec.Priority != "" {
		all = append(all, fmt.Sprintf("Its priority class is %s.", spec.Priority))
	}
	if spec.GangTimeout > 0 {
		all = append(all, fmt.Sprintf("All pods are scheduled together; an attempt ends if not all are scheduled after %s.", durationText(spec.GangTimeout)))
	}
	return all
}

// nodeWords describes on which nodes a job runs.
func nodeWords(spec jobs.Spec) []string {
	var all []string
	if labels := pairs(spec.NodeSelector); len(labels) > 0 {
		all = append(all, "Its pods run on nodes with "+strings.Join(labels, ", ")+".")
	}
	var taints []string
	for _, toleration := range spec.Tolerations {
		if text, is := jobs.TolerationText(toleration); is {
			taints = append(taints, text)
		}
	}
	if len(taints) > 0 {
		all = append(all, "Its pods tolerate the taints "+strings.Join(taints, ", ")+".")
	}
	switch {
	case spec.Topology == "":
	case spec.TopologyPreferred:
		all = append(all, fmt.Sprintf("If possible, all pods run on nodes with the same value of %s.", spec.Topology))
	default:
		all = append(all, fmt.Sprintf("All pods run on nodes with the same value of %s.", spec.Topology))
	}
	return all
}

// dataWords describes the volumes of a job.
func dataWords(spec jobs.Spec) []string {
	var all []string
	for _, volume := range spec.Volumes {
		if volume.Source == jobs.VolumeMemory && volume.Path == sharedMemory {
			all = append(all, fmt.Sprintf("Each pod has %s of shared memory.", volume.Size))
			continue
		}
		text := fmt.Sprintf("All pods mount %s %s at %s", volume.Source, cmp.Or(volume.Name, volume.Size), volume.Path)
		if volume.ReadOnly {
			text += " to read"
		}
		all = append(all, text+".")
	}
	if spec.Output != nil {
		all = append(all, fmt.Sprintf("Results are kept on the claim %s in the folder %s, at %s and in the variable OUTPUT_DIR.", spec.Output.Name, cmp.Or(spec.Output.SubPath, spec.Name), spec.Output.Path))
	}
	return all
}

// pairs returns names with values, sorted.
func pairs(values map[string]string) []string {
	var all []string
	for _, name := range keys(values) {
		all = append(all, name+"="+values[name])
	}
	return all
}

// environmentWords describes the variables and the user of a job's ranks. Values of variables may be secrets.
func environmentWords(spec jobs.Spec) []string {
	var all []string
	if len(spec.Connections) > 0 {
		all = append(all, "Every rank gets the variables of "+strings.Join(spec.Connections, ", ")+".")
	}
	if len(spec.Env) > 0 {
		names := make([]string, len(spec.Env))
		for i := range spec.Env {
			names[i] = spec.Env[i].Name
		}
		all = append(all, fmt.Sprintf("Every rank gets %s of yours: %s.", phrase.Count(int64(len(spec.Env)), "variable"), strings.Join(names, ", ")))
	}
	if spec.RunAsUser != nil {
		all = append(all, fmt.Sprintf("Its programs run as user %d.", *spec.RunAsUser))
	}
	return all
}

// limitWords describes how often and how long a job runs.
func limitWords(spec jobs.Spec) []string {
	var all []string
	if spec.Retries != nil && *spec.Retries > 0 {
		all = append(all, fmt.Sprintf("A failed job is tried again up to %s.", phrase.Times(*spec.Retries)))
	}
	if spec.Deadline > 0 {
		all = append(all, fmt.Sprintf("The job is ended after %s.", durationText(spec.Deadline)))
	}
	if spec.Profile {
		all = append(all, "The calls of MPI in each rank are counted and timed, for its communication profile.")
	}
	if spec.RDMA == mpi.RDMARequired {
		all = append(all, "If no node offers the RDMA that its pods request, the job waits for it.")
	}
	switch {
	case spec.TTL == nil:
	case *spec.TTL == 0:
		all = append(all, "The job is deleted when it ends; its report is kept.")
	default:
		all = append(all, fmt.Sprintf("The job is deleted %s after its end; its report is kept.", durationText(*spec.TTL)))
	}
	return all
}

// durationText returns a time as people write it, such as 1 hour 30 minutes.
func durationText(length time.Duration) string {
	var parts []string
	for _, unit := range []struct {
		name string
		size time.Duration
	}{{"hour", time.Hour}, {"minute", time.Minute}, {"second", time.Second}} {
		if n := int64(length / unit.size); n > 0 {
			parts = append(parts, phrase.Count(n, unit.name))
			length %= unit.size
		}
	}
	return strings.Join(parts, " ")
}

func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}
