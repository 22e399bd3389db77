package diagnose

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/podspec"
)

// outOfMemory returns a finding for pods in which the kernel killed processes because of memory, according to their
// agents and to the kubelet.
func outOfMemory(p *input) []Finding {
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
		evidence = append(evidence, fmt.Sprintf("Agent: rank %d (%s) was killed because of memory.", rank.Rank, rank.Program))
		figures["rank"], figures["rankText"] = fmt.Sprint(rank.Rank), fmt.Sprintf(" in rank %d (%s)", rank.Rank, rank.Program)
		if host := p.hostOf(rank.Rank); len(pods) == 0 && host != nil {
			pods = append(pods, *host)
		}
	}
	if len(pods) == 0 && rank == nil {
		return nil
	}
	p.limitFigures(pods, figures)
	f := p.find(codes.OutOfMemory, pods, figures)
	f.Evidence = evidence
	if len(pods) > 0 {
		f.ExitCode = pods[0].exitCode()
		// What it did last; the report keeps it when the pod and its log are gone.
		last := lastLines(pods[0])
		f.Evidence = append(f.Evidence, last[max(0, len(last)-1):]...)
	}
	if rank != nil && rank.ExitCode > 0 {
		f.ExitCode = &rank.ExitCode
	}
	return []Finding{f}
}

// limitFigures say how much the pods may use, and how much more to try.
func (p *input) limitFigures(pods []jobPod, figures map[string]string) {
	if len(pods) == 0 {
		return
	}
	limit := limit(p.template(pods[0].role), corev1.ResourceMemory)
	if s := pods[0].summary; s != nil && s.MemoryLimit > 0 {
		limit = s.MemoryLimit
	}
	if limit > 0 {
		figures["limit"] = bytesText(limit)
		figures["ofLimit"] = " (" + figures["limit"] + ")"
		if figures["used"] != "" {
			figures["ofLimit"] = " of " + figures["limit"]
		}
		figures["more"] = fmt.Sprintf(", for example from %s to %s", bytesText(limit), bytesText(limit/2*3))
		figures["moreMemory"] = fmt.Sprintf("%dMi", limit/2*3>>20)
		if more := limit / 2 * 3; more%(1<<30) == 0 {
			figures["moreMemory"] = fmt.Sprintf("%dGi", more>>30)
		}
	}
}

// oomOf returns the evidence that a pod ran out of memory, and its peak usage if it is known.
func oomOf(pod jobPod) (line string, peak int64) {
	s := pod.summary
	if s != nil && s.Role == agentapi.RoleWorker && s.OOMKills > 0 {
		return fmt.Sprintf("Agent of %s: the kernel killed %d of its processes because of memory; peak usage %s.",
			pod.Name, s.OOMKills, exactly(s.MemoryPeak)), s.MemoryPeak
	}
	if end := pod.end(); end != nil && end.Reason == "OOMKilled" {
		return fmt.Sprintf("Pod %s: container ended with exit code %d (OOMKilled).", pod.Name, end.ExitCode), 0
	}
	return "", 0
}

// oomRank is the first rank that an agent saw killed for lack of memory.
func (p *input) oomRank() *agentapi.RankEnd {
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

// exactly formats bytes with a decimal, to compare them with a limit.
func exactly(bytes int64) string {
	if bytes < 1<<30 {
		return fmt.Sprintf("%d MiB", bytes>>20)
	}
	return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
}

// gpuFigures are those of GPUs: how large the one is that was full, and how many the pod has asked for.
func (p *input) gpuFigures(pods []jobPod, figures map[string]string) {
	total := figures["total"] + figures["total2"]
	if total != "" {
		figures["totalText"] = " (GPU memory: " + total + ")"
	}
	if len(pods) == 0 {
		return
	}
	gpus := p.gpus(pods[0].role)
	figures["gpuText"] = fmt.Sprintf(" (%d requested by the pod)", gpus)
	if gpus == 0 {
		figures["gpuText"] = " (none requested by the pod)"
	}
}

// gpus is how many GPUs each pod of a role asks for.
func (p *input) gpus(role mpi.Role) (count int64) {
	for _, c := range p.template(role).Containers {
		count += podspec.GPUs(c.Resources)
	}
	return count
}

// sharedGPUs reports that ranks share GPUs, if there is a problem that this can cause. Some programs share a GPU on
// purpose.
func sharedGPUs(p *input) []Finding {
	gpus := p.gpus(mpi.RoleWorker)
	if gpus == 0 || int64(p.job.SlotsPerWorker) <= gpus || !slices.ContainsFunc(p.signs, func(s sign) bool { return codes.Has(s.Code, codes.FromSharedGPU) }) {
		return nil
	}
	// What the logs show is another finding's; this one is about the workers, whose numbers do not fit.
	workers := slices.DeleteFunc(slices.Clone(p.pods), func(pod jobPod) bool { return pod.role != mpi.RoleWorker })
	f := p.find(codes.MoreSlotsThanGPUs, workers, nil)
	f.Evidence = []string{fmt.Sprintf("%d slots and %d GPUs per worker.", p.job.SlotsPerWorker, gpus)}
	return []Finding{f}
}
