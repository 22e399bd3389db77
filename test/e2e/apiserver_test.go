package e2e

import (
	"errors"
	"fmt"
	"testing"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/podstatus"
)

// away is how long the API server is away: long enough that the operator's leader loses its lease and nodes miss theirs.
const away = 30 * time.Second

// TestAPIServerRestarted takes the API server away while one job runs and another one has just come: the one that runs
// is not disturbed, the other one starts when the API server is back, and so is the operator.
func TestAPIServerRestarted(t *testing.T) {
	cluster := ownCluster(t)
	namespace := newNamespace(t)
	operator := &appsv1.Deployment{}
	if err := api.Get(t.Context(), operatorKey, operator); err != nil {
		t.Skipf("SKIPPED: the operator is not installed as %s: %v", operatorKey, err)
	}
	job := sleeping(t, namespace, 900, func(job *kubeflow.MPIJob) { job.Name = "before" })
	create(t, job)
	waitFor(t, job, "it runs", runs)
	before, restartsBefore := podsByName(t, job), restarts(t, operatorKey.Namespace)

	next := sleeping(t, namespace, 1, func(job *kubeflow.MPIJob) { job.Name = "just-come" })
	create(t, next)
	// Whatever fails from here on, other tests need the API server.
	t.Cleanup(func() { cluster("start-apiserver") })
	cluster("stop-apiserver")
	time.Sleep(away) // It is the outage's length that matters, not what happens in it.
	cluster("start-apiserver")
	back := time.Now()
	firstAct(t, sleeping(t, namespace, 1, func(job *kubeflow.MPIJob) { job.Name = "afterwards" }), back)
	waitFor(t, next, "the job that had just come succeeds", succeeded)
	t.Logf("the job that had just come had succeeded %s after the API server was back", time.Since(back).Round(time.Second))
	if pods := podsOf(t, next, mpi.RoleLauncher); len(pods) != 1 {
		t.Errorf("its launcher has %d pods, want 1", len(pods))
	}
	eventually(t, "all replicas of the operator are back", time.Minute, func() error {
		if err := api.Get(t.Context(), operatorKey, operator); err != nil {
			return err
		}
		if s := operator.Status; s.AvailableReplicas != *operator.Spec.Replicas {
			return fmt.Errorf("%d of %d are available", s.AvailableReplicas, *operator.Spec.Replicas)
		}
		return nil
	})
	t.Logf("the operator's replicas were available %s after the API server was back", time.Since(back).Round(time.Second))
	waitFor(t, job, "the job from before still runs, with all its pods ready", func(job *kubeflow.MPIJob) error {
		for _, pod := range podsByName(t, job) {
			if !podstatus.IsReady(&pod) {
				return fmt.Errorf("%s is not ready", pod.Name)
			}
		}
		return runs(job)
	})
	after := podsByName(t, job)
	if len(after) != len(before) {
		t.Errorf("the job from before had %d pods, and now has %d", len(before), len(after))
	}
	for name, pod := range after {
		if err := undisturbed(before[name], pod); err != nil {
			text, _ := logs.CoreV1().Pods(namespace).GetLogs(name, &corev1.PodLogOptions{Previous: true}).DoRaw(t.Context())
			t.Errorf("%s: %v; what it had printed before:\n%s", name, err, text)
		}
	}
	reported(t, "MPIJob", namespace, next.Name, "its record tells of its end", inPhase(v1alpha1.PhaseSucceeded))
	for pod, n := range restarts(t, operatorKey.Namespace) {
		if n -= restartsBefore[pod]; n > 0 {
			lines := int64(3)
			text, _ := logs.CoreV1().Pods(operatorKey.Namespace).GetLogs(pod, &corev1.PodLogOptions{Previous: true, TailLines: &lines}).DoRaw(t.Context())
			t.Logf("%s was started again %d times; the last time it had ended with:\n%s", pod, n, text)
		}
	}
	// Tests that follow need the webhooks of JobSet and Trainer.
	eventually(t, "all controllers of the cluster are back", 2*time.Minute, func() error {
		var all appsv1.DeploymentList
		if err := api.List(t.Context(), &all); err != nil {
			return err
		}
		for _, d := range all.Items {
			if d.Status.AvailableReplicas < *d.Spec.Replicas {
				return fmt.Errorf("%d of %d replicas of %s are available", d.Status.AvailableReplicas, *d.Spec.Replicas, d.Name)
			}
		}
		return nil
	})
}

// firstAct creates a job as soon as the API server takes it, and logs how long after its return the operator has created the first
// object of the job.
func firstAct(t *testing.T, job *kubeflow.MPIJob, back time.Time) {
	t.Helper()
	for deadline := back.Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if err := api.Create(t.Context(), job); err == nil {
			break
		} else if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	created := time.Since(back)
	for deadline := back.Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		var pods corev1.PodList
		if err := api.List(t.Context(), &pods, client.InNamespace(job.Namespace), client.MatchingLabels{mpi.LabelJob: job.Name}); err == nil && len(pods.Items) > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("a job that was created after the outage has no pods")
		}
	}
	t.Logf("%s after the API server was back it took a job, and %s after that the operator had created the job's first pod",
		created.Round(10*time.Millisecond), (time.Since(back) - created).Round(10*time.Millisecond))
}

// restarts are how often the containers of a namespace's pods have been started again, by pod.
func restarts(t *testing.T, namespace string) map[string]int32 {
	t.Helper()
	var pods corev1.PodList
	if err := api.List(t.Context(), &pods, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	counts := map[string]int32{}
	for i := range pods.Items {
		for _, c := range pods.Items[i].Status.ContainerStatuses {
			counts[pods.Items[i].Name] += c.RestartCount
		}
	}
	return counts
}

// podsByName are all pods of a job.
func podsByName(t *testing.T, job *kubeflow.MPIJob) map[string]corev1.Pod {
	t.Helper()
	found := map[string]corev1.Pod{}
	for _, role := range []mpi.Role{mpi.RoleLauncher, mpi.RoleWorker} {
		for _, pod := range podsOf(t, job, role) {
			found[pod.Name] = pod
		}
	}
	return found
}

// undisturbed tells what has become of a pod that should have run on.
func undisturbed(before, after corev1.Pod) error {
	if before.UID != after.UID {
		return fmt.Errorf("its UID was %q and is %q", before.UID, after.UID)
	}
	if after.DeletionTimestamp != nil {
		return errors.New("it is being deleted")
	}
	for i, c := range after.Status.ContainerStatuses {
		if i < len(before.Status.ContainerStatuses) && c.RestartCount != before.Status.ContainerStatuses[i].RestartCount {
			return fmt.Errorf("container %s was restarted", c.Name)
		}
	}
	return nil
}
