package cluster_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"opendatahub.io/mpijob/internal/cluster"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/mpitest"
)

// TestLogsOfAnyKindAreReadInBounds: whatever a program writes and however long the kubelet goes on sending, what is kept
// of it is short, clean and there in time.
func TestLogsOfAnyKindAreReadInBounds(t *testing.T) {
	t.Parallel()
	const stamp = "2026-01-02T03:04:05.678Z "
	noise := make([]byte, 1<<20)
	dice := rand.New(rand.NewPCG(1, 2))
	for i := range noise {
		noise[i] = byte(dice.UintN(256))
	}
	always := func(line []byte) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := w.Write(line); err != nil {
					return
				}
			}
		}
	}
	once := func(text ...string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(strings.Join(text, ""))) }
	}
	tests := map[string]struct {
		send func(http.ResponseWriter, *http.Request)
		// last is how the last line must end; anything where it is empty.
		last string
	}{
		"a line of 10 MB before the last":  {once(stamp, strings.Repeat("x", 10<<20), "\n", stamp, "the cause\n"), "the cause"},
		"a secret in a line of 10 MB":      {once(stamp, "password=hunter2hunter2 ", strings.Repeat("x", 10<<20), "\n", stamp, "the cause\n"), "the cause"},
		"binary":                           {once(stamp, string(noise), "\n", stamp, "the cause\n"), "the cause"},
		"ANSI":                             {once(strings.Repeat(stamp+"\x1b[31mred\x1b[0m\x1b[2K\r\x07\n", 500), stamp, "\x1b[1mthe cause\x1b[0m\n"), "the cause"},
		"lines without end, for ever":      {always([]byte(stamp + "more\n")), ""},
		"a line that never ends, for ever": {always(bytes.Repeat([]byte("x"), 64<<10)), ""},
		"nothing, for ever":                {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(test.send))
			t.Cleanup(server.Close)
			pods, err := typedcore.NewForConfig(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			job := mpitest.Job(1)
			pod := mpitest.LauncherPod(job, 0, corev1.PodFailed)
			mpitest.Exited(1, "Error")(pod)
			seen := jobstate.Observed{LauncherPods: []*corev1.Pod{pod}, Now: mpitest.Now}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			evidence := cluster.NewGatherer(mpitest.FakeAPI().Build(), pods, logs.Masker{}, clock.RealClock{}).Gather(ctx, job, seen, nil)
			if ctx.Err() != nil {
				t.Fatal("evidence was waited for longer than a minute")
			}
			lines := evidence.Logs[pod.Name].Lines
			text := strings.Join(lines, "\n")
			if len(lines) > jobstate.MaxLogLines || len(text) > jobstate.MaxLogLines<<10 {
				t.Errorf("%d lines with %d bytes are kept", len(lines), len(text))
			}
			if !utf8.ValidString(text) || strings.ContainsAny(text, "\x1b\x07\r\x00") {
				t.Error("what is kept is not clean")
			}
			if strings.Contains(text, "hunter2") {
				t.Error("a secret is kept")
			}
			if test.last != "" && !strings.HasSuffix(text, test.last) {
				t.Errorf("the last line is not %q: %s", test.last, fmt.Sprintf("%.100q", lines[max(0, len(lines)-1):]))
			}
		})
	}
}
