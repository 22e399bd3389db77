package e2e

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/kueue"
	"opendatahub.io/mpijob/internal/mpi"
)

// queueAll gives a namespace a default queue if QUEUED is set, so that Kueue admits all of its jobs: the tests then show what holds for jobs
// in a queue. If it is topology, Kueue also selects the nodes (TAS). The queue has room for all tests, and only resources that they request
// besides those of queuedSeats and of the nodes have no quota in it.
func queueAll(t *testing.T, namespace string) {
	t.Helper()
	if !isQueued() {
		return
	}
	if err := makeQueueOfAll(); err != nil {
		t.Fatal(err)
	}
	queue := objectOf(t, `
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: default}
spec: {clusterQueue: `+queueOfAll()+`}`)
	queue.SetNamespace(namespace)
	create(t, queue)
	waitForDefaultQueue(t, openMPI(namespace, 1, "true"))
	if isQueuedByTopology() {
		nodesAreKueues(t, namespace)
	}
}

// nodesAreKueues has a test check at its end that Kueue has selected nodes for each pod set of each job of a namespace that it admitted, and that
// all jobs that ran were admitted. Workloads are deleted with their jobs, and lose their nodes when they are evicted: they are looked at while
// the test runs.
func nodesAreKueues(t *testing.T, namespace string) {
	t.Helper()
	placed, wrong := map[string]bool{}, map[string]bool{}
	look := func(ctx context.Context) {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kueue.WorkloadKind.GroupVersion().WithKind("WorkloadList"))
		if err := api.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return
		}
		for _, workload := range list.Items {
			sets, _, _ := unstructured.NestedSlice(workload.Object, "status", "admission", "podSetAssignments")
			for _, set := range sets {
				if fields := set.(map[string]any); fields["topologyAssignment"] == nil { //nolint:forcetypeassert // Kueue's API
					wrong[fmt.Sprintf("%v of %s", fields["name"], workload.GetName())] = true
				}
			}
			for _, owner := range workload.GetOwnerReferences() {
				placed[owner.Name] = placed[owner.Name] || len(sets) > 0
			}
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	var looks sync.WaitGroup
	looks.Go(func() { wait.UntilWithContext(ctx, look, 300*time.Millisecond) })
	t.Cleanup(func() {
		stop()
		looks.Wait()
		for set := range wrong {
			t.Errorf("Kueue has selected no nodes for %s", set)
		}
		var reports v1alpha1.JobReportList
		if err := api.List(context.Background(), &reports, client.InNamespace(namespace)); err != nil {
			t.Errorf("list the reports: %v", err)
		}
		for _, report := range reports.Items {
			if job := report.Spec.JobRef.Name; report.Status.RunningTime != nil && !placed[job] {
				t.Errorf("%s %s ran, and was not seen to be admitted by Kueue", report.Spec.JobRef.Kind, job)
			}
		}
	})
}

// waitForDefaultQueue waits until Kueue gives a new job the default queue of its namespace.
func waitForDefaultQueue(t *testing.T, job *kubeflow.MPIJob) {
	t.Helper()
	eventually(t, "Kueue knows the queue", time.Minute, func() error {
		tried := job.DeepCopy()
		if err := api.Create(t.Context(), tried, client.DryRunAll); err != nil {
			return fmt.Errorf("create job %s: %w", job.Name, err)
		}
		if queue := tried.Labels[mpi.LabelQueue]; queue != "default" {
			return fmt.Errorf("the job's queue is %q", queue)
		}
		return nil
	})
}

// isQueued reports whether Kueue admits the jobs of all tests.
func isQueued() bool { return os.Getenv("QUEUED") != "" }

// isQueuedByTopology reports whether Kueue also selects their nodes.
func isQueuedByTopology() bool { return os.Getenv("QUEUED") == "topology" }

// queueOfAll is the name of the ClusterQueue of all tests.
func queueOfAll() string {
	if isQueuedByTopology() {
		return "e2e-topology"
	}
	return "e2e-all"
}

// notQueued skips a test of what is otherwise for jobs in a queue, and says which test shows that.
func notQueued(t *testing.T, instead string) {
	t.Helper()
	if isQueued() {
		t.Skipf("SKIPPED: in a queue this is otherwise; %s shows it", instead)
	}
}

// queuedSeats are resources of tests for which the queue of all tests has quota.
var queuedSeats = []string{nfsSeat, drainSeat}

