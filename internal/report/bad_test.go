package report_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/report"
)

// bounded checks what holds of every record, whatever it was made from.
func bounded(t *testing.T, made *v1alpha1.JobReport) {
	t.Helper()
	data, err := json.Marshal(made)
	if err != nil {
		t.Fatal(err)
	}
	if len(data) > report.MaxSize {
		t.Errorf("the report has %d bytes, of which %d are allowed", len(data), report.MaxSize)
	}
	// What is no UTF-8 has become U+FFFD on its way through the API.
	if !utf8.Valid(data) || strings.ContainsRune(string(data), utf8.RuneError) {
		t.Error("the report is no UTF-8")
	}
	for _, bad := range []string{"\u009b", "\u202e", `\u001b`, `\u0000`, `\u0007`, `\r`} {
		if strings.Contains(string(data), bad) {
			t.Errorf("the report holds the control character %s", bad)
		}
	}
	for i, entry := range made.Status.Timeline {
		if i > 0 && entry.Time.Before(&made.Status.Timeline[i-1].Time) {
			t.Errorf("entry %d of the timeline is before the one before: %v", i, made.Status.Timeline)
		}
	}
	for _, phase := range made.Status.PhaseTimes {
		if phase.Seconds < 0 {
			t.Errorf("the job was %s for %d s", phase.Phase, phase.Seconds)
		}
	}
}

// TestBadInputGivesAGoodReport: what programs write, clocks say and a cluster holds is not under anybody's control.
func TestBadInputGivesAGoodReport(t *testing.T) {
	dice := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 4<<20)
	for i := range noise {
		noise[i] = byte(dice.UintN(256))
	}
	writes := func(text string) func(*history) {
		return func(h *history) {
			h.pass(0, pods(h.job, corev1.PodRunning, 0), jobstate.Evidence{})
			seen := ended(pods(h.job, corev1.PodRunning, 0), h.job, batchv1.JobFailed, time.Minute)
			seen.LauncherPods[0].Status.Phase = corev1.PodFailed
			mpitest.Exited(1, "Error")(seen.LauncherPods[0])
			lines := logs.Masker{}.Lines(logs.Tail([]byte(text), jobstate.MaxLogLines))
			evidence := jobstate.Evidence{Logs: map[string]jobstate.Log{seen.LauncherPods[0].Name: {Lines: lines, LastAt: mpitest.Now}}}
			if told, found := logs.LastTraining(lines); found {
				evidence.Training = told
			}
			h.pass(time.Minute, seen, evidence)
		}
	}
	tests := map[string]func(*history){
		"no pods ever": func(h *history) {
			for hour := range 100 {
				h.pass(time.Duration(hour)*time.Hour, jobstate.Observed{}, jobstate.Evidence{})
			}
		},
		"clock goes back and forth": func(h *history) {
			for i, after := range []time.Duration{0, time.Hour, -30 * 24 * time.Hour, time.Minute, 50 * 365 * 24 * time.Hour, -time.Hour} {
				phase := corev1.PodPending
				if i%2 == 1 {
					phase = corev1.PodRunning
				}
				h.pass(after, pods(h.job, phase, after/2), jobstate.Evidence{})
			}
			h.pass(0, ended(pods(h.job, corev1.PodRunning, time.Hour), h.job, batchv1.JobFailed, -time.Hour), jobstate.Evidence{})
		},
		"a line of 10 MB":         writes(strings.Repeat("x", 10<<20)),
		"a line of 10 MB of é":    writes("a" + strings.Repeat("é", 5<<20)),
		"lines of 10 MB":          writes(strings.Repeat(strings.Repeat("loss=1 ", 1<<20)+"\n", 2)),
		"what costs most as JSON": writes(strings.Repeat(strings.Repeat("\x01<>&\"\\\u2028", 1000)+"\n", 1000)),
		"binary":                  writes(string(noise)),
		"no line ever ends":       writes(strings.Repeat("step=1\r", 1<<20)),
		"ANSI":                    writes(strings.Repeat("\x1b[1;31mError\x1b[0m \x1b]0;title\x07 \x1b[2K\rloss=0.1\x1b[A\n", 1000)),
		"cut within ANSI":         writes("\x1b[38;5;1" + strings.Repeat("9", 1<<20)),
		"terminal's worst":        writes("\x9b31m\x90q\x9c\u202e\u0000\x1b"),
		"figures that are none":   writes(`{"loss": NaN, "epoch": 1e999, "step": {"a":` + strings.Repeat("[", 1<<20) + "\nloss=" + strings.Repeat("9", 1<<20)),
		"flood of events": func(h *history) {
			seen := pods(h.job, corev1.PodPending, 0)
			var events []jobstate.Event
			for i := range 10000 {
				pod := seen.Workers[i%len(seen.Workers)].Pod
				events = append(events, jobstate.Event{
					Kind: "Pod", Name: pod.Name, Warning: i%2 == 0, Reason: "FailedScheduling", Count: int32(i), Last: mpitest.Now,
					Message: fmt.Sprintf("%d\xff\x1b[31m %s", i, strings.Repeat("no room ", 200)),
				})
			}
			h.pass(10*time.Minute, seen, jobstate.Evidence{Events: events})
		},
		"reasons that no one gives": func(h *history) {
			long := strings.Repeat("\xff\x1b[31m\u009b31m\u202e\"<é", 10000)
			seen := pods(h.job, corev1.PodRunning, 0)
			for i, worker := range seen.Workers {
				worker.Pod.Status.Reason, worker.Pod.Status.Message, worker.Pod.Spec.NodeName = long, long, strings.Repeat("n", 253)
				worker.Pod.Status.Phase = []corev1.PodPhase{corev1.PodFailed, corev1.PodPending}[i%2]
				mpitest.Waiting(long, long)(worker.Pod)
			}
			h.pass(0, seen, jobstate.Evidence{Refusals: []jobstate.Refusal{{Kind: "Pod", Name: "x", Message: long}}})
		},
	}
	for name, play := range tests {
		t.Run(name, func(t *testing.T) {
			h := &history{t: t, job: job(1000)}
			play(h)
			bounded(t, h.last)
		})
	}
}
