package diagnose

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/launch"
	"opendatahub.io/mpijob/internal/mpi"
)

var memoryTexts = map[mpi.Code]text{
	mpi.CodeOutOfMemory: {
		summary: "{who} ran out of memory{rankText}: {used|it needed more than it may use}{ofLimit}. " +
			"The kernel then ends the program at once, and with it the whole MPI job.",
		remedies: []Remedy{
			{Text: "Give each {role} more memory{more}.", Action: "{field}.spec.containers[0].resources.limits.memory"},
			{Text: "Or use less: a smaller batch, fewer data-loading processes, or fewer ranks (processes of the program) in each worker.", Action: "{slotsField}"},
		},
	},
	mpi.CodeGPUOutOfMemory: {
		summary: "The GPU's own memory is full{rankText}: the program wanted {size|more} and did not get it{totalText}.",
		remedies: []Remedy{
			{Text: "Use a smaller batch on each GPU, or gradient accumulation in its place."},
			{Text: "Or split the model over more GPUs (sharding, such as FSDP or ZeRO), or use mixed precision."},
			{Text: "Or run on GPUs with more memory."},
		},
	},
	mpi.CodeSharedGPUs: {
		summary: "More ranks (processes of the program) run in each worker than it has GPUs: {perWorker} slots, {gpus|no} GPUs. Ranks then share a GPU and its memory, which NCCL refuses, or look for one that is not there.",
		remedies: []Remedy{
			{Text: "Set as many slots as each worker has GPUs.", Action: "{slotsField}: {gpus|GPUs}"},
			{Text: "Or ask for a GPU for each slot.", Action: "{workerTemplate}.spec.containers[0].resources.limits[nvidia.com/gpu]: {perWorker}"},
			{Text: "If the numbers fit, let each rank take the GPU of its own number in the pod.", Action: "torch.cuda.set_device(local_rank)"},
		},
	},
	mpi.CodeNoGPU: {
		summary: "The program looks for a GPU in {whoLower} and there is none{gpuText}.",
		remedies: []Remedy{
			{Text: "If the program uses GPUs on the launcher, let the launcher run ranks; otherwise leave GPU calls to the ranks.", Action: "spec.runLauncherAsWorker: true"},
			{Text: "Ask for GPUs in the pods that use them.", Action: "{field}.spec.containers[0].resources.limits[nvidia.com/gpu]"},
			{Text: "If the pods have GPUs: the image may hold no CUDA, or blank NVIDIA_VISIBLE_DEVICES."},
		},
	},
}

// outOfMemory tells which pods the kernel has stopped for lack of memory: by the agents' own count, and by what the
// kubelet says of containers.
func outOfMemory(p *patient) []Finding {
	var pods []jobPod
	var evidence []string
	figures := map[string]string{}
	for _, pod := range p.pods {
		line, peak := oomOf(pod)
		if line == "" {
			continue
		}
		pods, evidence = append(pods, pod), append(evidence, line)
		if peak > 0 && figures["used"] == "" {
			figures["used"] = "used " + exactly(peak)
		}
	}
	rank := p.oomRank()
	if rank != nil {
		evidence = append(evidence, fmt.Sprintf("The agent says: rank %d (%s) was killed for lack of memory.", rank.Rank, rank.Program))
		figures["rank"], figures["rankText"] = fmt.Sprint(rank.Rank), fmt.Sprintf(" in rank %d (%s)", rank.Rank, rank.Program)
		if host := p.hostOf(rank.Rank); len(pods) == 0 && host != nil {
			pods = append(pods, *host)
		}
	}
	if len(pods) == 0 && rank == nil {
		return nil
	}
	p.limitFigures(pods, figures)
	f := p.find(mpi.CodeOutOfMemory, p.severity(), pods, figures)
	f.Evidence = evidence
	if len(pods) > 0 {
		f.ExitCode = pods[0].exitCode()
	}
	if rank != nil && rank.ExitCode > 0 {
		f.ExitCode = &rank.ExitCode
	}
	return []Finding{f}
}

