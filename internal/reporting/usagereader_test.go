package reporting

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

// TestUsageIsReadWhenDue: the usage of a job is read when its agents have reported it, less often if it has run for long, and not while
// as many others are being read as may be.
func TestUsageIsReadWhenDue(t *testing.T) {
	t.Parallel()
	reads := 0
	reader := newUsageReader(func(context.Context, mpi.Job, jobstate.Observed) *agentapi.Usage {
		reads++
		return &agentapi.Usage{Until: int64(reads)}
	})
	job := mpitest.Job(2)
	seen := jobstate.Observed{Workers: mpitest.Workers(job, corev1.PodRunning)}
	for _, step := range []struct {
		after time.Duration
		want  bool
		next  time.Duration
	}{
		{0, false, launchTime},
		{launchTime + time.Second, true, firstUsage - launchTime - time.Second},
		{time.Minute, false, 15 * time.Second},
		{80 * time.Second, true, time.Minute},
		{100 * time.Second, false, 40 * time.Second},
		{141 * time.Second, true, time.Minute},
		{time.Hour, true, 5 * time.Minute},
		{time.Hour + 4*time.Minute, false, time.Minute},
		{time.Hour + 5*time.Minute, true, 5 * time.Minute},
	} {
		seen.Now = mpitest.Now.Add(step.after)
		if got, next := reader.readIfDue(t.Context(), job, seen); (got != nil) != step.want || next != step.next {
			t.Errorf("after %s: %+v, next after %s", step.after, got, next)
		}
	}
	seen.Now = mpitest.Now.Add(2 * time.Hour)
	for range maxReaders {
		reader.slots <- struct{}{}
	}
	if got, next := reader.readIfDue(t.Context(), job, seen); got != nil || next != usageRetry {
		t.Errorf("while too many others are read: %+v, next after %s", got, next)
	}
	<-reader.slots
	if got, _ := reader.readIfDue(t.Context(), job, seen); got == nil {
		t.Error("it is not read afterwards")
	}
	reader.forget(job.UID)
	if got, _ := reader.readIfDue(t.Context(), job, seen); got != nil {
		t.Error("a job that begins to run is read at once")
	}
	seen.Now = seen.Now.Add(time.Hour)
	for name, other := range map[string]mpi.Job{"no agent": mpitest.Job(2, func(j *mpi.Job) { j.Launch = mpi.LaunchSSHD })} {
		other.UID = "other"
		reader.readIfDue(t.Context(), other, seen)
		seen.Now = seen.Now.Add(time.Hour)
		if got, next := reader.readIfDue(t.Context(), other, seen); got != nil || next != 0 {
			t.Errorf("%s: the usage is read", name)
		}
	}
}

// TestWarningsFollowTheLatestUsage: a job that has run for days is warned of what its agents have just reported, although its report is seldom
// written for its usage alone, and no more when it is over.
func TestWarningsFollowTheLatestUsage(t *testing.T) {
	t.Parallel()
	r := reporterFor(apiWithReports(t))
	var latest *agentapi.Usage
	r.usage = newUsageReader(func(context.Context, mpi.Job, jobstate.Observed) *agentapi.Usage { return latest })
	job := mpitest.Job(2)
	seen := jobstate.Observed{Workers: mpitest.Workers(job, corev1.PodRunning), LauncherPods: []*corev1.Pod{mpitest.LauncherPod(job, 0, corev1.PodRunning)}}
	const ran = 100 * time.Hour
	for _, worker := range seen.Workers {
		worker.Pod.CreationTimestamp = metav1.NewTime(mpitest.Now.Add(-ran))
	}
	r.usage.jobs[job.UID] = usageState{first: mpitest.Now.Add(-ran), due: mpitest.Now}
	for i, step := range []struct {
		recent int64
		isRead bool
		want   bool
	}{{0, true, false}, {500, true, true}, {500, true, true}, {500, false, true}, {10, true, false}, {10, false, false}} {
		seen.Now = mpitest.Now.Add(time.Duration(i) * agentapi.MaxUsagePause)
		if latest = nil; step.isRead {
			since := mpitest.Now.Add(-ran).Unix()
			latest = &agentapi.Usage{
				Since: since, Start: since - since%5120, Step: 5120, Until: seen.Now.Unix(), PodCount: 2,
				Metrics: []agentapi.MetricUsage{{Metric: agentapi.MetricCPU, Mean: 1}},
				Pods:    []agentapi.PodUsage{{Host: job.WorkerName(1), Metrics: []agentapi.MetricUsage{{Metric: agentapi.MetricThrottled, Mean: 5, Recent: &step.recent}}}},
			}
		}
		if err := updateRunning(t, r, job, seen); err != nil {
			t.Fatal(err)
		}
		report, err := r.Report(t.Context(), job)
		if err != nil || report.Status.Usage == nil {
			t.Fatalf("the report is %+v: %v", report, err)
		}
		if got := slices.ContainsFunc(report.Status.Findings, func(f v1alpha1.Finding) bool { return f.Code == codes.CPUThrottled && f.Pod == job.WorkerName(1) }); got != step.want {
			t.Errorf("step %d: it is warned: %v, want %v: %+v", i, got, step.want, report.Status.Findings)
		}
	}
}

