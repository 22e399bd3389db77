package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/gang"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
)

// known is done once the operator knows of PodGroups.
var known sync.Once

// nativeGangs skips a test where the cluster's scheduler places no gangs.
func nativeGangs(t *testing.T) {
	t.Helper()
	kind := schedulingv1beta1.SchemeGroupVersion.WithKind("PodGroup")
	if _, err := api.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version); apimeta.IsNoMatchError(err) {
		t.Skip("SKIPPED: the cluster's scheduler places no gangs; make cluster-up GANGS=native has it do that")
	} else if err != nil {
		t.Fatal(err)
	}
	known.Do(func() {
		// The operator looks every half a minute whether the cluster has what it had not before.
		probe := seated(bareNamespace(t), "probe", "example.com/nobody-has-it", 1, "600")
		create(t, probe)
		reported(t, "MPIJob", probe.Namespace, probe.Name, "the operator knows of PodGroups", func(status v1alpha1.JobReportStatus) error {
			if status.Scheduling == nil || status.Scheduling.Backend != gang.PodGroup {
				return fmt.Errorf("it waits as %+v", status.Scheduling)
			}
			return nil
		})
	})
}

// placeNatively has a test check at its end, if GANGS is native, that Kubernetes' scheduler placed the MPIJobs of a namespace that ran by their
// PodGroups, and the operator the TrainJobs.
func placeNatively(t *testing.T, namespace string) {
	t.Helper()
	if os.Getenv("GANGS") != "native" || isQueuedByTopology() || strings.HasPrefix(t.Name(), "TestGang") {
		return
	}
	nativeGangs(t)
	t.Cleanup(func() {
		var reports v1alpha1.JobReportList
		if err := api.List(context.Background(), &reports, client.InNamespace(namespace)); err != nil {
			t.Errorf("list the reports: %v", err)
		}
		for _, report := range reports.Items {
			want := gang.Embedded
			if report.Spec.JobRef.Kind == kubeflow.Kind {
				want = gang.PodGroup
			}
			if waited := report.Status.Waited; report.Status.RunningTime != nil && (waited == nil || waited.Backend != want) {
				t.Errorf("%s %s was placed by %+v, not by %s", report.Spec.JobRef.Kind, report.Spec.JobRef.Name, waited, want)
			}
		}
	})
}

// seats gives the nodes of the cluster so many of a resource that a test makes up, of which each pod of its jobs takes
// one: the first number to the first node, and so on.
func seats(t *testing.T, name corev1.ResourceName, each ...int64) {
	t.Helper()
	var nodes corev1.NodeList
	if err := api.List(t.Context(), &nodes); err != nil {
		t.Fatal(err)
	}
	if len(nodes.Items) < len(each) {
		t.Skipf("SKIPPED: the test needs %d nodes, and there are %d", len(each), len(nodes.Items))
	}
	slices.SortFunc(nodes.Items, func(a, b corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	for i, n := range each {
		node := &nodes.Items[i]
		patch := fmt.Sprintf(`{"status":{"capacity":{%[1]q:"%[2]d"},"allocatable":{%[1]q:"%[2]d"}}}`, name, n)
		if err := api.Status().Patch(t.Context(), node, client.RawPatch("application/strategic-merge-patch+json", []byte(patch))); err != nil {
			t.Fatalf("give node %s seats: %v", node.Name, err)
		}
	}
	t.Cleanup(func() {
		for i := range each {
			patch := fmt.Sprintf(`{"status":{"capacity":{%[1]q:null},"allocatable":{%[1]q:null}}}`, name)
			_ = api.Status().Patch(context.Background(), &nodes.Items[i], client.RawPatch("application/strategic-merge-patch+json", []byte(patch)))
		}
	})
}

// seated is a job whose pods sleep, each on one seat.
func seated(namespace, name string, seat corev1.ResourceName, workers int32, seconds string) *kubeflow.MPIJob {
	job := agentJob(namespace, name, "openmpi", kubeflow.MPIImplementationOpenMPI, workers, "sleep", seconds)
	worker(job).Command = []string{"sleep", "600"}
	for _, container := range []*corev1.Container{launcher(job), worker(job)} {
		container.Resources = corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("5m"), corev1.ResourceMemory: resource.MustParse("8Mi")},
			Limits:   corev1.ResourceList{seat: resource.MustParse("1")},
		}
		if seat == "" {
			container.Resources.Limits = nil
		}
	}
	// What sleeps does not hear that it is to end.
	for _, role := range job.Spec.MPIReplicaSpecs {
		role.Template.Spec.TerminationGracePeriodSeconds = new(int64(0))
	}
	job.Spec.RunPolicy.SchedulingPolicy = &kubeflow.SchedulingPolicy{}
	job.Spec.RunPolicy.CleanPodPolicy = new(kubeflow.CleanPodPolicyAll)
	return job
}

