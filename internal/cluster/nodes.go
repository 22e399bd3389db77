package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"opendatahub.io/mpijob/internal/gang"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/podstatus"
)

// Nodes tracks the free capacity of each node of the cluster. It watches all nodes, and all pods that have not ended,
// of which it only keeps requests, node and owner.
type Nodes struct {
	// Resources assigns indexes to the resources of nodes and pods.
	Resources *gang.Resources

	core    rest.Interface
	changed chan struct{}

	mu    sync.Mutex
	nodes map[string]gang.Node
	// pods are the pods that are bound to a node, and those of jobs that are not, by UID. used and leaving are the sums of their requests.
	pods          map[types.UID]heldPod
	used, leaving map[string]gang.Totals
	// ours are the pods of jobs, and of JobSets, which may be those of TrainJobs.
	ours map[mpi.ID]map[types.UID]heldPod
	// listed records which of the two lists were read completely.
	listed map[string]bool
}

// heldPod is the part of a pod that is kept.
type heldPod struct {
	// node is where the pod is bound; empty if it is not. Only there does it count as used. assigned is the node that a pod of
	// a job asks for that is not bound: anybody can create such a pod, so that it uses nothing by itself.
	node, assigned string
	amounts        gang.Amounts
	leaving        bool
	priority       int32
	// job, name and role are set for pods of jobs. The name is that of mpi.Job.WorkerName; JobSet adds a suffix to it.
	job  mpi.ID
	name string
	role mpi.Role
}

func (p heldPod) same(other heldPod) bool {
	return p.node == other.node && p.assigned == other.assigned && p.leaving == other.leaving && p.priority == other.priority && p.job == other.job && p.name == other.name && p.role == other.role &&
		slices.Equal(p.amounts, other.amounts)
}

// GangPod is a pod with the labels of a job, which anybody can set.
type GangPod struct {
	Name string
	Role mpi.Role
	// Node is where it is bound; empty if it is not. Assigned is the node that a pod without one asks for, if it asks for one.
	Node, Assigned string
	Amounts        gang.Amounts
	// Leaving is whether the pod is being deleted.
	Leaving bool
}

// NewNodes returns Nodes without nodes; Run fills it.
func NewNodes(core typedcore.CoreV1Interface) *Nodes {
	return &Nodes{
		Resources: gang.NewResources(), core: core.RESTClient(), changed: make(chan struct{}, 1),
		nodes: map[string]gang.Node{}, pods: map[types.UID]heldPod{}, used: map[string]gang.Totals{}, leaving: map[string]gang.Totals{},
		ours: map[mpi.ID]map[types.UID]heldPod{}, listed: map[string]bool{},
	}
}

// MayRead reports whether the operator may list the nodes and pods of the whole cluster. Only a refusal counts: other errors
// are tried again when they are watched.
func (n *Nodes) MayRead(ctx context.Context) bool {
	for _, resource := range []string{"nodes", "pods"} {
		err := n.core.Get().Resource(resource).VersionedParams(&metav1.ListOptions{Limit: 1}, metav1.ParameterCodec).Do(ctx).Error()
		if apierrors.IsForbidden(err) {
			return false
		}
	}
	return true
}

// Run watches until the context ends.
func (n *Nodes) Run(ctx context.Context) {
	notEnded := fields.AndSelectors(
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)), fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed)))
	var both sync.WaitGroup
	watch := func(resource string, example runtime.Object, selector fields.Selector, into toolscache.ReflectorStore) {
		list := toolscache.ToListWatcherWithWatchListSemantics(toolscache.NewListWatchFromClient(n.core, resource, metav1.NamespaceAll, selector), n.core)
		reflector := toolscache.NewReflectorWithOptions(Steady(list), example, into, toolscache.ReflectorOptions{Name: resource + " of the cluster"})
		both.Go(func() { reflector.RunWithContext(ctx) })
	}
	watch("nodes", &corev1.Node{}, fields.Everything(), nodeStore{n})
	watch("pods", &corev1.Pod{}, notEnded, podStore{n})
	both.Wait()
}

// Changed returns a channel that receives a value when something changed since the last receive.
func (n *Nodes) Changed() <-chan struct{} { return n.changed }

