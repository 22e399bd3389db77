package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/kueue"
	"opendatahub.io/mpijob/internal/mpi"
)

// TestQueueTopology: where Kueue chooses the nodes by its topology-aware scheduling (TAS), jobs of both kinds have all of their
// pods in the domain that they require, or none. A job that no domain has room for says so. Others wait for the quota, are
// suspended, resumed and preempted as a whole, also while the operators are killed. The role for users suffices.
func TestQueueTopology(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"MPIJob", trainjob.Kind} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			q := newTopologyQueue(t, kind)
			large := q.job("large", 4)
			q.create(large)
			waitsFor(t, kind, q.namespace, "large", "allows to fit only 3 out of")
			finds(t, kind, q.namespace, "large", codes.GangNeverFits)
			q.hasPods(large, 0)
			if err := api.Delete(t.Context(), large); err != nil {
				t.Fatal(err)
			}

			first, second := q.job("first", 3), q.job("second", 3)
			q.create(first)
			q.runsOnOneNode(first, 3)
			q.create(second)
			q.runsOnOneNode(second, 3)

			third := q.job("third", 3)
			q.create(third)
			waitsFor(t, kind, q.namespace, "third", "position 1")
			q.hasPods(third, 0)
			killOperators(t)
			odh(t, q.namespace, "suspend", strings.ToLower(kind)+"/first", "--as", q.user)
			reported(t, kind, q.namespace, "first", "it is suspended", inPhase(v1alpha1.PhaseSuspended))
			noPodsLeft(t, first)
			q.runsOnOneNode(third, 3)
			odh(t, q.namespace, "resume", strings.ToLower(kind)+"/first", "--as", q.user)
			waitsFor(t, kind, q.namespace, "first", "position 1")
			q.hasPods(first, 0)

			high := q.job("high", 3)
			labels := high.GetLabels()
			labels["kueue.x-k8s.io/priority-class"] = q.namespace + "-high"
			high.SetLabels(labels)
			q.create(high)
			q.runsOnOneNode(high, 3)
			evicted := 0
			for _, job := range []client.Object{second, third} {
				switch pods := len(livePods(t, job)); pods {
				case 0:
					evicted++
					waitsFor(t, kind, q.namespace, job.GetName(), "Evicted after admission")
				case 3:
				default:
					t.Errorf("%s has %d pods", job.GetName(), pods)
				}
			}
			if evicted != 1 {
				t.Errorf("%d jobs were evicted for the more important one, want 1", evicted)
			}
		})
	}
}

// TestQueueTopologyTakesBack: a job that Kueue has placed, and of which only the launcher has a node in time, gives its nodes and its
// quota back.
func TestQueueTopologyTakesBack(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"MPIJob", trainjob.Kind} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			q := newTopologyQueue(t, kind)
			job := q.job("lost", 3)
			workersFindNoNodes(t, job, 15)
			q.create(job)
			launcherHasNode(t, job)
			waitsFor(t, kind, q.namespace, "lost", "not all pods were scheduled in time (once)")
			noPodsLeft(t, job)
			other := q.job("other", 3)
			q.create(other)
			q.runsOnOneNode(other, 3)
		})
	}
}

