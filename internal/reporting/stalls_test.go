package reporting

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

// TestStallsOutliveOutput: that ranks make no progress is found although the program prints more than is read of its log, until the agent reports
// that it is over, also by an operator that starts meanwhile.
func TestStallsOutliveOutput(t *testing.T) {
	t.Parallel()
	const (
		slower = "1 of 2 ranks wait for rank 1 (slower: pi-worker-1 is throttled 40 % of the time), since 10:00:00 UTC; mostly waiting: 0"
		gone   = "Rank 1 (train) ended by signal 11 (SIGSEGV), but 1 other rank still runs, since 10:00:00 UTC"
	)
	api := apiWithReports(t)
	job := mpitest.Job(2)
	start := metav1.NewTime(mpitest.Now.Add(-time.Hour))
	launcher := mpitest.LauncherPod(job, 0, corev1.PodRunning, func(pod *corev1.Pod) {
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: job.Launcher.Template.Spec.Containers[0].Name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: start}}}}
	})
	seen := jobstate.Observed{Now: mpitest.Now, Workers: mpitest.Workers(job, corev1.PodRunning), LauncherPods: []*corev1.Pod{launcher}}
	for _, worker := range seen.Workers {
		worker.Pod.CreationTimestamp = start
	}
	var log []string
	var stall *agentapi.Stall
	newReporter := func() *Reporter {
		r := reporterFor(api)
		r.listener = newLogReader(func(context.Context, mpi.Job, jobstate.Observed) jobstate.Evidence {
			return jobstate.Evidence{Logs: map[string]jobstate.Log{launcher.Name: {Lines: slices.Clone(log[max(0, len(log)-100):]), LastAt: seen.Now}}}
		}, 30*time.Second)
		r.usage = newUsageReader(func(context.Context, mpi.Job, jobstate.Observed) *agentapi.Usage {
			until := seen.Now.Unix()
			return &agentapi.Usage{Since: start.Unix(), Start: start.Unix() - start.Unix()%60, Step: 60, Until: until, PodCount: 2, Stall: stall, Metrics: []agentapi.MetricUsage{{Metric: agentapi.MetricCPU, Mean: 1}}}
		})
		return r
	}
	r := newReporter()
	// The launcher's agent writes into the log, and reports to a worker.
	writes := func(text string) {
		log = append(log, agentapi.StallPrefix+text)
		stall = agentapi.NewStall(seen.Now, []string{agentapi.StallPrefix + text})
	}
	prints := func() {
		for i := range 1000 {
			log = append(log, fmt.Sprintf("step %d", i))
		}
	}
	for _, step := range []struct {
		name  string
		after time.Duration
		does  func()
		want  string
	}{
		{"it begins", 0, prints, ""},
		{"a rank is slower", 2 * time.Minute, func() { writes(slower); prints() }, codes.Straggler},
		{"nothing is read", 3 * time.Second, prints, codes.Straggler},
		{"it still is", 2 * time.Minute, prints, codes.Straggler},
		{"another operator", 10 * time.Second, func() { r = newReporter() }, codes.Straggler},
		{"its log alone", 2 * time.Minute, func() { writes(slower); stall = nil }, codes.Straggler},
		{"it is over", 2 * time.Minute, func() { writes(agentapi.StallOver); prints() }, ""},
		{"a rank fails", 2 * time.Minute, func() { writes(gone); prints() }, codes.RankGone},
		{"over, and the report of that comes later", 2 * time.Minute, func() { before := stall; writes(agentapi.StallOver); stall = before }, ""},
		{"nothing is read, again", 3 * time.Second, prints, ""},
		{"of an earlier attempt", 2 * time.Minute, func() {
			writes(gone)
			prints()
			launcher.Status.ContainerStatuses[0].State.Running.StartedAt = metav1.NewTime(seen.Now.Add(time.Second))
		}, ""},
	} {
		seen.Now = seen.Now.Add(step.after)
		step.does()
		if err := updateRunning(t, r, job, seen); err != nil {
			t.Fatal(err)
		}
		report, err := r.Report(t.Context(), job)
		if err != nil || report == nil {
			t.Fatalf("%s: the report is %+v: %v", step.name, report, err)
		}
		got := ""
		if i := slices.IndexFunc(report.Status.Findings, func(f v1alpha1.Finding) bool { return f.Code == codes.Straggler || f.Code == codes.RankGone }); i >= 0 {
			got = report.Status.Findings[i].Code
		}
		if got != step.want {
			t.Errorf("%s: found %q, want %q: %+v", step.name, got, step.want, report.Status.Findings)
		}
	}
}