func (n *Nodes) tell() {
	select {
	case n.changed <- struct{}{}:
	default:
	}
}

// Snapshot returns the capacity and free capacity of nodes, and the pods of each job in no order; false until both
// lists were read.
func (n *Nodes) Snapshot(now time.Time) (*gang.Snapshot, map[mpi.ID][]GangPod, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.listed["nodes"] || !n.listed["pods"] {
		return nil, nil, false
	}
	snapshot := &gang.Snapshot{At: now, Resources: n.Resources, Nodes: make([]gang.Node, 0, len(n.nodes))}
	for _, name := range slices.Sorted(maps.Keys(n.nodes)) {
		node := n.nodes[name]
		node.Used, node.Leaving = slices.Clone(n.used[name]), slices.Clone(n.leaving[name])
		snapshot.Nodes = append(snapshot.Nodes, node)
	}
	ours := make(map[mpi.ID][]GangPod, len(n.ours))
	for job, pods := range n.ours {
		list := make([]GangPod, 0, len(pods))
		for _, pod := range pods {
			list = append(list, GangPod{Name: pod.name, Role: pod.role, Node: pod.node, Assigned: pod.assigned, Amounts: pod.amounts, Leaving: pod.leaving})
		}
		ours[job] = list
	}
	return snapshot, ours, true
}

// Others returns what pods with a node have that belong to none of the jobs for which isJob is true. Jobs of other frameworks have the labels of a JobSet,
// too.
func (n *Nodes) Others(isJob func(mpi.ID) bool) gang.Others {
	n.mu.Lock()
	defer n.mu.Unlock()
	others := gang.Others{}
	for _, pod := range n.pods {
		if pod.node == "" || pod.name != "" && isJob(pod.job) {
			continue
		}
		if others[pod.node] == nil {
			others[pod.node] = map[int32]gang.Totals{}
		}
		others[pod.node][pod.priority] = others[pod.node][pod.priority].Plus(pod.amounts)
	}
	return others
}

// nodeStore receives nodes from a watch.
type nodeStore struct{ *Nodes }

func (s nodeStore) Add(object any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.add(object)
}

func (s nodeStore) add(object any) error {
	node, ok := object.(*corev1.Node)
	if !ok {
		return fmt.Errorf("%T is no node", object)
	}
	ready := slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
	now := gang.Node{
		Name: node.Name, Labels: node.Labels, Taints: node.Spec.Taints, Ready: ready, Unschedulable: node.Spec.Unschedulable,
		Allocatable: s.Resources.Totals(node.Status.Allocatable),
	}
	// Heartbeats of nodes, twice a minute, change nothing here.
	if !equality.Semantic.DeepEqual(s.nodes[node.Name], now) {
		s.nodes[node.Name] = now
		s.tell()
	}
	return nil
}

func (s nodeStore) Update(object any) error { return s.Add(object) }

func (s nodeStore) Delete(object any) error {
	node, ok := object.(*corev1.Node)
	if !ok {
		return fmt.Errorf("%T is no node", object)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.nodes, node.Name)
	s.tell()
	return nil
}

func (s nodeStore) Replace(objects []any, _ string) error {
	return s.replace("nodes", objects, func() { clear(s.nodes) }, s.add)
}

func (nodeStore) Resync() error { return nil }

// podStore receives pods from a watch.
type podStore struct{ *Nodes }

// Transformer trims pods while they are listed.
func (podStore) Transformer() toolscache.TransformFunc {
	return func(object any) (any, error) {
		if pod, ok := object.(*corev1.Pod); ok {
			pod.ManagedFields, pod.Annotations, pod.OwnerReferences = nil, nil, nil
			pod.Spec.Volumes = nil
			for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
				for i, c := range containers {
					containers[i] = corev1.Container{Name: c.Name, Resources: c.Resources, RestartPolicy: c.RestartPolicy}
				}
			}
		}
		return object, nil
	}
}

func (s podStore) Add(object any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.add(object)
}