// TestUsageOfTheEnd: the report of a job that has ended has what its agents reported last: it is read again before the pods are deleted, once, and
// if that fails, it is what was read last while the job ran.
func TestUsageOfTheEnd(t *testing.T) {
	t.Parallel()
	const ran, ends = 10 * time.Hour, 10*time.Hour + 30*time.Minute
	for name, test := range map[string]struct {
		last bool
		want time.Duration
	}{
		"the launcher's agent has reported the end": {true, ends}, "the launcher was killed, and the log is gone": {false, ends - 5*time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := reporterFor(apiWithReports(t))
			var latest *agentapi.Usage
			reads := 0
			r.usage = newUsageReader(func(context.Context, mpi.Job, jobstate.Observed) *agentapi.Usage {
				reads++
				return latest
			})
			job := mpitest.Job(2)
			seen := jobstate.Observed{Workers: mpitest.Workers(job, corev1.PodRunning), LauncherPods: []*corev1.Pod{mpitest.LauncherPod(job, 0, corev1.PodRunning)}}
			seen.LauncherPods[0].UID = "try"
			for _, worker := range seen.Workers {
				worker.Pod.CreationTimestamp = metav1.NewTime(mpitest.Now.Add(-ran))
			}
			begin := mpitest.Now.Add(-ran)
			reports := func(until time.Duration) *agentapi.Usage {
				return &agentapi.Usage{
					Since: begin.Unix(), Start: begin.Unix() - begin.Unix()%640, Step: 640, Until: begin.Add(until).Unix(), PodCount: 2,
					Metrics: []agentapi.MetricUsage{{Metric: agentapi.MetricCPU, Mean: 1}},
				}
			}
			r.usage.jobs[job.UID] = usageState{first: begin, due: begin}
			// The report is not written for the second one alone.
			for _, until := range []time.Duration{ran, ends - 5*time.Minute} {
				latest, seen.Now = reports(until), begin.Add(until)
				if err := updateRunning(t, r, job, seen); err != nil {
					t.Fatal(err)
				}
			}
			if latest = nil; test.last {
				latest = reports(ends)
			}
			reads, seen.Now = 0, begin.Add(ends)
			seen.LauncherPods = []*corev1.Pod{mpitest.LauncherPod(job, 0, corev1.PodSucceeded)}
			seen.LauncherPods[0].UID = "try"
			out := jobstate.Outcome{Phase: v1alpha1.PhaseSucceeded, Finish: &mpi.Finish{Succeeded: true, At: seen.Now}}
			previous, err := r.Report(t.Context(), job)
			if err != nil {
				t.Fatal(err)
			}
			for range 3 { // until the report is written
				r.ReadLogs(t.Context(), job, seen, out, previous)
			}
			seen.Workers = nil
			if _, err := r.Update(t.Context(), &kubeflow.MPIJob{}, job, seen, nil, out, previous); err != nil {
				t.Fatal(err)
			}
			report, err := r.Report(t.Context(), job)
			if err != nil || !report.Status.Usage.Until.Time.Equal(begin.Add(test.want)) {
				t.Errorf("the usage ends at %s after %d reads, want %s: %v", report.Status.Usage.Until.Sub(begin), reads, test.want, err)
			}
			r.ReadLogs(t.Context(), job, seen, out, report)
			if _, err := r.Update(t.Context(), &kubeflow.MPIJob{}, job, seen, nil, out, report); err != nil || reads != 1 || len(r.usage.jobs) > 0 {
				t.Errorf("it was read %d times, and is kept of %d jobs: %v", reads, len(r.usage.jobs), err)
			}
		})
	}
}

// TestOutdatedUsage: warnings do not follow from a usage that has not been reported for long. An operator that has just started has not read it yet.
func TestOutdatedUsage(t *testing.T) {
	t.Parallel()
	reader := newUsageReader(nil)
	job, seen := mpitest.Job(2), jobstate.Observed{Now: mpitest.Now}
	for _, test := range []struct {
		age, watched time.Duration
		jobs         int
		want         bool
	}{
		{14 * time.Minute, time.Hour, 1, true},
		{16 * time.Minute, time.Hour, 1, false},
		{16 * time.Minute, time.Minute, 1, true},
		// With so many jobs, each is read less often.
		{16 * time.Minute, time.Hour, 3000, true},
		{31 * time.Minute, time.Hour, 3000, false},
	} {
		reader.jobs = map[types.UID]usageState{job.UID: {first: mpitest.Now.Add(-test.watched)}}
		for i := range test.jobs - 1 {
			reader.jobs[types.UID(strconv.Itoa(i))] = usageState{}
		}
		previous := &v1alpha1.JobReport{Status: v1alpha1.JobReportStatus{Usage: &v1alpha1.Usage{Until: metav1.NewTime(mpitest.Now.Add(-test.age))}}}
		if got, _ := reader.usedSoFar(job, seen, previous); (got != nil) != test.want {
			t.Errorf("%+v: %+v", test, got)
		}
	}
}
