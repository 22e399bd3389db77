package operator_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
)

// TestRestoredReports: reports that were saved and created again, as docs/admin/backup.md describes, are kept as they were by an operator
// that does not know their jobs, and one of a job that had not ended is closed.
func TestRestoredReports(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	stop := start(t, namespace)
	launcher, pod := runs(t, namespace)
	running := reported(t, namespace, "Running")
	fails(t, launcher, pod)
	failed := reported(t, namespace, "Failed")
	stop()

	restored := newNamespace(t)
	for name, report := range map[string]*v1alpha1.JobReport{"running": running, "failed": failed} {
		report.ObjectMeta = metav1.ObjectMeta{Namespace: restored, Name: name, Labels: report.Labels, Annotations: report.Annotations}
		create(t, report.DeepCopy())
	}
	start(t, restored)
	var closed v1alpha1.JobReport
	eventually(t, "the report of the job that ran is closed", func() error {
		if get(t, restored, "running", &closed); closed.Status.CompletionTime == nil {
			return fmt.Errorf("it is %s", closed.Status.Phase)
		}
		return nil
	})
	kept := get(t, restored, "failed", &v1alpha1.JobReport{})
	// The commands of remedies are those for a deleted job.
	if diff := cmp.Diff(failed.Status.Findings, kept.Status.Findings, cmpopts.IgnoreFields(v1alpha1.Finding{}, "Remedies")); diff != "" {
		t.Errorf("the findings have changed:\n%s", diff)
	}
	if diff := cmp.Diff(failed.Status.Timeline, kept.Status.Timeline[:min(len(failed.Status.Timeline), len(kept.Status.Timeline))]); diff != "" {
		t.Errorf("the timeline has changed:\n%s", diff)
	}
	if kept.Status.Phase != v1alpha1.PhaseFailed || !kept.Status.CompletionTime.Equal(failed.Status.CompletionTime) {
		t.Errorf("the job is %s since %v", kept.Status.Phase, kept.Status.CompletionTime)
	}
}
