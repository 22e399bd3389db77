package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"opendatahub.io/mpijob/internal/gang"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/phrase"
	"opendatahub.io/mpijob/internal/podspec"
	"opendatahub.io/mpijob/internal/quota"
)

// nodesTimeout limits the time until the cache of nodes is filled, while a user waits.
const nodesTimeout = time.Second

// nodes returns the nodes of the cluster from the cache; nothing if it is not filled in time.
func (c *Cluster) nodes(ctx context.Context, timeout time.Duration) []corev1.Node {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var list corev1.NodeList
	if err := c.client.List(ctx, &list); err != nil {
		return nil
	}
	return list.Items
}

// oversized returns the error for a pod that no node can hold, or the warning for one that none of today's nodes can run: no
// node matches it, or a device is not offered, which may be due to a driver that does not run yet.
func (p probe) oversized(pod *corev1.Pod, nodes []corev1.Node, rdma mpi.RDMA) (*field.Error, string) {
	over := gang.Oversized(pod, nodes)
	switch {
	case over == nil:
		return nil, ""
	case over.Eligible == 0:
		return nil, fmt.Sprintf("%s: none of the cluster's %s matches the node selector, node affinity and tolerations of the pod", p.at, phrase.Count(over.Nodes, "node"))
	case over.Absent:
		absent := slices.DeleteFunc(over.Short, func(s gang.ShortResource) bool { return s.Have.Sign() > 0 })
		names := make([]string, len(absent))
		for i, s := range absent {
			names[i] = string(s.Name)
		}
		text := fmt.Sprintf("%s: no node that the pod may run on offers %s", p.at, strings.Join(names, " and "))
		if !rdma.Fixed && slices.ContainsFunc(absent, func(s gang.ShortResource) bool { return podspec.IsRDMA(s.Name) }) {
			text += fmt.Sprintf("; set %s to %s to run over TCP if no node offers RDMA", mpi.RDMAPath, mpi.RDMAOptional)
		}
		return nil, text
	}
	who := "each worker"
	if p.role == mpi.RoleLauncher {
		who = "the launcher"
	}
	var requests, has []string
	for _, short := range over.Short {
		requests = append(requests, fmt.Sprintf("%s of %s", sizeText(short.Name, short.Requested), short.Name))
		has = append(has, fmt.Sprintf("%s of %s", sizeText(short.Name, short.Have), short.Name))
	}
	detail := fmt.Sprintf("%s requests %s in total, and of %s that it may run on, the largest (%s) has %s; request at most that, or ask the cluster administrator for larger nodes",
		who, strings.Join(requests, " and "), phrase.Count(over.Eligible, "node"), over.Node, strings.Join(has, " and "))
	at, value := p.sizeField(over.Short[0].Name)
	if value == "" {
		return field.Forbidden(at, detail), ""
	}
	return field.Invalid(at, value, detail), ""
}

// crowded returns the warning for the pods of a job each of which fits on a node, but not all of them at once. It is no error: nodes may
// be added, and the job then waits for them.
func crowded(job mpi.Job, pods []quota.Pods, nodes []corev1.Node) string {
	var launcher, worker *corev1.Pod
	for _, of := range pods {
		if of.Role == mpi.RoleLauncher {
			launcher = of.Pod
		} else {
			worker = of.Pod
		}
	}
	why := gang.Crowded(job, launcher, worker, nodes)
	if why == "" {
		return ""
	}
	return fmt.Sprintf("%s: %s Until then, the job waits", job.Fields.WorkerTemplate, why)
}

// sizeField returns the field in which the user requests the most of a resource, with its value; the value is empty if it is
// not in the user's template.
func (p probe) sizeField(name corev1.ResourceName) (at *field.Path, value string) {
	at = p.containers
	var most resource.Quantity
	for i, container := range p.template.Spec.Containers {
		sizes := p.containers
		if !p.isPerNode {
			sizes = p.containers.Index(i).Child("resources")
		}
		// Requests that are not set are those of the limits.
		list, size := "requests", container.Resources.Requests[name]
		if size.IsZero() {
			list, size = "limits", container.Resources.Limits[name]
		}
		if size.Cmp(most) > 0 {
			at, value, most = sizes.Child(list).Key(string(name)), size.String(), size
		}
	}
	return at, value
}

// sizeText returns an amount of a resource; amounts of memory and storage in whole MiB, rounded down.
func sizeText(name corev1.ResourceName, size resource.Quantity) string {
	if name == corev1.ResourceMemory || name == corev1.ResourceEphemeralStorage {
		return resource.NewQuantity(size.Value()>>20<<20, resource.BinarySI).String()
	}
	return size.String()
}
