package jobs_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/jobs"
)

func TestMetricText(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		metric v1alpha1.MetricName
		value  int64
		want   string
	}{
		{v1alpha1.MetricCPU, 0, "0 cores"},
		{v1alpha1.MetricCPU, 7, "0.01 cores"},
		{v1alpha1.MetricCPU, 1000, "1 core"},
		{v1alpha1.MetricCPU, 3812, "3.8 cores"},
		{v1alpha1.MetricCPU, 128000, "128 cores"},
		{v1alpha1.MetricGPU, 500, "0.5 GPUs"},
		{v1alpha1.MetricMemory, 0, "0 MiB"},
		{v1alpha1.MetricMemory, 900, "900 MiB"},
		{v1alpha1.MetricMemory, 2150, "2.1 GiB"},
		{v1alpha1.MetricGPUMemory, 3 << 20, "3 TiB"},
		{v1alpha1.MetricNetwork, 20480, "20 MiB/s"},
		{v1alpha1.MetricMajorFaults, 12, "12 /min"},
		{v1alpha1.MetricThrottled, 0, "0 %"},
		{v1alpha1.MetricThrottled, 3, "<1 %"},
		{v1alpha1.MetricIOPressure, 34, "3 %"},
		{v1alpha1.MetricIOPressure, 1000, "100 %"},
	} {
		if got := jobs.MetricText(test.metric, test.value); got != test.want {
			t.Errorf("%s %d: %q, want %q", test.metric, test.value, got, test.want)
		}
	}
}

func TestUsageText(t *testing.T) {
	t.Parallel()
	metric := func(name v1alpha1.MetricName, mean, most, limit int64) v1alpha1.UsageMetric {
		return v1alpha1.UsageMetric{Metric: name, Mean: mean, P95: most, Max: most, Limit: limit}
	}
	for name, test := range map[string]struct {
		usage *v1alpha1.Usage
		want  string
	}{
		"unknown": {nil, ""},
		"with limits": {
			&v1alpha1.Usage{Metrics: []v1alpha1.UsageMetric{metric(v1alpha1.MetricCPU, 3800, 4000, 4000), metric(v1alpha1.MetricMemory, 1000, 2150, 4096), metric(v1alpha1.MetricThrottled, 30, 500, 0)}},
			"CPU 3.8 of 4 cores on average, memory 2.1 of 4 GiB at most, throttled 3 % of the time (measured)",
		},
		"without limits": {
			&v1alpha1.Usage{Metrics: []v1alpha1.UsageMetric{metric(v1alpha1.MetricCPU, 3800, 4000, 0), metric(v1alpha1.MetricMemory, 1000, 2150, 0)}},
			"CPU 3.8 cores on average, memory 2.1 GiB at most (measured)",
		},
		"in other units": {
			&v1alpha1.Usage{Metrics: []v1alpha1.UsageMetric{metric(v1alpha1.MetricCPU, 1000, 1000, 2000), metric(v1alpha1.MetricMemory, 90, 100, 4096), metric(v1alpha1.MetricGPU, 250, 1000, 1000), metric(v1alpha1.MetricThrottled, 4, 500, 0)}},
			"CPU 1 of 2 cores on average, memory 100 MiB of 4 GiB at most, GPU 0.25 of 1 GPU on average (measured)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := jobs.UsageText(test.usage); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

func TestSparkline(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		points  []int64
		largest int64
		width   int
		want    string
	}{
		"none":                 {nil, 100, 10, ""},
		"from nothing to all":  {[]int64{0, 25, 50, 100}, 100, 10, "▁▃▅█"},
		"nothing measured":     {[]int64{100, -1, 100}, 100, 10, "█ █"},
		"more than the width":  {[]int64{0, 100, 100, 100, -1, 50}, 100, 3, "▅█▅"},
		"more than the limit":  {[]int64{500}, 100, 10, "█"},
		"always 0":             {[]int64{0, 0}, 0, 10, "▁▁"},
		"a width that is none": {[]int64{1, 2}, 2, 0, "▇"},
	} {
		if got := jobs.Sparkline(test.points, test.largest, test.width); got != test.want || utf8.RuneCountInString(got) > max(1, test.width) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestNoUsageText(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(-d)} }
	mpi := v1alpha1.MPIStatus{Implementation: "OpenMPI"}
	workers := v1alpha1.WorkersStatus{Wanted: 2}
	for name, test := range map[string]struct {
		status v1alpha1.JobReportStatus
		want   string
	}{
		"known":         {v1alpha1.JobReportStatus{Usage: &v1alpha1.Usage{}}, ""},
		"not yet":       {v1alpha1.JobReportStatus{MPI: mpi}, "a minute after the ranks have started"},
		"never ran":     {v1alpha1.JobReportStatus{MPI: mpi, CompletionTime: ago(0)}, "never ran"},
		"soon":          {v1alpha1.JobReportStatus{MPI: mpi, Workers: workers, RunningTime: ago(40 * time.Second)}, "has run for 40s: "},
		"too short":     {v1alpha1.JobReportStatus{MPI: mpi, RunningTime: ago(time.Hour), CompletionTime: ago(time.Hour - 5*time.Second)}, "ran for 5s, too short"},
		"no MPI":        {v1alpha1.JobReportStatus{RunningTime: ago(time.Hour)}, "only MPI jobs"},
		"launcher only": {v1alpha1.JobReportStatus{MPI: mpi, RunningTime: ago(time.Hour)}, "when the launcher ends"},
		"no agent":      {v1alpha1.JobReportStatus{MPI: mpi, Workers: workers, RunningTime: ago(time.Hour)}, "launch: sshd"},
		"ended without": {v1alpha1.JobReportStatus{MPI: mpi, Workers: workers, RunningTime: ago(time.Hour), CompletionTime: ago(0)}, "before it could report"},
	} {
		if got := jobs.NoUsageText(test.status, now); !strings.Contains(got, test.want) || (test.want == "") != (got == "") {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestCurveRows(t *testing.T) {
	t.Parallel()
	all := &v1alpha1.TrainingCurves{Figures: []v1alpha1.TrainingCurve{
		{Name: "loss", By: v1alpha1.CurveByStep, Width: 1, At: []int64{10, 20, 30, 40}, Values: []string{"2.5", "1.25", "0.5", "NaN"}},
		{Name: "accuracy", By: v1alpha1.CurveByEpoch, Width: 1, At: []int64{500}, Values: []string{"0.875"}},
		{Name: "rate", By: v1alpha1.CurveByTime, Width: 1, At: []int64{1_700_000_000}, Values: []string{"Inf"}},
		{Name: "empty", By: v1alpha1.CurveByStep, Width: 1},
	}}
	want := []jobs.CurveRow{
		{"loss", "2.5", "0.5", "2.5", "NaN", "step 40", "█▃▁ "},
		{"accuracy", "0.875", "0.875", "0.875", "0.875", "epoch 0.5", "▁"},
		{"rate", "+Inf", "-", "-", "+Inf", "2023-11-14T22:13:20Z", " "},
	}
	if diff := cmp.Diff(want, jobs.CurveRows(all, 24)); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if got := jobs.CurvesText(all); !strings.HasPrefix(got, "loss 2.5 to NaN █▃▁ , accuracy 0.875 to 0.875 ▁") {
		t.Errorf("in one line: %q", got)
	}
	if got := jobs.CurvesText(nil); got != "" {
		t.Errorf("without curves: %q", got)
	}
}