// TestQueueTopologyNeedsRequests: where Kueue chooses the nodes, a job of either kind whose pods request nothing is refused in a queue without a quota of
// pods, with the field that sets requests. In one with such a quota, it is warned about, because not all versions of Kueue admit it, and its report
// says why it waits, as for one whose user had suspended it before. With a default of a LimitRange, such a job runs.
func TestQueueTopologyNeedsRequests(t *testing.T) {
	t.Parallel()
	for kind, field := range map[string]string{"MPIJob": "spec.mpiReplicaSpecs[Launcher].template.spec.containers[0].resources.requests", trainjob.Kind: "spec.trainer.resourcesPerNode"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			q := newTopologyQueue(t, kind, func(_ string, pod *corev1.PodSpec) {
				for _, containers := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
					for i := range containers {
						containers[i].Resources = corev1.ResourceRequirements{}
					}
				}
			})
			q.addUncounted()
			empty := q.emptyJob("empty")
			labels := empty.GetLabels()
			labels[mpi.LabelQueue] = "uncounted"
			empty.SetLabels(labels)
			refused(t, empty, apierrors.IsInvalid, field, "selects the nodes in queue uncounted (topology-aware scheduling), never admits such pods", "such as cpu: 100m")

			var texts warnings
			warned := q.emptyJob("warned")
			if err := submit(t, clientWith(t, &texts, func(*rest.Config) {}), warned); err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{field, "Kueue 0.19, which selects the nodes in queue team"} {
				if !strings.Contains(strings.Join(texts.texts, "\n"), want) {
					t.Errorf("the warnings are %q, want %q", texts.texts, want)
				}
			}
			finds(t, kind, q.namespace, "warned", codes.QueueNeedsRequests)
			q.hasPods(warned, 0)
			if err := api.Delete(t.Context(), warned); err != nil {
				t.Fatal(err)
			}

			held := q.emptyJob("held")
			annotations := held.GetAnnotations()
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations[mpi.AnnotationSuspendInQueue] = "true"
			held.SetAnnotations(annotations)
			q.create(held)
			reported(t, kind, q.namespace, "held", "it is suspended", inPhase(v1alpha1.PhaseSuspended))
			odh(t, q.namespace, "resume", strings.ToLower(kind)+"/held", "--as", q.user)
			finds(t, kind, q.namespace, "held", codes.QueueNeedsRequests)
			q.hasPods(held, 0)
			if err := api.Delete(t.Context(), held); err != nil {
				t.Fatal(err)
			}

			sizes := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: q.namespace, Name: "sizes"}}
			sizes.Spec.Limits = []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, DefaultRequest: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("5m")}}}
			create(t, sizes)
			sized := q.emptyJob("sized")
			eventually(t, "the default counts", time.Minute, func() error {
				return api.Create(t.Context(), empty.DeepCopyObject().(client.Object), client.DryRunAll) //nolint:forcetypeassert // a copy has the same type
			})
			q.create(sized)
			q.runsOnOneNode(sized, 3)
		})
	}
}

// topologyQueue is a queue of Kueue's that chooses the nodes, each node being a domain with room for three pods.
type topologyQueue struct {
	t                     *testing.T
	kind, namespace, user string
	seat                  corev1.ResourceName
}

// newTopologyQueue makes the queue, and for TrainJobs a runtime with changes of its pods.
func newTopologyQueue(t *testing.T, kind string, changes ...runtimeChange) topologyQueue {
	t.Helper()
	user := newTenant(t, "topology-"+strings.ToLower(kind))
	q := topologyQueue{t: t, kind: kind, namespace: user.namespace, user: user.name}
	q.seat = corev1.ResourceName("example.com/seat-" + q.namespace)
	topology := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"levels": []any{map[string]any{"nodeLabel": corev1.LabelHostname}}}}}
	topology.SetGroupVersionKind(kueue.WorkloadKind.GroupVersion().WithKind("Topology"))
	topology.SetName(q.namespace)
	seats(t, q.seat, 3, 3)
	queueOn(t, q.namespace, "{topologyName: "+q.namespace+", nodeLabels: {kubernetes.io/os: linux}}", string(q.seat), 6, "  preemption: {withinClusterQueue: LowerPriority}")
	create(t, topology)
	t.Cleanup(func() { _ = api.Delete(context.Background(), topology) })
	queuePriorities(t, q.namespace)
	if kind == trainjob.Kind {
		runtimeWith(t, q.namespace, "mpi-openmpi", changes)
	}
	return q
}

