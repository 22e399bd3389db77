package reporting

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

// TestEventTypes: notices and the steps of a healthy job have events of the type Normal, warnings and errors of the type Warning, for jobs of
// either kind.
func TestEventTypes(t *testing.T) {
	t.Parallel()
	var next v1alpha1.JobReport
	next.Status.Phase = v1alpha1.PhaseRunning
	enter := func(event string, severity v1alpha1.Severity) {
		next.Status.Timeline = append(next.Status.Timeline, v1alpha1.TimelineEntry{Event: event, Detail: "Text.", Time: metav1.NewTime(mpitest.Now)})
		if severity != "" {
			next.Status.Findings = append(next.Status.Findings, v1alpha1.Finding{Code: event, Severity: severity})
		}
	}
	enter(codes.PodsPlaced, "")
	enter(codes.RanksIdle, v1alpha1.SeverityInfo)
	enter(codes.DeadlineNear, v1alpha1.SeverityWarning)
	enter(codes.NodeCordoned, v1alpha1.SeverityInfo)
	enter(codes.RankGone, v1alpha1.SeverityError)
	want := []string{"Normal PodsPlaced Text.", "Normal RanksIdle Text.", "Warning DeadlineNear Text.", "Normal NodeCordoned Text.", "Warning RankGone Text."}
	for _, kind := range []string{mpi.KindMPIJob, mpi.KindTrainJob} {
		events := record.NewFakeRecorder(100)
		r := reporterFor(apiWithReports(t))
		r.Events = events
		r.emitEvents(mpitest.Job(1, func(j *mpi.Job) { j.Kind, j.External = kind, kind == mpi.KindTrainJob }), nil, next)
		close(events.Events)
		var got []string
		for event := range events.Events {
			got = append(got, event)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", kind, diff)
		}
	}
}
