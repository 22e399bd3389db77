package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/gang"
	"opendatahub.io/mpijob/internal/mpi"
)

// embeddedGangs skips a test where it is not the operator itself that places gangs.
func embeddedGangs(t *testing.T) {
	t.Helper()
	notQueued(t, "a test of the second table of docs/promises.md, with the nodes' resources in its queue,")
	kind := schedulingv1beta1.SchemeGroupVersion.WithKind("PodGroup")
	if _, err := api.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version); err == nil {
		t.Skip("SKIPPED: the cluster's own scheduler places gangs; make cluster-up GANGS=none has the operator do that")
	} else if !apimeta.IsNoMatchError(err) {
		t.Fatal(err)
	}
}

// placed waits until all pods of a job have a node, and returns how long that took.
func placed(t *testing.T, job *kubeflow.MPIJob, pods int) time.Duration {
	t.Helper()
	start := time.Now()
	eventually(t, "all pods of "+job.Name+" are placed", time.Minute, func() error {
		if n := placedPods(t, job); n != pods {
			return fmt.Errorf("%d of %d are", n, pods)
		}
		return nil
	})
	return time.Since(start).Round(10 * time.Millisecond)
}

// podless checks that a job has no pods at all.
func podless(t *testing.T, job *kubeflow.MPIJob) {
	t.Helper()
	if n := len(podsOf(t, job, mpi.RoleLauncher)) + len(podsOf(t, job, mpi.RoleWorker)); n > 0 {
		t.Errorf("%s has %d pods, want none", job.Name, n)
	}
}

// TestEmbedded: a job of 9 pods with room for 5 has none, reports the figures, and runs once there is room, although the operator is killed
// while it waits.
func TestEmbedded(t *testing.T) {
	embeddedGangs(t)
	t.Parallel()
	const seat = "example.com/seat-embedded"
	job := nineForFive(t, seat, gang.Embedded)
	podless(t, job)
	killOperators(t)
	seats(t, seat, 4, 4)
	gangWaits(t, job, "8 fit on 2 of 2 nodes")
	podless(t, job)
	nineRun(t, seat, job)
}

// TestEmbeddedInTurn: two jobs of which each would have half of the room run one after the other.
func TestEmbeddedInTurn(t *testing.T) {
	embeddedGangs(t)
	t.Parallel()
	const seat = "example.com/seat-embedded-turn"
	seats(t, seat, 2, 2)
	namespace := newNamespace(t)
	first, second := seated(namespace, "first", seat, 2, "5"), seated(namespace, "second", seat, 2, "5")
	create(t, first)
	create(t, second)
	eventually(t, "both succeed, and never have pods at once", time.Minute, func() error {
		if a, b := placedPods(t, first), placedPods(t, second); a > 0 && b > 0 && a+b > 4 {
			t.Fatalf("the first has %d pods with a node, the second %d, and there is room for 4", a, b)
		}
		return allSucceeded(t, first, second)
	})
}

