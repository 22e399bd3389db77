package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/gang"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/kueue"
	"opendatahub.io/mpijob/internal/mpi"
)

// queueIn makes a queue of Kueue's in a namespace that has room for so many pods; more lines of YAML say how it works. It
// returns the ClusterQueue, by which the room can be changed.
func queueIn(t *testing.T, namespace string, pods int, how ...string) *unstructured.Unstructured {
	t.Helper()
	return queueOn(t, namespace, "{}", "", pods, how...)
}

// queueOn makes a queue whose nodes the specification of a ResourceFlavor describes, and in which pods may have seats.
func queueOn(t *testing.T, namespace, flavor, seat string, pods int, how ...string) *unstructured.Unstructured {
	t.Helper()
	if _, err := api.RESTMapper().RESTMapping(kueue.WorkloadKind.GroupKind(), kueue.WorkloadKind.Version); err != nil {
		if apimeta.IsNoMatchError(err) {
			t.Skip("SKIPPED: Kueue is not installed here; make e2e SUITE=Queue WITH=kueue,trainer runs this")
		}
		t.Fatal(err)
	}
	objects := fmt.Sprintf(`
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: %[1]s}
spec: %[4]s
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: team, namespace: %[1]s}
spec: {clusterQueue: %[1]s}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: %[1]s}
spec:
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
  resourceGroups:
  - coveredResources: [pods, cpu, memory, %[5]s]
    flavors:
    - name: %[1]s
      resources:
      - {name: pods, nominalQuota: %[2]d}
      - {name: cpu, nominalQuota: 1k}
      - {name: memory, nominalQuota: 1Ti}
      - {name: %[5]s, nominalQuota: 1k}
%[3]s
`, namespace, pods, strings.Join(how, "\n"), flavor, cmp.Or(seat, "example.com/seat"))
	var last *unstructured.Unstructured
	for text := range strings.SplitSeq(objects, "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
			t.Fatal(err)
		}
		create(t, object)
		t.Cleanup(func() { _ = api.Delete(context.Background(), object) })
		last = object
	}
	return last
}

// room changes how many pods a ClusterQueue has room for.
func room(t *testing.T, queue *unstructured.Unstructured, pods int) {
	t.Helper()
	patch := fmt.Sprintf(`[{"op":"replace","path":"/spec/resourceGroups/0/flavors/0/resources/0/nominalQuota","value":"%d"}]`, pods)
	if err := api.Patch(t.Context(), queue, client.RawPatch("application/json-patch+json", []byte(patch))); err != nil {
		t.Fatalf("change the queue: %v", err)
	}
}

// waitsFor waits until a job's record says that it waits in its queue, and with what words.
func waitsFor(t *testing.T, kind, namespace, name string, words ...string) v1alpha1.JobReportStatus {
	t.Helper()
	return waits(t, kind, namespace, name, v1alpha1.PhaseQueued, words...)
}

// hasNoPods tells that a job has none, but such as are going.
func hasNoPods(t *testing.T, job *kubeflow.MPIJob) {
	t.Helper()
	for _, role := range []mpi.Role{mpi.RoleLauncher, mpi.RoleWorker} {
		for _, pod := range podsOf(t, job, role) {
			if pod.DeletionTimestamp == nil {
				t.Errorf("%s has the pod %s, want none", job.Name, pod.Name)
			}
		}
	}
}

// TestQueuedAsAWhole: a job of 9 pods in a queue with room for 5 has none, reports the reason and its position, and runs as soon as there
// is room for all. If the quota is lowered below what it requests, its report has the finding that it never fits.
func TestQueuedAsAWhole(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	queue := queueIn(t, namespace, 9)
	first, big := queuedJob(namespace, "first", 3), queuedJob(namespace, "big", 8)
	create(t, first)
	reported(t, "MPIJob", namespace, "first", "the first runs", inPhase(v1alpha1.PhaseRunning))
	create(t, big)
	waits := waitsFor(t, "MPIJob", namespace, "big", "4 more needed", "position 1", "Waiting since")
	if s := waits.Scheduling; s.Since == nil || s.Wanted != 9 || s.WaitP50 != nil {
		t.Errorf("it waits as %+v", s)
	}
	hasNoPods(t, big)

	room(t, queue, 5)
	never := reported(t, "MPIJob", namespace, "big", "its report says that it never fits", func(status v1alpha1.JobReportStatus) error {
		if len(status.Findings) == 0 || status.Findings[0].Code != codes.QueueNeverFits {
			return fmt.Errorf("it is %s with %+v", status.Phase, status.Findings)
		}
		return nil
	})
	text, _ := yaml.Marshal(never.Status.Findings)
	t.Logf("%s", text)
	hasNoPods(t, big)

	start := time.Now()
	room(t, queue, 4+9)
	running := reported(t, "MPIJob", namespace, "big", "it runs once there is room", inPhase(v1alpha1.PhaseRunning))
	t.Logf("all 9 pods ran %s after there was room", time.Since(start).Round(100*time.Millisecond))
	if waited := running.Status.Waited; waited == nil || waited.Queue != "team" || waited.Pods != 9 {
		t.Errorf("its record says that it waited %+v", waited)
	}
	create(t, queuedJob(namespace, "one-more", 1))
	waitsFor(t, "MPIJob", namespace, "one-more", "2 more needed")
}

