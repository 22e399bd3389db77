package controller

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/gang"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
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
	record := &v1alpha1.JobReport{}
	record.Status.Scheduling = &v1alpha1.SchedulingStatus{Since: &since, Attempts: 2, EvictedAt: &since, NextTry: &since}
	if past := waitSoFar(pastOf(record)); !past.Since.IsZero() || past.Attempts != 2 || !past.EvictedAt.Equal(since.Time) || !past.NextTry.Equal(since.Time) {
		t.Errorf("one that was put back before: %+v", past)
	}
	if pastOf(nil) != nil || pastOf(&v1alpha1.JobReport{}) != nil {
		t.Error("a job without a report has waited")
	}
}

// idleScheduler is an embedded scheduler that has decided on no job.
type idleScheduler struct{}

func (idleScheduler) State(mpi.Job, jobstate.Observed) *jobstate.GangState { return nil }
func (idleScheduler) Enqueue(context.Context, mpi.Job, jobstate.Observed, *v1alpha1.SchedulingStatus, bool) *jobstate.GangState {
	return nil
}
func (idleScheduler) Forget(mpi.ID)  {}
func (idleScheduler) IsUsable() bool { return true }

// TestNeverSince: the time since when a job never fits lasts as long as that is so, also while the job rests, since its queue takes its
// quota back by that (kueue.TurnOf).
func TestNeverSince(t *testing.T) {
	job := mpitest.Job(2)
	rests := func(after time.Duration) gangRequest {
		return gangRequest{place: leaveQueue, state: &jobstate.GangState{Never: true, NeverSince: mpitest.Now.Add(after)}}
	}
	for name, test := range map[string]struct {
		request gangRequest
		forget  bool
		want    time.Duration
	}{
		"it rests":                 {request: rests(0), want: 0},
		"nothing places it":        {request: gangRequest{place: leaveQueue}, want: time.Minute},
		"it is gone, and is there": {request: rests(0), forget: true, want: time.Minute},
	} {
		g := &Gangs{setting: gang.Embedded, embedded: idleScheduler{}}
		g.never.of(job.ID(), true, mpitest.Now)
		g.reserve(t.Context(), job, jobstate.Observed{Now: mpitest.Now}, test.request)
		if test.forget {
			g.forget(job.ID())
		}
		if got := g.never.of(job.ID(), true, mpitest.Now.Add(time.Minute)); !got.Equal(mpitest.Now.Add(test.want)) {
			t.Errorf("%s: it never fits since %s", name, got)
		}
	}
}

// TestNeverSinceWhileAJobRests: passes of a job that rests do not restart the time since when it never fits.
func TestNeverSinceWhileAJobRests(t *testing.T) {
	g := &Gangs{setting: gang.Embedded, embedded: idleScheduler{}}
	job := mpitest.Job(2, func(j *mpi.Job) { j.Queue = "team" })
	record := &v1alpha1.JobReport{}
	evicted, next := metav1.NewTime(mpitest.Now.Add(-time.Second)), metav1.NewTime(mpitest.Now.Add(10*time.Minute))
	record.Status.Scheduling = &v1alpha1.SchedulingStatus{Backend: gang.Embedded, Since: &evicted, Attempts: 1, EvictedAt: &evicted, NextTry: &next}
	for pass := range 3 {
		seen := jobstate.Observed{Now: mpitest.Now.Add(time.Duration(pass) * time.Minute), Queue: &jobstate.QueueState{Admitted: true}}
		request := g.requestOf(t.Context(), job, seen, record)
		if request.place != leaveQueue || request.state == nil || !request.state.Hold {
			t.Fatalf("it does not rest: %+v", request)
		}
		// As the nodes would tell (addCapacity).
		request.state.Never = true
		request.state.NeverSince = g.never.of(job.ID(), true, seen.Now)
		if g.reserve(t.Context(), job, seen, request); !request.state.NeverSince.Equal(mpitest.Now) {
			t.Errorf("pass %d: it never fits since %s", pass, request.state.NeverSince)
		}
	}
}
