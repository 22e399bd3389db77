package report_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/kueue"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/quota"
	"opendatahub.io/mpijob/internal/report"
	"opendatahub.io/mpijob/internal/waiting"
)

// TestWaitInAQueue: a job that waits says since when, and how long others did; once it is let in, its record tells how
// long it waited.
func TestWaitInAQueue(t *testing.T) {
	waiting := jobstate.QueueState{Backend: kueue.Kueue, Name: "team", Position: 2, Total: 5, Message: "2 more needed for pods"}
	h := &history{t: t, job: job(3, func(j *mpi.Job) { j.Queue, j.Lifecycle.Suspended = "team", true })}
	few := jobstate.Wait{Samples: 3, FewestPods: 2, MostPods: 8}
	h.pass(0, jobstate.Observed{Queue: &waiting}, jobstate.Evidence{Wait: few})
	first := h.pass(10*time.Second, jobstate.Observed{Queue: &waiting}, jobstate.Evidence{Wait: few})
	mpitest.Golden(t, "queued-few-known", first.Status.Scheduling)
	later := h.pass(50*time.Second, jobstate.Observed{Queue: &waiting}, jobstate.Evidence{Wait: few})
	if report.Changed(first, *later) {
		t.Errorf("that time goes by is news:\n%+v\n%+v", first.Status.Scheduling, later.Status.Scheduling)
	}
	many := jobstate.Wait{Known: true, Samples: 23, FewestPods: 2, MostPods: 8, P50: 4 * time.Minute, P90: 12*time.Minute + 29*time.Second}
	known := h.pass(60*time.Second, jobstate.Observed{Queue: &waiting}, jobstate.Evidence{Wait: many})
	mpitest.Golden(t, "queued", known.Status.Scheduling)
	never := waiting
	never.Never, never.Message = true, strings.Repeat("é", 2000)
	if got := h.pass(61*time.Second, jobstate.Observed{Queue: &never}, jobstate.Evidence{Wait: many}).Status.Scheduling; got.WaitP50 != nil ||
		len(got.Message) > 1000 || !strings.Contains(got.Message, "Waiting since") {
		t.Errorf("one that never fits waits like this: %+v", got)
	}

	h.job.Lifecycle.Suspended = false
	in := jobstate.QueueState{Backend: kueue.Kueue, Name: "team", Admitted: true}
	admitted := pods(h.job, corev1.PodRunning, 90*time.Second)
	admitted.Queue = &in
	running := h.pass(100*time.Second, admitted, jobstate.Evidence{})
	mpitest.Golden(t, "let-in", running.Status.Waited)

	h.job.Lifecycle.Suspended = true
	h.pass(200*time.Second, jobstate.Observed{Queue: &waiting}, jobstate.Evidence{})
	h.job.Lifecycle.Suspended = false
	again := h.pass(500*time.Second, admitted, jobstate.Evidence{})
	if *again.Status.Waited != *running.Status.Waited {
		t.Errorf("after it was put out and let in again it has waited %+v, first %+v", again.Status.Waited, running.Status.Waited)
	}
}

// TestLetInAtOnce: a job that waits for nobody counts among those that others are compared with.
func TestLetInAtOnce(t *testing.T) {
	h := &history{t: t, job: job(2, func(j *mpi.Job) { j.Queue = "team" })}
	seen := pods(h.job, corev1.PodRunning, 0)
	seen.Queue = &jobstate.QueueState{Backend: kueue.Kueue, Name: "team", Admitted: true}
	if waited := h.pass(time.Second, seen, jobstate.Evidence{}).Status.Waited; waited == nil || waited.Seconds != 0 || waited.Pods != 3 {
		t.Errorf("it has waited %+v", waited)
	}
	none := &history{t: t, job: job(2)}
	if waited := none.pass(time.Second, pods(none.job, corev1.PodRunning, 0), jobstate.Evidence{}).Status.Waited; waited != nil {
		t.Errorf("without a queue it has waited %+v", waited)
	}
}