// TestNoDeadlockInAQueue: of two jobs that half placed would wait for each other for ever, one runs after the other.
func TestNoDeadlockInAQueue(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	queueIn(t, namespace, 8)
	jobs := []*kubeflow.MPIJob{queuedJob(namespace, "one", 4), queuedJob(namespace, "other", 4)}
	for _, job := range jobs {
		launcher(job).Command = []string{"sleep", "5"}
		create(t, job)
	}
	var reports []v1alpha1.JobReportStatus
	for _, job := range jobs {
		reports = append(reports, reported(t, "MPIJob", namespace, job.Name, job.Name+" succeeds", inPhase(v1alpha1.PhaseSucceeded)).Status)
	}
	for i, r := range reports {
		if r.RunningTime == nil {
			t.Fatalf("%s is not said to have run: %+v", jobs[i].Name, r)
		}
	}
	if after := func(a, b int) bool { return !reports[a].RunningTime.Before(reports[b].CompletionTime) }; !after(0, 1) && !after(1, 0) {
		t.Errorf("both ran at once, from %s to %s and from %s to %s", reports[0].RunningTime, reports[0].CompletionTime, reports[1].RunningTime, reports[1].CompletionTime)
	}
}

// TestQueueEstimates: before it sends a job of either kind to a queue, create prints how many jobs wait and run there. When a job starts follows
// from the deadlines of those before it, or nothing bounds them.
func TestQueueEstimates(t *testing.T) {
	t.Parallel()
	// All jobs have 4 pods.
	for kind, of := range map[string][]string{
		kubeflow.Kind: {"--image", image, "--run-as-user", "1000", "--workers", "3"},
		trainjob.Kind: {"--runtime", "mpi", "--workers", "4"},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			namespace := newNamespace(t)
			queueIn(t, namespace, 4)
			of = append(of, "--cpu", "20m", "--memory", "64Mi")
			if kind == trainjob.Kind {
				runtimeIn(t, namespace, "mpi-openmpi")
				shell{t, namespace}.awaitRuntime(append(append([]string{"create", "none"}, of...), "--dry-run=server", "--", "true")...)
			}
			create := func(name, want string, flags ...string) {
				t.Helper()
				out := odh(t, namespace, slices.Concat([]string{"create", name, "--queue", "team"}, of, flags, []string{"--", "sleep", "600"})...)
				if want == "" && strings.Contains(out, "Wait:") || !strings.Contains(out, want) {
					t.Errorf("create %s does not print %q, but\n%s", name, want, out)
				}
			}
			create("first", "", "--deadline", "30m")
			reported(t, kind, namespace, "first", "the first runs", inPhase(v1alpha1.PhaseRunning))
			create("second", "Wait: no job waits, 1 runs in queue team\n")
			waitsFor(t, kind, namespace, "second", "4 more needed", "position 1")
			create("third", "Wait: 1 job waits, 1 runs in queue team\n", "--dry-run=server")
			create("third", "Wait: 1 job waits, 1 runs in queue team\n")
			waitsFor(t, kind, namespace, "third", "position 2")
			estimated := func(job, want string) {
				t.Helper()
				reported(t, kind, namespace, job, "its estimate says: "+want, func(r v1alpha1.JobReportStatus) error {
					if r.Scheduling == nil || r.Scheduling.Estimate == nil || !strings.Contains(r.Scheduling.Estimate.Message, want) {
						return fmt.Errorf("it waits like this: %+v", r.Scheduling)
					}
					return nil
				})
			}
			estimated("second", "by the deadlines of the jobs before it")
			estimated("third", "the job second before it has no deadline")
			create("fourth", "Wait: 2 jobs wait, 1 runs in queue team\n", "--dry-run=server")
			// The jobs of another queue do not count.
			if out := odh(t, namespace, slices.Concat([]string{"create", "other", "--queue", "elsewhere"}, of, []string{"--dry-run=server", "--", "sleep", "600"})...); strings.Contains(out, "Wait:") {
				t.Errorf("create prints an estimate for a queue that no job uses:\n%s", out)
			}
		})
	}
}

// TestQueueOfSmallJobsBehindABigOne: in a strict queue they wait until it runs, though there is room for them; in any other they
// go first, as its administrator has chosen.
func TestQueueOfSmallJobsBehindABigOne(t *testing.T) {
	t.Parallel()
	for strategy, overtakes := range map[string]bool{"StrictFIFO": false, "BestEffortFIFO": true} {
		t.Run(strategy, func(t *testing.T) {
			t.Parallel()
			namespace := newNamespace(t)
			queueIn(t, namespace, 5, "  queueingStrategy: "+strategy)
			now, big, small := queuedJob(namespace, "now", 1), queuedJob(namespace, "big", 4), queuedJob(namespace, "small", 1)
			create(t, now)
			reported(t, "MPIJob", namespace, "now", "the one that is there runs", inPhase(v1alpha1.PhaseRunning))
			create(t, big)
			waitsFor(t, "MPIJob", namespace, "big", "position 1")
			// Kueue orders jobs of the same second by UID (pkg/cache/queue/cluster_queue.go).
			queued := time.Now()
			eventually(t, "the next second begins", 2*time.Second, func() error {
				if time.Now().Truncate(time.Second).After(queued) {
					return nil
				}
				return errors.New("it is still the same second")
			})
			create(t, small)
			if overtakes {
				reported(t, "MPIJob", namespace, "small", "the small one runs", inPhase(v1alpha1.PhaseRunning))
				waitsFor(t, "MPIJob", namespace, "big")
				return
			}
			waitsFor(t, "MPIJob", namespace, "small", "position 2")
			if err := api.Delete(t.Context(), now); err != nil {
				t.Fatal(err)
			}
			reported(t, "MPIJob", namespace, "big", "the big one runs", inPhase(v1alpha1.PhaseRunning))
			waitsFor(t, "MPIJob", namespace, "small")
			hasNoPods(t, small)
		})
	}
}

