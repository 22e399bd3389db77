package e2e

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/gang"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
)

// seatedTrainJob is a TrainJob of so many pods, each on one seat, that sets nothing else but the rest, in YAML.
func seatedTrainJob(t *testing.T, namespace, name, seat string, nodes int, command string, rest ...string) *unstructured.Unstructured {
	t.Helper()
	job := trainJob(t, namespace, fmt.Sprintf("{numNodes: %d, command: %s, resourcesPerNode: {limits: {%s: 1}}}", nodes, command, seat), rest...)
	job.SetName(name)
	return job
}

// trainJobPods counts the pods of a TrainJob, with and without a node.
func trainJobPods(t *testing.T, job client.Object) int {
	t.Helper()
	return len(trainerPods(t, job, "launcher")) + len(trainerPods(t, job, "node"))
}

// livePods are the pods of a job of either kind that have not succeeded and are not being deleted.
func livePods(t *testing.T, job client.Object) []corev1.Pod {
	t.Helper()
	var list corev1.PodList
	if err := api.List(t.Context(), &list, client.InNamespace(job.GetNamespace())); err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool {
		return !strings.HasPrefix(pod.Name, job.GetName()+"-") || pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded
	})
}

// haveNodes waits until a job of either kind has so many pods, each with a node.
func haveNodes(t *testing.T, job client.Object, pods int) {
	t.Helper()
	eventually(t, "all pods of "+job.GetName()+" have nodes", time.Minute, func() error {
		live := livePods(t, job)
		without := slices.IndexFunc(live, func(pod corev1.Pod) bool { return pod.Spec.NodeName == "" })
		if len(live) != pods || without >= 0 {
			return fmt.Errorf("it has %d pods, want %d; one without a node is number %d", len(live), pods, without)
		}
		return nil
	})
}

// noPodsLeft waits until a job of either kind has no pods.
func noPodsLeft(t *testing.T, job client.Object) {
	t.Helper()
	eventually(t, job.GetName()+" has no pods", time.Minute, func() error {
		if n := len(livePods(t, job)); n > 0 {
			return fmt.Errorf("it has %d", n)
		}
		return nil
	})
}

// launcherHasNode waits until the launcher of a job of either kind has a node.
func launcherHasNode(t *testing.T, job client.Object) {
	t.Helper()
	eventually(t, "the launcher of "+job.GetName()+" has a node", time.Minute, func() error {
		for _, pod := range livePods(t, job) {
			if strings.HasPrefix(pod.Name, job.GetName()+"-launcher-") && pod.Spec.NodeName != "" {
				return nil
			}
		}
		return fmt.Errorf("it has %d pods", len(livePods(t, job)))
	})
}