// TestEstimates: the report has the estimate in words that fit what it follows from, and names no job of another namespace.
func TestEstimates(t *testing.T) {
	at := func(minutes int) time.Time { return mpitest.Now.Add(time.Duration(minutes) * time.Minute) }
	here, elsewhere := &waiting.Job{Namespace: "ns", Name: "large"}, &waiting.Job{Namespace: "other", Name: "secret"}
	few := jobstate.Wait{Samples: 3, FewestPods: 2, MostPods: 8}
	many := jobstate.Wait{Known: true, Samples: 23, FewestPods: 2, MostPods: 8, P50: time.Hour, P90: 2 * time.Hour}
	for want, c := range map[string]struct {
		start waiting.Estimate
		wait  jobstate.Wait
	}{
		"Expected start: before 2026-11-21 10:30 UTC, by the deadlines of the jobs before it.":                                                                   {waiting.Estimate{By: at(30), Basis: waiting.Deadlines}, many},
		"Expected start: 2026-11-21 10:10 to 10:30 UTC, by the usual durations of the jobs before it.":                                                           {waiting.Estimate{From: at(10), By: at(30), Basis: waiting.Durations}, few},
		"Expected start: 2026-11-21 10:10 to 2026-11-22 14:00 UTC, by the deadlines and usual durations of the jobs before it.":                                  {waiting.Estimate{From: at(10), By: at(28 * 60), Basis: waiting.DeadlinesAndDurations}, few},
		"Expected start: 2026-11-21 10:30 UTC, there is room for it.":                                                                                            {waiting.Estimate{From: at(30), By: at(30)}, few},
		"No estimate of the start: the job large before it has no deadline (activeDeadlineSeconds), and fewer than 10 similar jobs have succeeded.":              {waiting.Estimate{Reason: waiting.NoDeadline, Other: here}, few},
		"No estimate of the start: a job of another namespace before it runs longer than similar jobs did, and has no deadline (activeDeadlineSeconds).":         {waiting.Estimate{Reason: waiting.Overdue, Other: elsewhere}, few},
		"No estimate of the start: the pods of the job large before it stay when it ends (cleanPodPolicy: None).":                                                {waiting.Estimate{Reason: waiting.PodsStay, Other: here}, few},
		"No estimate of the start: other pods than those of the jobs before it use the capacity.":                                                                {waiting.Estimate{Reason: waiting.NotReleased}, few},
		"No estimate of the start: there is none for a job of another namespace before it.":                                                                      {waiting.Estimate{Reason: waiting.NoneAhead, Other: elsewhere}, few},
		"No estimate of the start: the autoscaler may add nodes at any time.":                                                                                    {waiting.Estimate{Reason: waiting.Autoscaled}, few},
		"No estimate of the start: only 3 jobs of 2 to 8 pods waited here before, 10 are needed.":                                                                {waiting.Estimate{}, few},
		"No estimate of the start: there is none for the job large before it.":                                                                                   {waiting.Estimate{Reason: waiting.NoneAhead, Other: here}, many},
		"No estimate of the start: a job of another namespace before it has no deadline (activeDeadlineSeconds), and fewer than 10 similar jobs have succeeded.": {waiting.Estimate{Reason: waiting.NoDeadline, Other: elsewhere}, many},
		"Expected start: 2026-11-21 11:00 to 12:00 UTC, by the waits of the last 23 jobs of 2 to 8 pods.":                                                        {waiting.Estimate{}, many},
	} {
		h := &history{t: t, job: job(3, func(j *mpi.Job) { j.Namespace = "ns" })}
		gang := jobstate.GangState{Backend: "embedded", Hold: true, Wanted: 4, Position: 1, Start: c.start, Since: mpitest.Now}
		if c.start.IsZero() {
			gang.Backend, gang.Position = "volcano", 0
		}
		got := h.pass(0, jobstate.Observed{Gang: &gang}, jobstate.Evidence{Wait: c.wait}).Status.Scheduling.Estimate
		if got == nil || got.Message != want {
			t.Errorf("got  %+v\nwant %s", got, want)
		}
	}
	isNew := jobstate.GangState{Backend: "embedded", Hold: true, Wanted: 4, Position: 2, Since: mpitest.Now}
	if got := (&history{t: t, job: job(3)}).pass(0, jobstate.Observed{Gang: &isNew}, jobstate.Evidence{Wait: many}).Status.Scheduling.Estimate; got != nil {
		t.Errorf("before the jobs ahead of it were looked at, a job starts %+v", got)
	}
	never := &history{t: t, job: job(3)}
	gang := jobstate.GangState{Backend: "embedded", Hold: true, Never: true, Start: waiting.Estimate{By: at(30)}}
	if got := never.pass(0, jobstate.Observed{Gang: &gang}, jobstate.Evidence{Wait: many}).Status.Scheduling.Estimate; got != nil {
		t.Errorf("a job that never fits starts %+v", got)
	}
}

