package jobs

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
)

func TestAwaitPhase(t *testing.T) {
	t.Parallel()
	running := []v1alpha1.Phase{v1alpha1.PhaseRunning}
	for name, test := range map[string]struct {
		next  v1alpha1.Phase
		ended bool
		after time.Duration
	}{
		"reached":               {next: v1alpha1.PhaseRunning, after: 3500 * time.Millisecond},
		"ended without phase":   {next: v1alpha1.PhaseFailed, ended: true, after: 3500 * time.Millisecond},
		"reached in the report": {after: 0},
	} {
		t.Run(name, inSynctest(func(t *testing.T) {
			first := v1alpha1.PhaseQueued
			if test.next == "" {
				first = v1alpha1.PhaseRunning
			}
			report := reportFor("MPIJob", "pi", "pi-uid", v1alpha1.JobReportStatus{Phase: first})
			earlier := reportFor("MPIJob", "pi", "earlier", v1alpha1.JobReportStatus{Phase: v1alpha1.PhaseRunning})
			c, s := newServer(t, report, earlier)
			began := time.Now()
			if test.next != "" {
				go func() {
					time.Sleep(test.after)
					setPhase(t, s, report, test.next, test.ended)
				}()
			}
			shown := 0
			job, err := clocked(c).AwaitPhase(t.Context(), Job{Kind: "MPIJob", Namespace: "ns", Name: "pi", UID: "pi-uid"}, running, func(Job) { shown++ })
			want := test.next
			if want == "" {
				want = v1alpha1.PhaseRunning
			}
			if err != nil || job.Phase() != want || time.Since(began) != test.after {
				t.Errorf("%s after %s: %v", job.Phase(), time.Since(began), err)
			}
			// At first, with the first report, and after each of the three seconds.
			if test.after > 0 && shown != 5 || test.after == 0 && shown != 1 {
				t.Errorf("shown %d times", shown)
			}
		}))
	}
	t.Run("no right", inSynctest(func(t *testing.T) {
		c, s := newServer(t)
		s.refuse = func(string, string) error { return forbidden("jobreports") }
		job, err := clocked(c).AwaitPhase(t.Context(), Job{Name: "pi"}, running, func(Job) {})
		if err == nil || job.Name != "pi" {
			t.Errorf("%v, %v", job, err)
		}
	}))
}

func TestAwaitEnd(t *testing.T) {
	t.Parallel()
	const ended = `{apiVersion: kubeflow.org/v2beta1, kind: MPIJob, metadata: {name: pi}, status: {conditions: [{type: Succeeded, status: "True"}]}}`
	for name, test := range map[string]struct {
		// job is the job in the cluster; empty if it is deleted. uid is its UID if it is another.
		job, uid string
		// hidden reports cannot be read. The report has the job's end after some time; never if 0.
		hidden bool
		end    time.Duration
		// outage is for how long the job cannot be read.
		outage time.Duration
		want   time.Duration
		seen   int
	}{
		"the report has its end":      {job: mpiJobText, end: 2 * time.Second, want: 2 * time.Second, seen: 2},
		"a hidden report":             {job: ended, hidden: true, want: 5 * time.Second},
		"an end that is not reported": {job: ended, end: 12 * time.Second, want: 12 * time.Second, seen: 2},
		"deleted":                     {want: 5 * time.Second, seen: 1},
		"another job of the name":     {job: mpiJobText, uid: "newer", want: 5 * time.Second, seen: 1},
		"deleted during an outage":    {outage: 11 * time.Second, want: 15 * time.Second, seen: 1},
	} {
		t.Run(name, inSynctest(func(t *testing.T) {
			report := reportFor("MPIJob", "pi", "pi-uid", v1alpha1.JobReportStatus{})
			objects := []client.Object{report}
			if test.job != "" {
				job := object(t, test.job)
				if test.uid != "" {
					job.SetUID("newer")
				}
				objects = append(objects, job)
			}
			c, s := newServer(t, objects...)
			began := time.Now()
			s.refuse = func(verb, kind string) error {
				switch {
				case test.hidden && kind == "JobReportList":
					return forbidden("jobreports")
				case verb == "get" && time.Since(began) < test.outage:
					return apierrors.NewServiceUnavailable("down")
				}
				return nil
			}
			if test.end > 0 {
				go func() {
					time.Sleep(test.end)
					setPhase(t, s, report, v1alpha1.PhaseSucceeded, true)
				}()
			}
			seen := 0
			clocked(c).AwaitEnd(t.Context(), Job{Kind: "MPIJob", Namespace: "ns", Name: "pi", UID: "pi-uid"}, func(*v1alpha1.JobReport) { seen++ })
			if time.Since(began) != test.want || seen != test.seen {
				t.Errorf("it ended after %s and %d reports, want %s and %d", time.Since(began), seen, test.want, test.seen)
			}
		}))
	}
}
