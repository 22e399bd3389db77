package operator_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

// change edits a job, again if somebody else wrote it meanwhile.
func change(t *testing.T, namespace string, edit func(*kubeflow.MPIJob)) {
	t.Helper()
	eventually(t, "the job takes the change", func() error {
		job := get(t, namespace, "pi", &kubeflow.MPIJob{})
		edit(job)
		return api.Update(t.Context(), job)
	})
}

func suspended(t *testing.T, namespace string, want bool) *batchv1.Job {
	t.Helper()
	var launcher batchv1.Job
	eventually(t, fmt.Sprintf("the launcher's suspend is %v", want), func() error {
		if err := api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "pi-launcher"}, &launcher); err != nil {
			return err
		}
		if ptr.Deref(launcher.Spec.Suspend, false) != want {
			return errors.New("it is not")
		}
		return nil
	})
	return &launcher
}

func workersAre(t *testing.T, namespace string, want ...string) {
	t.Helper()
	eventually(t, fmt.Sprintf("the workers are %v", want), func() error {
		var pods corev1.PodList
		if err := api.List(t.Context(), &pods, client.InNamespace(namespace), client.MatchingLabels{mpi.LabelRole: "worker"}); err != nil {
			return err
		}
		var have []string
		for _, pod := range pods.Items {
			have = append(have, pod.Name)
		}
		if fmt.Sprint(have) != fmt.Sprint(want) {
			return fmt.Errorf("they are %v", have)
		}
		return nil
	})
}

// TestSuspendedJobIsResumedWhereKueueSays: what is changed while a job is suspended holds when it is resumed.
func TestSuspendedJobIsResumedWhereKueueSays(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	start(t, namespace)
	create(t, mpitest.MPIJob(namespace, 2, func(o *kubeflow.MPIJob) {
		o.Spec.RunPolicy.Suspend = new(true)
		o.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeLauncher].Template.Spec.NodeSelector = map[string]string{"old": "1"}
	}))
	first := suspended(t, namespace, true)
	job := says(t, namespace, "pi", kubeflow.JobSuspended, corev1.ConditionTrue, "MPIJobSuspended")
	if job.Status.StartTime != nil {
		t.Error("a job that never ran has a start time")
	}
	workersAre(t, namespace)
	change(t, namespace, func(o *kubeflow.MPIJob) {
		template := &o.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeLauncher].Template
		template.Labels, template.Annotations = map[string]string{"foo": "bar"}, map[string]string{"kueue.x-k8s.io/workload": "w"}
		template.Spec.NodeSelector = map[string]string{"new": "1"}
		template.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "kueue.x-k8s.io/topology"}}
		o.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Template.Spec.NodeSelector = map[string]string{"new": "2"}
		o.Spec.RunPolicy.Suspend = new(false)
	})
	launcher := suspended(t, namespace, false)
	template := launcher.Spec.Template
	if template.Labels["foo"] != "bar" || template.Annotations["kueue.x-k8s.io/workload"] != "w" || len(template.Spec.SchedulingGates) != 1 ||
		template.Spec.NodeSelector["new"] != "1" || template.Spec.NodeSelector["old"] != "" {
		t.Errorf("the launcher's template is %+v with %+v", template.ObjectMeta, template.Spec.NodeSelector)
	}
	if launcher.UID != first.UID {
		t.Error("the launcher was made anew although its template could be changed")
	}
	if pod := exists(t, namespace, "pi-worker-1", &corev1.Pod{}); pod.Spec.NodeSelector["new"] != "2" {
		t.Errorf("a worker goes to %v", pod.Spec.NodeSelector)
	}
	says(t, namespace, "pi", kubeflow.JobSuspended, corev1.ConditionFalse, "MPIJobResumed")

	// Suspended while it runs, its pods go and its quota is free.
	for i := range 2 {
		setPhase(t, get(t, namespace, fmt.Sprintf("pi-worker-%d", i), &corev1.Pod{}), corev1.PodRunning)
	}
	says(t, namespace, "pi", kubeflow.JobRunning, corev1.ConditionFalse, "PodsStarting")
	change(t, namespace, func(o *kubeflow.MPIJob) { o.Spec.RunPolicy.Suspend = new(true) })
	suspended(t, namespace, true)
	workersAre(t, namespace)
	eventually(t, "nothing is active", func() error {
		for role, status := range get(t, namespace, "pi", &kubeflow.MPIJob{}).Status.ReplicaStatuses {
			if status.Active != 0 {
				return fmt.Errorf("%d of %s are", status.Active, role)
			}
		}
		return nil
	})

	// Resumed with another image, the launcher is made anew: a batch Job cannot change its own.
	before := get(t, namespace, "pi-launcher", &batchv1.Job{})
	change(t, namespace, func(o *kubeflow.MPIJob) {
		o.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeLauncher].Template.Spec.Containers[0].Image = "other"
		o.Spec.RunPolicy.Suspend = new(false)
	})
	now := exists(t, namespace, "pi-launcher", &batchv1.Job{}, string(before.UID))
	if image := now.Spec.Template.Spec.Containers[0].Image; image != "other" || ptr.Deref(now.Spec.Suspend, false) {
		t.Errorf("the new launcher runs %s, suspended=%v", image, ptr.Deref(now.Spec.Suspend, false))
	}
}

