package gang

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"opendatahub.io/mpijob/internal/mpi"
)

// Oversize is why no node can hold a pod, even if nothing else runs there.
type Oversize struct {
	// Nodes is how many nodes there are, and Eligible how many of them the pod may run on by its node selector, affinity and
	// tolerations. If none is eligible, nothing else is set.
	Nodes, Eligible int
	// Node is the name of the node that is short of the fewest resources, and of these has the most.
	Node string
	// Short are the resources that this node has too little of, sorted by name.
	Short []ShortResource
	// Absent is set if no eligible node offers one of them: the driver of a device may not run yet.
	Absent bool
}

// ShortResource is a resource of which a pod requests more than a node has.
type ShortResource struct {
	Name            corev1.ResourceName
	Requested, Have resource.Quantity
}

// Oversized returns why none of the nodes can hold a pod; nil if one can, or none is registered. That a node is not ready, or
// cordoned, is not counted: this may pass.
func Oversized(pod *corev1.Pod, nodes []corev1.Node) *Oversize {
	requests := PodRequests(pod)
	shape := NewResources().ShapeOf(pod)
	found := Oversize{}
	offered := map[corev1.ResourceName]bool{}
	for i := range nodes {
		node := &nodes[i]
		if len(node.Status.Allocatable) == 0 {
			// Its kubelet has not registered it yet.
			continue
		}
		found.Nodes++
		if eligible := (&Node{Name: node.Name, Labels: node.Labels, Taints: node.Spec.Taints}); !eligible.takes(&shape, true) {
			continue
		}
		for name, have := range node.Status.Allocatable {
			offered[name] = offered[name] || have.Sign() > 0
		}
		short := shortOn(node, requests)
		if len(short) == 0 {
			return nil
		}
		if found.Eligible++; found.Eligible == 1 || isCloser(short, found.Short) || len(short) == len(found.Short) && !isCloser(found.Short, short) && node.Name < found.Node {
			found.Node, found.Short = node.Name, short
		}
	}
	if found.Nodes == 0 {
		return nil
	}
	found.Absent = slices.ContainsFunc(found.Short, func(s ShortResource) bool { return !offered[s.Name] })
	return &found
}

// Crowded returns why not all pods of a new job find room at once, though each of them does; "" if they do, or if no node is registered. The
// launcher and the worker are as the API server completes them, nil if the job has none. Nodes that are not ready, or cordoned, count, and
// what runs there does not. A queue may add tolerations.
func Crowded(job mpi.Job, launcher, worker *corev1.Pod, nodes []corev1.Node) string {
	snapshot := &Snapshot{Resources: NewResources()}
	inQueue := job.Queue != ""
	if inQueue {
		if job = job.WithKueueTopology(); job.Launcher.None {
			launcher = nil
		}
	}
	for i := range nodes {
		node := &nodes[i]
		if len(node.Status.Allocatable) == 0 {
			// Its kubelet has not registered it yet.
			continue
		}
		allocatable := node.Status.Allocatable
		if _, counted := allocatable[corev1.ResourcePods]; !counted {
			allocatable = maps.Clone(allocatable)
			allocatable[corev1.ResourcePods] = *resource.NewQuantity(math.MaxInt32, resource.DecimalSI)
		}
		of := Node{Name: node.Name, Labels: node.Labels, Taints: node.Spec.Taints, Ready: true, Allocatable: snapshot.Resources.Totals(allocatable)}
		if inQueue {
			of.Taints = nil
		}
		snapshot.Nodes = append(snapshot.Nodes, of)
	}
	if len(snapshot.Nodes) == 0 {
		return ""
	}
	slices.SortFunc(snapshot.Nodes, func(a, b Node) int { return strings.Compare(a.Name, b.Name) })
	entry := Entry{UID: job.UID, Request: Request{Workers: int(max(job.Workers.Count, 0)), Together: job.Topology.Key, Firmly: job.Topology.Required}}
	if launcher != nil {
		entry.Request.Launcher = new(snapshot.Resources.ShapeOf(launcher))
	}
	if worker != nil {
		entry.Request.Worker = new(snapshot.Resources.ShapeOf(worker))
	}
	if entry.Request.Least = int(job.GangSize()); job.Launcher.AfterWorkers {
		entry.Request.Least++
	}
	p := pass{nodes: snapshot, empty: snapshot.empty(), ever: map[string]bool{}}
	if never, empty := p.never(&entry, fit{}); never {
		return p.impossible(&entry, fit{}, empty).Message
	}
	return ""
}

// shortOn returns what a node has too little of for a pod, sorted by name.
func shortOn(node *corev1.Node, requests corev1.ResourceList) (short []ShortResource) {
	for _, name := range slices.SortedFunc(maps.Keys(requests), func(a, b corev1.ResourceName) int { return strings.Compare(string(a), string(b)) }) {
		requested, have := requests[name], node.Status.Allocatable[name]
		if requested.Cmp(have) > 0 {
			short = append(short, ShortResource{Name: name, Requested: requested, Have: have})
		}
	}
	return short
}

// isCloser reports whether a node that is short of one list holds a pod rather than one that is short of another.
func isCloser(short, other []ShortResource) bool {
	if n := cmp.Compare(len(short), len(other)); n != 0 {
		return n < 0
	}
	return short[0].Name == other[0].Name && short[0].Have.Cmp(other[0].Have) > 0
}