// workersFindNoNodes has the workers of a job of either kind find no nodes, while its launcher finds one: they must be beside a pod that
// does not exist, of which neither the operator nor Kueue knows. An attempt to place them ends after so many seconds.
func workersFindNoNodes(t *testing.T, job client.Object, seconds int32) {
	t.Helper()
	affinity := &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
		TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"example.com/not": "there"}},
	}}}}
	if mpiJob, is := job.(*kubeflow.MPIJob); is {
		mpiJob.Spec.RunPolicy.SchedulingPolicy = &kubeflow.SchedulingPolicy{ScheduleTimeoutSeconds: &seconds}
		mpiJob.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Template.Spec.Affinity = affinity
		return
	}
	job.SetAnnotations(map[string]string{mpi.AnnotationScheduleTimeout: strconv.Itoa(int(seconds))})
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(affinity)
	if err != nil {
		t.Fatal(err)
	}
	fields, path := job.(*unstructured.Unstructured).Object, []string{"trainingRuntimeSpec", "template", "spec", "replicatedJobs"}
	patches, found, err := unstructured.NestedSlice(fields, "spec", "runtimePatches")
	if err != nil {
		t.Fatal(err)
	}
	if !found {
		patches = []any{map[string]any{"manager": "example.com/me"}}
	}
	patch := patches[0].(map[string]any)
	jobs, found, err := unstructured.NestedSlice(patch, path...)
	if err != nil {
		t.Fatal(err)
	}
	if !found {
		jobs = []any{map[string]any{"name": "node"}}
	}
	for _, each := range jobs {
		if replicated := each.(map[string]any); replicated["name"] == "node" {
			if err := unstructured.SetNestedMap(replicated, object, "template", "spec", "template", "spec", "affinity"); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := unstructured.SetNestedSlice(patch, jobs, path...); err != nil {
		t.Fatal(err)
	}
	if err := unstructured.SetNestedSlice(fields, patches, "spec", "runtimePatches"); err != nil {
		t.Fatal(err)
	}
}

// isComplete returns why a TrainJob is not complete, and ends the test if it failed.
func isComplete(t *testing.T, job client.Object) error {
	t.Helper()
	now, err := trainjob.LoadJob(t.Context(), api, client.ObjectKeyFromObject(job))
	if err != nil || now == nil {
		return fmt.Errorf("read %s: %w", job.GetName(), err)
	}
	for _, c := range now.Status.Conditions {
		if c.Status == metav1.ConditionTrue && c.Type == "Complete" {
			return nil
		}
		if c.Status == metav1.ConditionTrue && c.Type == "Failed" {
			t.Fatalf("%s failed: %s", job.GetName(), c.Message)
		}
	}
	return fmt.Errorf("%s has %d pods and the conditions %+v", job.GetName(), trainJobPods(t, job), now.Status.Conditions)
}

// TestNoDeadlockOfTrainJobs: two jobs without any setting, each with more than half of the room and created at once, both end,
// one after the other: two TrainJobs, or a TrainJob and an MPIJob. In every second round, the operators are killed meanwhile.
func TestNoDeadlockOfTrainJobs(t *testing.T) {
	embeddedGangs(t)
	t.Parallel()
	const seat = "example.com/seat-trainjobs"
	seats(t, seat, 3, 3)
	namespace := newNamespace(t)
	runtimeIn(t, namespace, "mpi-openmpi")
	for round := range rounds(t) {
		start := time.Now()
		first := seatedTrainJob(t, namespace, fmt.Sprintf("one-%d", round), seat, 4, "[sleep, '1']")
		var second client.Object = seatedTrainJob(t, namespace, fmt.Sprintf("two-%d", round), seat, 4, "[sleep, '1']")
		if round%3 == 2 {
			job := seated(namespace, fmt.Sprintf("two-%d", round), seat, 3, "1")
			job.Spec.RunPolicy.SchedulingPolicy = nil
			second = job
		}
		createAtOnce(t, first, second)
		if round%2 == 1 {
			killOperators(t)
		}
		eventually(t, "both succeed", 3*time.Minute, func() error { return allSucceeded(t, first, second) })
		t.Logf("round %d: a %s and a %s have succeeded after %s", round, kindOf(first), kindOf(second), time.Since(start).Round(100*time.Millisecond))
		deleteAll(t, first, second)
	}
}

// TestTrainJobWaitsForCapacity: a TrainJob of 4 pods with room for 2 has none, and its report has the figures. It can be suspended
// and resumed while it waits, and runs when there is room.
func TestTrainJobWaitsForCapacity(t *testing.T) {
	embeddedGangs(t)
	t.Parallel()
	trainJobWaitsForCapacity(t, "example.com/seat-trainjob-waits", func() {})
}

// TestGangOfTrainJobs: on a cluster whose scheduler supports PodGroups, a TrainJob of 4 pods with room for 2 has none, also when the
// operators are killed, and its report has the figures. It runs when there is room. A TrainJob that can never fit has no pods.
func TestGangOfTrainJobs(t *testing.T) {
	nativeGangs(t)
	t.Parallel()
	const seat = "example.com/seat-trainjob-native"
	trainJobWaitsForCapacity(t, seat, func() { killOperators(t) })
	namespace := newNamespace(t)
	runtimeIn(t, namespace, "mpi-openmpi")
	large := seatedTrainJob(t, namespace, "large", seat, 8, "[sleep, '600']")
	createTrainJob(t, large)
	reported(t, trainjob.Kind, namespace, "large", "its report says that it never fits", func(status v1alpha1.JobReportStatus) error {
		if len(status.Findings) == 0 || status.Findings[0].Code != codes.GangNeverFits {
			return fmt.Errorf("it is %s with %+v", status.Phase, status.Findings)
		}
		return nil
	})
	if n := trainJobPods(t, large); n > 0 {
		t.Errorf("it has %d pods, want none", n)
	}
}

// trainJobWaitsForCapacity calls a function while the TrainJob waits.
func trainJobWaitsForCapacity(t *testing.T, seat string, meanwhile func()) {
	t.Helper()
	seats(t, corev1.ResourceName(seat), 3, 1)
	namespace := newNamespace(t)
	runtimeIn(t, namespace, "mpi-openmpi")
	before := seated(namespace, "before", corev1.ResourceName(seat), 1, "600")
	create(t, before)
	placed(t, before, 2)
	job := seatedTrainJob(t, namespace, "four", seat, 4, "[mpirun, -n, '4', ranks, --sleep, '1']")
	createTrainJob(t, job)
	waiting := func() {
		t.Helper()
		told := waits(t, trainjob.Kind, namespace, "four", v1alpha1.PhaseGangScheduling, "4 pods requested", "2 fit on ").Scheduling
		if told.Backend != gang.Embedded || told.Wanted != 4 || told.Placed != 0 {
			t.Errorf("the report says %+v", told)
		}
		for range 5 {
			if n := trainJobPods(t, job); n > 0 {
				t.Errorf("it has %d pods, want none", n)
			}
			time.Sleep(500 * time.Millisecond)
		}
	}
	waiting()
	suspend(t, job, true)
	reported(t, trainjob.Kind, namespace, "four", "it is suspended", inPhase(v1alpha1.PhaseSuspended))
	suspend(t, job, false)
	waiting()
	meanwhile()
	if err := api.Delete(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	eventually(t, "it has its pods", time.Minute, func() error {
		if n := trainJobPods(t, job); n != 4 {
			return fmt.Errorf("it has %d", n)
		}
		return nil
	})
	t.Logf("it had its pods %s after the other job was deleted", time.Since(start).Round(100*time.Millisecond))
	ends(t, job, "Complete")
}

// TestTrainJobIsPreempted: a TrainJob makes room for an MPIJob of a higher priority as a whole, and runs again afterwards, which
// counts as no restart.
func TestTrainJobIsPreempted(t *testing.T) {
	embeddedGangs(t)
	t.Parallel()
	const seat = "example.com/seat-trainjob-preempted"
	trainJobIsPreempted(t, seat, func(namespace, class string) client.Object {
		urgent := seated(namespace, "urgent", seat, 1, "3")
		urgent.Spec.RunPolicy.SchedulingPolicy.PriorityClass = class
		return urgent
	})
}

// TestTrainJobPreempts: a TrainJob with a priority class of its own, without a queue, takes the nodes of a whole other TrainJob, which runs
// again afterwards.
func TestTrainJobPreempts(t *testing.T) {
	embeddedGangs(t)
	t.Parallel()
	const seat = "example.com/seat-trainjob-preempts"
	trainJobIsPreempted(t, seat, func(namespace, class string) client.Object {
		urgent := seatedTrainJob(t, namespace, "urgent", seat, 2, "[sleep, '3']")
		urgent.SetAnnotations(map[string]string{mpi.AnnotationPriorityClass: class})
		return urgent
	})
}

// TestGangPreemptionOfTrainJobs: on a cluster whose scheduler supports PodGroups, a TrainJob gives its nodes as a whole to a job of a
// higher priority.
func TestGangPreemptionOfTrainJobs(t *testing.T) {
	nativeGangs(t)
	t.Parallel()
	const seat = "example.com/seat-trainjob-urgent"
	trainJobIsPreempted(t, seat, func(namespace, class string) client.Object {
		runtimeOfPriority(t, namespace, "urgent", class)
		urgent := seatedTrainJob(t, namespace, "urgent", seat, 2, "[sleep, '3']")
		if err := unstructured.SetNestedField(urgent.Object, "urgent", "spec", "runtimeRef", "name"); err != nil {
			t.Fatal(err)
		}
		return urgent
	})
}

// trainJobIsPreempted has a job of a higher priority, which urgent makes, take the seats of a TrainJob.
func trainJobIsPreempted(t *testing.T, seat string, urgent func(namespace, class string) client.Object) {
	t.Helper()
	seats(t, corev1.ResourceName(seat), 2, 0)
	namespace := newNamespace(t)
	runtimeIn(t, namespace, "mpi-openmpi")
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "urgent-" + namespace}, Value: 1000}
	create(t, class)
	t.Cleanup(func() { _ = api.Delete(context.Background(), class) })
	// It runs until it is stopped, and not for long once there is this ConfigMap.
	job := seatedTrainJob(t, namespace, "patient", seat, 2,
		"[sh, -c, 'exec mpirun -n 2 ranks --sleep ${SECONDS_LEFT:-600}'], env: [{name: SECONDS_LEFT, valueFrom: {configMapKeyRef: {name: brief, key: seconds, optional: true}}}]")
	createTrainJob(t, job)
	reported(t, trainjob.Kind, namespace, "patient", "it runs", inPhase(v1alpha1.PhaseRunning))
	other := urgent(namespace, class.Name)
	done := keepOperators(t)
	if err := submit(t, api, other); err != nil {
		t.Fatalf("create the urgent one: %v", err)
	}
	reported(t, trainjob.Kind, namespace, "patient", "it makes room", func(status v1alpha1.JobReportStatus) error {
		if status.Phase != v1alpha1.PhaseGangScheduling || !slices.ContainsFunc(status.Timeline, func(e v1alpha1.TimelineEntry) bool { return e.Event == "Preempted" }) {
			return fmt.Errorf("it is %s, after %+v", status.Phase, status.Timeline)
		}
		return nil
	})
	done()
	create(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "brief"}, Data: map[string]string{"seconds": "1"}})
	eventually(t, "the urgent one succeeds", time.Minute, func() error { return allSucceeded(t, other) })
	ends(t, job, "Complete")
	set := jobSetOf(job)
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(job), set); err != nil {
		t.Fatal(err)
	}
	if restarts, _, _ := unstructured.NestedInt64(set.Object, "status", "restarts"); restarts != 0 {
		t.Errorf("JobSet has restarted it %d times", restarts)
	}
}

