package gang

import (
	"slices"
	"strings"

	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/podspec"
)

// Fits adds to a state how many of the pods without a node would find room now, and on how many nodes: of those that the
// pods may go to by their labels and taints, what is free there against what the pods ask for.
func Fits(job mpi.Job, seen jobstate.Observed, nodes []jobstate.Node, state *jobstate.GangState) {
	snapshot := snapshotOf(nodes)
	f := snapshot.fit(snapshot.free(), missing(job, seen, snapshot.Resources), false)
	state.PodsFit, state.NodesFit, state.NodesTotal = new(int32(f.pods)), new(int32(f.nodes)), new(int32(len(nodes)))
}

// snapshotOf has of the nodes what is free on them.
func snapshotOf(nodes []jobstate.Node) *Snapshot {
	s := &Snapshot{Resources: NewResources(), Nodes: make([]Node, len(nodes))}
	for i, node := range nodes {
		s.Nodes[i] = Node{
			Name: node.Name, Labels: node.Labels, Taints: node.Taints, Ready: node.Ready, Unschedulable: node.Unschedulable,
			Allocatable: s.Resources.Totals(node.Free),
		}
	}
	slices.SortFunc(s.Nodes, func(a, b Node) int { return strings.Compare(a.Name, b.Name) })
	return s
}

// missing sums the requests of the pods without a node, as the job's templates have them: changes that the API server made
// to created pods are not kept.
func missing(job mpi.Job, seen jobstate.Observed, resources *Resources) Request {
	request := Request{Workers: int(job.Workers.Count), Least: max(int(job.GangSize()-CountPlaced(job, seen)), 1), Together: job.Topology.Key, Firmly: job.Topology.Required}
	placesLauncher := !job.Launcher.None && !job.Launcher.AfterWorkers
	for _, pod := range PodsOf(job, seen) {
		switch {
		case pod.Spec.NodeName == "":
		// Pods of TrainJobs have other labels.
		case slices.Contains(seen.LauncherPods, pod):
			placesLauncher = false
		default:
			request.Workers--
		}
	}
	if placesLauncher {
		request.Launcher = new(resources.ShapeOf(podspec.PodOf(job.Launcher.Template)))
	}
	if request.Workers > 0 {
		request.Worker = new(resources.ShapeOf(podspec.PodOf(job.Workers.Template)))
	}
	return request
}
