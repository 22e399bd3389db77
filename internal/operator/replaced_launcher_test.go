package operator_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

// refuseJobs has the API server accept no batch Job of a namespace, new or changed, as while Kueue's webhook does not answer. The returned
// function ends that.
func refuseJobs(t *testing.T, namespace string) (end func()) {
	t.Helper()
	none, path := admissionv1.SideEffectClassNone, "https://127.0.0.1:1/validate"
	webhook := &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "no-jobs-" + namespace},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name: "vjob.kb.io", SideEffects: &none, AdmissionReviewVersions: []string{"v1"}, TimeoutSeconds: new(int32(1)),
			ClientConfig:      admissionv1.WebhookClientConfig{URL: &path},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": namespace}},
			Rules: []admissionv1.RuleWithOperations{{
				Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
				Rule:       admissionv1.Rule{APIGroups: []string{"batch"}, APIVersions: []string{"v1"}, Resources: []string{"jobs"}},
			}},
		}},
	}
	create(t, webhook)
	end = func() {
		if err := api.Delete(context.Background(), webhook); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	}
	t.Cleanup(end)
	eventually(t, "the API server calls the webhook", func() error {
		launcher := get(t, namespace, "pi-launcher", &batchv1.Job{})
		if err := api.Update(t.Context(), launcher, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "vjob.kb.io") {
			return fmt.Errorf("the update of a Job: %w", err)
		}
		return nil
	})
	return end
}

// failJob plays the Job controller when an attempt of a launcher is one too many.
func failJob(t *testing.T, namespace string, failed int32) {
	t.Helper()
	now := metav1.Now()
	launcher := get(t, namespace, "pi-launcher", &batchv1.Job{})
	launcher.Status = batchv1.JobStatus{StartTime: new(cmpTime(launcher.Status.StartTime, now)), Failed: failed, Conditions: []batchv1.JobCondition{
		{Type: batchv1.JobFailureTarget, Status: corev1.ConditionTrue, Reason: batchv1.JobReasonBackoffLimitExceeded, LastTransitionTime: now},
		{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: batchv1.JobReasonBackoffLimitExceeded, LastTransitionTime: now},
	}}
	if err := api.Status().Update(t.Context(), launcher); err != nil {
		t.Fatal(err)
	}
}

func cmpTime(at *metav1.Time, otherwise metav1.Time) metav1.Time {
	if at == nil {
		return otherwise
	}
	return *at
}

// drainPod plays the eviction API: a pod has the condition and is being deleted. It is gone at once, as no kubelet runs it.
func drainPod(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	pod = get(t, pod.Namespace, pod.Name, pod)
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "EvictionByEvictionAPI", LastTransitionTime: metav1.Now(),
	})
	if err := api.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
}

