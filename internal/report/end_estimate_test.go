package report_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/report"
)

// TestEndEstimate: what a program prints, minute by minute, and the estimate after it. An empty text prints nothing.
func TestEndEstimate(t *testing.T) {
	epoch := func(text string) v1alpha1.Training { return v1alpha1.Training{Epoch: text} }
	step := func(text string) v1alpha1.Training { return v1alpha1.Training{Step: text, Loss: "1"} }
	progress := func(text string) v1alpha1.Training { return v1alpha1.Training{Progress: text} }
	start := mpitest.Now
	clock := func(minutes float64) string {
		return start.Add(time.Duration(minutes * float64(time.Minute))).UTC().Format("15:04")
	}
	for name, test := range map[string]struct {
		kind   func(string) v1alpha1.Training
		prints []string
		want   string
	}{
		"nothing":                       {progress, []string{"", ""}, ""},
		"no share":                      {epoch, []string{"1", "2", "3", "4", "5"}, ""},
		"no number":                     {progress, []string{"nan", "inf", "-1", "1/0", "101%", "a/b"}, ""},
		"first":                         {progress, []string{"10%"}, "TooEarly No estimate of the end: the progress is too short to extrapolate (10%)."},
		"two steps":                     {progress, []string{"10%", "20%", "30%"}, "TooEarly No estimate of the end: the progress is too short to extrapolate (30%)."},
		"small steps":                   {progress, []string{"0.1%", "0.2%", "0.3%", "0.4%"}, "TooEarly No estimate of the end: the progress is too short to extrapolate (0.4%)."},
		"a tenth a minute":              {progress, []string{"10%", "20%", "30%", "40%"}, fmt.Sprintf(" Expected end: %s to %s UTC, by the average pace so far (40%%).", clock(4+5.4), clock(4+6.6+1))},
		"a fraction":                    {progress, []string{"0.1", "0.2", "0.3", "0.4"}, fmt.Sprintf(" Expected end: %s to %s UTC, by the average pace so far (40%%).", clock(4+5.4), clock(4+6.6+1))},
		"epochs":                        {epoch, []string{"1/10", "2/10", "3/10", "4/10"}, fmt.Sprintf(" Expected end: %s to %s UTC, by the average pace so far (40%%).", clock(4+5.4), clock(4+6.6+1))},
		"steps":                         {step, []string{"100/1_000", "200/1_000", "300/1_000", "400/1_000"}, fmt.Sprintf(" Expected end: %s to %s UTC, by the average pace so far (40%%).", clock(4+5.4), clock(4+6.6+1))},
		"from a checkpoint":             {progress, []string{"70%", "71%", "72%", "73%"}, fmt.Sprintf(" Expected end: %s to %s UTC, by the average pace so far (73%%).", clock(4+24.3), clock(4+29.7+1))},
		"waits for the next step":       {progress, []string{"10%", "20%", "30%", "40%", "40%", ""}, fmt.Sprintf(" Expected end: %s to %s UTC, by the average pace so far (40%%).", clock(4+5.4), clock(4+6.6+1))},
		"stands still":                  {progress, []string{"10%", "20%", "30%", "40%", "40%", "", "40%"}, fmt.Sprintf("StandsStill No estimate of the end: no progress since %s UTC (40%%).", start.Add(4*time.Minute).UTC().Format("2006-01-02 15:04:05"))},
		"goes on after it stood still":  {progress, []string{"10%", "20%", "30%", "40%", "", "", "", "50%"}, fmt.Sprintf(" Expected end: %s to %s UTC, by the average pace so far (50%%).", clock(8+0.9*8.75), clock(8+1.1*8.75+4))},
		"a bar for each epoch":          {progress, []string{"20%", "60%", "100%", "20%", "60%", "100%"}, "WentBack No estimate of the end: the program printed less progress than before, so that it is not that of the whole job."},
		"slower than can be estimated":  {progress, []string{"1e-5%", "2e-5%", "3e-5%", "4e-5%"}, "TooEarly No estimate of the end: the progress is too short to extrapolate (0%)."},
		"all is done, the job goes on":  {progress, []string{"40%", "60%", "80%", "100%"}, fmt.Sprintf(" Expected end: %s to %s UTC, by the average pace so far (100%%).", clock(4), clock(5))},
		"all was done some minutes ago": {progress, []string{"40%", "60%", "80%", "100%", "", ""}, fmt.Sprintf("StandsStill No estimate of the end: no progress since %s UTC (100%%).", start.Add(4*time.Minute).UTC().Format("2006-01-02 15:04:05"))},
	} {
		t.Run(name, func(t *testing.T) {
			h := &history{t: t, job: job(2)}
			h.pass(0, pods(h.job, corev1.PodRunning, 0), jobstate.Evidence{})
			for i, text := range test.prints {
				after := time.Duration(i+1) * time.Minute
				var evidence jobstate.Evidence
				if text != "" {
					evidence.Training = test.kind(text)
					evidence.Training.At = metav1.NewTime(start.Add(after))
				}
				h.pass(after, pods(h.job, corev1.PodRunning, 0), evidence)
			}
			got := ""
			if e := h.last.Status.EndEstimate; e != nil {
				got = e.Reason + " " + e.Message
				if isKnown := e.Reason == ""; (e.From != nil) != isKnown || (e.By != nil) != isKnown || isKnown && !e.From.Before(e.By) {
					t.Errorf("its limits are %v and %v", e.From, e.By)
				}
			}
			if want := strings.Replace(test.want, "end: ", "end: "+start.UTC().Format(time.DateOnly)+" ", 1); got != test.want && got != want {
				t.Errorf("(-want +got)\n%s", cmp.Diff(want, got))
			}
		})
	}
}