// TestStartedLauncherIsResumed: the API server holds the template of a Job with a start time for fixed.
func TestStartedLauncherIsResumed(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	start(t, namespace)
	create(t, mpitest.MPIJob(namespace, 1))
	launcher := exists(t, namespace, "pi-launcher", &batchv1.Job{})
	launcher.Status.StartTime = new(metav1.Now())
	if err := api.Status().Update(t.Context(), launcher); err != nil {
		t.Fatal(err)
	}
	change(t, namespace, func(o *kubeflow.MPIJob) { o.Spec.RunPolicy.Suspend = new(true) })
	suspended(t, namespace, true)
	change(t, namespace, func(o *kubeflow.MPIJob) {
		o.Spec.RunPolicy.Suspend = new(false)
		o.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeLauncher].Template.Spec.NodeSelector = map[string]string{"new": "1"}
	})
	if template := suspended(t, namespace, false).Spec.Template; template.Spec.NodeSelector["new"] != "1" {
		t.Errorf("the launcher goes to %v", template.Spec.NodeSelector)
	}
}

// TestScaling: workers come and go at the end of the list, and the others are not touched.
func TestScaling(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	start(t, namespace)
	create(t, mpitest.MPIJob(namespace, 2))
	workersAre(t, namespace, "pi-worker-0", "pi-worker-1")
	first := get(t, namespace, "pi-worker-0", &corev1.Pod{})
	scale := func(n int32) {
		change(t, namespace, func(o *kubeflow.MPIJob) { o.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Replicas = &n })
	}
	scale(4)
	workersAre(t, namespace, "pi-worker-0", "pi-worker-1", "pi-worker-2", "pi-worker-3")
	scale(1)
	workersAre(t, namespace, "pi-worker-0")
	if now := get(t, namespace, "pi-worker-0", &corev1.Pod{}); now.UID != first.UID {
		t.Error("a worker that stays was made anew")
	}
	eventually(t, "the hostfile lists one host", func() error {
		if got := get(t, namespace, "pi-config", &corev1.ConfigMap{}).Data["hostfile"]; got != "pi-worker-0.pi."+namespace+".svc slots=1\n" {
			return fmt.Errorf("it is %q", got)
		}
		return nil
	})
}

func TestLauncherWaitsForReadyWorkers(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	start(t, namespace)
	create(t, mpitest.MPIJob(namespace, 2, func(o *kubeflow.MPIJob) {
		o.Spec.LauncherCreationPolicy = kubeflow.LauncherCreationPolicyWaitForWorkersReady
	}))
	setPhase(t, exists(t, namespace, "pi-worker-0", &corev1.Pod{}), corev1.PodRunning)
	eventually(t, "it says how many are ready", func() error {
		job := says(t, namespace, "pi", kubeflow.JobRunning, corev1.ConditionFalse, "WaitingForWorkers")
		if got := message(job, kubeflow.JobRunning); got != "1 of 2 workers running, 1 ready. The launcher starts when all are ready." {
			return errors.New(got)
		}
		return nil
	})
	if err := api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "pi-launcher"}, &batchv1.Job{}); !apierrors.IsNotFound(err) {
		t.Errorf("the launcher did not wait: %v", err)
	}
	setPhase(t, exists(t, namespace, "pi-worker-1", &corev1.Pod{}), corev1.PodRunning)
	exists(t, namespace, "pi-launcher", &batchv1.Job{})
}

