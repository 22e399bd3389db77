package diagnose

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

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
	entry, size := p.sizeFigures(pods, figures)
	f := p.findAs(entry, pods, figures)
	if f.Evidence = evidence; size != "" {
		f.Evidence = append(f.Evidence, size)
	}
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

// sizeFigures adds how much the program asked for, if its log shows that, and how much the largest node has. It returns the definition
// that follows from that, and the line of the log, or "".
func (p *input) sizeFigures(pods []jobPod, figures map[string]string) (codes.Entry, string) {
	largest := p.largestNode()
	if largest > 0 {
		figures["largest"] = bytesText(largest)
		figures["largestText"] = " No node has more than " + figures["largest"] + "."
	}
	entry := codes.Lookup(codes.OutOfMemory)
	asked, line := p.askedMemory(pods)
	if asked <= 0 {
		return entry, ""
	}
	figures["asked"] = bytesText(asked)
	if largest > 0 && asked > largest {
		return codes.MoreMemoryThanNodes, line
	}
	if more := (asked + asked/4) >> 30; more > 0 {
		p.moreFigures(asked, (more+1)<<30, figures)
	}
	return entry, line
}

// limitFigures say how much the pods may use, and how much more to try.
func (p *input) limitFigures(pods []jobPod, figures map[string]string) {
	if len(pods) == 0 {
		return
	}
	limit := memoryLimit(p.template(pods[0].role))
	if s := pods[0].summary; s != nil && s.MemoryLimit > 0 {
		limit = s.MemoryLimit
	}
	if limit > 0 {
		figures["limit"] = bytesText(limit)
		figures["ofLimit"] = " (" + figures["limit"] + ")"
		if figures["used"] != "" {
			figures["ofLimit"] = " of " + figures["limit"]
		}
		more := limit / 2 * 3
		if largest := p.largestNode(); largest > 0 && more > largest {
			// No node has as much.
			return
		}
		p.moreFigures(limit, more, figures)
	}
}

// moreFigures propose a memory limit in place of the present one, or of less that does not suffice.
func (p *input) moreFigures(from, more int64, figures map[string]string) {
	if limit := figures["limit"]; limit != "" {
		figures["more"] = fmt.Sprintf(", for example from %s to %s", limit, bytesText(more))
	} else {
		figures["more"] = fmt.Sprintf(", for example from %s to %s", bytesText(from), bytesText(more))
	}
	figures["moreMemory"] = fmt.Sprintf("%dMi", more>>20)
	if more%(1<<30) == 0 {
		figures["moreMemory"] = fmt.Sprintf("%dGi", more>>30)
	}
}

// largestNode returns the memory that pods can have on the largest node, in bytes; 0 if the nodes are unknown.
func (p *input) largestNode() (largest int64) {
	if p.evidence.NodesLeft > 0 {
		return 0
	}
	for _, node := range p.evidence.Nodes {
		if memory := node.Allocatable[corev1.ResourceMemory]; memory.Value() > largest {
			largest = memory.Value()
		}
	}
	return largest
}

// allocation is where a program prints how much memory it allocates, and memoryUnits the units in bytes.
var (
	allocation  = regexp.MustCompile(`(?i)\b(?:allocat|reserv|request|malloc)\w*\b.{0,80}?\b(\d{1,9}(?:\.\d+)?) ?([KMGTP])i?B\b`)
	memoryUnits = map[string]float64{"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50}
)

// askedMemory returns the most memory that a program printed that it allocates at once, in bytes, with the line of its log, if that is more than
// the pods may use; 0 if it is unknown.
func (p *input) askedMemory(pods []jobPod) (most int64, evidence string) {
	if len(pods) == 0 {
		return 0, ""
	}
	most = memoryLimit(p.template(pods[0].role))
	for _, pod := range p.pods {
		for _, line := range pod.log.Lines {
			found := allocation.FindStringSubmatch(line)
			if found == nil {
				continue
			}
			number, err := strconv.ParseFloat(found[1], 64)
			if bytes := number * memoryUnits[strings.ToUpper(found[2])]; err == nil && bytes > float64(most) && bytes < 1<<62 {
				most, evidence = int64(bytes), quoted(pod, line)
			}
		}
	}
	if evidence == "" {
		return 0, ""
	}
	return most, evidence
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
