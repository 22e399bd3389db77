package cluster

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/curves"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/mpi"
)

const (
	// gatherTimeout limits how long evidence is gathered. Evidence that arrives later is left out.
	gatherTimeout = 5 * time.Second
	// pageSize and maxPages limit lists of objects that do not belong to the job.
	pageSize, maxPages = 500, 20
	// maxLogReads is how many logs are read at once, for all jobs: each takes up to 2 MiB until it is cut.
	maxLogReads = 16
	// nodesTTL is how long the free capacity of nodes is cached: computing it reads all pods.
	nodesTTL = 15 * time.Second
)

// Gatherer reads the evidence of a diagnosis that is not cached from the API server.
type Gatherer struct {
	live   client.Reader
	logs   typedcore.PodsGetter
	masker logs.Masker
	clock  clock.PassiveClock
	// clusterQuotas are OpenShift's quotas.
	clusterQuotas *clusterQuotas
	// cordoned are the nodes that accept no new pods.
	cordoned *cordonedNodes
	// reads has an entry for each log that is being read.
	reads chan struct{}
	// events are the events of namespaces, for the jobs that are diagnosed at the same time.
	events eventLists

	mu        sync.Mutex
	nodesAt   time.Time
	nodes     []jobstate.Node
	nodesLeft int
}

// NewGatherer returns a Gatherer that reads objects and logs from the API server. The masker removes secrets from
// texts before they are used.
func NewGatherer(live client.Reader, pods typedcore.PodsGetter, masker logs.Masker, clock clock.PassiveClock) *Gatherer {
	return &Gatherer{
		live: live, logs: pods, masker: masker, clock: clock, clusterQuotas: &clusterQuotas{live: live, clock: clock},
		cordoned: &cordonedNodes{live: live, clock: clock}, reads: make(chan struct{}, maxLogReads),
	}
}

// Gather reads the evidence of a stuck or failed job in parallel, within 5 s. It leaves out what cannot be read.
func (g *Gatherer) Gather(ctx context.Context, job mpi.Job, seen jobstate.Observed, refusals []jobstate.Refusal) jobstate.Evidence {
	ctx, cancel := context.WithTimeout(ctx, gatherTimeout)
	defer cancel()
	evidence := jobstate.Evidence{Refusals: refusals}
	var all sync.WaitGroup
	all.Go(func() { evidence.Events = g.readEvents(ctx, job, seen) })
	all.Go(func() {
		evidence.Logs, evidence.Training, evidence.CurveLines = g.readLogs(ctx, job, seen, logLimit{lines: jobstate.MaxLogLines, bytes: 32 << 20})
		evidence.Advance = curves.LastAdvance(evidence.CurveLines)
	})
	unplaced, pending := unstartedPods(seen)
	if unplaced || outOfMemory(seen) {
		all.Go(func() {
			nodes, left := g.freeCapacity(ctx, time.Time{})
			evidence.Nodes, evidence.NodesLeft = slices.Concat(nodes, g.readNodes(ctx, unknownNodes(seen, nodes))), left
		})
	} else if names := silentNodes(seen); len(names) > 0 {
		all.Go(func() { evidence.Nodes = g.readNodes(ctx, names) })
	}
	if len(job.Connections) > 0 && lacksPrograms(seen) {
		all.Go(func() { evidence.PathFrom = g.connectionsWithPath(ctx, job) })
	}
	if pending {
		all.Go(func() { evidence.Claims = g.readClaims(ctx, job, seen) })
	}
	if slices.ContainsFunc(refusals, func(r jobstate.Refusal) bool { return !r.Taken }) {
		all.Go(func() {
			evidence.Quotas, _ = Quotas(ctx, g.live, job.Namespace)
			evidence.Quotas = append(evidence.Quotas, g.clusterQuotas.in(ctx, job.Namespace)...)
		})
	}
	all.Wait()
	return evidence
}

// Listen reads only the last output of a healthy job, within 5 s.
func (g *Gatherer) Listen(ctx context.Context, job mpi.Job, seen jobstate.Observed) (evidence jobstate.Evidence) {
	ctx, cancel := context.WithTimeout(ctx, gatherTimeout)
	defer cancel()
	evidence.Logs, evidence.Training, evidence.CurveLines = g.readLogs(ctx, job, seen, logLimit{lines: 100, bytes: 4 << 20})
	evidence.Advance = curves.LastAdvance(evidence.CurveLines)
	return evidence
}

func nodeOf(node *corev1.Node, free corev1.ResourceList) jobstate.Node {
	ready := slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
	return jobstate.Node{
		Name: node.Name, Allocatable: node.Status.Allocatable, Free: free, Labels: node.Labels, Taints: node.Spec.Taints,
		Ready: ready, Unschedulable: node.Spec.Unschedulable,
	}
}

// unstartedPods reports whether pods are unscheduled, and whether any have not started.
func unstartedPods(seen jobstate.Observed) (unplaced, pending bool) {
	for _, pod := range seen.AllPodsAndInitializers() {
		if pod.Status.Phase != corev1.PodPending {
			continue
		}
		pending = true
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
				unplaced = true
			}
		}
	}
	return unplaced, pending
}

// outOfMemory reports whether the kernel killed a process of a job because of memory, according to the kubelet or an agent.
func outOfMemory(seen jobstate.Observed) bool {
	for pod := range podsIn(seen) {
		if summary, is := mpi.AgentSummary(pod); is && summary.OOMKills > 0 {
			return true
		}
		for _, c := range pod.Status.ContainerStatuses {
			if ended := cmp.Or(c.State.Terminated, c.LastTerminationState.Terminated); ended != nil && ended.Reason == "OOMKilled" {
				return true
			}
		}
	}
	return false
}

// podsIn returns the pods of the launcher's attempts, latest first, and of the workers.
func podsIn(seen jobstate.Observed) func(func(*corev1.Pod) bool) {
	return func(yield func(*corev1.Pod) bool) {
		for _, pod := range slices.Backward(seen.LauncherPods) {
			if !yield(pod) {
				return
			}
		}
		for _, worker := range seen.Workers {
			if !yield(worker.Pod) {
				return
			}
		}
	}
}

// EndedBadly reports whether a container of a pod failed in its current or previous run, and when the first one did.
func EndedBadly(pod *corev1.Pod) (time.Time, bool) {
	at, bad := time.Time{}, pod.Status.Phase == corev1.PodFailed
	for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, c := range list {
			for _, ended := range []*corev1.ContainerStateTerminated{c.State.Terminated, c.LastTerminationState.Terminated} {
				if ended == nil || ended.ExitCode == 0 {
					continue
				}
				if bad = true; at.IsZero() || ended.FinishedAt.Time.Before(at) {
					at = ended.FinishedAt.Time
				}
			}
		}
	}
	return at, bad
}

func (g *Gatherer) event(e *corev1.Event) jobstate.Event {
	event := jobstate.Event{
		Kind: e.InvolvedObject.Kind, Name: e.InvolvedObject.Name, Warning: e.Type == corev1.EventTypeWarning,
		Reason: e.Reason, Message: g.masker.Line(e.Message), Count: max(e.Count, 1), Last: e.LastTimestamp.Time,
	}
	if e.Series != nil {
		event.Count, event.Last = max(e.Series.Count, event.Count), e.Series.LastObservedTime.Time
	}
	if event.Last.IsZero() {
		event.Last = e.EventTime.Time
	}
	if event.Last.IsZero() {
		event.Last = e.CreationTimestamp.Time
	}
	return event
}
