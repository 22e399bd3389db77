package gang

import (
	"slices"
	"time"

	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
)

// HeldBy returns the state of a job without pods that the embedded scheduler holds on nodes with this free capacity, if no other
// job waits; nil if all of its pods fit.
func HeldBy(now time.Time, job mpi.Job, seen jobstate.Observed, nodes []jobstate.Node) *jobstate.GangState {
	held, is := heldAlone(now, job, seen, nodes)
	if !is {
		return nil
	}
	return &jobstate.GangState{
		Backend: Embedded, Hold: true, Wanted: job.GangSize(), Never: held.Never, Reason: held.Reason, Message: held.Message,
		PodsFit: new(min(held.PodsFit, job.Pods())), NodesFit: new(held.NodesFit), NodesTotal: new(held.NodesTotal),
	}
}

// FitsNever sets in a state that no nodes can ever hold all of a job's pods, with the reason, if none of them has a node. Of an MPIJob that
// has not asked to be placed as a whole and of which no worker fits, the pods show the reason, unless it is held back.
func FitsNever(job mpi.Job, seen jobstate.Observed, nodes []jobstate.Node, state *jobstate.GangState) {
	if CountPlaced(job, seen) > 0 {
		return
	}
	if slices.ContainsFunc(nodes, func(node jobstate.Node) bool { return len(node.Allocatable) == 0 }) {
		// Its kubelet has not registered it yet, and it may hold them.
		return
	}
	if seen.Queue != nil && !seen.Queue.Admitted {
		// Once it has admitted a job, Kueue has chosen its domain, and added the tolerations of the flavor.
		job, nodes = job.WithKueueTopology(), slices.Clone(nodes)
		for i := range nodes {
			nodes[i].Taints = nil
		}
	}
	held, is := heldAlone(seen.Now, job, seen, nodes)
	if is && held.Never && (held.Partly || job.Gang.Wanted || job.External || seen.Queue != nil || state.Hold) {
		state.Never, state.Reason, state.Message = true, held.Reason, held.Message
	}
}

// heldAlone returns the place of a job in a queue of the embedded scheduler in which no other job waits. It reports whether the job
// is held.
func heldAlone(now time.Time, job mpi.Job, seen jobstate.Observed, nodes []jobstate.Node) (Held, bool) {
	snapshot := snapshotOf(nodes)
	for i := range snapshot.Nodes {
		node := &snapshot.Nodes[i]
		for j := range nodes {
			if nodes[j].Name != node.Name {
				continue
			}
			free := node.Allocatable
			node.Allocatable = snapshot.Resources.Totals(nodes[j].Allocatable)
			node.Used = make(Totals, len(node.Allocatable))
			for r := range node.Allocatable {
				if node.Used[r] = node.Allocatable[r]; r < len(free) {
					node.Used[r] -= free[r]
				}
			}
		}
	}
	entry := Entry{UID: job.UID, Namespace: job.Namespace, Name: job.Name, Request: missing(job, seen, snapshot.Resources)}
	held, is := Decide(now, snapshot, []Entry{entry}, nil, Usage{}).Held[job.UID]
	return held, is
}