// TestDrainedLauncherIsReplaced: the launcher's node is drained while no batch Job can be changed, so that its Job fails. The MPIJob does not:
// another Job follows when the API server accepts one, also if the operator is killed in between. The program's own failure then ends the job.
func TestDrainedLauncherIsReplaced(t *testing.T) {
	t.Parallel()
	for name, policy := range map[string]kubeflow.RestartPolicy{"Never": kubeflow.RestartPolicyNever, "OnFailure": kubeflow.RestartPolicyOnFailure} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := newNamespace(t)
			stop := start(t, namespace)
			launcher, pod := runs(t, namespace, func(job *kubeflow.MPIJob) {
				job.Spec.RunPolicy.BackoffLimit, job.Spec.RunPolicy.ActiveDeadlineSeconds = new(int32), new(int64(3600))
				job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeLauncher].RestartPolicy = policy
			})
			accept := refuseJobs(t, namespace)
			drainPod(t, pod)
			recorded := func() error {
				if got := get(t, namespace, "pi-config", &corev1.ConfigMap{}).Annotations[mpi.AnnotationDisrupted]; got != "1" {
					return fmt.Errorf("it lists %q", got)
				}
				return nil
			}
			eventually(t, "the attempt is recorded", recorded)
			reportOf(t, namespace, "pi", "the report names the webhook", func(status v1alpha1.JobReportStatus) bool {
				return len(status.Findings) > 0 && strings.Contains(fmt.Sprint(status.Findings), "vjob.kb.io")
			})

			if err := api.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
				t.Fatal(err)
			}
			failJob(t, namespace, 1)
			eventually(t, "the Job that failed is deleted", func() error {
				if err := api.Get(t.Context(), client.ObjectKeyFromObject(launcher), &batchv1.Job{}); !apierrors.IsNotFound(err) {
					return fmt.Errorf("reading it: %w", err)
				}
				return nil
			})
			waits := func(what string) {
				eventually(t, what, func() error {
					job := get(t, namespace, "pi", &kubeflow.MPIJob{})
					if text := message(job, kubeflow.JobRunning); !strings.Contains(text, "vjob.kb.io") || !strings.Contains(text, "pi-launcher") {
						return errors.New(text)
					}
					return nil
				})
			}
			waits("the status names the webhook")
			// Another operator goes on.
			stop()
			start(t, namespace)
			waits("the status still names the webhook")
			accept()

			next := exists(t, namespace, "pi-launcher", &batchv1.Job{}, string(launcher.UID))
			if limit, earlier := ptr.Deref(next.Spec.BackoffLimit, -1), next.Annotations[mpi.AnnotationEarlierAttempts]; limit != 0 || earlier != "1" {
				t.Errorf("the next Job has backoffLimit %d after %q attempts", limit, earlier)
			}
			if seconds := ptr.Deref(next.Spec.ActiveDeadlineSeconds, -1); seconds < 3000 || seconds >= 3600 {
				t.Errorf("the next Job has %d seconds", seconds)
			}
			again := launcherPod(t, next)
			setPhase(t, again, corev1.PodRunning)
			reportOf(t, namespace, "pi", "the report counts two attempts", func(status v1alpha1.JobReportStatus) bool {
				return status.Phase == v1alpha1.PhaseRunning && status.Run != nil && status.Run.Attempts == 2 && strings.Contains(fmt.Sprint(status.Timeline), "It does not count as a retry")
			})
			if failed := get(t, namespace, "pi", &kubeflow.MPIJob{}).Status.ReplicaStatuses[kubeflow.MPIReplicaTypeLauncher].Failed; failed != 1 {
				t.Errorf("%d pods of the launcher have failed, want 1", failed)
			}
			time.Sleep(time.Second)
			fails(t, next, again)
		})
	}
}

// TestResumedLauncherKeepsItsDeadline: what an administrator's policy has made of a Job's deadline holds when the Job is resumed.
func TestResumedLauncherKeepsItsDeadline(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	start(t, namespace)
	create(t, mpitest.MPIJob(namespace, 1, func(job *kubeflow.MPIJob) {
		job.Spec.RunPolicy.Suspend, job.Spec.RunPolicy.ActiveDeadlineSeconds = new(true), new(int64(3600))
	}))
	eventually(t, "the deadline is capped", func() error {
		launcher := suspended(t, namespace, true)
		launcher.Spec.ActiveDeadlineSeconds = new(int64(600))
		return api.Update(t.Context(), launcher)
	})
	change(t, namespace, func(job *kubeflow.MPIJob) { job.Spec.RunPolicy.Suspend = new(false) })
	if seconds := ptr.Deref(suspended(t, namespace, false).Spec.ActiveDeadlineSeconds, -1); seconds != 600 {
		t.Errorf("the resumed Job has %d seconds", seconds)
	}
}