// limitFigures say how much the pods may use, and how much more to try.
func (p *patient) limitFigures(pods []jobPod, figures map[string]string) {
	if len(pods) == 0 {
		return
	}
	limit := limit(p.template(pods[0].role), corev1.ResourceMemory)
	if s := pods[0].summary; s != nil && s.MemoryLimit > 0 {
		limit = s.MemoryLimit
	}
	if limit > 0 {
		figures["limit"] = bytesText(limit)
		figures["ofLimit"] = ", " + figures["limit"]
		if figures["used"] != "" {
			figures["ofLimit"] = " of " + figures["limit"]
		}
		figures["more"] = fmt.Sprintf(", for a start %s in place of %s", bytesText(limit/2*3), bytesText(limit))
	}
}

// oomOf tells how a pod shows that it ran out of memory, and the most that it used if that is known.
func oomOf(pod jobPod) (line string, peak int64) {
	s := pod.summary
	if s != nil && s.Role == launch.RoleWorker && s.OOMKills > 0 {
		return fmt.Sprintf("The agent of %s says: the kernel has killed %d of its processes for lack of memory; at most %s were used.",
			pod.Name, s.OOMKills, exactly(s.MemoryPeak)), s.MemoryPeak
	}
	if end := pod.end(); end != nil && end.Reason == "OOMKilled" {
		return fmt.Sprintf("Pod %s: its container ended with code %d, OOMKilled.", pod.Name, end.ExitCode), 0
	}
	return "", 0
}

// oomRank is the first rank that an agent saw killed for lack of memory.
func (p *patient) oomRank() *launch.RankEnd {
	for _, pod := range p.pods {
		if pod.summary == nil {
			continue
		}
		for i := range pod.summary.Ranks {
			if pod.summary.Ranks[i].OOM {
				return &pod.summary.Ranks[i]
			}
		}
	}
	return nil
}

// exactly says bytes with a decimal, to be set beside a limit.
func exactly(bytes int64) string {
	if bytes < 1<<30 {
		return fmt.Sprintf("%d MiB", bytes>>20)
	}
	return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
}

// gpuFigures are those of GPUs: how large the one is that was full, and how many the pod has asked for.
func (p *patient) gpuFigures(pods []jobPod, figures map[string]string) {
	total := figures["total"] + figures["total2"]
	if total != "" {
		figures["totalText"] = "; it has " + total
	}
	if len(pods) == 0 {
		return
	}
	gpus := p.gpus(pods[0].role)
	figures["gpuText"] = fmt.Sprintf(": the pod asks for %d", gpus)
	if gpus == 0 {
		figures["gpuText"] = ": the pod asks for none"
	}
}

// gpus is how many GPUs each pod of a role asks for.
func (p *patient) gpus(role mpi.Role) (count int64) {
	for _, c := range p.template(role).Containers {
		for name, quantity := range c.Resources.Limits {
			if isGPU(string(name)) {
				count += quantity.Value()
			}
		}
	}
	return count
}

// sharedGPUs tells that ranks have to share GPUs, where something is wrong that may come of it. By itself it may be
// meant: some programs do with a part of a GPU.
func sharedGPUs(p *patient) []Finding {
	gpus := p.gpus(mpi.RoleWorker)
	if gpus == 0 || int64(p.job.SlotsPerWorker) <= gpus || !slices.ContainsFunc(p.signs, func(s sign) bool { return comesOfSharing[s.Code] }) {
		return nil
	}
	// What the logs show is another finding's; this one is about the workers, whose numbers do not fit.
	workers := slices.DeleteFunc(slices.Clone(p.pods), func(pod jobPod) bool { return pod.role != mpi.RoleWorker })
	f := p.find(mpi.CodeSharedGPUs, p.severity(), workers, nil)
	f.Evidence = []string{fmt.Sprintf("The job has %d slots for each worker; each worker asks for %d GPUs.", p.job.SlotsPerWorker, gpus)}
	return []Finding{f}
}

// comesOfSharing are the codes of what happens to ranks that share a GPU.
var comesOfSharing = map[mpi.Code]bool{
	mpi.CodeSharedGPUs: true, mpi.CodeGPUOutOfMemory: true, mpi.CodeNoGPU: true, mpi.CodeNCCLSystem: true, mpi.CodeNCCLTimeout: true,
}

// isGPU tells whether a resource is a GPU or a part of one.
func isGPU(name string) bool {
	return strings.Contains(name, "gpu") || strings.HasPrefix(name, "nvidia.com/mig-") || strings.HasPrefix(name, "gpu.intel.com/")
}
