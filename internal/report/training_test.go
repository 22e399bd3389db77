package report_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/curves"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/report"
)

// TestLaunched: that all workers are connected and ranks run becomes an entry each while the job runs, once, at the time that the
// launcher's agent reports; what makes no sense does not.
func TestLaunched(t *testing.T) {
	at := func(after time.Duration) int64 { return mpitest.Now.Add(after).UnixMilli() }
	connected := agentapi.Launch{ConnectedAt: at(11 * time.Second), ConnectSeconds: 0.25}
	ranks := connected
	ranks.RanksAt, ranks.InitSeconds = at(13*time.Second), 1.5
	for name, test := range map[string]struct {
		launches []*agentapi.Launch
		want     []string
	}{
		"an older agent":     {launches: []*agentapi.Launch{nil, nil, nil}},
		"one after another":  {launches: []*agentapi.Launch{nil, &connected, &ranks, &ranks}, want: []string{"00:11 WorkersFound", "00:13 MPIInitialized"}},
		"both at once":       {launches: []*agentapi.Launch{nil, &ranks}, want: []string{"00:11 WorkersFound", "00:13 MPIInitialized"}},
		"in the future":      {launches: []*agentapi.Launch{nil, {ConnectedAt: at(time.Hour), ConnectSeconds: 1}}, want: []string{"00:20 WorkersFound"}},
		"before it ran":      {launches: []*agentapi.Launch{nil, {ConnectedAt: 1, ConnectSeconds: 1}}, want: []string{"00:10 WorkersFound"}},
		"a negative time":    {launches: []*agentapi.Launch{nil, {ConnectedAt: at(0), ConnectSeconds: -1}}},
		"longer than a year": {launches: []*agentapi.Launch{nil, {ConnectedAt: at(0), ConnectSeconds: 1e18}}},
	} {
		t.Run(name, func(t *testing.T) {
			h := &history{t: t, job: job(2)}
			for i, launch := range test.launches {
				var used *agentapi.Usage
				if launch != nil {
					used = &agentapi.Usage{Launch: launch}
				}
				h.pass(time.Duration(10*(i+1))*time.Second, pods(h.job, corev1.PodRunning, 0), jobstate.Evidence{Usage: used})
			}
			var got []string
			for _, event := range h.events() {
				if strings.HasSuffix(event, "WorkersFound") || strings.HasSuffix(event, "MPIInitialized") {
					got = append(got, event)
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("the entries are %v, want %v", got, test.want)
			}
			for _, entry := range h.last.Status.Timeline {
				if report.NeedsAction(entry) {
					t.Errorf("%+v asks for something", entry)
				}
			}
			if h.last.Status.Usage != nil {
				t.Errorf("the usage is %+v", h.last.Status.Usage)
			}
		})
	}
}

// TestTrainingStarted: the first progress of a job becomes an entry, which is an event that asks for nothing, and further progress
// does not.
func TestTrainingStarted(t *testing.T) {
	h := &history{t: t, job: job(2)}
	for i, epoch := range []string{"", "", "1", "2"} {
		h.pass(time.Duration(10*(i+1))*time.Second, pods(h.job, corev1.PodRunning, 0), jobstate.Evidence{Training: v1alpha1.Training{Epoch: epoch}})
	}
	var found []v1alpha1.TimelineEntry
	for _, entry := range h.last.Status.Timeline {
		if entry.Event == "TrainingStarted" {
			found = append(found, entry)
		}
	}
	if len(found) != 1 || found[0].Detail != "First progress: epoch 1." || report.NeedsAction(found[0]) {
		t.Fatalf("the entries are %+v", found)
	}
	if events := strings.Join(h.events(), ", "); !strings.HasSuffix(events, "00:30 TrainingStarted") {
		t.Errorf("the timeline is %s", events)
	}
}

// TestTrainingStartedAtTheFirstLine: what a short job prints is read at once, and its first line is the start.
func TestTrainingStartedAtTheFirstLine(t *testing.T) {
	h := &history{t: t, job: job(2)}
	line := func(seconds int, epoch, loss float64) curves.Line {
		return curves.Line{Time: mpitest.Now.Add(time.Duration(seconds) * time.Second), Step: math.NaN(), Epoch: epoch, Figures: []curves.Figure{{Name: "loss", Value: loss}, {Name: "throughput", Value: 5}}}
	}
	h.pass(10*time.Second, pods(h.job, corev1.PodRunning, 0), jobstate.Evidence{})
	h.pass(30*time.Second, pods(h.job, corev1.PodRunning, 0), jobstate.Evidence{
		Training: v1alpha1.Training{Epoch: "10", Loss: "0.1"}, CurveLines: []curves.Line{line(15, 1, 0.75), line(25, 10, 0.1)},
	})
	at := slices.IndexFunc(h.last.Status.Timeline, func(entry v1alpha1.TimelineEntry) bool { return entry.Event == "TrainingStarted" })
	if at < 0 || h.last.Status.Timeline[at].Detail != "First progress: epoch 1, loss 0.75." || !slices.Contains(h.events(), "00:15 TrainingStarted") {
		t.Errorf("the timeline is %+v", h.last.Status.Timeline)
	}
}

// TestCurvesAreKept: curves are written as often as the log is read, at the end once more, and stay when nothing is printed.
func TestCurvesAreKept(t *testing.T) {
	h := &history{t: t, job: job(2)}
	running := pods(h.job, corev1.PodRunning, 0)
	var all *v1alpha1.TrainingCurves
	until := func(seconds int) jobstate.Evidence {
		line := curves.Line{Time: mpitest.Now.Add(time.Duration(seconds) * time.Second), Step: float64(seconds), Figures: []curves.Figure{{Name: "loss", Value: 0.5}}}
		all = curves.Add(all, []curves.Line{line})
		return jobstate.Evidence{Curves: all}
	}
	h.pass(0, running, jobstate.Evidence{})
	for _, test := range []struct {
		name     string
		evidence jobstate.Evidence
		seen     jobstate.Observed
		want     bool
	}{
		{"the first figure", until(10), running, true},
		{"a second later", until(11), running, false},
		{"at the next read", until(40), running, true},
		{"nothing new", jobstate.Evidence{Curves: all}, running, false},
		{"the end", until(41), ended(running, h.job, batchv1.JobComplete, time.Minute), true},
		{"after the end", jobstate.Evidence{}, ended(running, h.job, batchv1.JobComplete, time.Minute), false},
	} {
		before := h.last
		next := h.pass(time.Minute, test.seen, test.evidence)
		if got := report.Changed(before, *next); got != test.want {
			t.Errorf("%s: changed is %v", test.name, got)
		} else if !got {
			h.last = before
		}
	}
	if got := h.last.Status.Curves; got == nil || len(got.Figures) != 1 || got.Figures[0].At[len(got.Figures[0].At)-1] != 41 {
		t.Errorf("the curves are %+v", got)
	}
}