func (s podStore) add(object any) error {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return fmt.Errorf("%T is no pod", object)
	}
	held := heldPod{node: pod.Spec.NodeName, leaving: pod.DeletionTimestamp != nil, priority: ptr.Deref(pod.Spec.Priority, 0)}
	held.identify(pod)
	if podstatus.HasEnded(pod) || held.node == "" && held.name == "" {
		s.drop(pod.UID)
		return nil
	}
	held.amounts = s.Resources.Amounts(gang.PodRequests(pod))
	if was, found := s.pods[pod.UID]; !found || !was.same(held) {
		s.drop(pod.UID)
		s.hold(pod.UID, held)
	}
	return nil
}

// identify sets the job that a pod belongs to by its labels, if any.
func (p *heldPod) identify(pod *corev1.Pod) {
	job, jobSet := pod.Labels[mpi.LabelJob], pod.Labels[mpi.LabelJobSet]
	switch {
	case job != "" && pod.Labels[mpi.LabelOperator] == mpi.OperatorName:
		p.job, p.name, p.role = mpi.ID{Kind: mpi.KindMPIJob, Namespace: pod.Namespace, Name: job}, pod.Name, mpi.Role(pod.Labels[mpi.LabelRole])
		if p.node == "" {
			p.assigned = pinnedNode(pod.Spec.Affinity)
		}
	case jobSet != "":
		p.job, p.role = mpi.ID{Kind: mpi.KindTrainJob, Namespace: pod.Namespace, Name: jobSet}, mpi.RoleWorker
		p.name = pod.Name[:max(strings.LastIndex(pod.Name, "-"), 0)]
		if pod.Labels[mpi.LabelJobSetJob] == mpi.JobSetLauncher {
			p.role = mpi.RoleLauncher
		}
	}
}

func (s podStore) Update(object any) error { return s.Add(object) }

func (s podStore) Delete(object any) error {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return fmt.Errorf("%T is no pod", object)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(pod.UID)
	return nil
}

func (s podStore) Replace(objects []any, _ string) error {
	empty := func() {
		clear(s.pods)
		clear(s.used)
		clear(s.leaving)
		clear(s.ours)
	}
	return s.replace("pods", objects, empty, s.add)
}

func (podStore) Resync() error { return nil }

// replace replaces everything with a complete list. Snapshots wait meanwhile: with only some of its pods, the cluster
// would appear to have free capacity.
func (n *Nodes) replace(resource string, objects []any, empty func(), add func(object any) error) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	empty()
	for _, object := range objects {
		if err := add(object); err != nil {
			return err
		}
	}
	n.listed[resource] = true
	n.tell()
	return nil
}

func (n *Nodes) hold(uid types.UID, pod heldPod) {
	n.pods[uid] = pod
	if pod.node != "" {
		n.used[pod.node] = n.used[pod.node].Plus(pod.amounts)
	}
	if pod.node != "" && pod.leaving {
		n.leaving[pod.node] = n.leaving[pod.node].Plus(pod.amounts)
	}
	if pod.name != "" {
		if n.ours[pod.job] == nil {
			n.ours[pod.job] = map[types.UID]heldPod{}
		}
		n.ours[pod.job][uid] = pod
	}
	n.tell()
}

func (n *Nodes) drop(uid types.UID) {
	pod, found := n.pods[uid]
	if !found {
		return
	}
	delete(n.pods, uid)
	if pod.node != "" {
		n.used[pod.node] = n.used[pod.node].Minus(pod.amounts)
	}
	if pod.node != "" && pod.leaving {
		n.leaving[pod.node] = n.leaving[pod.node].Minus(pod.amounts)
	}
	if delete(n.ours[pod.job], uid); len(n.ours[pod.job]) == 0 {
		delete(n.ours, pod.job)
	}
	n.tell()
}

// pinnedNode returns the node that was assigned to a pod of a job that has no node yet (plan: pinned), or "".
func pinnedNode(affinity *corev1.Affinity) string {
	if affinity == nil || affinity.NodeAffinity == nil {
		return ""
	}
	var terms []corev1.NodeSelectorTerm
	if required := affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution; required != nil {
		terms = append(terms, required.NodeSelectorTerms...)
	}
	for _, preferred := range affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
		terms = append(terms, preferred.Preference)
	}
	for _, term := range terms {
		for _, field := range term.MatchFields {
			if field.Key == metav1.ObjectNameField && field.Operator == corev1.NodeSelectorOpIn && len(field.Values) == 1 {
				return field.Values[0]
			}
		}
	}
	return ""
}