// TestEndEstimateOfEachRun: an estimate begins anew when the job is resumed, or its launcher is started again, and ends with the job.
func TestEndEstimateOfEachRun(t *testing.T) {
	h := &history{t: t, job: job(2)}
	minute := 0
	pass := func(percent int, seen jobstate.Observed) *v1alpha1.EndEstimate {
		minute++
		after := time.Duration(minute) * time.Minute
		var evidence jobstate.Evidence
		if percent > 0 {
			evidence.Training = v1alpha1.Training{Progress: strconv.Itoa(percent) + "%", At: metav1.NewTime(mpitest.Now.Add(after))}
		}
		return h.pass(after, seen, evidence).Status.EndEstimate
	}
	running := pods(h.job, corev1.PodRunning, 0)
	var last *v1alpha1.EndEstimate
	for _, percent := range []int{10, 20, 30, 40} {
		last = pass(percent, running)
	}
	if last == nil || last.By == nil {
		t.Fatalf("there is no estimate: %+v", last)
	}
	again := pods(h.job, corev1.PodRunning, 0)
	again.Restarts = 1
	if got := pass(0, again); got == nil || got.By != nil || got.Reason != "TooEarly" {
		t.Errorf("before the next attempt has printed anything: %+v", got)
	}
	if got := pass(5, again); got == nil || got.Reason != "TooEarly" || got.First != 50_000 {
		t.Errorf("after the next attempt has printed something: %+v", got)
	}
	h.job.Lifecycle.Suspended = true
	if got := pass(0, jobstate.Observed{}); got != nil {
		t.Errorf("a suspended job has %+v", got)
	}
	h.job.Lifecycle.Suspended = false
	if got := pass(0, again); got != nil {
		t.Errorf("a resumed job that printed nothing has %+v", got)
	}
	if got := pass(3, again); got == nil || got.Reason != "TooEarly" {
		t.Errorf("a resumed job has %+v", got)
	}
	if got := pass(9, ended(again, h.job, batchv1.JobComplete, 10*time.Minute)); got != nil {
		t.Errorf("a job that has ended has %+v", got)
	}
}

// TestEndEstimateIsWritten: a report is written when there is no estimate any more, and not for each that differs a little.
func TestEndEstimateIsWritten(t *testing.T) {
	h := &history{t: t, job: job(2)}
	before := h.pass(0, pods(h.job, corev1.PodRunning, 0), jobstate.Evidence{})
	before.Status.EndEstimate = &v1alpha1.EndEstimate{Message: "a"}
	for reason, want := range map[string]bool{"": false, "StandsStill": true} {
		next := *before.DeepCopy()
		next.Status.EndEstimate = &v1alpha1.EndEstimate{Reason: reason, Message: "b"}
		if got := report.Changed(before, next); got != want {
			t.Errorf("with the reason %q it is written: %t", reason, got)
		}
	}
}
