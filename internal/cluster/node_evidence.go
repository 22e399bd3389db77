package cluster

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/podspec"
	"opendatahub.io/mpijob/internal/podstatus"
)

// silentNodes returns the nodes of pods that are running but not ready, as Kubernetes marks pods whose node does not
// respond, and of pods that no kubelet has taken.
func silentNodes(seen jobstate.Observed) []string {
	const most = 16
	var names []string
	for _, pod := range seen.AllPodsAndInitializers() {
		if (Unready(pod) || untaken(pod)) && pod.Spec.NodeName != "" && !slices.Contains(names, pod.Spec.NodeName) && len(names) < most {
			names = append(names, pod.Spec.NodeName)
		}
	}
	slices.Sort(names)
	return names
}

// unknownNodes returns those of the silent nodes that are not in a list of nodes.
func unknownNodes(seen jobstate.Observed, nodes []jobstate.Node) []string {
	return slices.DeleteFunc(silentNodes(seen), func(name string) bool {
		return slices.ContainsFunc(nodes, func(node jobstate.Node) bool { return node.Name == name })
	})
}

// untaken reports whether no kubelet has reported a pod yet.
func untaken(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodPending && pod.Status.StartTime == nil && len(pod.Status.ContainerStatuses) == 0
}

// Unready reports whether a pod is in phase Running but not ready.
func Unready(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodRunning && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionFalse
	})
}

// readNodes reads nodes by name, without their free capacity.
func (g *Gatherer) readNodes(ctx context.Context, names []string) []jobstate.Node {
	nodes := make([]jobstate.Node, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() {
			var node corev1.Node
			switch err := g.live.Get(ctx, client.ObjectKey{Name: name}, &node); {
			case apierrors.IsNotFound(err):
				nodes[i] = jobstate.Node{Name: name, Missing: true}
			case err == nil:
				nodes[i] = nodeOf(&node, nil)
			}
		})
	}
	all.Wait()
	return slices.DeleteFunc(nodes, func(node jobstate.Node) bool { return node.Name == "" })
}

// freeCapacity returns the nodes with their free capacity, and nothing if they cannot all be read. It reads them again if they were read
// before a time.
func (g *Gatherer) freeCapacity(ctx context.Context, notBefore time.Time) ([]jobstate.Node, int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.clock.Since(g.nodesAt) < nodesTTL && !g.nodesAt.Before(notBefore) {
		return g.nodes, g.nodesLeft
	}
	var list corev1.NodeList
	if err := g.live.List(ctx, &list, client.Limit(jobstate.MaxNodes)); err != nil {
		return nil, 0
	}
	free := map[string]corev1.ResourceList{}
	for i := range list.Items {
		free[list.Items[i].Name] = list.Items[i].Status.Allocatable.DeepCopy()
	}
	if !g.subtractRequests(ctx, free) {
		return nil, 0
	}
	nodes := make([]jobstate.Node, 0, len(list.Items))
	for i := range list.Items {
		nodes = append(nodes, nodeOf(&list.Items[i], free[list.Items[i].Name]))
	}
	slices.SortFunc(nodes, func(a, b jobstate.Node) int { return strings.Compare(a.Name, b.Name) })
	g.nodes, g.nodesLeft, g.nodesAt = nodes, 0, g.clock.Now()
	if list.RemainingItemCount != nil {
		g.nodesLeft = int(*list.RemainingItemCount)
	}
	return g.nodes, g.nodesLeft
}

// subtractRequests subtracts the requests of pods from the free capacity of their nodes; false if not all pods could
// be read.
func (g *Gatherer) subtractRequests(ctx context.Context, free map[string]corev1.ResourceList) bool {
	next := ""
	for range maxPages {
		var pods corev1.PodList
		if err := g.live.List(ctx, &pods, client.Limit(pageSize), client.Continue(next)); err != nil {
			return false
		}
		for i := range pods.Items {
			pod := &pods.Items[i]
			room := free[pod.Spec.NodeName]
			if room == nil || podstatus.HasEnded(pod) {
				continue
			}
			asked := podspec.Requests(pod.Spec)
			asked[corev1.ResourcePods] = *resource.NewQuantity(1, resource.DecimalSI)
			for name, quantity := range asked {
				if left, has := room[name]; has {
					left.Sub(quantity)
					room[name] = left
				}
			}
		}
		if next = pods.Continue; next == "" {
			return true
		}
	}
	return false
}

// Nodes returns all nodes with their free capacity, at most a few seconds old and not as they were before a time; nil if they cannot be
// read or are too many.
func (g *Gatherer) Nodes(ctx context.Context, notBefore time.Time) []jobstate.Node {
	nodes, left := g.freeCapacity(ctx, notBefore)
	if left > 0 {
		return nil
	}
	return nodes
}

// Cordoned returns those of the nodes of a job's pods that accept no new pods; nothing if they cannot be read. All jobs share one request
// in a minute, which returns only such nodes.
func (g *Gatherer) Cordoned(ctx context.Context, seen jobstate.Observed) []string {
	cordoned := g.cordoned.read(ctx)
	var names []string
	for pod := range podsIn(seen) {
		if name := pod.Spec.NodeName; cordoned[name] && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// cordonedNodes reads the nodes that accept no new pods. They are advice: if they cannot be read there are none.
type cordonedNodes struct {
	live  client.Reader
	clock clock.PassiveClock

	mu    sync.Mutex
	until time.Time
	names map[string]bool
}

const (
	// cordonedTTL is how long the cordoned nodes are cached, and cordonedTimeout limits the request, for which all running jobs wait.
	cordonedTTL     = time.Minute
	cordonedTimeout = time.Second
)

func (c *cordonedNodes) read(ctx context.Context) map[string]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock.Now()
	if now.Before(c.until) {
		return c.names
	}
	c.until = now.Add(cordonedTTL)
	ctx, cancel := context.WithTimeout(ctx, cordonedTimeout)
	defer cancel()
	var list corev1.NodeList
	err := c.live.List(ctx, &list, client.MatchingFields{"spec.unschedulable": "true"}, client.Limit(jobstate.MaxNodes))
	c.names = map[string]bool{}
	if err != nil {
		return c.names
	}
	for i := range list.Items {
		c.names[list.Items[i].Name] = true
	}
	return c.names
}