// placedPods are how many pods of a job have a node.
func placedPods(t *testing.T, job *kubeflow.MPIJob) (n int) {
	t.Helper()
	for _, role := range []mpi.Role{mpi.RoleLauncher, mpi.RoleWorker} {
		for _, pod := range podsOf(t, job, role) {
			if pod.Spec.NodeName != "" {
				n++
			}
		}
	}
	return n
}

// gangWaits waits until a job's record says that it waits for its places, in these words.
func gangWaits(t *testing.T, job *kubeflow.MPIJob, words ...string) *v1alpha1.SchedulingStatus {
	t.Helper()
	return waits(t, "MPIJob", job.Namespace, job.Name, v1alpha1.PhaseGangScheduling, words...).Scheduling
}

// waits waits until a job's record says that it waits in a phase, in these words.
func waits(t *testing.T, kind, namespace, name string, in v1alpha1.Phase, words ...string) v1alpha1.JobReportStatus {
	t.Helper()
	report := reported(t, kind, namespace, name, name+" waits as "+string(in), func(status v1alpha1.JobReportStatus) error {
		if status.Phase != in || status.Scheduling == nil {
			return fmt.Errorf("it is %s: %s", status.Phase, status.Message)
		}
		for _, word := range words {
			if !strings.Contains(status.Scheduling.Message, word) {
				return fmt.Errorf("it says %q, want %q", status.Scheduling.Message, word)
			}
		}
		return nil
	})
	t.Logf("%s %s: %s", kind, name, report.Status.Scheduling.Message)
	return report.Status
}

// podsGone waits until a job has no pods at all.
func podsGone(t *testing.T, job *kubeflow.MPIJob) {
	t.Helper()
	eventually(t, "the pods of "+job.Name+" are gone", time.Minute, func() error {
		if n := len(podsOf(t, job, mpi.RoleWorker)) + len(podsOf(t, job, mpi.RoleLauncher)); n > 0 {
			return fmt.Errorf("%d pods are there", n)
		}
		return nil
	})
}

// nineForFive creates a job of 9 pods where there is room for 5, and waits until a back end reports that, with the figures.
func nineForFive(t *testing.T, seat corev1.ResourceName, backend string) *kubeflow.MPIJob {
	t.Helper()
	seats(t, seat, 3, 2)
	job := seated(newNamespace(t), "nine", seat, 8, "600")
	create(t, job)
	told := gangWaits(t, job, "9 pods requested", "5 fit on 2 of 2 nodes")
	if told.Backend != backend || told.Wanted != 9 || told.Placed != 0 {
		t.Errorf("the report says %+v", told)
	}
	return job
}

// nineRun makes room for all pods of a job of nineForFive, and waits until it runs.
func nineRun(t *testing.T, seat corev1.ResourceName, job *kubeflow.MPIJob) {
	t.Helper()
	seats(t, seat, 5, 4)
	t.Logf("all of 9 pods were placed %s after there was room", placed(t, job, 9))
	reported(t, "MPIJob", job.Namespace, job.Name, "it runs once there is room", inPhase(v1alpha1.PhaseRunning))
}

// timesOut waits until a job has failed because it did not find its places in time, with a finding, and has no pods.
func timesOut(t *testing.T, job *kubeflow.MPIJob, code codes.Code) {
	t.Helper()
	report := reported(t, "MPIJob", job.Namespace, job.Name, "it fails", inPhase(v1alpha1.PhaseFailed))
	t.Logf("%s", report.Status.Message)
	if findings := report.Status.Findings; len(findings) == 0 || findings[0].Code != code {
		t.Errorf("its findings are %+v, want %s", findings, code)
	}
	podsGone(t, job)
}

// createAtOnce creates jobs side by side.
func createAtOnce(t *testing.T, jobs ...client.Object) {
	t.Helper()
	var creating sync.WaitGroup
	for _, job := range jobs {
		creating.Go(func() {
			if err := submit(t, api, job); err != nil {
				t.Errorf("create %s: %v", job.GetName(), err)
			}
		})
	}
	creating.Wait()
}

