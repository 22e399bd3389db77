package reporting

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/report"
)

// TestLogsAreReadOnce: the logs of a job are read when it ends, and kept until its report is written, although the pods are gone by then.
func TestLogsAreReadOnce(t *testing.T) {
	t.Parallel()
	reads := 0
	read := func(context.Context, mpi.Job, jobstate.Observed, int) *v1alpha1.Logs {
		reads++
		return &v1alpha1.Logs{Data: []byte("x"), Size: 1}
	}
	r := &Reporter{jobLogs: newJobLogs(100, read), usage: newUsageReader(nil)}
	job := mpitest.Job(1)
	seen := jobstate.Observed{Now: mpitest.Now, Workers: mpitest.Workers(job, corev1.PodRunning)}
	ended := jobstate.Outcome{Finish: &mpi.Finish{At: mpitest.Now}}
	reported := func(ago time.Duration, logs *v1alpha1.Logs) *v1alpha1.JobReport {
		return &v1alpha1.JobReport{Status: v1alpha1.JobReportStatus{CompletionTime: new(metav1.NewTime(mpitest.Now.Add(-ago))), Logs: logs}}
	}
	for _, step := range []struct {
		name     string
		out      jobstate.Outcome
		seen     jobstate.Observed
		previous *v1alpha1.JobReport
		reads    int
	}{
		{"a running job", jobstate.Outcome{}, seen, nil, 0},
		{"a job whose pods are gone", ended, jobstate.Observed{Now: mpitest.Now}, nil, 0},
		{"a job that ended long ago", ended, seen, reported(time.Hour, nil), 0},
		{"a report with logs", ended, seen, reported(0, &v1alpha1.Logs{}), 0},
		{"a job that ends", ended, seen, nil, 1},
		{"the next try to write the report", ended, seen, nil, 1},
		{"the next operator", ended, seen, reported(time.Second, nil), 1},
	} {
		r.ReadLogs(t.Context(), job, step.seen, step.out, step.previous)
		if reads != step.reads {
			t.Errorf("%s: logs were read %d times, want %d", step.name, reads, step.reads)
		}
	}
	r.jobLogs.forget(job.UID, jobstate.Outcome{})
	if r.jobLogs.of(job.UID, ended) == nil || r.jobLogs.of(job.UID, jobstate.Outcome{}) != nil {
		t.Error("the logs are not kept, or are those of a job that runs")
	}
	r.jobLogs.forget(job.UID, ended)
	if r.jobLogs.of(job.UID, ended) != nil || r.jobLogs.bytes != 0 {
		t.Errorf("logs are kept after they were written: %d bytes", r.jobLogs.bytes)
	}
	// JobSet deletes the workers of a TrainJob when the launcher has ended, before the TrainJob has.
	job.External, job.UID = true, "train"
	for _, try := range []struct {
		launcher corev1.PodPhase
		number   int
		out      jobstate.Outcome
		reads    int
	}{
		{corev1.PodRunning, 0, jobstate.Outcome{}, 1},
		{corev1.PodFailed, 0, jobstate.Outcome{}, 2},
		{corev1.PodFailed, 0, jobstate.Outcome{}, 2},
		{corev1.PodSucceeded, 1, jobstate.Outcome{}, 3},
		{corev1.PodSucceeded, 1, ended, 3},
	} {
		seen.LauncherPods = []*corev1.Pod{mpitest.LauncherPod(job, try.number, try.launcher, func(pod *corev1.Pod) { pod.UID = types.UID(pod.Name) })}
		if r.ReadLogs(t.Context(), job, seen, try.out, nil); reads != try.reads {
			t.Errorf("try %d of a TrainJob's launcher is %s: logs were read %d times, want %d", try.number, try.launcher, reads, try.reads)
		}
	}
	r.jobLogs.most = 0
	if r.ReadLogs(t.Context(), job, seen, ended, nil); reads != 3 {
		t.Error("logs are read although none are kept")
	}
	if CheckLogBytes(0) != nil || CheckLogBytes(512<<10) != nil || CheckLogBytes(-1) == nil || CheckLogBytes(512<<10+1) == nil {
		t.Error("wrong limits are allowed")
	}
}

// withLogs returns a report as the cache has it: without the logs, but with their size.
func withLogs(r *v1alpha1.JobReport) *v1alpha1.JobReport {
	r.Status.Logs = &v1alpha1.Logs{Size: 48 << 10, Lines: 9}
	return r
}

// TestLogsAreDeletedBeforeReports: if reports take too much, the oldest logs go first, and no report as long as there are logs.
func TestLogsAreDeletedBeforeReports(t *testing.T) {
	t.Parallel()
	succeeded, failed := v1alpha1.PhaseSucceeded, v1alpha1.PhaseFailed
	reports := []v1alpha1.JobReport{
		*withLogs(finishedReport("ns", 1, failed)), *withLogs(finishedReport("ns", 2, succeeded)), *withLogs(finishedReport("ns", 3, succeeded)), *finishedReport("ns", 4, succeeded),
	}
	for name, test := range map[string]struct {
		limits           Limits
		doomed, stripped string
	}{
		"room for all":          {Limits{Bytes: 1 << 20}, "", ""},
		"room for two logs":     {Limits{Bytes: 170 << 10}, "", "job-000002"},
		"room for one log":      {Limits{Bytes: 100 << 10}, "", "job-000002 job-000003"},
		"room for no log":       {Limits{Bytes: 20 << 10}, "", "job-000002 job-000003 job-000001"},
		"room for two reports":  {Limits{Bytes: 6 << 10}, "job-000002 job-000003", "job-000001"},
		"two reports with logs": {Limits{Reports: 2, Bytes: 100 << 10}, "job-000002 job-000003", ""},
	} {
		doomed, stripped := test.limits.surplus(reports)
		if got, want := namesOf(doomed)+"/"+namesOf(stripped), test.doomed+"/"+test.stripped; got != want {
			t.Errorf("%s: reports and logs of %s are deleted, want %s", name, got, want)
		}
	}
}

func namesOf(reports []*v1alpha1.JobReport) string {
	var names []string
	for _, r := range reports {
		names = append(names, r.Name)
	}
	return strings.Join(names, " ")
}

func TestDeleteLogs(t *testing.T) {
	t.Parallel()
	scheme := apiruntime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	r := withLogs(finishedReport("ns", 1, v1alpha1.PhaseSucceeded))
	r.UID, r.Status.Logs.Data = "1", []byte("data")
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(r).Build()
	var found v1alpha1.JobReport
	get := func() v1alpha1.JobReportStatus {
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(r), &found); err != nil {
			t.Fatal(err)
		}
		return found.Status
	}
	get()
	l := newReportLimiter(Limits{}, api, func(string) {})
	if err := l.deleteLogs(t.Context(), &found); err != nil {
		t.Fatal(err)
	}
	status := get()
	if logs := status.Logs; logs == nil || logs.Data != nil || logs.Size != 0 || logs.Lines != 9 || !strings.Contains(logs.Omitted, "--max-report-bytes") {
		text, _ := json.Marshal(logs)
		t.Errorf("the logs are %s", text)
	}
	if status.Phase != v1alpha1.PhaseSucceeded {
		t.Errorf("the phase is %q", status.Phase)
	}
	if sum := sumOf(&found); report.LogSize(&found) != 0 || sum.bytes == 0 {
		t.Errorf("the report counts %d bytes, %d of them for logs", sum.bytes, report.LogSize(&found))
	}
}