// queuePriorities makes two priorities of Kueue, NAMESPACE-low and NAMESPACE-high.
func queuePriorities(t *testing.T, namespace string) {
	t.Helper()
	for name, value := range map[string]int64{"-low": 1, "-high": 1000} {
		class := &unstructured.Unstructured{Object: map[string]any{"value": value}}
		class.SetGroupVersionKind(kueue.WorkloadKind.GroupVersion().WithKind("WorkloadPriorityClass"))
		class.SetName(namespace + name)
		create(t, class)
		t.Cleanup(func() { _ = api.Delete(context.Background(), class) })
	}
}

// TestQueuePreemptsAsAWhole: a job of either kind makes room as a whole for a more important one, and comes back after that.
func TestQueuePreemptsAsAWhole(t *testing.T) {
	t.Parallel()
	const preempts = "  preemption: {withinClusterQueue: LowerPriority}"
	t.Run("MPIJob", func(t *testing.T) {
		t.Parallel()
		namespace := newNamespace(t)
		queueIn(t, namespace, 5, preempts)
		preemptsAsAWhole(t, namespace, func(name string) client.Object { return queuedJob(namespace, name, 3) })
	})
	t.Run(trainjob.Kind, func(t *testing.T) {
		t.Parallel()
		namespace := newNamespace(t)
		queueIn(t, namespace, 5, preempts)
		runtimeIn(t, namespace, "mpi-openmpi")
		preemptsAsAWhole(t, namespace, func(name string) client.Object {
			job := trainJob(t, namespace, "{numNodes: 4, command: [sleep, '600']}")
			job.SetName(name)
			return job
		})
	})
}

// preemptsAsAWhole runs two jobs of four pods in a queue with room for five.
func preemptsAsAWhole(t *testing.T, namespace string, job func(name string) client.Object) {
	t.Helper()
	queuePriorities(t, namespace)
	low, high := job("low"), job("high")
	kind := kindOf(low)
	for _, job := range []client.Object{low, high} {
		job.SetLabels(map[string]string{mpi.LabelQueue: "team", "kueue.x-k8s.io/priority-class": namespace + "-" + job.GetName()})
	}
	if err := submit(t, api, low); err != nil {
		t.Fatal(err)
	}
	before := reported(t, kind, namespace, "low", "the first runs", inPhase(v1alpha1.PhaseRunning))
	if err := submit(t, api, high); err != nil {
		t.Fatal(err)
	}
	reported(t, kind, namespace, "high", "the more important one runs", inPhase(v1alpha1.PhaseRunning))
	if low := waitsFor(t, kind, namespace, "low", "Evicted after admission"); strings.Contains(low.Message, "is admitted") {
		t.Errorf("it says that it is admitted: %s", low.Message)
	}
	eventually(t, "only the pods of the more important one are left", time.Minute, func() error {
		var pods corev1.PodList
		if err := api.List(t.Context(), &pods, client.InNamespace(namespace)); err != nil {
			return err
		}
		for _, pod := range pods.Items {
			if !strings.HasPrefix(pod.Name, "high-") {
				return fmt.Errorf("there is %s", pod.Name)
			}
		}
		return nil
	})
	if err := api.Delete(t.Context(), high); err != nil {
		t.Fatal(err)
	}
	after := reported(t, kind, namespace, "low", "it comes back", inPhase(v1alpha1.PhaseRunning))
	if len(after.Status.Pods) != 4 || *after.Status.Waited != *before.Status.Waited {
		t.Errorf("it has %d pods and waited %+v, first %+v", len(after.Status.Pods), after.Status.Waited, before.Status.Waited)
	}
}

// TestQueueTakesBackWhatFindsNoNodes: a job of either kind that Kueue has admitted, and of which only the launcher finds a node within the
// job's timeout, gives its node and its quota back to another, and is tried again.
func TestQueueTakesBackWhatFindsNoNodes(t *testing.T) {
	embeddedGangs(t)
	t.Parallel()
	for _, kind := range []string{kubeflow.Kind, trainjob.Kind} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			seat := "example.com/seat-queue-" + strings.ToLower(kind)
			seats(t, corev1.ResourceName(seat), 2, 0)
			namespace := newNamespace(t)
			queueOn(t, namespace, "{}", seat, 2)
			var job, other client.Object = seated(namespace, "lost", corev1.ResourceName(seat), 1, "600"), seated(namespace, "other", corev1.ResourceName(seat), 1, "1")
			if kind == trainjob.Kind {
				runtimeIn(t, namespace, "mpi-openmpi")
				job, other = seatedTrainJob(t, namespace, "lost", seat, 2, "[sleep, '600']"), seatedTrainJob(t, namespace, "other", seat, 2, "[sleep, '1']")
			}
			for _, one := range []client.Object{job, other} {
				one.SetLabels(map[string]string{mpi.LabelQueue: "team"})
			}
			workersFindNoNodes(t, job, 15)
			createAtOnce(t, job)
			launcherHasNode(t, job)
			waitsFor(t, kind, namespace, "lost", "not all pods were scheduled in time (once)")
			noPodsLeft(t, job)
			createAtOnce(t, other)
			reported(t, kind, namespace, "other", "another has its nodes and its quota meanwhile", inPhase(v1alpha1.PhaseSucceeded))
			launcherHasNode(t, job)
		})
	}
}

