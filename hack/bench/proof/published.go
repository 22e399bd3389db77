package proof

import (
	"fmt"
	"slices"
	"strings"

	"opendatahub.io/mpijob/hack/bench/report"
)

// publishedText are figures of others, each with its source and what of it can be compared.
const publishedText = `
## Figures that others published

They were measured on other machines, so that they show orders of magnitude and no ratios.

- **JobSet** ([issue 174](https://github.com/kubernetes-sigs/jobset/issues/174), 2023): 250 Indexed Jobs of 15 pods on 5,000 nodes are scheduled
  at 266 pods a second, and at 58 with one Job for each topology domain. Comparable: thousands of pods of many jobs, from their creation on.
  Not comparable: the control plane of a cluster of 5,000 nodes instead of two cores, and kube-scheduler's time, which the suite ` + "`scale`" + ` does not have.%s
- **Kueue** ([expected figures of its scheduler's test](https://github.com/kubernetes-sigs/kueue/blob/056cce0e3ca9769195f53301dfe666f07c33ee9a/test/performance/scheduler/configs/baseline/rangespec.yaml)):
  15,000 Workloads in 30 ClusterQueues are admitted and over after 351 s, the mean of five runs, and small ones wait 215 s on average. Comparable:
  a real API server without nodes, and how a queue of thousands behaves. Not comparable: the Workloads have no pods, and most of the wait is for quota.
- **Flux Operator** ([paper](https://doi.org/10.12688/f1000research.147989.1), [runs](https://github.com/converged-computing/operator-experiments/tree/main/aws/lammps/kubecon/run6), 2023):
  LAMMPS on 8 to 64 nodes, with up to 6,016 ranks and 20 runs of each size, compared with mpi-operator on the same cluster and image. Times are published as
  plots; the text says that LAMMPS is "a bit faster" than with mpi-operator, and that Flux' own start takes at most 3 s. Comparable: mpi-operator as
  the peer, with the same image. Not comparable: 64 nodes with a fast network; here, [computing](#how-fast-programs-compute) is compared with ` + "`mpirun`" + ` on one node.
`

// writePublished writes what others have measured, and our nearest figure.
func writePublished(page *strings.Builder, scale report.Report) {
	const jobs, pods = 1000, 10_000
	here := ""
	at := slices.IndexFunc(scale.Cases, func(c report.Case) bool { return c.Name == fmt.Sprintf("running/%d", jobs) && c.Ours > 0 })
	if at >= 0 {
		here = fmt.Sprintf("\n  Here, all of %s jobs with %s workers together run after %s s, which is %s pods a second, launchers not counted.",
			short(jobs), short(pods), short(scale.Cases[at].Ours), short(pods/scale.Cases[at].Ours))
	}
	fmt.Fprintf(page, publishedText, here)
}