// makeQueueOfAll creates the ClusterQueue of all tests. Later runs on the cluster use it again.
var makeQueueOfAll = sync.OnceValue(func() error {
	flavor := `
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: e2e-all}
spec: {}`
	if isQueuedByTopology() {
		flavor = `
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: e2e-all}
spec: {topologyName: e2e-all, nodeLabels: {kubernetes.io/os: linux}}`
	}
	for _, text := range []string{`
apiVersion: kueue.x-k8s.io/v1beta2
kind: Topology
metadata: {name: e2e-all}
spec: {levels: [{nodeLabel: kubernetes.io/hostname}]}`, flavor, `
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: e2e-all}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [pods, cpu, memory, ephemeral-storage, ` + strings.Join(queuedSeats, ", ") + `]
    flavors:
    - name: e2e-all
      resources:
      - {name: pods, nominalQuota: 100k}
      - {name: cpu, nominalQuota: 100k}
      - {name: memory, nominalQuota: 1Pi}
      - {name: ephemeral-storage, nominalQuota: 1Pi}
      - {name: ` + strings.Join(queuedSeats, ", nominalQuota: 1k}\n      - {name: ") + `, nominalQuota: 1k}`} {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(strings.ReplaceAll(text, "e2e-all", queueOfAll())), &object.Object); err != nil {
			return fmt.Errorf("read a queue: %w", err)
		}
		// That of an earlier commit may lack resources.
		if err := api.Patch(context.Background(), object, client.Apply, client.FieldOwner("e2e"), client.ForceOwnership); err != nil { //nolint:staticcheck // The object has no type of apply configurations.
			return fmt.Errorf("create %s (make e2e QUEUED=1 WITH=kueue,trainer installs Kueue): %w", object.GetKind(), err)
		}
	}
	return nil
})

func objectOf(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

// TestQueuedWithoutRDMA: jobs of both kinds that request RDMA run over TCP in a queue without quota for it, because no node offers it. The
// user may apply the same job again, the record contains the request, and a job that insists waits with the reason.
func TestQueuedWithoutRDMA(t *testing.T) {
	t.Parallel()
	const rdma = "rdma/none-has-it"
	namespace := newNamespace(t)
	queueIn(t, namespace, 20)
	runtimeIn(t, namespace, "mpi-openmpi")
	mpiJob := func(name string) *kubeflow.MPIJob {
		job := openMPI(namespace, 1, "mpirun", "ranks", "--sleep", "5")
		job.Name, job.Labels = name, map[string]string{mpi.LabelQueue: "team"}
		worker(job).Resources.Limits[rdma] = resource.MustParse("1")
		return job
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(mpiJob("falls-back"))
	if err != nil {
		t.Fatal(err)
	}
	delete(fields, "status")
	falls := &unstructured.Unstructured{Object: fields}
	falls.SetGroupVersionKind(kubeflow.SchemeGroupVersion.WithKind(kubeflow.Kind))
	unstructured.RemoveNestedField(falls.Object, "metadata", "creationTimestamp")
	trainer := trainJob(t, namespace, "{numNodes: 2, resourcesPerNode: {limits: {"+rdma+": 1}}, command: [mpirun, -n, '2', ranks, --sleep, '5']}")
	trainer.SetLabels(map[string]string{mpi.LabelQueue: "team"})
	for _, job := range []*unstructured.Unstructured{falls, trainer} {
		t.Run(job.GetKind(), func(t *testing.T) {
			t.Parallel()
			apply := func() {
				t.Helper()
				if err := api.Patch(t.Context(), job.DeepCopy(), client.Apply, client.FieldOwner("user"), client.ForceOwnership); err != nil { //nolint:staticcheck // The object has no type of apply configurations.
					t.Fatal(err)
				}
			}
			apply()
			reported(t, job.GetKind(), namespace, job.GetName(), "it runs", inPhase(v1alpha1.PhaseRunning))
			apply()
			report := reported(t, job.GetKind(), namespace, job.GetName(), "it succeeds", inPhase(v1alpha1.PhaseSucceeded))
			if !slices.ContainsFunc(report.Status.Findings, func(f v1alpha1.Finding) bool { return f.Code == codes.RDMAFallback }) {
				t.Errorf("its findings are %+v", report.Status.Findings)
			}
			if written := report.Status.Specification; written == nil || !strings.Contains(written.Manifest, rdma) {
				t.Errorf("the record of its fields is %+v", written)
			}
		})
	}
	t.Run("insists", func(t *testing.T) {
		t.Parallel()
		job := mpiJob("insists")
		job.Annotations = map[string]string{mpi.AnnotationRDMA: mpi.RDMARequired}
		create(t, job)
		reported(t, "MPIJob", namespace, "insists", "its queue has no quota for it", func(status v1alpha1.JobReportStatus) error {
			if len(status.Findings) == 0 || status.Findings[0].Code != codes.QueueLacksResource {
				return fmt.Errorf("it is %s with %+v", status.Phase, status.Findings)
			}
			return nil
		})
	})
}