// TestQueueEndsWhatNeverFits: a job with a time limit whose workers no node takes has no pods, gives its quota back, is tried again, and
// fails in the end. Its report has the cause: no node can hold them.
func TestQueueEndsWhatNeverFits(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	queueIn(t, namespace, 3)
	job := queuedJob(namespace, "lost", 2)
	job.Annotations = map[string]string{mpi.AnnotationRequeues: "1"}
	job.Spec.RunPolicy.SchedulingPolicy = &kubeflow.SchedulingPolicy{ScheduleTimeoutSeconds: new(int32(8))}
	job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Template.Spec.NodeSelector = map[string]string{"e2e.example.com/no-node": "has-this"}
	create(t, job)
	waitsFor(t, "MPIJob", namespace, "lost", "not all pods were scheduled in time (once)")
	hasNoPods(t, job)

	failed := reported(t, "MPIJob", namespace, "lost", "it fails at last", inPhase(v1alpha1.PhaseFailed))
	if failed.Status.Reason != codes.GangNeverFits || len(failed.Status.Findings) == 0 || failed.Status.Findings[0].Code != codes.GangNeverFits {
		t.Errorf("it failed with %s: %s\n%+v", failed.Status.Reason, failed.Status.Message, failed.Status.Findings)
	}
	text, _ := yaml.Marshal(failed.Status.Findings)
	t.Logf("%s", text)
	hasNoPods(t, job)
}

// kindOf is the kind of a job, which objects of Go types lose when they are created.
func kindOf(job client.Object) string {
	if _, is := job.(*kubeflow.MPIJob); is {
		return kubeflow.Kind
	}
	return trainjob.Kind
}

