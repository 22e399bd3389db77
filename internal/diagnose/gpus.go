package diagnose

import (
	"fmt"
	"slices"

	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose/facts"
	"opendatahub.io/mpijob/internal/mpi"
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
