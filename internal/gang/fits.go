package gang

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"opendatahub.io/mpijob/internal/mpi"
)

// Fits adds to a state how many of the pods without a node would find room now, and on how many nodes. It counts what pods
// ask for and nodes have free; labels and taints it does not look at.
func Fits(job mpi.Job, seen mpi.Observed, nodes []mpi.Node, state *mpi.GangState) {
	workers, launcher := missing(job, seen)
	perWorker, forLauncher := asked(job.Workers.Template.Spec), asked(job.Launcher.Template.Spec)
	rooms, host, left := make([]int64, len(nodes)), -1, int64(0)
	for i, node := range nodes {
		if node.Ready && !node.Unschedulable {
			rooms[i] = roomFor(node.Free, perWorker)
		}
	}
	for i, node := range nodes {
		if !launcher || !node.Ready || node.Unschedulable || roomFor(node.Free, forLauncher) < 1 {
			continue
		}
		// The launcher goes where it leaves the most room for workers.
		beside := node.Free.DeepCopy()
		take(beside, forLauncher)
		if room := roomFor(beside, perWorker); host < 0 || rooms[i]-room < rooms[host]-left {
			host, left = i, room
		}
	}
	pods, fit := int64(0), int32(0)
	for i := range nodes {
		if i == host {
			rooms[i] = left
			pods++
		}
		if rooms[i] > 0 || i == host {
			fit++
		}
		pods += min(rooms[i], workers)
	}
	if host >= 0 {
		workers++
	}
	state.PodsFit, state.NodesFit, state.NodesTotal = new(int32(min(pods, workers))), &fit, new(int32(len(nodes)))
}

// missing is how many workers have no node yet, and whether the launcher has none.
func missing(job mpi.Job, seen mpi.Observed) (workers int64, launcher bool) {
	workers, launcher = int64(job.Workers.Count), !job.Launcher.None && !job.Launcher.AfterWorkers
	for _, pod := range pods(job, seen) {
		switch {
		case pod.Spec.NodeName == "":
		case pod.Labels[mpi.LabelRole] == string(mpi.RoleLauncher):
			launcher = false
		default:
			workers--
		}
	}
	return workers, launcher
}

// asked is what a pod takes of its node: a place for a pod, and what its containers ask for.
func asked(spec corev1.PodSpec) corev1.ResourceList {
	list := mpi.Requests(spec)
	list[corev1.ResourcePods] = *resource.NewQuantity(1, resource.DecimalSI)
	return list
}

// roomFor is how many pods that ask for so much there is room for.
func roomFor(free, asked corev1.ResourceList) int64 {
	fit := int64(math.MaxInt32)
	for name, quantity := range asked {
		if quantity.Sign() > 0 {
			have := free[name]
			fit = min(fit, max(0, have.MilliValue()/quantity.MilliValue()))
		}
	}
	return fit
}

func take(free, asked corev1.ResourceList) {
	for name, quantity := range asked {
		left := free[name]
		left.Sub(quantity)
		free[name] = left
	}
}