// TestQueuedJobsAreNotHalfPlaced: jobs that Kueue has admitted, without any setting and of both kinds, have the nodes for all of their pods
// or no pods. Of two jobs that each need more than half of the cluster, both end; in every second round, the operators are killed
// meanwhile. A job of which only a part fits has no pods, and its report has the reason.
func TestQueuedJobsAreNotHalfPlaced(t *testing.T) {
	embeddedGangs(t)
	t.Parallel()
	const seat = "example.com/seat-queued"
	namespace := newNamespace(t)
	queueOn(t, namespace, "{}", seat, 100)
	seats(t, seat, 3, 3)
	runtimeIn(t, namespace, "mpi-openmpi")
	queued := func(name string, pods int, trainJob bool) client.Object {
		if trainJob {
			job := seatedTrainJob(t, namespace, name, seat, pods, "[sleep, '2']")
			job.SetLabels(map[string]string{mpi.LabelQueue: "team"})
			return job
		}
		job := seated(namespace, name, seat, int32(pods-1), "2")
		job.Spec.RunPolicy.SchedulingPolicy = nil
		job.Labels = map[string]string{mpi.LabelQueue: "team"}
		return job
	}
	podsOf := func(job client.Object) (placed, all int) {
		var pods corev1.PodList
		if err := api.List(t.Context(), &pods, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
		for _, pod := range pods.Items {
			if strings.HasPrefix(pod.Name, job.GetName()+"-") && pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodSucceeded {
				all++
				if pod.Spec.NodeName != "" {
					placed++
				}
			}
		}
		return placed, all
	}
	for round := range rounds(t) {
		start := time.Now()
		both := []client.Object{queued(fmt.Sprintf("one-%d", round), 4, round%3 > 0), queued(fmt.Sprintf("two-%d", round), 4, round%3 > 1)}
		for _, job := range both {
			if err := submit(t, api, job); err != nil {
				t.Fatal(err)
			}
		}
		if round%2 == 1 {
			killOperators(t)
		}
		halfSince := map[string]time.Time{}
		eventually(t, "both succeed", 3*time.Minute, func() error {
			for _, job := range both {
				placed, all := podsOf(job)
				if placed == 0 || placed == all {
					delete(halfSince, job.GetName())
				} else if since, half := halfSince[job.GetName()]; !half {
					halfSince[job.GetName()] = time.Now()
				} else if time.Since(since) > 15*time.Second {
					t.Fatalf("%d of %d pods of %s have a node since %s", placed, all, job.GetName(), since)
				}
			}
			for _, job := range both {
				report := reportOf(t, kindOf(job), namespace, job.GetName())
				if report == nil || report.Status.Phase != v1alpha1.PhaseSucceeded {
					return fmt.Errorf("%s has not succeeded: %s", job.GetName(), told(report))
				}
			}
			return nil
		})
		t.Logf("round %d: a %s and a %s have succeeded after %s", round, kindOf(both[0]), kindOf(both[1]), time.Since(start).Round(100*time.Millisecond))
	}
	for _, large := range []client.Object{queued("large", 8, false), queued("large-too", 8, true)} {
		if err := submit(t, api, large); err != nil {
			t.Fatal(err)
		}
		reported(t, kindOf(large), namespace, large.GetName(), "its report says that it never fits", func(status v1alpha1.JobReportStatus) error {
			if len(status.Findings) == 0 || status.Findings[0].Code != codes.GangNeverFits {
				return fmt.Errorf("it is %s with %+v", status.Phase, status.Findings)
			}
			return nil
		})
		if _, all := podsOf(large); all > 0 {
			t.Errorf("%s has %d pods", large.GetName(), all)
		}
	}
}

// TestGangInQueue: on a cluster whose scheduler places gangs, jobs that Kueue has admitted have nodes for all of their pods or for none: an
// MPIJob by the scheduler, a TrainJob by the operator, also when the operators are killed. A user with the role for users suspends and
// resumes one. The report of a job that never fits has the reason.
func TestGangInQueue(t *testing.T) {
	nativeGangs(t)
	t.Parallel()
	const seat = "example.com/seat-gang-queue"
	user := newTenant(t, "gang-queue")
	namespace := user.namespace
	queueOn(t, namespace, "{}", seat, 100)
	seats(t, seat, 3, 3)
	runtimeIn(t, namespace, "mpi-openmpi")
	mpiJob := func(name string, pods int32) *kubeflow.MPIJob {
		job := seated(namespace, name, seat, pods-1, "600")
		job.Spec.RunPolicy.SchedulingPolicy = nil
		job.Labels = map[string]string{mpi.LabelQueue: "team"}
		return job
	}
	trainJob := func(name string, pods int) *unstructured.Unstructured {
		job := seatedTrainJob(t, namespace, name, seat, pods, "[sleep, '600']")
		job.SetLabels(map[string]string{mpi.LabelQueue: "team"})
		return job
	}
	first, second := mpiJob("first", 4), trainJob("second", 4)
	create(t, first)
	reported(t, kubeflow.Kind, namespace, "first", "the first runs", inPhase(v1alpha1.PhaseRunning))
	createTrainJob(t, second)
	told := waits(t, trainjob.Kind, namespace, "second", v1alpha1.PhaseGangScheduling, "4 pods requested", "2 fit on ").Scheduling
	if told.Backend != gang.Embedded || told.Placed != 0 {
		t.Errorf("the second waits as %+v", told)
	}
	if n := len(livePods(t, second)); n > 0 {
		t.Errorf("the second has %d pods, want none", n)
	}

	odh(t, namespace, "suspend", "mpijob/first", "--as", user.name)
	noPodsLeft(t, first)
	reported(t, trainjob.Kind, namespace, "second", "the second runs", inPhase(v1alpha1.PhaseRunning))
	odh(t, namespace, "resume", "mpijob/first", "--as", user.name)
	told = gangWaits(t, first, "4 pods requested", "2 fit on ")
	if told.Backend != gang.PodGroup || told.Placed != 0 {
		t.Errorf("the first waits as %+v", told)
	}
	killOperators(t)
	if n := placedPods(t, first); n > 0 {
		t.Errorf("%d pods of the first have nodes, want none", n)
	}
	deleteAll(t, second)
	haveNodes(t, first, 4)
	reported(t, kubeflow.Kind, namespace, "first", "the first runs again", inPhase(v1alpha1.PhaseRunning))
	deleteAll(t, first)
	noPodsLeft(t, first)

	for _, large := range []client.Object{mpiJob("large", 8), trainJob("large-too", 8)} {
		createAtOnce(t, large)
		reported(t, kindOf(large), namespace, large.GetName(), "its report says that it never fits", func(status v1alpha1.JobReportStatus) error {
			if !slices.ContainsFunc(status.Findings, func(f v1alpha1.Finding) bool { return f.Code == codes.GangNeverFits }) {
				return fmt.Errorf("it is %s with %+v", status.Phase, status.Findings)
			}
			return nil
		})
		for _, pod := range livePods(t, large) {
			if pod.Spec.NodeName != "" {
				t.Errorf("pod %s has the node %s, want none", pod.Name, pod.Spec.NodeName)
			}
		}
	}
}

// TestQueueKeepsSuspendedJobsOut: a job that its user suspends, while it runs or waits, has no pods although its queue has room and admits
// others, and its report names the command that resumes it. Then it waits for its turn, runs and succeeds. The role for users suffices, and
// the record names who did it.
func TestQueueKeepsSuspendedJobsOut(t *testing.T) {
	t.Parallel()
	user := newTenant(t, "queued-user")
	namespace := user.namespace
	queueIn(t, namespace, 3)
	jobs := []*kubeflow.MPIJob{queuedJob(namespace, "first", 2), queuedJob(namespace, "second", 2)}
	// The second is observed while it waits for the first.
	launcher(jobs[0]).Command, launcher(jobs[1]).Command = []string{"sleep", "60"}, []string{"sleep", "5"}
	for _, job := range jobs {
		create(t, job)
		if job == jobs[0] {
			reported(t, "MPIJob", namespace, "first", "the first runs", inPhase(v1alpha1.PhaseRunning))
		}
	}
	waitsFor(t, "MPIJob", namespace, "second", "position 1")
	odh(t, namespace, "suspend", "first", "second", "--as", user.name)
	for _, job := range jobs {
		podsGone(t, job)
		suspended := reported(t, "MPIJob", namespace, job.Name, job.Name+" is told to be suspended", inPhase(v1alpha1.PhaseSuspended)).Status
		if !strings.Contains(suspended.Message, "kubectl odh mpijob resume "+job.Name) || len(suspended.Findings) > 0 {
			t.Errorf("%s says %q and %+v", job.Name, suspended.Message, suspended.Findings)
		}
		timelineNames(t, job, "Suspended", user.name)
	}

	// One that is suspended before Kueue has created its Workload.
	third := queuedJob(namespace, "third", 2)
	launcher(third).Command = []string{"sleep", "5"}
	create(t, third)
	odh(t, namespace, "suspend", "third", "--as", user.name)
	jobs = append(jobs, third)

	other := queuedJob(namespace, "other", 2)
	launcher(other).Command = []string{"sleep", "5"}
	create(t, other)
	reported(t, "MPIJob", namespace, "other", "another has their quota meanwhile", inPhase(v1alpha1.PhaseSucceeded))
	for _, job := range jobs {
		hasNoPods(t, job)
		if status := reportOf(t, "MPIJob", namespace, job.Name).Status; status.Phase != v1alpha1.PhaseSuspended {
			t.Errorf("%s has become %s: %s", job.Name, status.Phase, status.Message)
		}
		if said := odh(t, namespace, "list", job.Name); !strings.Contains(said, "Suspended") {
			t.Errorf("the list says\n%s", said)
		}
	}
	odh(t, namespace, "explain", "first")
	odh(t, namespace, "describe", "first")

	odh(t, namespace, "resume", "first", "--as", user.name)
	reported(t, "MPIJob", namespace, "first", "the first runs again", inPhase(v1alpha1.PhaseRunning))
	if said := odh(t, namespace, "resume", "second", "--as", user.name); !strings.Contains(said, "mpijob/second resumed; it waits in queue team") {
		t.Errorf("resume says %q", said)
	}
	if said := waitsFor(t, "MPIJob", namespace, "second", "position 1").Message; strings.Contains(said, "Evicted") {
		t.Errorf("it was never in, and says %q", said)
	}
	odh(t, namespace, "resume", "third", "--as", user.name)
	for _, job := range jobs {
		reported(t, "MPIJob", namespace, job.Name, job.Name+" succeeds", inPhase(v1alpha1.PhaseSucceeded))
		timelineNames(t, job, "Resumed", user.name)
	}
}

// timelineNames checks that the record of an MPIJob names the user of an entry of its timeline.
func timelineNames(t *testing.T, job *kubeflow.MPIJob, event, user string) {
	t.Helper()
	timeline := reportOf(t, kubeflow.Kind, job.Namespace, job.Name).Status.Timeline
	if !slices.ContainsFunc(timeline, func(entry v1alpha1.TimelineEntry) bool {
		return entry.Event == event && strings.HasPrefix(entry.Detail, "By "+user+".")
	}) {
		t.Errorf("%s: no entry %s names %s: %+v", job.Name, event, user, timeline)
	}
}

// TestQueueGivesUp: a job that Kueue itself stops is told so. The queue takes it back only with another Workload.
func TestQueueGivesUp(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	queueIn(t, namespace, 2)
	job := queuedJob(namespace, "long", 1)
	job.Labels["kueue.x-k8s.io/max-exec-time-seconds"] = "1"
	create(t, job)
	gaveUp := func(status v1alpha1.JobReportStatus) error {
		if len(status.Findings) == 0 || status.Findings[0].Code != codes.QueueGaveUp || status.Phase != v1alpha1.PhaseQueued {
			return fmt.Errorf("it is %s with %+v", status.Phase, status.Findings)
		}
		return nil
	}
	status := reported(t, "MPIJob", namespace, "long", "it is told that it was given up", gaveUp).Status
	text, _ := yaml.Marshal(status.Findings)
	t.Logf("%s", text)
	podsGone(t, job)

	workload := workloadIn(t, namespace)
	if err := api.Patch(t.Context(), workload, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"active":true}}`))); err != nil {
		t.Fatal(err)
	}
	eventually(t, "Kueue puts it out again", time.Minute, func() error {
		if active, _, _ := unstructured.NestedBool(workloadIn(t, namespace).Object, "spec", "active"); active {
			return errors.New("it is active")
		}
		return nil
	})
	reported(t, "MPIJob", namespace, "long", "the report says again that the queue gave up", gaveUp)
	podsGone(t, job)

	if err := api.Delete(t.Context(), workload); err != nil {
		t.Fatal(err)
	}
	eventually(t, "Kueue makes another Workload and lets it in", time.Minute, func() error {
		other := workloadIn(t, namespace)
		was, _, _ := unstructured.NestedSlice(other.Object, "status", "conditions")
		if other.GetUID() == workload.GetUID() || !slices.ContainsFunc(was, func(c any) bool { return c.(map[string]any)["type"] == "Admitted" }) {
			return fmt.Errorf("it is %s with %v", other.GetUID(), was)
		}
		return nil
	})
}

// workloadIn is the only Workload of a namespace; empty where there is none.
func workloadIn(t *testing.T, namespace string) *unstructured.Unstructured {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kueue.WorkloadKind.GroupVersion().WithKind("WorkloadList"))
	if err := api.List(t.Context(), list, client.InNamespace(namespace)); err != nil || len(list.Items) > 1 {
		t.Fatalf("there are %d Workloads: %v", len(list.Items), err)
	}
	if len(list.Items) == 0 {
		return &unstructured.Unstructured{}
	}
	return &list.Items[0]
}

// odh runs a command of the plug-in, which has to go well, and returns what it says.
func odh(t *testing.T, namespace string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath("kubectl-odh-mpijob"); err != nil {
		t.Skip("SKIPPED: kubectl-odh-mpijob is not in PATH; make e2e puts it there")
	}
	var out []byte
	eventually(t, "Kueue's webhook answers", time.Minute, func() (err error) {
		out, err = exec.CommandContext(t.Context(), "kubectl", append([]string{"odh", "mpijob", args[0], "-n", namespace}, args[1:]...)...).CombinedOutput()
		t.Logf("$ kubectl odh mpijob %s\n%s", strings.Join(args, " "), out)
		switch {
		case err == nil:
			return nil
		case strings.Contains(string(out), `no endpoints available for service "kueue-webhook-service"`):
			// On a busy machine Kueue's readiness probe times out now and then. Users repeat the command.
			return err
		}
		t.Fatal(err)
		return nil
	})
	return string(out)
}

// TestQueueOutlivesTheOperator: a job that waits in its queue starts once when there is room, although the operator was killed, and its
// report has all that happened before, once.
func TestQueueOutlivesTheOperator(t *testing.T) {
	namespace := newNamespace(t)
	queueIn(t, namespace, 3)
	first, second := queuedJob(namespace, "first", 2), queuedJob(namespace, "second", 2)
	create(t, first)
	reported(t, "MPIJob", namespace, "first", "the first runs", inPhase(v1alpha1.PhaseRunning))
	create(t, second)
	waiting := waitsFor(t, "MPIJob", namespace, "second", "position 1")
	killOperators(t)
	if err := api.Delete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	report := reported(t, "MPIJob", namespace, "second", "it runs when the operator is back", inPhase(v1alpha1.PhaseRunning))
	status, times := report.Status, map[string]int{}
	for _, entry := range status.Timeline {
		times[entry.Event]++
	}
	if len(status.Pods) != 3 || times["Created"] != 1 || times["Queued"] != 1 || times["Running"] != 1 || !status.StartTime.Equal(waiting.StartTime) {
		t.Errorf("it has %d pods, began at %s and before the operator was killed at %s, and this happened: %v", len(status.Pods), status.StartTime, waiting.StartTime, times)
	}
	if since := waiting.Scheduling.Since; status.Waited == nil || status.Waited.Until.Sub(since.Time) < time.Duration(status.Waited.Seconds)*time.Second {
		t.Errorf("it waited since %s, and that was %+v", since, status.Waited)
	}
}

// TestQueuedInTurn: jobs of both kinds wait for each other, and their reports show which is next and which is suspended. The pods of both
// run on the nodes that the queue has.
func TestQueuedInTurn(t *testing.T) {
	t.Parallel()
	user := newTenant(t, "user-in-turn")
	namespace := user.namespace
	queueOn(t, namespace, "{nodeLabels: {kubernetes.io/os: linux}}", "", 4)
	runtimeIn(t, namespace, "mpi-openmpi")
	first := queuedJob(namespace, "first", 2)
	create(t, first)
	reported(t, "MPIJob", namespace, "first", "the first runs", inPhase(v1alpha1.PhaseRunning))
	second := queuedJob(namespace, "second", 2)
	create(t, second)
	waitsFor(t, "MPIJob", namespace, "second", "position 1", "pods")
	third := trainJob(t, namespace, "{numNodes: 2, command: [mpirun, -n, '2', ranks]}")
	third.SetLabels(map[string]string{mpi.LabelQueue: "team"})
	createTrainJob(t, third)
	status := waitsFor(t, trainjob.Kind, namespace, "pi", "position")
	if status.Scheduling.Queue != "team" || status.Scheduling.Backend != kueue.Kueue || status.Scheduling.Wanted != 2 {
		t.Errorf("it waits as %+v", status.Scheduling)
	}
	odh(t, namespace, "suspend", "trainjob/pi", "--as", user.name)
	reported(t, trainjob.Kind, namespace, "pi", "it is kept out", inPhase(v1alpha1.PhaseSuspended))
	odh(t, namespace, "resume", "trainjob/pi", "--as", user.name)
	waitsFor(t, trainjob.Kind, namespace, "pi", "position")
	if err := api.Delete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	reported(t, "MPIJob", namespace, "second", "the second runs", inPhase(v1alpha1.PhaseRunning))
	onNodesOfQueue := func(pods int) {
		t.Helper()
		var list corev1.PodList
		if err := api.List(t.Context(), &list, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
		count := 0
		for _, pod := range list.Items {
			if pod.DeletionTimestamp != nil {
				continue
			}
			count++
			if pod.Spec.NodeSelector[corev1.LabelOSStable] != "linux" {
				t.Errorf("pod %s has the node selector %v, and not that of the queue", pod.Name, pod.Spec.NodeSelector)
			}
		}
		if count < pods {
			t.Errorf("there are %d pods, want %d", count, pods)
		}
	}
	onNodesOfQueue(3)
	if err := api.Delete(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	ends(t, third, "Complete")
	onNodesOfQueue(1)
}

// TestQueueLacksResource: a job that requests a resource without a quota in its queue has a finding, because waiting does not help.
func TestQueueLacksResource(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	queueIn(t, namespace, 4)
	job := queuedJob(namespace, "gpus", 1)
	worker(job).Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}
	create(t, job)
	report := reported(t, "MPIJob", namespace, "gpus", "its report shows that its queue has no GPUs", func(status v1alpha1.JobReportStatus) error {
		if len(status.Findings) == 0 || status.Findings[0].Code != codes.QueueLacksResource {
			return fmt.Errorf("it is %s with %+v", status.Phase, status.Findings)
		}
		return nil
	})
	text, _ := yaml.Marshal(report.Status.Findings)
	t.Logf("%s", text)
}

// TestQueueStopped: when a job of either kind is created in a stopped queue, its user is warned, and its report says why it waits. It runs
// when the queue is started again.
func TestQueueStopped(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	queueIn(t, namespace, 10)
	runtimeIn(t, namespace, "mpi-openmpi")
	stopQueue(t, namespace, "Hold")
	mpiJob := queuedJob(namespace, "one", 1)
	launcher(mpiJob).Command = []string{"sleep", "1"}
	other := trainJob(t, namespace, "{numNodes: 2, command: [sleep, '1']}")
	other.SetLabels(map[string]string{mpi.LabelQueue: "team"})
	for _, job := range []client.Object{mpiJob, other} {
		// Other tests kill the operator, and the API server does without its warnings meanwhile.
		eventually(t, "a warning names the queue", time.Minute, func() error {
			recorder := &warnings{}
			tried := job.DeepCopyObject().(client.Object)
			if err := clientWith(t, recorder, func(*rest.Config) {}).Create(t.Context(), tried, client.DryRunAll); err != nil {
				return fmt.Errorf("create %s: %w", job.GetName(), err)
			}
			if !slices.ContainsFunc(recorder.texts, func(text string) bool { return strings.Contains(text, "LocalQueue team is stopped") }) {
				return fmt.Errorf("%s: the warnings are %q", job.GetName(), recorder.texts)
			}
			return nil
		})
		if err := submit(t, api, job); err != nil {
			t.Fatalf("create %s: %v", job.GetName(), err)
		}
		finds(t, kindOf(job), namespace, job.GetName(), codes.QueueUnusable)
		waitsFor(t, kindOf(job), namespace, job.GetName(), "LocalQueue team is ")
	}
	stopQueue(t, namespace, "None")
	eventually(t, "both succeed", time.Minute, func() error { return allSucceeded(t, mpiJob, other) })
}

// stopQueue sets whether the queue team of a namespace admits jobs.
func stopQueue(t *testing.T, namespace, policy string) {
	t.Helper()
	queue := &unstructured.Unstructured{}
	queue.SetGroupVersionKind(kueue.LocalQueueKind)
	queue.SetNamespace(namespace)
	queue.SetName("team")
	if err := api.Patch(t.Context(), queue, client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"stopPolicy":%q}}`, policy))); err != nil {
		t.Fatalf("set the queue's stopPolicy to %s: %v", policy, err)
	}
}

