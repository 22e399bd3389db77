package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
)

// quotaIn gives a namespace the quota "team", such as "pods=3 requests.memory=1Gi", and waits until it counts.
func quotaIn(t *testing.T, namespace, hard string) {
	t.Helper()
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "team"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{}}}
	for part := range strings.FieldsSeq(hard) {
		name, value, _ := strings.Cut(part, "=")
		quota.Spec.Hard[corev1.ResourceName(name)] = resource.MustParse(value)
	}
	create(t, quota)
	eventually(t, "the quota counts", time.Minute, func() error {
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(quota), quota); err != nil || len(quota.Status.Hard) == 0 {
			return fmt.Errorf("its status is %v, %w", quota.Status, err)
		}
		return nil
	})
}

// refused waits until a job is refused as it should be, and prints the answer.
func refused(t *testing.T, job client.Object, is func(error) bool, words ...string) {
	t.Helper()
	eventually(t, "the job is refused", time.Minute, func() error {
		err := api.Create(t.Context(), job.DeepCopyObject().(client.Object), client.DryRunAll)
		if err == nil {
			return errors.New("it is taken")
		}
		for _, word := range words {
			if !strings.Contains(err.Error(), word) {
				return fmt.Errorf("the answer lacks %q: %w", word, err)
			}
		}
		if !is(err) {
			return fmt.Errorf("it is refused as something else: %w", err)
		}
		t.Log(err)
		return nil
	})
}

// finds waits until a job's record begins with a finding.
func finds(t *testing.T, kind, namespace, name string, code codes.Code) {
	t.Helper()
	report := reported(t, kind, namespace, name, name+" is told "+code, func(status v1alpha1.JobReportStatus) error {
		if len(status.Findings) == 0 || status.Findings[0].Code != code {
			return fmt.Errorf("it is %s: %s: %+v", status.Phase, status.Message, status.Findings)
		}
		return nil
	})
	t.Logf("%s %s: %s", kind, name, report.Status.Findings[0].Summary)
}

// TestQuota: a job that fills a quota exactly, by sizes that a LimitRange gives it, runs. One of a pod more is refused with the figures. A
// second one that may wait has no pod until the first has ended.
func TestQuota(t *testing.T) {
	notQueued(t, "TestQueuedAsAWhole")
	t.Parallel()
	namespace := newNamespace(t)
	create(t, &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "sizes"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
		Type:           corev1.LimitTypeContainer,
		Default:        corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi")},
		DefaultRequest: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")},
	}}}})
	quotaIn(t, namespace, "pods=3 requests.memory=192Mi count/jobs.batch=2")
	sized := func(name string, workers int32) *kubeflow.MPIJob {
		job := openMPI(namespace, workers, "sleep", "10")
		job.Name = name
		job.Spec.RunPolicy.CleanPodPolicy = new(kubeflow.CleanPodPolicyAll)
		launcher(job).Resources, worker(job).Resources = corev1.ResourceRequirements{}, corev1.ResourceRequirements{}
		return job
	}
	refused(t, sized("over", 3), apierrors.IsInvalid, "spec.mpiReplicaSpecs[Worker].replicas",
		"4 pods requested (the launcher and 3 workers), quota team allows 3", "256Mi requests.memory requested (the launcher with 64Mi and 3 workers with 64Mi each), quota team allows 192Mi")
	first, second := sized("first", 2), sized("second", 2)
	create(t, first)
	waitFor(t, first, "the job that fills the quota runs", runs)
	refused(t, second, apierrors.IsForbidden, "exceeded quota", "3 pods requested (the launcher and 2 workers), 3 of 3 used in quota team, 0 free", mpi.AnnotationWaitForQuota)
	second.Annotations = map[string]string{mpi.AnnotationWaitForQuota: "true"}
	create(t, second)
	finds(t, kubeflow.Kind, namespace, "second", codes.QuotaExhausted)
	if pods := append(podsOf(t, second, mpi.RoleLauncher), podsOf(t, second, mpi.RoleWorker)...); len(pods) > 0 {
		t.Errorf("it has %d pods although it waits", len(pods))
	}
	waitFor(t, first, "the first ends", succeeded)
	start := time.Now()
	waitFor(t, second, "the second runs", runs)
	t.Logf("the second ran %s after the first had ended", time.Since(start).Round(100*time.Millisecond))
	waitFor(t, second, "the second ends", succeeded)
}

