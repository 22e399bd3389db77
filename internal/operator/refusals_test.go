package operator_test

import (
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
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
	findings := func() []v1alpha1.Finding { return reported(t, namespace, "Initializing").Status.Findings }
	says(corev1.EventTypeWarning, "FailedCreate", `Error creating: admission webhook "mpod.kb.io" denied the request: workload owner not found`)
	launcher.Status.StartTime = &metav1.Time{Time: time.Now().Add(-time.Minute)}
	launcher.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobSuspended, Status: corev1.ConditionFalse}}
	if err := api.Status().Update(t.Context(), launcher); err != nil {
		t.Fatal(err)
	}
	worker := exists(t, namespace, "pi-worker-0", &corev1.Pod{})
	setPhase(t, worker, corev1.PodRunning)
	eventually(t, "the refusal is found", func() error {
		if found := findings(); len(found) == 0 || found[0].Code != codes.AdmissionDenied {
			return fmt.Errorf("there are %+v", found)
		}
		return nil
	})

	says(corev1.EventTypeNormal, "SuccessfulCreate", "Created pod: pi-launcher-x2x4z")
	// A pod that changes has the job looked at again. The events that are used then may be some seconds old.
	changed := time.Time{}
	eventually(t, "nothing is found", func() error {
		found := findings()
		if len(found) > 0 && time.Since(changed) > 2*time.Second {
			changed = time.Now()
			ready := &worker.Status.Conditions[0].Status
			*ready = map[corev1.ConditionStatus]corev1.ConditionStatus{corev1.ConditionTrue: corev1.ConditionFalse, corev1.ConditionFalse: corev1.ConditionTrue}[*ready]
			if err := api.Status().Update(t.Context(), worker); err != nil {
				t.Fatal(err)
			}
		}
		if len(found) > 0 {
			return fmt.Errorf("there are %+v", found)
		}
		return nil
	})
}
