package e2e

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
)

// TestOperatorUpgraded replaces both replicas of the operator, as an upgrade does, while one job runs and others
// come: the one that runs is not disturbed, and the others start.
func TestOperatorUpgraded(t *testing.T) {
	namespace := newNamespace(t)
	job := sleeping(t, namespace, 600, func(job *kubeflow.MPIJob) { job.Name = "before" })
	create(t, job)
	waitFor(t, job, "it runs", runs)
	uids := func() map[string]types.UID {
		found := map[string]types.UID{}
		for _, role := range []mpi.Role{mpi.RoleLauncher, mpi.RoleWorker} {
			for _, pod := range podsOf(t, job, role) {
				found[pod.Name] = pod.UID
			}
		}
		return found
	}
	before := uids()

	operator := &appsv1.Deployment{}
	if err := api.Get(t.Context(), operatorKey, operator); err != nil {
		t.Skipf("SKIPPED: the operator is not installed as %s: %v", operatorKey, err)
	}
	patch := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"mpi.opendatahub.io/restarted-at":%q}}}}}`, time.Now().Format(time.RFC3339Nano))
	if err := api.Patch(t.Context(), operator, client.RawPatch(types.StrategicMergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
	var slowest time.Duration
	for i := 0; ; i++ {
		start := time.Now()
		next := sleeping(t, namespace, 0, func(job *kubeflow.MPIJob) { job.Name = fmt.Sprintf("during-%d", i) })
		create(t, next)
		eventually(t, next.Name+" has its pods", time.Minute, func() error {
			if pods := podsOf(t, next, mpi.RoleWorker); len(pods) != 2 {
				return fmt.Errorf("there are %d workers", len(pods))
			}
			return nil
		})
		slowest = max(slowest, time.Since(start))
		if err := api.Delete(t.Context(), next, client.PropagationPolicy("Background")); err != nil {
			t.Fatal(err)
		}
		if err := api.Get(t.Context(), operatorKey, operator); err != nil {
			t.Fatal(err)
		}
		s := operator.Status
		if s.ObservedGeneration >= operator.Generation && s.UpdatedReplicas == *operator.Spec.Replicas && s.Replicas == s.UpdatedReplicas && s.AvailableReplicas == s.Replicas {
			t.Logf("%d jobs came while the operator was replaced; the one that waited longest had its pods after %s", i+1, slowest.Round(10*time.Millisecond))
			break
		}
		time.Sleep(200 * time.Millisecond)
	}
	for name, uid := range uids() {
		if before[name] != uid {
			t.Errorf("%s was %q before and is %q now", name, before[name], uid)
		}
	}
	if len(uids()) != len(before) {
		t.Errorf("there were pods %v, and now there are %v", before, uids())
	}
}

// TestUpgrade installs another version of the operator, by the command in UPGRADE, while jobs of each kind run, wait for room and
// are suspended. The pods of jobs that run stay, and their agents work with a launcher of the new version; what waited starts when it
// can; records of jobs that ended stay as they are.
func TestUpgrade(t *testing.T) {
	upgrade := strings.Fields(os.Getenv("UPGRADE"))
	if len(upgrade) == 0 {
		t.Skip("SKIPPED: UPGRADE contains no command; make e2e-upgrade installs an earlier version and upgrades it")
	}
	namespace := newNamespace(t)
	const seat = "example.com/seat-upgrade"
	seats(t, seat, 2, 1)
	named := func(name string) func(*kubeflow.MPIJob) { return func(job *kubeflow.MPIJob) { job.Name = name } }

	ended := sleeping(t, namespace, 0, named("ended"))
	wrong := sleeping(t, namespace, 0, named("failed"), func(job *kubeflow.MPIJob) {
		launcher(job).Command = []string{"mpirun", "-n", "2", "ranks", "--exit", "1:3"}
		job.Spec.RunPolicy.BackoffLimit = new(int32(0))
	})
	running := sleeping(t, namespace, 600, named("running"), secondTryEnds)
	suspended := sleeping(t, namespace, 0, named("suspended"), func(job *kubeflow.MPIJob) { job.Spec.RunPolicy.Suspend = new(true) })
	first, second := seated(namespace, "first", seat, 2, "600"), seated(namespace, "second", seat, 2, "1")
	trainer := trainJob(t, namespace, "{numNodes: 2, numProcPerNode: 1, command: [mpirun, sleep, \"600\"]}")
	runtimeIn(t, namespace, "mpi-openmpi")
	for _, job := range []*kubeflow.MPIJob{ended, wrong, running, suspended, first} {
		create(t, job)
	}
	createTrainJob(t, trainer)
	waitFor(t, ended, "it succeeds", succeeded)
	failedWith(t, wrong, time.Minute)
	metricIs(t, running, 1, "mpi_agent_ranks_running", 1, time.Minute)
	placed(t, first, 3)
	create(t, second)
	gangWaits(t, second)
	reported(t, trainjob.Kind, namespace, trainer.GetName(), "the TrainJob runs", inPhase(v1alpha1.PhaseRunning))
	cause := func() (*v1alpha1.JobReport, error) {
		report, err := record(t, wrong)
		if err == nil && (len(report.Status.Findings) == 0 || report.Status.Phase != v1alpha1.PhaseFailed) {
			err = fmt.Errorf("the failed job is %s without a finding", report.Status.Phase)
		}
		return report, err
	}
	eventually(t, "the failed job has its cause", time.Minute, func() error { _, err := cause(); return err })
	before, err := cause()
	if err != nil {
		t.Fatal(err)
	}
	pods := func() map[string]types.UID {
		var list corev1.PodList
		if err := api.List(t.Context(), &list, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
		found := map[string]types.UID{}
		for _, pod := range list.Items {
			if job, _, _ := strings.Cut(pod.Name, "-"); job == running.Name || job == first.Name || job == trainer.GetName() {
				found[pod.Name] = pod.UID
			}
		}
		return found
	}
	old := pods()

	start := time.Now()
	if text, err := exec.CommandContext(t.Context(), upgrade[0], upgrade[1:]...).CombinedOutput(); err != nil { //nolint:gosec // The command is the tester's own.
		t.Fatalf("upgrade: %v\n%s", err, text)
	}
	t.Logf("upgraded in %s", time.Since(start).Round(time.Second))

	// The new version takes over what it has not made: this job waits for as long as the operators need.
	after := sleeping(t, namespace, 0, named("after"))
	create(t, after)
	waitFor(t, after, "a job of the new version succeeds", succeeded)
	if now := pods(); !maps.Equal(old, now) {
		t.Errorf("pods of running jobs were %v, and are %v", old, now)
	}
	report, err := cause()
	if err != nil {
		t.Error(err)
	} else if got, want := report.Status.Findings[0], before.Status.Findings[0]; got.Code != want.Code || report.Status.Failure == nil {
		t.Errorf("the failed job's cause was %s, and is %s with failure %+v", want.Code, got.Code, report.Status.Failure)
	}
	podless(t, second)
	gangWaits(t, second)

	// A worker that is replaced has the agent of the new version, and the launcher that of the old one.
	if err := api.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "running-worker-1"}}, client.GracePeriodSeconds(1)); err != nil {
		t.Fatal(err)
	}
	waitFor(t, running, "the job of the old version succeeds with a worker of the new one", succeeded)
	if err := api.Delete(t.Context(), first, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		t.Fatal(err)
	}
	waitFor(t, second, "the job that waited succeeds", succeeded)
	edit(t, suspended, func(job *kubeflow.MPIJob) { job.Spec.RunPolicy.Suspend = new(false) })
	waitFor(t, suspended, "the job that was suspended succeeds", succeeded)
	reported(t, trainjob.Kind, namespace, trainer.GetName(), "the TrainJob still runs", inPhase(v1alpha1.PhaseRunning))
}
