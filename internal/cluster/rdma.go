package cluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
)

// SettleRDMA returns an MPIJob without its requests for RDMA if that is optional and no node offers it. Pods of the job decide
// if there are any, since new pods must equal them, and else the nodes. For a TrainJob its JobSet decides (trainjob.Job.Convert).
func (c *Cluster) SettleRDMA(ctx context.Context, job mpi.Job, seen jobstate.Observed) mpi.Job {
	if !job.RDMA.Optional || job.External {
		return job
	}
	var made []metav1.Object
	for _, pod := range seen.AllPods() {
		made = append(made, pod)
	}
	if seen.Launcher != nil && !ptr.Deref(seen.Launcher.Spec.Suspend, false) {
		made = append(made, seen.Launcher)
	}
	isMarked := func(object metav1.Object) bool { return object.GetLabels()[mpi.LabelWithoutRDMA] != "" }
	switch {
	case slices.ContainsFunc(made, isMarked):
		return job.WithoutRDMA()
	case len(made) > 0 || job.Recorded.Finish != nil:
		return job
	case c.LacksRDMA(ctx, job.PodSpecs()):
		return job.WithoutRDMA()
	}
	return job
}

// AdmitRDMA returns a new job as it will run, with a warning if that is without the RDMA that its pods request.
func (c *Cluster) AdmitRDMA(ctx context.Context, job mpi.Job) (mpi.Job, []string) {
	lacking := job.RDMA.Optional && c.LacksRDMA(ctx, job.PodSpecs())
	if lacking {
		job = job.WithoutRDMA()
	}
	if len(job.RDMA.Removed) == 0 {
		return job, nil
	}
	text := fmt.Sprintf("%s: no node offers the %s that the pods request: the job runs over TCP, which is slower", mpi.RDMAPath, mpi.ResourceNames(job.RDMA.Removed))
	if lacking && job.Queue != "" {
		text += fmt.Sprintf(". Kueue still counts the request: the job waits if queue %s has no quota for it", job.Queue)
	}
	return job, []string{text}
}

// nodeCacheTimeout is how long a job that may run without RDMA waits for the cache of nodes to be filled.
const nodeCacheTimeout = 3 * time.Second

// LacksRDMA reports whether no node of the cluster offers the RDMA that pods request. If the nodes are unknown, it returns
// false: the pods then wait for RDMA.
func (c *Cluster) LacksRDMA(ctx context.Context, pods []corev1.PodSpec) bool {
	if !mpi.RequestsRDMA(pods) {
		return false
	}
	nodes := c.nodes(ctx, nodeCacheTimeout)
	offers := make([]corev1.ResourceList, len(nodes))
	for i := range nodes {
		offers[i] = nodes[i].Status.Allocatable
	}
	return mpi.LacksRDMA(pods, offers)
}
