package operator_test

import (
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/mpitest"
)

// TestLauncherRefused: that a launcher's pod is refused is told though nothing else is wrong with the job, and no more
// once one was made.
func TestLauncherRefused(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	start(t, namespace)
	create(t, mpitest.MPIJob(namespace, 1))
	launcher := exists(t, namespace, "pi-launcher", &batchv1.Job{})
	says := func(kind, reason, message string) {
		create(t, &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, GenerateName: "pi-launcher."},
			InvolvedObject: corev1.ObjectReference{APIVersion: "batch/v1", Kind: "Job", Namespace: namespace, Name: launcher.Name, UID: launcher.UID},
			Source:         corev1.EventSource{Component: "job-controller"},
			Type:           kind, Reason: reason, Message: message, Count: 1, LastTimestamp: metav1.Now(),
		})
	}
	first := func(code codes.Code) {
		t.Helper()
		eventually(t, fmt.Sprintf("the first finding is %q", code), func() error {
			findings := reported(t, namespace, "Initializing").Status.Findings
			if code == "" && len(findings) == 0 || len(findings) > 0 && findings[0].Code == code {
				return nil
			}
			return fmt.Errorf("there are %+v", findings)
		})
	}
	says(corev1.EventTypeWarning, "FailedCreate", `Error creating: admission webhook "mpod.kb.io" denied the request: workload owner not found`)
	launcher.Status.StartTime = &metav1.Time{Time: time.Now().Add(-time.Minute)}
	launcher.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobSuspended, Status: corev1.ConditionFalse}}
	if err := api.Status().Update(t.Context(), launcher); err != nil {
		t.Fatal(err)
	}
	worker := exists(t, namespace, "pi-worker-0", &corev1.Pod{})
	setPhase(t, worker, corev1.PodRunning)
	first(codes.AdmissionDenied)

	says(corev1.EventTypeNormal, "SuccessfulCreate", "Created pod: pi-launcher-x2x4z")
	worker.Status.Conditions[0].Status = corev1.ConditionFalse
	if err := api.Status().Update(t.Context(), worker); err != nil {
		t.Fatal(err)
	}
	first("")
}
