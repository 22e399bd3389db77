package diagnose

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose/facts"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/phrase"
	"opendatahub.io/mpijob/internal/podspec"
)

// gpuFigures are those of GPUs: how large the one is that was full, and how many the pod has asked for.
func (p *input) gpuFigures(pods []facts.Pod, figures map[string]string) {
	total := figures["total"] + figures["total2"]
	if total != "" {
		figures["totalText"] = " (GPU memory: " + total + ")"
	}
	if len(pods) == 0 {
		return
	}
	gpus := p.Gpus(pods[0].Role)
	figures["gpuText"] = fmt.Sprintf(" (%d requested by the pod)", gpus)
	if gpus == 0 {
		figures["gpuText"] = " (none requested by the pod)"
	}
}

// gpusIdle warns while a job runs that it does not use its GPUs, as the agents measured recently in its pods.
func gpusIdle(p *input) []Finding {
	// worth is the share of the time, in percent, below which it is worth a finding.
	const worth = 5
	usage := p.usageOfRun(agentapi.RecentTime)
	if usage == nil {
		return nil
	}
	var pods []facts.Pod
	var evidence []string
	for _, used := range usage.PerPod {
		pod, m := p.Known(used.Pod), v1alpha1.FindMetric(used.Metrics, v1alpha1.MetricGPU)
		// A privileged pod sees GPUs that it did not request.
		if pod == nil || m == nil || m.Recent == nil || 100**m.Recent >= worth*m.Limit || !requestsGPUs(p.Template(pod.Role)) {
			continue
		}
		if pods = append(pods, *pod); len(evidence) == 0 {
			evidence = []string{fmt.Sprintf("Agents: in the last 10 minutes, less than %d %% of the time of the %s in pod %s was used.", worth, phrase.Count(m.Limit/1000, "GPU"), pod.Name)}
		}
	}
	if len(pods) == 0 {
		return nil
	}
	return []Finding{p.find(codes.GPUIdle, pods, map[string]string{"whoLower": lower(subject(pods))}, evidence...)}
}

// requestsGPUs reports whether the pods of a template may have GPUs of their own. What a ResourceClaim requests is unknown.
func requestsGPUs(template corev1.PodSpec) bool {
	return podspec.PodGPUs(template) > 0 || len(template.ResourceClaims) > 0
}

// sharedGPUs reports that ranks share GPUs, if there is a problem that this can cause. Some programs share a GPU on
// purpose.
func sharedGPUs(p *input) []Finding {
	gpus := p.Gpus(mpi.RoleWorker)
	if gpus == 0 || int64(p.Job.SlotsPerWorker) <= gpus || !slices.ContainsFunc(p.Signs, func(s facts.Sign) bool { return codes.Has(s.Code, codes.FromSharedGPU) }) {
		return nil
	}
	// What the logs show is another finding's; this one is about the workers, whose numbers do not fit.
	workers := slices.DeleteFunc(slices.Clone(p.Pods), func(pod facts.Pod) bool { return pod.Role != mpi.RoleWorker })
	return []Finding{p.find(codes.MoreSlotsThanGPUs, workers, nil, fmt.Sprintf("%d slots and %d GPUs per worker.", p.Job.SlotsPerWorker, gpus))}
}

// hasGPUForEachSlot reports whether pods request as many GPUs as they have slots.
func (p *input) hasGPUForEachSlot() bool {
	gpus := p.Gpus(p.ranksRole())
	return gpus > 0 && gpus >= int64(p.Job.SlotsPerWorker)
}
