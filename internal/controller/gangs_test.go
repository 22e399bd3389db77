package controller

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/mpitest"
)

// TestPastOf: the time that a job waited for quota does not count as a wait for places, which its user can limit.
func TestPastOf(t *testing.T) {
	since := metav1.NewTime(mpitest.Now)
	for backend, want := range map[string]bool{"": false, "embedded": true, "kueue": true} {
		record := &v1alpha1.JobReport{}
		record.Status.Scheduling = &v1alpha1.SchedulingStatus{Backend: backend, Since: &since}
		if past := pastOf(record); (past != nil) != want || waitSoFar(past).Since.IsZero() == want {
			t.Errorf("backend %q: %+v", backend, past)
		}
	}
	if pastOf(nil) != nil || pastOf(&v1alpha1.JobReport{}) != nil {
		t.Error("a job without a report has waited")
	}
}
