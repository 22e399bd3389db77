package diagnose

import (
	"fmt"
	"slices"
	"time"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose/facts"
	"opendatahub.io/mpijob/internal/mpi"
)

// memoryGrowing warns that the memory of a pod of a running job grows towards its limit.
func memoryGrowing(p *input) []Finding {
	usage := p.usageOfRun(0)
	if usage == nil {
		return nil
	}
	memory, pod := p.growingMemory(usage)
	if memory == nil {
		return nil
	}
	run := agentapi.Window{Start: usage.PointsSince.Unix(), Step: usage.PointSeconds, Points: memory.Points}
	found, grows := agentapi.GrowthOfMemory(run, p.latestMemory(pod, usage.Pods), memory.Limit)
	if !grows || usage.PointsSince.Add(found.From).Before(p.runStart()) {
		return nil
	}
	const mib = 1 << 20
	// Estimates differ by minutes from report to report.
	full := usage.Until.Add(found.Left).Truncate(roundedTo).Add(roundedTo)
	figures := map[string]string{
		"used": exactly(found.Used * mib), "usedOf": exactly(memory.Limit * mib), "rate": exactly(int64(found.PerHour) * mib), "at": momentText(full),
	}
	of := "all pods"
	if pod != nil {
		of, figures["whoLower"] = "pod "+pod.Name, lower(subject([]facts.Pod{*pod}))
	} else {
		// The remedies need a pod.
		pod = fullest(usage.PerPod, p.Pods)
	}
	p.limitFigures(*pod, figures)
	entry, _ := p.limitedBy(pod.Role, codes.Lookup(codes.MemoryGrowing), figures)
	f := p.findAs(entry, []facts.Pod{*pod}, figures)
	f.Evidence = []string{fmt.Sprintf("Agents: the memory of %s grew from %s at %s to %s at %s.", of,
		exactly(found.Before*mib), facts.TimeText(usage.PointsSince.Add(found.From)), exactly(found.Used*mib), facts.TimeText(usage.Until.Time))}
	return []Finding{f}
}

// growingMemory returns the memory to judge, and its pod: the one that reaches its limit first, as agents report it of several, or the only
// one. Without a pod, it is the sum of all pods, as agents of earlier versions report it. It returns nil if neither is known.
func (p *input) growingMemory(usage *v1alpha1.Usage) (*v1alpha1.UsageMetric, *facts.Pod) {
	for _, used := range usage.PerPod {
		memory := v1alpha1.FindMetric(used.Metrics, v1alpha1.MetricMemory)
		if memory == nil || len(memory.Points) == 0 {
			continue
		}
		if pod := p.Known(used.Pod); pod != nil {
			return memory, pod
		}
		return nil, nil // it is gone
	}
	memory := v1alpha1.FindMetric(usage.Metrics, v1alpha1.MetricMemory)
	if usage.Pods == 1 {
		return memory, fullest(usage.PerPod, p.Pods)
	}
	return memory, nil
}

// latestMemory returns the memory of the last hour of the pod that is judged, of so many pods; nil if it is unknown.
func (p *input) latestMemory(pod *facts.Pod, pods int32) *agentapi.Window {
	latest := p.Evidence.LatestMemory
	if latest == nil || pod == nil || latest.Pod != pod.Name && (latest.Pod != "" || pods != 1) {
		return nil
	}
	return &latest.Window
}

// roundedTo is the precision of the time at which a limit is reached.
const roundedTo = 10 * time.Minute

// fullest returns the pod that has used most of its memory limit, or the first worker if that is unknown.
func fullest(used []v1alpha1.PodUsage, pods []facts.Pod) *facts.Pod {
	name, most := "", 0.0
	for _, pod := range used {
		if m := v1alpha1.FindMetric(pod.Metrics, v1alpha1.MetricMemory); m != nil && m.Limit > 0 && float64(m.Max)/float64(m.Limit) > most {
			name, most = pod.Pod, float64(m.Max)/float64(m.Limit)
		}
	}
	for _, is := range []func(facts.Pod) bool{
		func(pod facts.Pod) bool { return pod.Name == name },
		func(pod facts.Pod) bool { return pod.Role == mpi.RoleWorker },
	} {
		if i := slices.IndexFunc(pods, is); i >= 0 {
			return &pods[i]
		}
	}
	return &pods[0]
}