// addUncounted adds the queue uncounted, which has no quota of pods.
func (q topologyQueue) addUncounted() {
	q.t.Helper()
	for _, text := range []string{
		"{kind: ClusterQueue, metadata: {name: %[1]s-uncounted}, spec: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}, resourceGroups: [" +
			"{coveredResources: [cpu, memory], flavors: [{name: %[1]s, resources: [{name: cpu, nominalQuota: 1k}, {name: memory, nominalQuota: 1Ti}]}]}]}}",
		"{kind: LocalQueue, metadata: {name: uncounted, namespace: %[1]s}, spec: {clusterQueue: %[1]s-uncounted}}",
	} {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(fmt.Appendf(nil, text, q.namespace), &object.Object); err != nil {
			q.t.Fatal(err)
		}
		object.SetGroupVersionKind(kueue.LocalQueueKind.GroupVersion().WithKind(object.GetKind()))
		create(q.t, object)
		q.t.Cleanup(func() { _ = api.Delete(context.Background(), object) })
	}
}

// job returns a job of the user's with so many pods, which all need the same domain.
func (q topologyQueue) job(name string, pods int) client.Object {
	q.t.Helper()
	together := map[string]string{"kueue.x-k8s.io/podset-required-topology": corev1.LabelHostname, "kueue.x-k8s.io/podset-group-name": "all"}
	labels := map[string]string{mpi.LabelQueue: "team", "kueue.x-k8s.io/priority-class": q.namespace + "-low"}
	if q.kind == trainjob.Kind {
		text, err := json.Marshal(together)
		if err != nil {
			q.t.Fatal(err)
		}
		template := fmt.Sprintf("template: {spec: {template: {metadata: {annotations: %s}}}}", text)
		job := trainJob(q.t, q.namespace, fmt.Sprintf("{numNodes: %d, command: [sleep, '600'], resourcesPerNode: {limits: {%s: 1}}}", pods, q.seat),
			"  runtimePatches: [{manager: example.com/me, trainingRuntimeSpec: {template: {spec: {replicatedJobs: [{name: launcher, "+template+"}, {name: node, "+template+"}]}}}}]")
		job.SetName(name)
		job.SetLabels(labels)
		return job
	}
	job := seated(q.namespace, name, q.seat, int32(pods-1), "600")
	job.Labels = labels
	if name == "first" {
		// Ours gives way to Kueue's.
		job.Annotations = map[string]string{mpi.AnnotationPreferredTopology: corev1.LabelHostname}
	}
	if name != "second" {
		// That asks the operator to choose the nodes, which it leaves to Kueue.
		job.Spec.RunPolicy.SchedulingPolicy = nil
	}
	for _, role := range job.Spec.MPIReplicaSpecs {
		role.Template.Annotations = together
	}
	return job
}

// emptyJob returns a job of 3 pods that request nothing.
func (q topologyQueue) emptyJob(name string) client.Object {
	q.t.Helper()
	job := q.job(name, 3)
	switch job := job.(type) {
	case *kubeflow.MPIJob:
		launcher(job).Resources, worker(job).Resources = corev1.ResourceRequirements{}, corev1.ResourceRequirements{}
	case *unstructured.Unstructured:
		unstructured.RemoveNestedField(job.Object, "spec", "trainer", "resourcesPerNode")
	}
	return job
}

// create creates a job, as soon as Kueue knows its runtime.
func (q topologyQueue) create(job client.Object) {
	q.t.Helper()
	if err := submit(q.t, api, job); err != nil {
		q.t.Fatalf("create %s: %v", job.GetName(), err)
	}
}

// hasPods checks how many pods a job has.
func (q topologyQueue) hasPods(job client.Object, want int) {
	q.t.Helper()
	if pods := len(livePods(q.t, job)); pods != want {
		q.t.Errorf("%s has %d pods, want %d", job.GetName(), pods, want)
	}
}

// runsOnOneNode waits until all pods of a job run, and checks that it is on the same node.
func (q topologyQueue) runsOnOneNode(job client.Object, want int) {
	q.t.Helper()
	reported(q.t, q.kind, q.namespace, job.GetName(), job.GetName()+" runs", inPhase(v1alpha1.PhaseRunning))
	nodes := map[string]int{}
	for _, pod := range livePods(q.t, job) {
		nodes[pod.Spec.NodeName]++
	}
	q.t.Logf("%s runs on %v", job.GetName(), nodes)
	for node, pods := range nodes {
		if node == "" || pods != want {
			q.t.Errorf("%s runs on %v, want %d pods on one node", job.GetName(), nodes, want)
		}
	}
}