// runtimeOfPriority creates a runtime whose pods have a priority class.
func runtimeOfPriority(t *testing.T, namespace, name, class string) {
	t.Helper()
	all, err := runtimes()
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{Object: map[string]any{"spec": all["mpi-openmpi"].DeepCopy().Object["spec"]}}
	object.SetGroupVersionKind(trainjob.GroupVersion.WithKind(trainjob.RuntimeKind))
	object.SetNamespace(namespace)
	object.SetName(name)
	object.SetLabels(all["mpi-openmpi"].GetLabels())
	object.SetAnnotations(all["mpi-openmpi"].GetAnnotations())
	jobs, _, err := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "replicatedJobs")
	if err != nil || len(jobs) == 0 {
		t.Fatalf("the runtime has %d jobs: %v", len(jobs), err)
	}
	for _, job := range jobs {
		if err := unstructured.SetNestedField(job.(map[string]any), class, "template", "spec", "template", "spec", "priorityClassName"); err != nil {
			t.Fatal(err)
		}
	}
	if err := unstructured.SetNestedSlice(object.Object, jobs, "spec", "template", "spec", "replicatedJobs"); err != nil {
		t.Fatal(err)
	}
	create(t, object)
}

// TestTrainJobIsPutBack: a TrainJob of which some pods find no nodes in the time that its annotation allows releases those that others
// have, for another job, and waits for its next try.
func TestTrainJobIsPutBack(t *testing.T) {
	embeddedGangs(t)
	t.Parallel()
	trainJobIsPutBack(t, "example.com/seat-trainjob-back")
}

