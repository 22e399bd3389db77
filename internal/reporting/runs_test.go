package reporting

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

// TestRuns: what is known of a job's end follows from its specification, its report, and the reports of similar jobs.
func TestRuns(t *testing.T) {
	began := mpitest.Now
	reportOf := func(uid, image string, phase v1alpha1.Phase, seconds int64) *v1alpha1.JobReport {
		report := &v1alpha1.JobReport{}
		report.Namespace = "ns"
		report.Spec.JobRef = v1alpha1.JobReference{Kind: "MPIJob", UID: types.UID(uid)}
		report.Status = v1alpha1.JobReportStatus{
			Phase: phase, Run: &v1alpha1.Run{Image: image}, Workers: v1alpha1.WorkersStatus{Wanted: 2},
			PhaseTimes: []v1alpha1.PhaseTime{{Phase: v1alpha1.PhaseRunning, Since: metav1.NewTime(began), Seconds: seconds}},
		}
		if phase == v1alpha1.PhaseSucceeded || phase == v1alpha1.PhaseFailed {
			report.Status.CompletionTime = &metav1.Time{Time: began.Add(time.Hour)}
		}
		return report
	}
	r := &Reporter{}
	handler := r.runs.eventHandler()
	for i := range 12 {
		handler.OnAdd(reportOf(fmt.Sprint("old-", i), "train", v1alpha1.PhaseSucceeded, int64(60*(i+1))), true)
	}
	handler.OnAdd(reportOf("failed", "train", v1alpha1.PhaseFailed, 1), true)
	handler.OnAdd(reportOf("other", "other", v1alpha1.PhaseSucceeded, 1), true)
	handler.OnUpdate(reportOf("new", "train", v1alpha1.PhaseRunning, 0), reportOf("new", "train", v1alpha1.PhaseSucceeded, 6000))

	job := mpitest.Job(2, func(j *mpi.Job) { j.Lifecycle.Deadline, j.Lifecycle.CleanPods = new(int64(3600)), mpi.CleanRunning })
	if unknown := r.Run(job.ID()); unknown.Usual != nil || unknown.Deadline != 0 || unknown.Name != job.Name {
		t.Errorf("of a job that was not seen: %+v", unknown)
	}
	r.runs.observe(job, jobstate.Observed{}, reportOf("uid", "train", v1alpha1.PhaseInitializing, 0))
	if starting := r.Run(job.ID()); !starting.Start.IsZero() || starting.Deadline != time.Hour || starting.Lingers != 0 {
		t.Errorf("of a job that starts: %+v", starting)
	}
	r.runs.observe(job, jobstate.Observed{}, reportOf("uid", "train", v1alpha1.PhaseRunning, 0))
	running := r.Run(job.ID())
	if !running.Start.Equal(began) || len(running.Usual) != 13 || running.Usual[0] != time.Minute || running.Usual[12] != 100*time.Minute {
		t.Errorf("of a job that runs: %+v", running)
	}

	job.Lifecycle.CleanPods = mpi.CleanNone
	r.runs.observe(job, jobstate.Observed{}, reportOf("uid", "train", v1alpha1.PhaseRunning, 0))
	if stays := r.Run(job.ID()); stays.Lingers >= 0 {
		t.Errorf("of a job whose pods stay: %+v", stays)
	}
	job.Lifecycle.TTL = new(time.Minute)
	r.runs.observe(job, jobstate.Observed{}, reportOf("uid", "train", v1alpha1.PhaseRunning, 0))
	if deleted := r.Run(job.ID()); deleted.Lingers != time.Minute {
		t.Errorf("of a job that is deleted after its end: %+v", deleted)
	}

	r.runs.forgetJob(job.ID(), job.UID)
	if r.Run(job.ID()).Deadline == 0 {
		t.Error("a job was forgotten because an earlier one of its name is gone")
	}
	r.runs.observe(job, jobstate.Observed{}, reportOf("uid", "train", v1alpha1.PhaseSucceeded, 60))
	if gone := r.Run(job.ID()); gone.Deadline != 0 || len(r.runs.known) > 0 {
		t.Errorf("of a job that has ended: %+v", gone)
	}
	var none *Reporter
	if got := none.Run(job.ID()); got.Name != job.Name || got.Usual != nil || got.Deadline != 0 || !got.Start.IsZero() || got.Lingers != 0 {
		t.Errorf("without reports: %+v", got)
	}
}

// TestRunsByDeadlineFrom: the deadline of an MPIJob counts from when the Job of its launcher started, that of a TrainJob from its
// creation, which may both be long before the job runs.
func TestRunsByDeadlineFrom(t *testing.T) {
	created := metav1.NewTime(mpitest.Now.Add(-time.Hour))
	launcher := mpitest.Launcher(mpitest.Job(2))
	launcher.Status.StartTime = &created
	for name, test := range map[string]struct {
		change func(*mpi.Job)
		seen   jobstate.Observed
		want   time.Time
	}{
		"an MPIJob":            {func(*mpi.Job) {}, jobstate.Observed{Launcher: launcher}, created.Time},
		"an MPIJob that waits": {func(*mpi.Job) {}, jobstate.Observed{}, time.Time{}},
		"a TrainJob":           {func(j *mpi.Job) { j.External, j.Lifecycle.DeadlineFrom = true, created.Time }, jobstate.Observed{}, created.Time},
		"a TrainJob in its queue": {func(j *mpi.Job) {
			j.External, j.Lifecycle.Suspended, j.Lifecycle.DeadlineFrom = true, true, created.Time
		}, jobstate.Observed{}, time.Time{}},
		"a job without a deadline": {func(j *mpi.Job) { j.Lifecycle.Deadline, j.Lifecycle.DeadlineFrom = nil, created.Time }, jobstate.Observed{}, time.Time{}},
	} {
		r := &Reporter{}
		job := mpitest.Job(2, func(j *mpi.Job) { j.Lifecycle.Deadline = new(int64(3600)) }, test.change)
		r.runs.observe(job, test.seen, &v1alpha1.JobReport{})
		if got := r.Run(job.ID()).DeadlineFrom; !got.Equal(test.want) {
			t.Errorf("%s: the deadline counts from %s, want %s", name, got, test.want)
		}
	}
}