func TestEvictedWorkerEndsTheJob(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	start(t, namespace)
	create(t, mpitest.MPIJob(namespace, 2))
	exists(t, namespace, "pi-launcher", &batchv1.Job{})
	pod := exists(t, namespace, "pi-worker-1", &corev1.Pod{})
	pod.Status.Phase, pod.Status.Reason = corev1.PodFailed, "Evicted"
	if err := api.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	job := says(t, namespace, "pi", kubeflow.JobFailed, corev1.ConditionTrue, "MPIJobEvicted")
	if got := message(job, kubeflow.JobFailed); got != "1/2 workers are evicted" || job.Status.CompletionTime == nil {
		t.Errorf("it says %q and completed at %v", got, job.Status.CompletionTime)
	}
	suspended(t, namespace, true)
}

func TestEvictedWorkerIsReplaced(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	start(t, namespace)
	job := mpitest.MPIJob(namespace, 2)
	job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].RestartPolicy = kubeflow.RestartPolicyOnFailure
	create(t, job)
	exists(t, namespace, "pi-launcher", &batchv1.Job{})
	pod := exists(t, namespace, "pi-worker-1", &corev1.Pod{})
	pod.Status.Phase, pod.Status.Reason = corev1.PodFailed, "Evicted"
	if err := api.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	exists(t, namespace, "pi-worker-1", &corev1.Pod{}, string(pod.UID))
	suspended(t, namespace, false)
}

// TestPreemptedWorkerCostsNoRetry: the launcher may start once more, and the attempt is entered once.
func TestPreemptedWorkerCostsNoRetry(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	start(t, namespace)
	job := mpitest.MPIJob(namespace, 2)
	job.Spec.RunPolicy.BackoffLimit = new(int32)
	job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeLauncher].RestartPolicy = kubeflow.RestartPolicyNever
	create(t, job)
	setPhase(t, launcherPod(t, exists(t, namespace, "pi-launcher", &batchv1.Job{})), corev1.PodRunning)
	pod := exists(t, namespace, "pi-worker-1", &corev1.Pod{})
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonPreemptionByScheduler, LastTransitionTime: metav1.Now()}}
	if err := api.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	once := func() error {
		launcher := get(t, namespace, "pi-launcher", &batchv1.Job{})
		if limit, attempts := ptr.Deref(launcher.Spec.BackoffLimit, -1), launcher.Annotations[mpi.AnnotationDisrupted]; limit != 1 || attempts != "1" {
			return fmt.Errorf("backoffLimit %d, attempts %q", limit, attempts)
		}
		return nil
	}
	eventually(t, "the launcher may start once more", once)
	// Each of these changes causes a reconcile, while the pod that is preempted still exists.
	for _, host := range []string{"pi-worker-0", "pi-worker-1"} {
		worker := get(t, namespace, host, &corev1.Pod{})
		worker.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}}}
		worker.Status.Phase = corev1.PodRunning
		if err := api.Status().Update(t.Context(), worker); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the operator has seen "+host, func() error {
			if script := get(t, namespace, "pi-config", &corev1.ConfigMap{}).Data[mpi.DiscoverHostsKey]; !strings.Contains(script, host) {
				return fmt.Errorf("discover_hosts.sh is %q", script)
			}
			return nil
		})
	}
	setPhase(t, get(t, namespace, "pi-worker-0", &corev1.Pod{}), corev1.PodPending)
	eventually(t, "the operator has seen that a worker no longer runs", func() error {
		if script := get(t, namespace, "pi-config", &corev1.ConfigMap{}).Data[mpi.DiscoverHostsKey]; strings.Contains(script, "pi-worker-0") {
			return fmt.Errorf("discover_hosts.sh is %q", script)
		}
		return nil
	})
	if err := once(); err != nil {
		t.Errorf("the attempt was entered more than once: %v", err)
	}
}
