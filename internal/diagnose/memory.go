package diagnose

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose/facts"
	"opendatahub.io/mpijob/internal/mpi"
)

// oomOf returns the evidence that a pod ran out of memory, and its peak usage if it is known.
func oomOf(pod facts.Pod) (line string, peak int64) {
	s := pod.Summary
	if s != nil && s.Role == agentapi.RoleWorker && s.OOMKills > 0 {
		return fmt.Sprintf("Agent of %s: the kernel killed %d of its processes because of memory; peak usage %s.",
			pod.Name, s.OOMKills, exactly(s.MemoryPeak)), s.MemoryPeak
	}
	if end := pod.End(); end != nil && end.Reason == "OOMKilled" {
		return fmt.Sprintf("Pod %s: container ended with exit code %d (OOMKilled).", pod.Name, end.ExitCode), 0
	}
	return "", 0
}

// exactly formats bytes with a decimal, to compare them with a limit.
func exactly(bytes int64) string {
	if bytes < 1<<30 {
		return fmt.Sprintf("%d MiB", bytes>>20)
	}
	return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
}

// outOfMemory returns a finding for pods in which the kernel killed processes because of memory, according to their
// agents and to the kubelet.
func outOfMemory(p *input) []Finding {
	var pods []facts.Pod
	var evidence []string
	figures := map[string]string{}
	for _, pod := range p.Pods {
		line, peak := oomOf(pod)
		if line == "" {
			continue
		}
		pods, evidence = append(pods, pod), append(evidence, line)
		if peak > 0 && figures["used"] == "" {
			figures["used"] = "used " + exactly(peak)
		}
	}
	rank := p.OomRank()
	if rank != nil {
		evidence = append(evidence, fmt.Sprintf("Agent: rank %d (%s) was killed because of memory.", rank.Rank, rank.Program))
		figures["rank"], figures["rankText"] = fmt.Sprint(rank.Rank), fmt.Sprintf(" in rank %d (%s)", rank.Rank, rank.Program)
	}
	switch {
	case len(pods) > 0:
		p.limitFigures(pods[0], figures)
	case rank == nil:
		return nil
	default:
		host := p.HostOf(rank.Rank)
		role, index, known := p.PlaceOf(rank.Rank)
		switch {
		case host != nil:
			pods = append(pods, *host)
			p.limitFigures(*host, figures)
		case known:
			// The pod is gone, as after JobSet has ended its job.
			figures["who"] = subject([]facts.Pod{{Role: role, Index: index}})
			p.limitFigures(facts.Pod{Role: role}, figures)
		}
	}
	entry, size := p.sizeFigures(pods, figures)
	if entry.Summary == codes.Lookup(codes.OutOfMemory).Summary && len(pods) > 0 {
		if figures["volume"], figures["folder"] = memoryVolume(p.Template(pods[0].Role)); figures["volume"] != "" {
			entry.Remedies = slices.Insert(slices.Clone(entry.Remedies), 1, codes.MemoryVolume)
		}
	}
	if len(pods) > 0 && entry.Summary == codes.Lookup(codes.OutOfMemory).Summary {
		var line string
		entry, line = p.limitedBy(pods[0].Role, entry, figures)
		evidence = append(evidence, line)
	}
	evidence = slices.DeleteFunc(evidence, func(line string) bool { return line == "" })
	f := p.findAs(entry, pods, figures)
	if f.Evidence = evidence; size != "" {
		f.Evidence = append(f.Evidence, size)
	}
	if len(pods) > 0 {
		f.ExitCode = pods[0].ExitCode()
		// What it did last; the report keeps it when the pod and its log are gone.
		last := facts.LastLines(pods[0])
		f.Evidence = append(f.Evidence, last[max(0, len(last)-1):]...)
	}
	if rank != nil && rank.ExitCode > 0 {
		f.ExitCode = &rank.ExitCode
	}
	return []Finding{f}
}

