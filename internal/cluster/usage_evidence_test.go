package cluster

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/mpitest"
)

func TestLastUsage(t *testing.T) {
	t.Parallel()
	const (
		first  = `{"time":"2026-01-02T10:00:00Z","level":"INFO","msg":"usage","logger":"mpi-agent","usage":{"start":0,"step":10,"since":1,"until":10,"metrics":null}}` + "\n"
		second = `{"time":"2026-01-02T10:01:00Z","level":"INFO","msg":"usage","logger":"mpi-agent","usage":{"start":0,"step":10,"since":1,"until":70,"metrics":null}}` + "\n"
		other  = `{"time":"2026-01-02T10:01:01Z","level":"INFO","msg":"started","logger":"mpi-agent","pid":7}` + "\n"
	)
	for name, test := range map[string]struct {
		log  string
		want int64
	}{
		"none":                             {other + other, -1},
		"empty":                            {"", -1},
		"a line break":                     {"\n", -1},
		"the last one":                     {first + other + second + other, 70},
		"the last line":                    {first + second, 70},
		"without a line break":             {other + strings.TrimSpace(first), 10},
		"a line that is cut":               {first + second[:len(second)/2], 10},
		"of another program":               {first + strings.Replace(second, "mpi-agent", "mine", 1), 10},
		"with numbers that are none":       {first + strings.Replace(second, "70", `"many"`, 1), 10},
		"with another object in its place": {first + strings.Replace(second, `"until":70`, `"until":[]`, 1), 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			switch got := lastUsage([]byte(test.log)); {
			case got == nil && test.want >= 0, got != nil && got.Until != test.want:
				t.Errorf("%+v, want until %d", got, test.want)
			}
		})
	}
}

func TestWithoutUsage(t *testing.T) {
	t.Parallel()
	const (
		used  = `{"time":"2026-01-02T10:00:00Z","level":"INFO","msg":"usage","logger":"mpi-agent","usage":{"start":0,"step":10,"since":1,"until":10,"metrics":null}}` + "\n"
		other = `{"msg":"usage","of":"the program"}` + "\n"
	)
	for log, want := range map[string]string{"": "", "a\nb": "a\nb", used + "a\n" + used + other + "b": "a\n" + other + "b", used: ""} {
		if got := string(withoutUsage([]byte(log))); got != want {
			t.Errorf("%q: %q, want %q", log, got, want)
		}
	}
}

// timedLine is a line of a log, and how long ago it was written.
type timedLine struct {
	ago  time.Duration
	text string
}

// serveLog returns what a kubelet does of a log: of the last lines, the first bytes of those that are young enough.
func serveLog(w http.ResponseWriter, r *http.Request, lines []timedLine) {
	number := func(name string, otherwise int) int {
		if n, err := strconv.Atoi(r.URL.Query().Get(name)); err == nil {
			return n
		}
		return otherwise
	}
	lines = lines[max(0, len(lines)-number("tailLines", len(lines))):]
	text := ""
	for _, line := range lines {
		if line.ago <= time.Duration(number("sinceSeconds", 1<<30))*time.Second {
			text += line.text
		}
	}
	_, _ = w.Write([]byte(text[:min(len(text), number("limitBytes", len(text)))]))
}

// TestUsageIsTheLatest: the usage of a job that has run for a day is its latest one, however long the log of its worker is.
func TestUsageIsTheLatest(t *testing.T) {
	t.Parallel()
	used := func(minute int) string {
		return fmt.Sprintf(`{"time":"2026-01-02T10:00:00Z","level":"INFO","msg":"usage","logger":"mpi-agent","usage":{"start":0,"step":10,"since":1,"until":%d,"metrics":[{"metric":"CPU","points":[%s0]}]}}`+"\n",
			60*minute, strings.Repeat("10000,", 2500))
	}
	const other = `{"time":"2026-01-02T10:01:01Z","level":"INFO","msg":"started","logger":"mpi-agent","pid":7}` + "\n"
	// reports are those of a job that has run for minutes, as often as agents report.
	reports := func(minutes int) (lines []timedLine) {
		for minute := 1; minute <= minutes; minute += int(agentapi.UsagePause(time.Duration(minute)*time.Minute) / time.Minute) {
			lines = append(lines, timedLine{time.Duration(minutes-minute) * time.Minute, used(minute)})
		}
		return lines
	}
	for name, test := range map[string]struct {
		lines []timedLine
		want  int64
	}{
		"the first minutes":                 {reports(3), 180},
		"a day":                             {reports(1440), 86400},
		"a day, and lines of many sessions": {append(reports(1440), slices.Repeat([]timedLine{{0, other}}, 900)...), 86400},
		"nothing for an hour":               {[]timedLine{{time.Hour, used(7)}}, -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { serveLog(w, r, test.lines) }))
			t.Cleanup(server.Close)
			core, err := typedcore.NewForConfig(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			job := mpitest.Job(2)
			got := NewGatherer(nil, core, logs.Masker{}, clock.RealClock{}).Usage(t.Context(), job, jobstate.Observed{Workers: mpitest.Workers(job, corev1.PodRunning)})
			until := int64(-1)
			if got != nil {
				until = got.Until
			}
			if until != test.want {
				t.Errorf("until %d, want %d", until, test.want)
			}
		})
	}
}