// TestGangPutBackOfTrainJobs: on a cluster whose scheduler supports PodGroups, a TrainJob of which some pods find no nodes in the time that
// its annotation allows releases those that others have, for another job, and waits for its next try.
func TestGangPutBackOfTrainJobs(t *testing.T) {
	nativeGangs(t)
	t.Parallel()
	trainJobIsPutBack(t, "example.com/seat-trainjob-native-back")
}

// trainJobIsPutBack has the launcher of a TrainJob hold a node that its workers do not get, and another job have it in the end.
func trainJobIsPutBack(t *testing.T, seat string) {
	t.Helper()
	seats(t, corev1.ResourceName(seat), 2, 0)
	namespace := newNamespace(t)
	runtimeIn(t, namespace, "mpi-openmpi")
	job := seatedTrainJob(t, namespace, "apart", seat, 2, "[mpirun, hostname]")
	workersFindNoNodes(t, job, 5)
	createTrainJob(t, job)
	launcherHasNode(t, job)
	report := reported(t, trainjob.Kind, namespace, "apart", "it is put back", func(status v1alpha1.JobReportStatus) error {
		if status.Scheduling == nil || status.Scheduling.Attempts != 1 || status.Scheduling.NextTry == nil {
			return fmt.Errorf("it is %s: %+v", status.Phase, status.Scheduling)
		}
		return nil
	})
	t.Logf("%s", report.Status.Scheduling.Message)
	noPodsLeft(t, job)
	other := seated(namespace, "other", corev1.ResourceName(seat), 1, "1")
	create(t, other)
	waitFor(t, other, "another job has the nodes meanwhile", succeeded)
}