// limitedBy returns the definition of OutOfMemory with the limit to increase, if that is none of the container's own, and a line of evidence, or "".
func (p *input) limitedBy(role mpi.Role, entry codes.Entry, figures map[string]string) (codes.Entry, string) {
	template, line := p.Template(role), ""
	var remedy v1alpha1.Remedy
	switch {
	case facts.IsLimitOfPod(template):
		remedy = codes.LimitOfPod
	case facts.MemoryLimit(template) == 0 && figures["limit"] != "":
		remedy, line = codes.LimitOfNamespace, fmt.Sprintf("The pod template of the %s has no memory limit.", role)
	default:
		return entry, ""
	}
	entry.Remedies = slices.Clone(entry.Remedies)
	i := max(0, slices.IndexFunc(entry.Remedies, func(r v1alpha1.Remedy) bool { return r.Action == codes.LimitOfNamespace.Action }))
	if before, _, isFirst := strings.Cut(entry.Remedies[i].Text, "In a copy of the job, increase"); isFirst {
		remedy.Text = before + remedy.Text
	}
	entry.Remedies[i] = remedy
	return entry, line
}

// memoryVolume returns the first volume in memory that the main container of a pod mounts, and where; "" if it has none.
func memoryVolume(spec corev1.PodSpec) (volume, folder string) {
	for _, v := range spec.Volumes {
		if v.EmptyDir == nil || v.EmptyDir.Medium != corev1.StorageMediumMemory || len(spec.Containers) == 0 {
			continue
		}
		for _, mount := range spec.Containers[0].VolumeMounts {
			if mount.Name == v.Name {
				return v.Name, mount.MountPath
			}
		}
	}
	return "", ""
}

// sizeFigures adds how much the program asked for, if its log shows that, and how much the largest node has. It returns the definition
// that follows from that, and the line of the log, or "".
func (p *input) sizeFigures(pods []facts.Pod, figures map[string]string) (codes.Entry, string) {
	largest := p.LargestNode()
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

// limitFigures say how much a pod may use, by what its agent or the kubelet observed, or the template, and how much more to try.
func (p *input) limitFigures(of facts.Pod, figures map[string]string) {
	limit := cmp.Or(facts.MemoryLimit(p.Template(of.Role)), observedLimit(of))
	if observed := of.Summary; observed != nil && observed.MemoryLimit > 0 {
		limit = observed.MemoryLimit
	}
	if limit > 0 {
		figures["limit"] = bytesText(limit)
		figures["ofLimit"] = " (" + figures["limit"] + ")"
		if figures["used"] != "" {
			figures["ofLimit"] = " of " + figures["limit"]
		}
		more := limit / 2 * 3
		if largest := p.LargestNode(); largest > 0 && more > largest {
			// No node has as much.
			return
		}
		p.moreFigures(limit, more, figures)
	}
}

// observedLimit returns the memory limit with which the kubelet runs the first container of a pod, which it reports since Kubernetes 1.33; 0 if there is
// none, or it does not report it.
func observedLimit(pod facts.Pod) int64 {
	if pod.Pod == nil {
		return 0
	}
	for _, status := range pod.Status.ContainerStatuses[:min(1, len(pod.Status.ContainerStatuses))] {
		if status.Resources != nil {
			limit := status.Resources.Limits[corev1.ResourceMemory]
			return limit.Value()
		}
	}
	return 0
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

// allocation is where a program prints how much memory it allocates, and memoryUnits the units in bytes.
var (
	allocation  = regexp.MustCompile(`(?i)\b(?:allocat|reserv|request|malloc)\w*\b.{0,80}?\b(\d{1,9}(?:\.\d+)?) ?([KMGTP])i?B\b`)
	memoryUnits = map[string]float64{"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50}
)

// askedMemory returns the most memory that a program printed that it allocates at once, in bytes, with the line of its log, if that is more than
// the pods may use; 0 if it is unknown.
func (p *input) askedMemory(pods []facts.Pod) (most int64, evidence string) {
	if len(pods) == 0 {
		return 0, ""
	}
	most = facts.MemoryLimit(p.Template(pods[0].Role))
	for _, pod := range p.Pods {
		for _, line := range pod.Log.Lines {
			found := allocation.FindStringSubmatch(line)
			if found == nil {
				continue
			}
			number, err := strconv.ParseFloat(found[1], 64)
			if bytes := number * memoryUnits[strings.ToUpper(found[2])]; err == nil && bytes > float64(most) && bytes < 1<<62 {
				most, evidence = int64(bytes), facts.LogLine(pod, line)
			}
		}
	}
	if evidence == "" {
		return 0, ""
	}
	return most, evidence
}
