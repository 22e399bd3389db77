package operator_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/report"
)

// TestReportsSurviveAFloodOfEvents: 10,000 events of pods in the namespace, the job's own among them, with texts of all
// kinds, leave the report bounded and in time, and the operator up.
func TestReportsSurviveAFloodOfEvents(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	start(t, namespace)
	create(t, mpitest.MPIJob(namespace, 1))
	launcher := exists(t, namespace, "pi-launcher", &batchv1.Job{})
	worker := exists(t, namespace, "pi-worker-0", &corev1.Pod{})
	const events, writers = 10000, 16
	now := metav1.Now()
	var all sync.WaitGroup
	for first := range writers {
		all.Go(func() {
			for i := first; i < events; i += writers {
				about := corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: fmt.Sprint("stranger-", i)}
				if i%2 == 0 {
					about.Name, about.UID = worker.Name, worker.UID
				}
				event := &corev1.Event{
					ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint("flood-", i)},
					InvolvedObject: about, Type: corev1.EventTypeWarning, Reason: fmt.Sprint("FailedMount", i),
					Message:        fmt.Sprintf("%d \x1b[31m\x00 password=hunter2hunter2 %s", i, strings.Repeat("ü", 500)),
					FirstTimestamp: now, LastTimestamp: now, Count: int32(i + 1),
				}
				if err := api.Create(t.Context(), event); err != nil {
					t.Errorf("create event: %v", err)
					return
				}
			}
		})
	}
	all.Wait()
	if t.Failed() {
		return
	}
	setPhase(t, worker, corev1.PodRunning)
	began := time.Now()
	fails(t, launcher, launcherPod(t, launcher))
	made := reported(t, namespace, "Failed")
	t.Logf("the report was there after %s", time.Since(began).Round(10*time.Millisecond))
	data, err := json.Marshal(made)
	if err != nil {
		t.Fatal(err)
	}
	if len(data) > report.MaxSize || !utf8.Valid(data) || strings.Contains(string(data), `\u001b`) || strings.Contains(string(data), "hunter2") {
		t.Errorf("the report has %d bytes, and says %s", len(data), data[:min(len(data), 10000)])
	}
	if len(made.Status.Findings) == 0 {
		t.Error("the report finds nothing wrong")
	}
	// The operator works on.
	other := mpitest.MPIJob(namespace, 1)
	other.Name = "other"
	create(t, other)
	exists(t, namespace, "other-launcher", &batchv1.Job{})
}