// TestTrainJobLosesAPod: a worker of a TrainJob that is deleted is created again, and the other pods stay.
func TestTrainJobLosesAPod(t *testing.T) {
	embeddedGangs(t)
	t.Parallel()
	const seat = "example.com/seat-trainjob-loses"
	seats(t, seat, 3, 0)
	namespace := newNamespace(t)
	runtimeIn(t, namespace, "mpi-openmpi")
	job := seatedTrainJob(t, namespace, "three", seat, 3, "[sleep, '15']")
	createTrainJob(t, job)
	reported(t, trainjob.Kind, namespace, "three", "it runs", inPhase(v1alpha1.PhaseRunning))
	launcher, workers := trainerPods(t, job, "launcher"), trainerPods(t, job, "node")
	if len(launcher) != 1 || len(workers) != 2 {
		t.Fatalf("it has %d launchers and %d workers", len(launcher), len(workers))
	}
	if err := api.Delete(t.Context(), &workers[0], client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it has another worker", time.Minute, func() error {
		now := trainerPods(t, job, "node")
		if len(now) != 2 || slices.ContainsFunc(now, func(pod corev1.Pod) bool { return pod.UID == workers[0].UID || pod.Status.Phase != corev1.PodRunning }) {
			return fmt.Errorf("it has %d", len(now))
		}
		if !slices.ContainsFunc(now, func(pod corev1.Pod) bool { return pod.UID == workers[1].UID }) {
			t.Fatal("the other worker was deleted too")
		}
		return nil
	})
	if now := trainerPods(t, job, "launcher"); len(now) != 1 || now[0].UID != launcher[0].UID {
		t.Errorf("its launcher was %s and is %+v", launcher[0].Name, now)
	}
	ends(t, job, "Complete")
}