// rounds is how often a test has two jobs come at once: DEADLOCK_ROUNDS in the environment, or 3.
func rounds(t *testing.T) int {
	t.Helper()
	asked := os.Getenv("DEADLOCK_ROUNDS")
	if asked == "" {
		return 3
	}
	n, err := strconv.Atoi(asked)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestNoDeadlockByDefault: two jobs that set nothing, each with more than half of the room and created at once, both end, one
// after the other, on a cluster that has nothing but Kubernetes. If each held a part of the room, neither would for 10 minutes.
func TestNoDeadlockByDefault(t *testing.T) {
	embeddedGangs(t)
	t.Parallel()
	const seat = "example.com/seat-deadlock"
	seats(t, seat, 3, 3)
	namespace := newNamespace(t)
	for round := range rounds(t) {
		start := time.Now()
		var jobs []client.Object
		for _, name := range []string{"one", "two"} {
			job := seated(namespace, fmt.Sprintf("%s-%d", name, round), seat, 3, "1")
			job.Spec.RunPolicy.SchedulingPolicy = nil
			jobs = append(jobs, job)
		}
		createAtOnce(t, jobs...)
		eventually(t, "both succeed", 3*time.Minute, func() error { return allSucceeded(t, jobs...) })
		t.Logf("round %d: both have succeeded after %s", round, time.Since(start).Round(100*time.Millisecond))
		deleteAll(t, jobs...)
	}
}

// TestEmbeddedLargeOne: small jobs, of which there are always some that would fit, do not keep a large one from starting.
func TestEmbeddedLargeOne(t *testing.T) {
	embeddedGangs(t)
	t.Parallel()
	const seat = "example.com/seat-embedded-large"
	seats(t, seat, 3, 3)
	namespace := newNamespace(t)
	next := 0
	small := func() {
		next++
		create(t, seated(namespace, fmt.Sprintf("small-%d", next), seat, 1, "4"))
	}
	for range 3 {
		small()
	}
	eventually(t, "small jobs have all of the room", time.Minute, func() error {
		pods := 0
		for i := range next {
			pods += placedPods(t, seated(namespace, fmt.Sprintf("small-%d", i+1), seat, 1, ""))
		}
		if pods < 4 {
			return fmt.Errorf("they have %d pods with a node", pods)
		}
		return nil
	})
	large := seated(namespace, "large", seat, 5, "5")
	create(t, large)
	start := time.Now()
	last := start
	eventually(t, "the large one is placed", time.Minute, func() error {
		if time.Since(last) > 3*time.Second && next < 12 {
			last = time.Now()
			small()
		}
		if n := placedPods(t, large); n != 6 {
			return fmt.Errorf("%d of 6 are", n)
		}
		return nil
	})
	t.Logf("the large one was placed %s after it came, among %d small ones", time.Since(start).Round(100*time.Millisecond), next)
	waitFor(t, large, "it succeeds", succeeded)
}

// TestEmbeddedPreemption: a job of a higher priority stops a whole job of a lower one, which runs again after it, and whose timeline shows
// why it was stopped.
func TestEmbeddedPreemption(t *testing.T) {
	embeddedGangs(t)
	t.Parallel()
	const why = "to make room for a job of a higher priority (1000, over 0)"
	report := preemption(t, "example.com/seat-embedded-urgent", why, "4 pods requested")
	var story []string
	for _, entry := range report.Status.Timeline {
		story = append(story, entry.Event)
		if entry.Event == "Preempted" && !strings.Contains(entry.Detail, why) {
			t.Errorf("that it was stopped is told as %q", entry.Detail)
		}
	}
	// How it begins comes in any order, and it may have to wait for a moment.
	began := slices.DeleteFunc(slices.Clone(story[:slices.Index(story, "Running")]), func(event string) bool { return event == "GangScheduling" })
	slices.Sort(began)
	want := []string{"Created", "LauncherStarted", "PodsPlaced", "PodsStarting", "WorkersReady", "Running", "Preempted", "GangScheduling", "Running", "Succeeded"}
	if got := append(began, story[slices.Index(story, "Running"):]...); !slices.Equal(got, want) {
		t.Errorf("its timeline tells %v, want %v", got, want)
	}
	// Its launcher only sleeps.
	findings := slices.DeleteFunc(slices.Clone(report.Status.Findings), func(f v1alpha1.Finding) bool { return f.Code == codes.WorkersIdle })
	if len(findings) > 0 || report.Status.Scheduling != nil {
		t.Errorf("it has succeeded and tells of %+v, waits as %+v", findings, report.Status.Scheduling)
	}
}

// TestEmbeddedPreemptsOtherPods: the cluster's scheduler preempts a pod that belongs to no job if all pods of a job of a higher priority
// fit then. If that would not be enough, as with another job of the same priority, the job has no pods and waits.
func TestEmbeddedPreemptsOtherPods(t *testing.T) {
	embeddedGangs(t)
	t.Parallel()
	const seat = "example.com/seat-embedded-other"
	seats(t, seat, 2, 2)
	namespace := newNamespace(t)
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "urgent-" + namespace}, Value: 1000}
	create(t, class)
	t.Cleanup(func() { _ = api.Delete(context.Background(), class) })
	urgent := func(name string) *kubeflow.MPIJob {
		job := seated(namespace, name, seat, 2, "20")
		job.Spec.RunPolicy.SchedulingPolicy = nil
		for _, role := range job.Spec.MPIReplicaSpecs {
			role.Template.Spec.PriorityClassName = class.Name
		}
		return job
	}
	other := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "other"}}
	other.Spec = seated(namespace, "other", seat, 1, "1").Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Template.Spec
	other.Spec.Containers[0].Resources.Limits = corev1.ResourceList{seat: resource.MustParse("2")}
	create(t, other)
	eventually(t, "the other pod runs", time.Minute, func() error {
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(other), other); err != nil || other.Status.Phase == corev1.PodRunning {
			return err
		}
		return fmt.Errorf("it is %s", other.Status.Phase)
	})
	first, second := urgent("first"), urgent("second")
	create(t, first)
	placed(t, first, 3)
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(other), other); err == nil && other.DeletionTimestamp == nil && other.Status.Phase == corev1.PodRunning {
		t.Errorf("the job has its 3 of 4 seats, and the other pod its 2: %+v", other.Status)
	}
	create(t, second)
	gangWaits(t, second, "3 pods requested, 1 fit")
	podless(t, second)
	eventually(t, "both succeed one after the other", 2*time.Minute, func() error {
		if a, b := placedPods(t, first), len(podsOf(t, second, mpi.RoleWorker)); a == 3 && b > 0 {
			t.Fatalf("the second has %d workers while the first has all of its pods", b)
		}
		return allSucceeded(t, first, second)
	})
}