// TestEstimatesInAQueue: a queue's estimate follows from the jobs that hold its quota, and from past waits where those do not bound it.
func TestEstimatesInAQueue(t *testing.T) {
	few := jobstate.Wait{Samples: 3, FewestPods: 2, MostPods: 8}
	many := jobstate.Wait{Known: true, Samples: 23, FewestPods: 2, MostPods: 8, P50: time.Hour, P90: 2 * time.Hour}
	bounded := waiting.Estimate{By: mpitest.Now.Add(30 * time.Minute), Basis: waiting.Deadlines}
	unbounded := waiting.Estimate{Reason: waiting.NoDeadline, Other: &waiting.Job{Namespace: "other", Name: "secret"}}
	const byWaits = "by the waits of the last 23 jobs of 2 to 8 pods."
	for name, test := range map[string]struct {
		start waiting.Estimate
		wait  jobstate.Wait
		later time.Duration
		want  string
	}{
		"deadlines":                              {start: bounded, wait: many, want: "before 2026-11-21 10:30 UTC, by the deadlines of the jobs before it."},
		"nothing bounds a job before it":         {start: unbounded, wait: many, want: byWaits},
		"neither that nor enough waits":          {start: unbounded, wait: few, want: "No estimate of the start: a job of another namespace before it has no deadline (activeDeadlineSeconds), and fewer than 10"},
		"a cohort":                               {wait: many, want: byWaits},
		"a cohort and too few waits":             {wait: few, want: "deadlines of running jobs are not used, because the quota is shared with other queues (a cohort), or is unknown."},
		"it has waited longer, and nothing ends": {start: unbounded, wait: many, later: 9 * time.Hour, want: "by deadlines, there is no estimate: a job of another namespace before it has no deadline"},
	} {
		t.Run(name, func(t *testing.T) {
			h := &history{t: t, job: job(3, func(j *mpi.Job) { j.Namespace, j.Queue, j.Lifecycle.Suspended = "ns", "team", true })}
			queue := jobstate.QueueState{Backend: kueue.Kueue, Name: "team", Start: test.start}
			h.pass(0, jobstate.Observed{Queue: &queue}, jobstate.Evidence{Wait: test.wait})
			got := h.pass(test.later+time.Second, jobstate.Observed{Queue: &queue}, jobstate.Evidence{Wait: test.wait}).Status.Scheduling.Estimate
			if got == nil || !strings.Contains(got.Message, test.want) {
				t.Errorf("got  %+v\nwant %s", got, test.want)
			}
		})
	}
}