// TestQueueByDefault: in a namespace with a default queue, a job runs whose pods name their node.
func TestQueueByDefault(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	queueIn(t, namespace, 10)
	queue := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"clusterQueue": namespace}}}
	queue.SetGroupVersionKind(kueue.LocalQueueKind)
	queue.SetNamespace(namespace)
	queue.SetName("default")
	create(t, queue)
	var nodes corev1.NodeList
	if err := api.List(t.Context(), &nodes); err != nil || len(nodes.Items) == 0 {
		t.Fatalf("there are %d nodes: %v", len(nodes.Items), err)
	}
	job := openMPI(namespace, 1, "sleep", "1")
	for _, role := range job.Spec.MPIReplicaSpecs {
		role.Template.Spec.NodeName = nodes.Items[0].Name
	}
	waitForDefaultQueue(t, job)
	create(t, job)
	if found := waitFor(t, job, "it succeeds", succeeded); found.Labels[mpi.LabelQueue] != "default" {
		t.Errorf("its labels are %v", found.Labels)
	}
}

// TestNoSuchQueue: a job whose queue is not there is told so.
func TestNoSuchQueue(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	queueIn(t, namespace, 4)
	lost := queuedJob(namespace, "lost", 2)
	lost.Labels[mpi.LabelQueue] = "nowhere"
	create(t, lost)
	report := reported(t, "MPIJob", namespace, "lost", "it is told that there is no such queue", func(status v1alpha1.JobReportStatus) error {
		if len(status.Findings) == 0 || status.Findings[0].Code != codes.QueueUnusable {
			return fmt.Errorf("it is %s with %+v", status.Phase, status.Findings)
		}
		return nil
	})
	t.Logf("%s", report.Status.Message)
}

// queuedJob is a job of so many workers that holds them until it is deleted, in the queue team. It has no ranks: many of
// them would keep the machine busy.
func queuedJob(namespace, name string, workers int32) *kubeflow.MPIJob {
	job := agentJob(namespace, name, "openmpi", kubeflow.MPIImplementationOpenMPI, workers, "sleep", "600")
	job.Labels = map[string]string{mpi.LabelQueue: "team"}
	return job
}