// allSucceeded returns why a job of either kind has not succeeded; nil if all have.
func allSucceeded(t *testing.T, jobs ...client.Object) error {
	t.Helper()
	for _, job := range jobs {
		if _, is := job.(*kubeflow.MPIJob); !is {
			if err := isComplete(t, job); err != nil {
				return err
			}
			continue
		}
		var now kubeflow.MPIJob
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(job), &now); err != nil {
			return err
		}
		if err := succeeded(&now); err != nil {
			return err
		}
	}
	return nil
}

func deleteAll(t *testing.T, jobs ...client.Object) {
	t.Helper()
	for _, job := range jobs {
		if err := api.Delete(t.Context(), job); err != nil {
			t.Fatal(err)
		}
	}
}

// living is held for reading by tests that need the operators to live: what the webhooks refuse is taken while none answers, and
// only the leader that preempted a job knows why.
var living sync.RWMutex

// keepOperators keeps other tests from killing the operators, until release is called or the test ends.
func keepOperators(t *testing.T) (release func()) {
	t.Helper()
	living.RLock()
	release = sync.OnceFunc(living.RUnlock)
	t.Cleanup(release)
	return release
}

// killOperators ends the operator's pods without a word; their Deployment makes others. Until those answer, keepOperators waits.
func killOperators(t *testing.T) {
	t.Helper()
	living.Lock()
	if err := api.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace("mpijob-system"), client.GracePeriodSeconds(0)); err != nil {
		t.Errorf("kill the operators: %v", err)
	}
	// The test goes on meanwhile, and may end.
	go func() {
		defer living.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		for ctx.Err() == nil && !webhooksAnswer(ctx) {
			time.Sleep(200 * time.Millisecond)
		}
	}()
}

// webhooksAnswer reports whether a job that cannot be is refused.
func webhooksAnswer(ctx context.Context) bool {
	job := openMPI(metav1.NamespaceDefault, 1, "true")
	job.Spec.SlotsPerWorker = new(int32(-1))
	err := api.Create(ctx, job, client.DryRunAll)
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err)
}

// TestGangNative: a job of 9 pods with room for 5 has no pod on a node, reports the figures, and runs once there is room.
func TestGangNative(t *testing.T) {
	nativeGangs(t)
	t.Parallel()
	const seat = "example.com/seat-gang"
	job := nineForFive(t, seat, gang.PodGroup)
	if n := placedPods(t, job); n > 0 {
		t.Errorf("%d of its pods are placed, want none", n)
	}
	nineRun(t, seat, job)
}

// TestGangsInTurn: two jobs of which each needs more than half of the room run one after the other, although the operator is killed in
// between.
func TestGangsInTurn(t *testing.T) {
	nativeGangs(t)
	t.Parallel()
	const seat = "example.com/seat-turn"
	seats(t, seat, 2, 2)
	namespace := newNamespace(t)
	jobs := []*kubeflow.MPIJob{seated(namespace, "first", seat, 2, "5"), seated(namespace, "second", seat, 2, "5")}
	for _, job := range jobs {
		create(t, job)
	}
	eventually(t, "one job has all of its places", time.Minute, func() error {
		if a, b := placedPods(t, jobs[0]), placedPods(t, jobs[1]); a != 3 && b != 3 || a > 0 && b > 0 {
			return fmt.Errorf("one has %d, the other %d", a, b)
		}
		return nil
	})
	killOperators(t)
	for _, job := range jobs {
		waitFor(t, job, job.Name+" succeeds", succeeded)
	}
}