// TestWaitForQuota: a job that waits for quota knows its place, since when it waits, and when it is expected to start.
func TestWaitForQuota(t *testing.T) {
	short := []quota.Shortage{{Quota: "team", Resource: corev1.ResourcePods, Hard: resource.MustParse("5"), Used: resource.MustParse("4"), Asked: resource.MustParse("4")}}
	turn := &jobstate.Turn{Position: 2, Start: waiting.Estimate{By: mpitest.Now.Add(time.Hour), Basis: waiting.Deadlines}}
	for name, gang := range map[string]*jobstate.GangState{
		"nothing places it":           nil,
		"it is placed by default":     {Backend: "embedded", Wanted: 4, Starting: true},
		"it asked to be placed":       {Backend: "embedded", Wanted: 4, Since: mpitest.Now},
		"another scheduler places it": {Backend: "volcano", Wanted: 4, Since: mpitest.Now, Position: 7},
	} {
		t.Run(name, func(t *testing.T) {
			h := &history{t: t, job: job(3)}
			h.pass(0, jobstate.Observed{Shortages: short, QuotaTurn: turn, Gang: gang}, jobstate.Evidence{})
			got := h.pass(20*time.Second, jobstate.Observed{Shortages: short, QuotaTurn: turn, Gang: gang}, jobstate.Evidence{})
			mpitest.Golden(t, "waits-for-quota", got.Status.Scheduling)
			if got.Status.Waited != nil {
				t.Errorf("it has waited %+v, and waits", got.Status.Waited)
			}
			refused := []jobstate.Refusal{{Kind: "Service", Name: "pi", Message: "no"}}
			seen := jobstate.Observed{Now: mpitest.Now, Shortages: short, Gang: gang}
			out := jobstate.Judge(h.job, seen).Refused(h.job, refused)
			if waited := report.Make(h.job, seen, jobstate.Evidence{}, out, nil, h.last).Status.Waited; waited != nil {
				t.Errorf("while an object is refused it has waited %+v", waited)
			}
		})
	}
}

// TestWaitForQuotaKeepsAttempts: how often a job was put back is known while it waits for quota, and after it.
func TestWaitForQuotaKeepsAttempts(t *testing.T) {
	h := &history{t: t, job: job(3)}
	short := []quota.Shortage{{Quota: "team", Resource: corev1.ResourcePods, Hard: resource.MustParse("5"), Used: resource.MustParse("4"), Asked: resource.MustParse("4")}}
	at := mpitest.Now.Add(-time.Minute)
	gang := &jobstate.GangState{Backend: "embedded", Wanted: 4, Since: at, Attempts: 2, EvictedAt: at, NextTry: at.Add(30 * time.Second)}
	told := h.pass(0, jobstate.Observed{Shortages: short, Gang: gang}, jobstate.Evidence{}).Status.Scheduling
	if told == nil || told.Attempts != 2 || !told.EvictedAt.Time.Equal(at) || !told.NextTry.Time.Equal(at.Add(30*time.Second)) {
		t.Errorf("it waits as %+v", told)
	}
}

// TestWritesOfWaiting: another estimate is written at most every half a minute, and nothing but the time every five
// minutes.
func TestWritesOfWaiting(t *testing.T) {
	gang := jobstate.GangState{Backend: "embedded", Hold: true, Wanted: 4, Position: 7, Start: waiting.Estimate{By: mpitest.Now.Add(time.Hour), Basis: waiting.Deadlines}}
	h := &history{t: t, job: job(3)}
	var first *v1alpha1.JobReport
	look := func(after time.Duration) *v1alpha1.JobReport {
		now := gang
		h.last = first
		return h.pass(after, jobstate.Observed{Gang: &now}, jobstate.Evidence{})
	}
	first = look(0)
	for after, want := range map[time.Duration][2]bool{20 * time.Second: {}, 290 * time.Second: {}, 300 * time.Second: {false, true}} {
		next := *look(after)
		if got := [2]bool{report.Reestimated(first, next), report.Outdated(first, next)}; report.Changed(first, next) || got != want {
			t.Errorf("unchanged, after %s: changed %t, reestimated and outdated %v, want %v", after, report.Changed(first, next), got, want)
		}
	}
	gang.Start.By = mpitest.Now.Add(50 * time.Minute)
	if soon := *look(29 * time.Second); report.Changed(first, soon) || report.Reestimated(first, soon) {
		t.Error("another estimate is written after 29 s")
	}
	if later := *look(30 * time.Second); report.Changed(first, later) || !report.Reestimated(first, later) {
		t.Error("another estimate is not written after 30 s")
	}
	gang.Position = 6
	if next := *look(time.Second); !report.Changed(first, next) {
		t.Error("another place, which the job's status has as well, is not written at once")
	}
	gang.Start = waiting.Estimate{}
	if none := *look(time.Second); !report.Changed(first, none) {
		t.Error("that there is no estimate any more is not written at once")
	}
}