// TestQuotaOfTrainJob: a TrainJob of a pod more than its namespace's quota is refused with the figures, one that fills the quota runs, and
// a second one is refused meanwhile.
func TestQuotaOfTrainJob(t *testing.T) {
	notQueued(t, "TestQueuedInTurn")
	t.Parallel()
	namespace := newNamespace(t)
	runtimeIn(t, namespace, "mpi-openmpi")
	quotaIn(t, namespace, "pods=3")
	refused(t, trainJob(t, namespace, "{numNodes: 4, command: [mpirun, -n, '4', ranks]}"), apierrors.IsInvalid, "spec.trainer.numNodes: Invalid value: 4",
		"4 pods requested (the launcher and 3 workers), quota team allows 3; use at most 3 nodes")
	full := trainJob(t, namespace, "{numNodes: 3, command: [sleep, '5']}")
	createTrainJob(t, full)
	reported(t, trainjob.Kind, namespace, "pi", "the job that fills the quota runs", inPhase(v1alpha1.PhaseRunning))
	second := trainJob(t, namespace, "{numNodes: 3, command: [sleep, '5']}")
	second.SetName("second")
	refused(t, second, apierrors.IsForbidden, "exceeded quota", "3 pods requested (the launcher and 2 workers), 3 of 3 used in quota team, 0 free")
	reported(t, trainjob.Kind, namespace, "pi", "it ends", inPhase(v1alpha1.PhaseSucceeded))
}

// TestTrainJobsWaitForQuota: jobs of both kinds that ask for it wait for the quota of their namespace, each as a whole.
func TestTrainJobsWaitForQuota(t *testing.T) {
	embeddedGangs(t)
	t.Parallel()
	jobsAndTrainJobsWaitForQuota(t)
}

// TestGangWaitsForQuota: on a cluster whose scheduler supports PodGroups, jobs of both kinds wait for the quota of their namespace, each as
// a whole and without a PodGroup.
func TestGangWaitsForQuota(t *testing.T) {
	nativeGangs(t)
	t.Parallel()
	jobsAndTrainJobsWaitForQuota(t)
}

// jobsAndTrainJobsWaitForQuota has an MPIJob and a TrainJob wait for the quota that another job has, and then run after it.
func jobsAndTrainJobsWaitForQuota(t *testing.T) {
	t.Helper()
	namespace := newNamespace(t)
	runtimeIn(t, namespace, "mpi-openmpi")
	quotaIn(t, namespace, "pods=3")
	first := seated(namespace, "first", "", 2, "600")
	create(t, first)
	placed(t, first, 3)
	annotations := map[string]string{mpi.AnnotationWaitForQuota: "true"}
	second := seated(namespace, "second", "", 2, "2")
	second.Spec.RunPolicy.SchedulingPolicy, second.Annotations = nil, annotations
	third := trainJob(t, namespace, "{numNodes: 3, command: [sleep, '2']}")
	third.SetName("third")
	third.SetAnnotations(annotations)
	for _, job := range []client.Object{second, third} {
		if err := submit(t, api, job); err != nil {
			t.Fatalf("create %s: %v", job.GetName(), err)
		}
		finds(t, kindOf(job), namespace, job.GetName(), codes.QuotaExhausted)
	}
	podless(t, second)
	if n := trainJobPods(t, third); n > 0 {
		t.Errorf("the TrainJob has %d pods although it waits", n)
	}
	if err := api.Delete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	eventually(t, "both succeed, one after the other", 2*time.Minute, func() error { return allSucceeded(t, second, third) })
}

// TestQuotaLowered: a suspended job whose quota is lowered below what it needs reports that at once.
func TestQuotaLowered(t *testing.T) {
	notQueued(t, "TestQueueKeepsSuspendedJobsOut")
	t.Parallel()
	namespace := newNamespace(t)
	job := openMPI(namespace, 2, "sleep", "1")
	job.Spec.RunPolicy.Suspend = new(true)
	create(t, job)
	reported(t, kubeflow.Kind, namespace, job.Name, "it is suspended", inPhase(v1alpha1.PhaseSuspended))
	quotaIn(t, namespace, "pods=2")
	finds(t, kubeflow.Kind, namespace, job.Name, codes.QuotaTooSmall)
}