// TestReplacedLauncherKeepsItsTime: the deadline of a Job that has replaced another one does not start again when the job is suspended and
// resumed, nor does it become longer than what an administrator's policy has made of it.
func TestReplacedLauncherKeepsItsTime(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	start(t, namespace)
	launcher, pod := runs(t, namespace, func(job *kubeflow.MPIJob) {
		job.Spec.RunPolicy.BackoffLimit, job.Spec.RunPolicy.ActiveDeadlineSeconds = new(int32), new(int64(3600))
	})
	accept := refuseJobs(t, namespace)
	drainPod(t, pod)
	eventually(t, "the attempt is recorded", func() error {
		if got := get(t, namespace, "pi-config", &corev1.ConfigMap{}).Annotations[mpi.AnnotationDisrupted]; got != "1" {
			return fmt.Errorf("it lists %q", got)
		}
		return nil
	})
	if err := api.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	failJob(t, namespace, 1)
	accept()
	next := exists(t, namespace, "pi-launcher", &batchv1.Job{}, string(launcher.UID))
	had := *next.Spec.ActiveDeadlineSeconds
	next.Status.StartTime = new(metav1.Now())
	if err := api.Status().Update(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	resume := func() int64 {
		t.Helper()
		change(t, namespace, func(job *kubeflow.MPIJob) { job.Spec.RunPolicy.Suspend = new(true) })
		suspended(t, namespace, true)
		eventually(t, "its time is recorded", func() error {
			if got := get(t, namespace, "pi-config", &corev1.ConfigMap{}).Annotations[mpi.AnnotationActiveBefore]; got == "" {
				return errors.New("there is none")
			}
			return nil
		})
		change(t, namespace, func(job *kubeflow.MPIJob) { job.Spec.RunPolicy.Suspend = new(false) })
		return ptr.Deref(suspended(t, namespace, false).Spec.ActiveDeadlineSeconds, -1)
	}
	if seconds := resume(); seconds > had || seconds < 3000 {
		t.Errorf("the resumed Job has %d seconds, and had %d", seconds, had)
	}
	eventually(t, "an administrator shortens it", func() error {
		launcher := get(t, namespace, "pi-launcher", &batchv1.Job{})
		launcher.Spec.ActiveDeadlineSeconds = new(int64(600))
		return api.Update(t.Context(), launcher)
	})
	if seconds := resume(); seconds != 600 {
		t.Errorf("the resumed Job has %d seconds", seconds)
	}
}

// TestRecordIsWrittenOnce: annotations that others wrote, or with which the ConfigMap was created, are emptied, and then not applied again.
func TestRecordIsWrittenOnce(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	start(t, namespace)
	_, pod := runs(t, namespace)
	eventually(t, "others write the record", func() error {
		config := get(t, namespace, "pi-config", &corev1.ConfigMap{})
		config.Annotations = map[string]string{mpi.AnnotationDisrupted: "x", mpi.AnnotationEarlierAttempts: "y", mpi.AnnotationActiveSince: "2026-01-01T00:00:00Z"}
		return api.Update(t.Context(), config)
	})
	emptied := func() error {
		config := get(t, namespace, "pi-config", &corev1.ConfigMap{})
		for _, name := range []string{mpi.AnnotationDisrupted, mpi.AnnotationEarlierAttempts, mpi.AnnotationActiveSince} {
			if value := config.Annotations[name]; value != "" {
				return fmt.Errorf("%s is %q", name, value)
			}
		}
		return nil
	}
	eventually(t, "the record is emptied", emptied)
	// Later changes keep it so.
	setPhase(t, pod, corev1.PodPending)
	setPhase(t, get(t, namespace, "pi-worker-0", &corev1.Pod{}), corev1.PodPending)
	eventually(t, "the operator has seen that the worker no longer runs", func() error {
		if script := get(t, namespace, "pi-config", &corev1.ConfigMap{}).Data[mpi.DiscoverHostsKey]; strings.Contains(script, "pi-worker-0") {
			return fmt.Errorf("discover_hosts.sh is %q", script)
		}
		return nil
	})
	if err := emptied(); err != nil {
		t.Error(err)
	}
}
