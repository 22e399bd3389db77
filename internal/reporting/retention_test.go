package reporting

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/mpitest"
)

func TestDeleteExpired(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	ended := map[string]struct {
		phase v1alpha1.Phase
		ago   time.Duration // of the end; 0 if the job has not ended
	}{
		"running":              {v1alpha1.PhaseRunning, 0},
		"succeeded-59m":        {v1alpha1.PhaseSucceeded, 59 * time.Minute},
		"succeeded-1h":         {v1alpha1.PhaseSucceeded, time.Hour},
		"failed-1h":            {v1alpha1.PhaseFailed, time.Hour},
		"failed-almost-a-day":  {v1alpha1.PhaseFailed, 24*time.Hour - time.Second},
		"failed-24h":           {v1alpha1.PhaseFailed, 24 * time.Hour},
		"succeeded-two-days":   {v1alpha1.PhaseSucceeded, 48 * time.Hour},
		"failed-two-days":      {v1alpha1.PhaseFailed, 48 * time.Hour},
		"succeeded-four-weeks": {v1alpha1.PhaseSucceeded, 28 * 24 * time.Hour},
	}
	for name, test := range map[string]struct {
		retention time.Duration
		want      []string
	}{
		"an hour, of failed jobs a day":     {time.Hour, []string{"failed-24h", "failed-two-days", "succeeded-1h", "succeeded-four-weeks", "succeeded-two-days"}},
		"longer than a day for failed jobs": {48 * time.Hour, []string{"failed-two-days", "succeeded-four-weeks", "succeeded-two-days"}},
		"forever":                           {0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			builder := fake.NewClientBuilder().WithScheme(scheme)
			for name, job := range ended {
				report := &v1alpha1.JobReport{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Status: v1alpha1.JobReportStatus{Phase: job.phase}}
				if job.ago > 0 {
					report.Status.CompletionTime = new(metav1.NewTime(mpitest.Now.Add(-job.ago)))
				}
				builder = builder.WithObjects(report)
			}
			api := builder.Build()
			r := &Reporter{client: api, clock: clocktesting.NewFakePassiveClock(mpitest.Now), retention: test.retention}
			if err := r.deleteExpired(t.Context()); err != nil {
				t.Fatal(err)
			}
			var kept v1alpha1.JobReportList
			if err := api.List(t.Context(), &kept); err != nil {
				t.Fatal(err)
			}
			var deleted []string
			for name := range ended {
				if !slices.ContainsFunc(kept.Items, func(r v1alpha1.JobReport) bool { return r.Name == name }) {
					deleted = append(deleted, name)
				}
			}
			slices.Sort(deleted)
			if !slices.Equal(deleted, test.want) {
				t.Errorf("deleted are %v, want %v", deleted, test.want)
			}
		})
	}
}