// TestGangPutBack: a job that finds no nodes in time loses its pods, of which none had a node, and is tried again.
func TestGangPutBack(t *testing.T) {
	nativeGangs(t)
	t.Parallel()
	const seat = "example.com/seat-back"
	seats(t, seat, 1, 1)
	job := seated(newNamespace(t), "again", seat, 3, "600")
	job.Spec.RunPolicy.SchedulingPolicy.ScheduleTimeoutSeconds = new(int32(10))
	create(t, job)
	told := reported(t, "MPIJob", job.Namespace, job.Name, "it is put back", func(status v1alpha1.JobReportStatus) error {
		if n := placedPods(t, job); n > 0 {
			t.Fatalf("%d of its pods have nodes, and not all of them", n)
		}
		if status.Scheduling == nil || !strings.Contains(status.Scheduling.Message, "Requeued once") {
			return fmt.Errorf("it is %s: %+v", status.Phase, status.Scheduling)
		}
		return nil
	}).Status.Scheduling
	if told.Attempts != 1 || told.NextTry == nil {
		t.Errorf("it is told as %+v", told)
	}
	podsGone(t, job)
	seats(t, seat, 2, 2)
	report := reported(t, "MPIJob", job.Namespace, job.Name, "it runs in the end", inPhase(v1alpha1.PhaseRunning))
	for _, entry := range report.Status.Timeline {
		t.Logf("%s %s %s", entry.Time.UTC().Format(time.TimeOnly), entry.Event, entry.Detail)
	}
}

// TestGangPreemption: a job of a higher priority takes the nodes of a whole other job, which runs again afterwards.
func TestGangPreemption(t *testing.T) {
	nativeGangs(t)
	t.Parallel()
	preemption(t, "example.com/seat-urgent", "4 pods requested")
}

// preemption has a job of a higher priority take the places of another one as a whole, which waits in some words, and
// succeeds when the urgent one is gone. It returns the report of that other.
func preemption(t *testing.T, seat corev1.ResourceName, words ...string) *v1alpha1.JobReport {
	t.Helper()
	seats(t, seat, 2, 2)
	namespace := newNamespace(t)
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "urgent-" + namespace}, Value: 1000}
	create(t, class)
	t.Cleanup(func() { _ = api.Delete(context.Background(), class) })
	low := seated(namespace, "low", seat, 3, "")
	// It runs for as long as it takes to stop it, and not for long once there is this ConfigMap: longer than a busy machine
	// takes to start the workers, for which this launcher does not wait.
	brief := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "brief"}, Data: map[string]string{"seconds": "20"}}
	launcher(low).Command = []string{"sh", "-c", "exec sleep ${SECONDS_LEFT:-600}"}
	launcher(low).Env = append(launcher(low).Env, corev1.EnvVar{Name: "SECONDS_LEFT", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: brief.Name}, Key: "seconds", Optional: new(true),
	}}})
	// That Kubernetes' scheduler takes its launcher counts as one of its tries.
	low.Spec.RunPolicy.BackoffLimit = new(int32(3))
	create(t, low)
	reported(t, "MPIJob", namespace, low.Name, "it runs", inPhase(v1alpha1.PhaseRunning))
	urgent := seated(namespace, "urgent", seat, 2, "600")
	urgent.Spec.RunPolicy.SchedulingPolicy.PriorityClass = class.Name
	done := keepOperators(t)
	create(t, urgent)
	t.Logf("the urgent one was placed after %s", placed(t, urgent, 3))
	gangWaits(t, low, words...)
	done()
	for _, pod := range slices.Concat(podsOf(t, low, mpi.RoleLauncher), podsOf(t, low, mpi.RoleWorker)) {
		if pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil {
			t.Errorf("pod %s of the other keeps its place", pod.Name)
		}
	}
	create(t, brief)
	if err := api.Delete(t.Context(), urgent); err != nil {
		t.Fatal(err)
	}
	t.Logf("the other was placed again %s after that", placed(t, low, 4))
	waitFor(t, low, "the other succeeds", succeeded)
	report := reported(t, "MPIJob", namespace, low.Name, "it succeeds", inPhase(v1alpha1.PhaseSucceeded))
	for _, entry := range report.Status.Timeline {
		t.Logf("%s %s %s", entry.Time.UTC().Format(time.TimeOnly), entry.Event, entry.Detail)
	}
	return report
}