// TestEmbeddedRace: a job whose pods would fit, but cannot all be placed because of rules that the operator does not know, loses its pods
// after its timeout, and fails in the end.
func TestEmbeddedRace(t *testing.T) {
	embeddedGangs(t)
	t.Parallel()
	const seat = "example.com/seat-embedded-race"
	seats(t, seat, 4, 0)
	job := seated(newNamespace(t), "apart", seat, 2, "600")
	job.Spec.RunPolicy.SchedulingPolicy.ScheduleTimeoutSeconds = new(int32(5))
	job.Annotations = map[string]string{mpi.AnnotationRequeues: "0"}
	job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{mpi.LabelJob: job.Name, mpi.LabelRole: string(mpi.RoleWorker)}},
		}},
	}}
	create(t, job)
	timesOut(t, job, codes.GangTimeout)
}

// TestEmbeddedTimeout: a job with a time limit whose pods no nodes can ever hold fails when the limit has passed, with the figures.
func TestEmbeddedTimeout(t *testing.T) {
	embeddedGangs(t)
	t.Parallel()
	const seat = "example.com/seat-embedded-never"
	seats(t, seat, 1, 1)
	job := seated(newNamespace(t), "never", seat, 3, "600")
	job.Spec.RunPolicy.SchedulingPolicy.ScheduleTimeoutSeconds = new(int32(5))
	job.Annotations = map[string]string{mpi.AnnotationRequeues: "0"}
	create(t, job)
	timesOut(t, job, codes.GangNeverFits)
}

// TestHalfPlacedJobWithAgentIsPutBack: a launcher's mpirun waits for a worker that finds no node until the operator puts the job back,
// also if that is later than it gives up a worker that does not answer. The report shows the pod without a node meanwhile.
func TestHalfPlacedJobWithAgentIsPutBack(t *testing.T) {
	embeddedGangs(t)
	t.Parallel()
	const seat = "example.com/seat-embedded-half"
	const timeout = agentapi.DefaultWait + 20*time.Second
	seats(t, seat, 4, 0)
	job := seated(newNamespace(t), "half", seat, 2, "600")
	launcher(job).Command, worker(job).Command = []string{"mpirun", "hostname"}, nil
	job.Spec.RunPolicy.SchedulingPolicy.ScheduleTimeoutSeconds = new(int32(timeout.Seconds()))
	job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{mpi.LabelJob: job.Name, mpi.LabelRole: string(mpi.RoleWorker)}},
		}},
	}}
	create(t, job)
	launcherHasNode(t, job)
	reported(t, "MPIJob", job.Namespace, job.Name, "it names the worker without a node", func(status v1alpha1.JobReportStatus) error {
		if len(status.Findings) == 0 || status.Findings[0].Code != codes.NoMatchingNode && status.Findings[0].Code != codes.InsufficientResources {
			return fmt.Errorf("it is %s: %+v", status.Phase, status.Findings)
		}
		return nil
	})
	eventuallyAfter(t, "it is put back", timeout, time.Minute, func() error {
		report := reportOf(t, "MPIJob", job.Namespace, job.Name)
		if report == nil {
			return errors.New("there is no report")
		}
		status := report.Status
		if status.Phase == v1alpha1.PhaseFailed {
			t.Fatalf("it has failed: %s", status.Message)
		}
		if status.Scheduling == nil || status.Scheduling.Attempts != 1 {
			return fmt.Errorf("it is %s: %+v", status.Phase, status.Scheduling)
		}
		return nil
	})
	podsGone(t, job)
}