// TestGangOverhead: placing pods together takes little longer than placing them one by one.
func TestGangOverhead(t *testing.T) {
	whenAsked(t, "GangOverhead")
	nativeGangs(t)
	const runs, most = 3, 30 * time.Second
	namespace := newNamespace(t)
	// The scheduler takes no pods of two classes together, so that the operator leaves such jobs to be placed one by one.
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: namespace}, Value: 0}
	create(t, class)
	t.Cleanup(func() { _ = api.Delete(context.Background(), class) })
	took := map[string][]time.Duration{}
	for i := range runs {
		for _, how := range []string{"together", "apart"} {
			job := seated(namespace, fmt.Sprintf("%s-%d", how, i), "", 8, "600")
			if how == "apart" {
				job.Spec.RunPolicy.SchedulingPolicy = nil
				job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeLauncher].Template.Spec.PriorityClassName = class.Name
			}
			start := time.Now()
			create(t, job)
			placed(t, job, 9)
			took[how] = append(took[how], time.Since(start))
			if err := api.Delete(t.Context(), job); err != nil {
				t.Fatal(err)
			}
			podsGone(t, job)
		}
	}
	for _, times := range took {
		slices.Sort(times)
	}
	together, apart := took["together"][runs/2], took["apart"][runs/2]
	t.Logf("9 pods were placed within %s together, within %s one by one: %v", together.Round(time.Millisecond), apart.Round(time.Millisecond), took)
	if together-apart > most {
		t.Errorf("it takes %s longer", together-apart)
	}
}

// TestGangUnlike: a job that asks for what its scheduler cannot do is refused, and says what to change.
func TestGangUnlike(t *testing.T) {
	nativeGangs(t)
	job := seated(newNamespace(t), "unlike", "", 2, "600")
	job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeLauncher].Template.Spec.SchedulerName = "another"
	// Whichever replica answers has to have seen by then that the cluster places gangs.
	eventually(t, "it is refused", time.Minute, func() error {
		err := api.Create(t.Context(), job.DeepCopy(), client.DryRunAll)
		if err == nil {
			return errors.New("it is taken")
		}
		if !strings.Contains(err.Error(), "schedulerName") {
			return fmt.Errorf("it is refused for something else: %w", err)
		}
		t.Logf("%v", err)
		return nil
	})
}

// TestGangTimeout: a job that finds no nodes in time loses its pods, and fails in the end. If no nodes can ever hold it, its report has
// this as the cause.
func TestGangTimeout(t *testing.T) {
	nativeGangs(t)
	t.Parallel()
	const seat = "example.com/seat-timeout"
	seats(t, seat, 1, 1)
	job := seated(newNamespace(t), "late", seat, 3, "600")
	job.Spec.RunPolicy.SchedulingPolicy.ScheduleTimeoutSeconds = new(int32(5))
	job.Annotations = map[string]string{mpi.AnnotationRequeues: "0"}
	create(t, job)
	timesOut(t, job, codes.GangNeverFits)
	eventually(t, "its PodGroup is gone", time.Minute, func() error {
		var groups schedulingv1beta1.PodGroupList
		if err := api.List(t.Context(), &groups, client.InNamespace(job.Namespace)); err != nil {
			return err
		}
		if len(groups.Items) > 0 {
			return errors.New("its PodGroup is there")
		}
		return nil
	})
}

// TestGangSuspended: a user with the role for users suspends a running job of either kind, which removes all of its pods, and resumes it.
func TestGangSuspended(t *testing.T) {
	nativeGangs(t)
	t.Parallel()
	for _, kind := range []string{kubeflow.Kind, trainjob.Kind} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			seat := "example.com/seat-suspended-" + strings.ToLower(kind)
			seats(t, corev1.ResourceName(seat), 3)
			user := newTenant(t, "gang-"+strings.ToLower(kind))
			var job, other client.Object = seated(user.namespace, "three", corev1.ResourceName(seat), 2, "600"), seated(user.namespace, "other", corev1.ResourceName(seat), 2, "1")
			if kind == trainjob.Kind {
				runtimeIn(t, user.namespace, "mpi-openmpi")
				job, other = seatedTrainJob(t, user.namespace, "three", seat, 3, "[sleep, '600']"), seatedTrainJob(t, user.namespace, "other", seat, 3, "[sleep, '1']")
			}
			createAtOnce(t, job)
			reported(t, kind, user.namespace, "three", "it runs", inPhase(v1alpha1.PhaseRunning))
			haveNodes(t, job, 3)
			reference := strings.ToLower(kind) + "/three"
			odh(t, user.namespace, "suspend", reference, "--as", user.name)
			noPodsLeft(t, job)
			createAtOnce(t, other)
			eventually(t, "another job has its nodes meanwhile", time.Minute, func() error { return allSucceeded(t, other) })
			odh(t, user.namespace, "resume", reference, "--as", user.name)
			haveNodes(t, job, 3)
			reported(t, kind, user.namespace, "three", "it runs again", inPhase(v1alpha1.PhaseRunning))
		})
	}
}
