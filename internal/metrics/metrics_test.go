package metrics_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
	_ "sigs.k8s.io/controller-runtime" // registers its metrics
	controllerruntime "sigs.k8s.io/controller-runtime/pkg/metrics"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/kueue"
	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/logstore"
	"opendatahub.io/mpijob/internal/metrics"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/report"
	"opendatahub.io/mpijob/internal/tracing"
)

// world is an operator that writes records, pass by pass.
type world struct {
	clock   *testclock.FakeClock
	metrics *metrics.Metrics
	records map[string]v1alpha1.JobReport
	quotas  []metrics.Quota
}

func newWorld() *world {
	w := &world{clock: testclock.NewFakeClock(mpitest.Now), records: map[string]v1alpha1.JobReport{}}
	return w.restart()
}

// restart loses what the operator knew, but for the records.
func (w *world) restart() *world {
	w.metrics = metrics.New(metrics.Sources{
		Records: func() []v1alpha1.JobReport {
			list := []v1alpha1.JobReport{}
			for _, record := range w.records {
				list = append(list, record)
			}
			return list
		},
		Quotas: func() []metrics.Quota { return w.quotas },
	}, w.clock)
	return w
}

func job(name string, change ...func(*mpi.Job)) mpi.Job {
	return mpitest.Job(2, append([]func(*mpi.Job){func(j *mpi.Job) {
		j.Name, j.UID = name, types.UID("0123456789-"+name)
		j.Workers.Template.Spec.Containers[0].Resources.Limits = corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("4Gi"), "nvidia.com/gpu": resource.MustParse("1"),
		}
	}}, change...)...)
}

// pass makes a pass over a job some time later, and writes its record if that says more.
func (w *world) pass(after time.Duration, job mpi.Job, seen jobstate.Observed) {
	w.clock.Step(after)
	seen.Now = w.clock.Now()
	outcome := jobstate.Judge(job, seen)
	w.write(job.ReportName(), func(previous *v1alpha1.JobReport) v1alpha1.JobReport {
		return report.Make(job, seen, jobstate.Evidence{}, outcome, diagnose.Job(job, seen, jobstate.Evidence{}, outcome), previous)
	})
}

func (w *world) write(name string, change func(*v1alpha1.JobReport) v1alpha1.JobReport) {
	var previous *v1alpha1.JobReport
	if known, has := w.records[name]; has {
		previous = &known
	}
	if next := change(previous); report.Changed(previous, next) {
		w.records[name] = next
		w.metrics.Observe(previous, next)
	}
}

// pods are those of a job, each on a machine since a time, or on none.
func pods(job mpi.Job, phase corev1.PodPhase, since time.Time) jobstate.Observed {
	seen := jobstate.Observed{Launcher: mpitest.Launcher(job), LauncherPods: []*corev1.Pod{mpitest.LauncherPod(job, 0, phase)}, Workers: mpitest.Workers(job, phase)}
	all := slices.Clone(seen.LauncherPods)
	for _, worker := range seen.Workers {
		all = append(all, worker.Pod)
	}
	for _, pod := range all {
		pod.CreationTimestamp = metav1.NewTime(mpitest.Now)
		pod.Spec.NodeName = ""
		if phase == corev1.PodPending {
			continue
		}
		pod.Spec.NodeName = "node"
		pod.Status.StartTime = new(metav1.NewTime(since))
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(since)}, {Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(since.Add(3 * time.Second))}}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(since.Add(5 * time.Second))}}}}
	}
	return seen
}

// ended are the objects of a job whose launcher has ended now.
func (w *world) ended(job mpi.Job, code int32, since time.Time, message string) jobstate.Observed {
	seen := pods(job, corev1.PodRunning, since)
	how := batchv1.JobComplete
	seen.LauncherPods[0].Status.Phase = corev1.PodSucceeded
	if code != 0 {
		how = batchv1.JobFailed
		seen.LauncherPods[0].Status.Phase = corev1.PodFailed
	}
	end := metav1.NewTime(w.clock.Now())
	seen.Launcher = mpitest.Launcher(job, how)
	seen.Launcher.Status.CompletionTime = &end
	for i := range seen.Launcher.Status.Conditions {
		seen.Launcher.Status.Conditions[i].LastTransitionTime = end
	}
	seen.LauncherPods[0].Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: code, StartedAt: metav1.NewTime(since.Add(5 * time.Second)), FinishedAt: end, Message: message,
	}}
	return seen
}

// TestJobsAreCounted follows jobs of both kinds through all that can become of them.
func TestJobsAreCounted(t *testing.T) {
	w := newWorld()
	good, bad, waits, gone := job("good"), job("bad"), job("waits"), job("gone")
	train := job("train", func(j *mpi.Job) { j.Kind, j.Namespace = "TrainJob", "other" })
	torch := job("torch", func(j *mpi.Job) { j.Kind, j.Namespace, j.Implementation = "TrainJob", "third", "" })
	for _, j := range []mpi.Job{good, bad, waits, gone, train, torch} {
		w.pass(0, j, jobstate.Observed{})
	}
	w.pass(10*time.Second, waits, pods(waits, corev1.PodPending, time.Time{}))
	placed := w.clock.Now()
	w.clock.Step(20 * time.Second)
	for _, j := range []mpi.Job{good, bad, gone, train, torch} {
		w.pass(0, j, pods(j, corev1.PodRunning, placed))
	}
	w.clock.Step(100 * time.Second)
	summary := `{"role":"launcher","slotsExpected":2,"slotsFound":%d,"connectSeconds":0.75,"initSeconds":0.3}`
	w.pass(0, good, w.ended(good, 0, placed, fmt.Sprintf(summary, 2)))
	w.pass(0, bad, w.ended(bad, 139, placed, ""))
	w.write(gone.ReportName(), func(previous *v1alpha1.JobReport) v1alpha1.JobReport { return report.Closed(*previous, w.clock.Now()) })
	w.pass(0, train, w.ended(train, 137, placed, fmt.Sprintf(summary, 1)))
	w.metrics.ReportNotWritten()
	golden(t, w.metrics, "counted")
}

// TestARestartCountsNothingAgain: nor does a pass over a job whose record is as it was.
func TestARestartCountsNothingAgain(t *testing.T) {
	w := newWorld()
	good, runs := job("good"), job("runs")
	placed := w.clock.Now()
	w.pass(0, good, jobstate.Observed{})
	w.pass(0, runs, jobstate.Observed{})
	w.pass(time.Second, runs, pods(runs, corev1.PodRunning, placed))
	w.clock.Step(time.Minute)
	end := w.ended(good, 0, placed, "")
	w.pass(0, good, end)
	w.restart()
	w.pass(time.Minute, good, end)
	w.pass(0, runs, pods(runs, corev1.PodRunning, placed))
	w.pass(2*time.Hour, runs, pods(runs, corev1.PodRunning, placed))
	golden(t, w.metrics, "restart")
}

// TestWaitOfATrainJobIsCountedOnce: that its pods are placed again, since JobSet has started it again, is no wait of hours.
func TestWaitOfATrainJobIsCountedOnce(t *testing.T) {
	w := newWorld()
	train := job("train", func(j *mpi.Job) { j.Kind, j.External, j.Lifecycle.MaxRestarts = "TrainJob", true, 1 })
	w.pass(0, train, jobstate.Observed{})
	w.pass(10*time.Second, train, pods(train, corev1.PodRunning, w.clock.Now()))
	again := pods(train, corev1.PodRunning, w.clock.Now().Add(time.Hour))
	again.Restarts = 1
	w.pass(2*time.Hour, train, again)
	if got := len(slices.DeleteFunc(w.records[train.ReportName()].Status.Timeline, func(e v1alpha1.TimelineEntry) bool { return e.Event != codes.PodsPlaced })); got != 2 {
		t.Fatalf("the pods are placed %d times", got)
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(w.metrics)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "mpijob_gang_wait_seconds" {
			if got := family.GetMetric()[0].GetHistogram(); got.GetSampleCount() != 1 || got.GetSampleSum() > 60 {
				t.Errorf("%d waits of %g s", got.GetSampleCount(), got.GetSampleSum())
			}
			return
		}
	}
	t.Error("there is no wait")
}

// TestHistoryIsNotCounted: jobs that had ended before there was an operator to see them.
func TestHistoryIsNotCounted(t *testing.T) {
	w := newWorld()
	old := job("old")
	end := w.ended(old, 1, w.clock.Now().Add(-time.Hour), "")
	w.clock.Step(time.Hour)
	w.restart().pass(0, old, end)
	compare(t, w, "mpijob_failures_total")
	if n := testutil.CollectAndCount(w.metrics, "training_operator_mpijob_duration_seconds", "mpijob_gpu_seconds_total"); n > 0 {
		t.Errorf("there are %d series of what had ended before", n)
	}
}

// TestAFailureIsCountedByItsCauseOnce: the cause may become known after the end, or never.
func TestAFailureIsCountedByItsCauseOnce(t *testing.T) {
	failure := func(uid string, phase v1alpha1.Phase, code string) *v1alpha1.JobReport {
		r := &v1alpha1.JobReport{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: uid}}
		r.Spec.JobRef = v1alpha1.JobReference{Kind: "MPIJob", Name: uid, UID: types.UID(uid)}
		r.Status.Phase = phase
		if code != "" {
			r.Status.Failure = &v1alpha1.Failure{Code: code}
		}
		return r
	}
	w := newWorld()
	for _, uid := range []string{"late", "never"} {
		w.metrics.Observe(failure(uid, v1alpha1.PhaseRunning, ""), *failure(uid, v1alpha1.PhaseFailed, ""))
	}
	w.metrics.Observe(failure("late", v1alpha1.PhaseFailed, "Unknown"), *failure("late", v1alpha1.PhaseFailed, "OutOfMemory"))
	w.metrics.Observe(failure("late", v1alpha1.PhaseFailed, "OutOfMemory"), *failure("late", v1alpha1.PhaseFailed, "OutOfMemory"))
	want := func(series ...string) {
		t.Helper()
		compare(t, w, "mpijob_failures_total", series...)
	}
	want(`mpijob_failures_total{code="OutOfMemory"} 1`)
	w.clock.Step(5 * time.Minute)
	want(`mpijob_failures_total{code="OutOfMemory"} 1`, `mpijob_failures_total{code="Unknown"} 1`)
	want(`mpijob_failures_total{code="OutOfMemory"} 1`, `mpijob_failures_total{code="Unknown"} 1`)
}

// TestCountersBegin: Prometheus sees the first of anything as an increase, since its series was 0 before.
func TestCountersBegin(t *testing.T) {
	w := newWorld()
	zero := func(lines ...string) {
		t.Helper()
		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(w.metrics)
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		for _, family := range families {
			if _, err := expfmt.MetricFamilyToText(&text, family); err != nil {
				t.Fatal(err)
			}
		}
		for _, line := range lines {
			if !strings.Contains(text.String(), "\n"+line+" 0\n") {
				t.Errorf("%s is not 0", line)
			}
		}
	}
	zero(`mpijob_failures_total{code="OutOfMemory"}`, `mpijob_failures_total{code="Unknown"}`, `mpijob_reports_deleted_total{limit="total"}`)
	began := []string{
		`mpijob_jobs_failed_total{kind="MPIJob",namespace="ns"}`, `mpijob_cpu_core_seconds_total{namespace="ns"}`, `mpijob_memory_gib_seconds_total{namespace="ns"}`,
	}
	w.pass(0, job("pi"), jobstate.Observed{})
	zero(began...)
	w.restart()
	zero(began...)
}

// TestNamespacesAreForgotten: after an hour without records.
func TestNamespacesAreForgotten(t *testing.T) {
	w := newWorld()
	w.pass(0, job("pi"), jobstate.Observed{})
	count := func() int { return testutil.CollectAndCount(w.metrics, "training_operator_mpijob_created_total") }
	clear(w.records)
	if count() != 1 {
		t.Error("the namespace is forgotten at once")
	}
	w.clock.Step(time.Hour)
	if count() != 0 {
		t.Error("the namespace is not forgotten")
	}
}

// recordOf returns the record of a job of a kind.
func recordOf(kind, namespace, name string, change func(*v1alpha1.JobReportStatus)) v1alpha1.JobReport {
	r := v1alpha1.JobReport{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	r.Spec.JobRef = v1alpha1.JobReference{Kind: kind, Name: name, UID: types.UID(name)}
	r.Status.MPI.Implementation = "OpenMPI"
	change(&r.Status)
	return r
}

// unused are the series of codes that no job failed by.
var unused = regexp.MustCompile(`(?m)^mpijob_failures_total\{.*\} 0\n`)

// compare compares the series of a metric, without help and type, and those of codes that no job failed by.
func compare(t *testing.T, w *world, name string, want ...string) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(w.metrics)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		if _, err := expfmt.MetricFamilyToText(&text, family); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for line := range strings.Lines(text.String()) {
		if !strings.HasPrefix(line, "#") && !unused.MatchString(line) {
			got = append(got, strings.TrimSpace(line))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s is\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestTrainJobsWhoseMPIIsKnownLater: a TrainJob is counted when its runtime is known, and once.
func TestTrainJobsWhoseMPIIsKnownLater(t *testing.T) {
	w := newWorld()
	first := recordOf("TrainJob", "ns", "train", func(s *v1alpha1.JobReportStatus) { s.MPI.Implementation = "" })
	second := recordOf("TrainJob", "ns", "train", func(s *v1alpha1.JobReportStatus) { s.Phase = v1alpha1.PhaseRunning })
	w.metrics.Observe(nil, first)
	w.metrics.Observe(&first, second)
	w.metrics.Observe(&second, second)
	w.records["train"] = second
	compare(t, w, "mpijob_jobs_created_total", `mpijob_jobs_created_total{kind="TrainJob",namespace="ns"} 1`)
	compare(t, w, "mpijob_jobs_running", `mpijob_jobs_running{kind="TrainJob",namespace="ns"} 1`)
	compare(t, w, "training_operator_mpijob_created_total")
}

// TestQueuesFindingsAndQuotas: what the alerts on queues, images and quotas are computed from.
func TestQueuesFindingsAndQuotas(t *testing.T) {
	w := newWorld()
	now := w.clock.Now()
	for name, since := range map[string]time.Duration{"a": time.Hour, "b": 2 * time.Hour} {
		w.records[name] = recordOf("TrainJob", "ns", name, func(s *v1alpha1.JobReportStatus) {
			s.Phase = v1alpha1.PhaseQueued
			s.Scheduling = &v1alpha1.SchedulingStatus{Backend: kueue.Kueue, Queue: "gpu", Since: &metav1.Time{Time: now.Add(-since)}}
		})
	}
	w.records["pulls"] = recordOf("MPIJob", "ns", "pulls", func(s *v1alpha1.JobReportStatus) {
		s.Phase, s.Findings = v1alpha1.PhaseInitializing, []v1alpha1.Finding{{Code: "ImagePullFailed"}, {Code: "WorkersNotReady"}}
	})
	w.records["warned"] = recordOf("MPIJob", "ns", "warned", func(s *v1alpha1.JobReportStatus) {
		s.Phase, s.Findings = v1alpha1.PhaseRunning, []v1alpha1.Finding{
			{Code: "NoOutput"}, {Code: "MemoryGrowing", Pod: "a"}, {Code: "MemoryGrowing", Pod: "b"}, {Code: "Evicted", Evidence: []string{"Last seen in an earlier attempt, which ended at 2026-11-21 10:00:00 UTC."}},
		}
	})
	w.records["over"] = recordOf("MPIJob", "ns", "over", func(s *v1alpha1.JobReportStatus) {
		s.Phase, s.Findings, s.CompletionTime = v1alpha1.PhaseFailed, []v1alpha1.Finding{{Code: "OutOfMemory"}}, &metav1.Time{Time: now}
	})
	w.records["gang"] = recordOf("MPIJob", "ns", "gang", func(s *v1alpha1.JobReportStatus) {
		s.Phase = v1alpha1.PhaseGangScheduling
		s.Scheduling = &v1alpha1.SchedulingStatus{Backend: "embedded", Queue: "any text", Since: &metav1.Time{Time: now.Add(-time.Hour)}}
	})
	w.quotas = []metrics.Quota{{Namespace: "ns", Name: "team", Resource: "requests.cpu", Ratio: 0.5}, {Namespace: "elsewhere", Name: "team", Resource: "pods", Ratio: 1}}
	compare(t, w, "mpijob_queue_waiting_jobs", `mpijob_queue_waiting_jobs{namespace="ns",queue="gpu"} 2`)
	compare(t, w, "mpijob_queue_oldest_wait_seconds", `mpijob_queue_oldest_wait_seconds{namespace="ns",queue="gpu"} 7200`)
	compare(t, w, "mpijob_queue_admissions_total", `mpijob_queue_admissions_total{namespace="ns",queue="gpu"} 0`)
	compare(t, w, "mpijob_findings",
		`mpijob_findings{code="ImagePullFailed",namespace="ns"} 1`, `mpijob_findings{code="MemoryGrowing",namespace="ns"} 1`,
		`mpijob_findings{code="NoOutput",namespace="ns"} 1`, `mpijob_findings{code="WorkersNotReady",namespace="ns"} 1`)
	compare(t, w, "mpijob_quota_used_ratio", `mpijob_quota_used_ratio{namespace="ns",quota="team",resource="requests.cpu"} 0.5`)
}

// TestAdmissionsAreCounted: each time that a queue of Kueue admits a job, also again after an eviction, and nothing else. The counter of
// a queue with waiting jobs begins at 0, also after a restart.
func TestAdmissionsAreCounted(t *testing.T) {
	in := func(phase v1alpha1.Phase, waited *v1alpha1.Waited) v1alpha1.JobReport {
		return recordOf("MPIJob", "ns", "a", func(s *v1alpha1.JobReportStatus) {
			s.Phase, s.Waited = phase, waited
			if phase == v1alpha1.PhaseQueued {
				s.Scheduling = &v1alpha1.SchedulingStatus{Backend: kueue.Kueue, Queue: "gpu"}
			}
			if phase == v1alpha1.PhaseGangScheduling {
				s.Scheduling = &v1alpha1.SchedulingStatus{Backend: "embedded", Queue: "any text"}
			}
		})
	}
	once := &v1alpha1.Waited{Backend: kueue.Kueue, Queue: "gpu"}
	queued, starting, running := in(v1alpha1.PhaseQueued, nil), in(v1alpha1.PhasePending, once), in(v1alpha1.PhaseRunning, once)
	again, invalid := in(v1alpha1.PhaseQueued, once), in(v1alpha1.PhasePending, nil)
	invalid.Status.Reason = codes.ValidationError
	for name, test := range map[string]struct {
		passes []v1alpha1.JobReport
		want   int
	}{
		"it waits":                        {[]v1alpha1.JobReport{queued}, 0},
		"admitted":                        {[]v1alpha1.JobReport{queued, starting, running}, 1},
		"admitted, and resumed later":     {[]v1alpha1.JobReport{queued, again, starting}, 1},
		"evicted and admitted again":      {[]v1alpha1.JobReport{queued, running, again, starting, running, again, running}, 3},
		"evicted, and waits":              {[]v1alpha1.JobReport{queued, running, again}, 1},
		"admitted before it was seen":     {[]v1alpha1.JobReport{starting, running}, 1},
		"suspended and queued again":      {[]v1alpha1.JobReport{queued, in(v1alpha1.PhaseSuspended, nil), queued}, 0},
		"invalid in the queue":            {[]v1alpha1.JobReport{queued, invalid}, 0},
		"failed in the queue":             {[]v1alpha1.JobReport{queued, in(v1alpha1.PhaseFailed, nil)}, 0},
		"a gang with a queue of any text": {[]v1alpha1.JobReport{in(v1alpha1.PhaseGangScheduling, nil), in(v1alpha1.PhaseRunning, &v1alpha1.Waited{Backend: "embedded", Queue: "any text"})}, -1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			var previous *v1alpha1.JobReport
			for _, next := range test.passes {
				w.metrics.Observe(previous, next)
				previous = &next
			}
			var want []string
			if test.want >= 0 {
				want = []string{fmt.Sprintf(`mpijob_queue_admissions_total{namespace="ns",queue="gpu"} %d`, test.want)}
			}
			compare(t, w, "mpijob_queue_admissions_total", want...)
		})
	}
	w := newWorld()
	w.records["a"] = again
	compare(t, w.restart(), "mpijob_queue_admissions_total", `mpijob_queue_admissions_total{namespace="ns",queue="gpu"} 0`)
}

// TestOldestStarts: jobs that do not start are seen however many there are, with the time since they were created, resumed or admitted.
func TestOldestStarts(t *testing.T) {
	w := many(600)
	now := w.clock.Now()
	add := func(kind, name string, phase v1alpha1.Phase, hours map[v1alpha1.Phase]float64) {
		w.records[name] = recordOf(kind, "zz", name, func(s *v1alpha1.JobReportStatus) {
			s.Phase = phase
			for _, entered := range []v1alpha1.Phase{v1alpha1.PhaseQueued, v1alpha1.PhasePending, v1alpha1.PhaseInitializing, v1alpha1.PhaseGangScheduling, v1alpha1.PhaseRunning} {
				if since, is := hours[entered]; is {
					s.PhaseTimes = append(s.PhaseTimes, v1alpha1.PhaseTime{Phase: entered, Since: metav1.NewTime(now.Add(-time.Duration(since * float64(time.Hour))))})
				}
			}
		})
	}
	add("MPIJob", "quick", v1alpha1.PhasePending, map[v1alpha1.Phase]float64{v1alpha1.PhasePending: 0.5})
	add("MPIJob", "slow", v1alpha1.PhaseInitializing, map[v1alpha1.Phase]float64{v1alpha1.PhaseQueued: 9, v1alpha1.PhasePending: 2, v1alpha1.PhaseInitializing: 0.5})
	add("TrainJob", "again", v1alpha1.PhaseInitializing, map[v1alpha1.Phase]float64{v1alpha1.PhasePending: 9, v1alpha1.PhaseRunning: 8, v1alpha1.PhaseInitializing: 1})
	add("TrainJob", "gang", v1alpha1.PhaseGangScheduling, map[v1alpha1.Phase]float64{v1alpha1.PhasePending: 9, v1alpha1.PhaseGangScheduling: 3})
	add("TrainJob", "queued", v1alpha1.PhaseQueued, map[v1alpha1.Phase]float64{v1alpha1.PhaseQueued: 5})
	compare(t, w, "mpijob_start_oldest_wait_seconds",
		`mpijob_start_oldest_wait_seconds{kind="MPIJob",namespace="zz",state="Starting"} 7200`,
		`mpijob_start_oldest_wait_seconds{kind="TrainJob",namespace="zz",state="GangScheduling"} 10800`,
		`mpijob_start_oldest_wait_seconds{kind="TrainJob",namespace="zz",state="Starting"} 3600`)
}

// TestDevicesThatNoPodHad: users may request any device; only those have series that pods had.
func TestDevicesThatNoPodHad(t *testing.T) {
	w := newWorld()
	for i := range 3000 {
		name := fmt.Sprintf("job-%d", i)
		w.metrics.Observe(nil, recordOf("MPIJob", "ns", name, func(s *v1alpha1.JobReportStatus) {
			s.Phase = v1alpha1.PhaseRunning
			s.Consumption = &v1alpha1.Consumption{GPUSeconds: map[string]int64{"example.com/requested-" + name: 0, "nvidia.com/gpu": 10}}
		}))
	}
	compare(t, w, "mpijob_gpu_seconds_total", `mpijob_gpu_seconds_total{namespace="ns",resource="nvidia.com/gpu"} 30000`)
}

// TestLabelsAreBounded: users choose the names of namespaces, queues and quotas. What exceeds the limits is summed up, and none
// is lost.
func TestLabelsAreBounded(t *testing.T) {
	w := newWorld()
	for i := range 1200 {
		name := fmt.Sprintf("ns-%d", i)
		r := recordOf("MPIJob", name, name, func(s *v1alpha1.JobReportStatus) {
			s.Phase, s.Scheduling = v1alpha1.PhaseQueued, &v1alpha1.SchedulingStatus{Backend: kueue.Kueue, Queue: name}
			s.Consumption = &v1alpha1.Consumption{GPUSeconds: map[string]int64{"example.com/a": 1, "example.com/b": 1, "example.com/c": 1}}
		})
		w.metrics.Observe(nil, r)
		w.records[name] = r
		for resource := range 3 {
			w.quotas = append(w.quotas, metrics.Quota{Namespace: name, Name: "q", Resource: fmt.Sprint(resource), Ratio: float64(i)})
		}
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(w.metrics)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]struct {
		series int
		sum    float64
	}{
		"mpijob_jobs_created_total": {1001, 1200}, "training_operator_mpijob_created_total": {1001, 1200}, "mpijob_jobs_queued": {1001, 1200},
		"mpijob_queue_waiting_jobs": {501, 1200}, "mpijob_queue_admissions_total": {501, 0}, "mpijob_gpu_seconds_total": {2001, 3600}, "mpijob_quota_used_ratio": {2000, -1},
	}
	for _, family := range families {
		limit, tested := want[family.GetName()]
		if !tested {
			continue
		}
		delete(want, family.GetName())
		sum := 0.0
		for _, metric := range family.GetMetric() {
			sum += metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
		}
		if n := len(family.GetMetric()); n != limit.series || limit.sum >= 0 && sum != limit.sum {
			t.Errorf("%s has %d series with the sum %g, want %d and %g", family.GetName(), n, sum, limit.series, limit.sum)
		}
	}
	for name := range want {
		t.Errorf("there is no %s", name)
	}
}

// TestInfoIsBounded: of many jobs those that ended first are left out; a name is there once.
func TestInfoIsBounded(t *testing.T) {
	w := many(600)
	again := w.records["pi-0"]
	again.Name = "pi-again"
	w.records[again.Name] = again
	if n := testutil.CollectAndCount(w.metrics, "mpijob_info"); n != 500 {
		t.Errorf("%d jobs are shown, want 500", n)
	}
	if err := testutil.CollectAndCompare(w.metrics, strings.NewReader("# HELP mpijob_info_omitted Jobs that mpijob_info leaves out because it has too many, those that ended first.\n# TYPE mpijob_info_omitted gauge\nmpijob_info_omitted 100\n"), "mpijob_info_omitted"); err != nil {
		t.Error(err)
	}
}

// many are records of running jobs with 64 pods each.
func many(jobs int) *world {
	w := newWorld()
	for i := range jobs {
		r := v1alpha1.JobReport{ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprintf("ns-%d", i%20), Name: fmt.Sprintf("pi-%d", i)}}
		r.Spec.JobRef = v1alpha1.JobReference{Kind: "MPIJob", Name: r.Name}
		r.Status.Phase, r.Status.Pods = v1alpha1.PhaseRunning, make([]v1alpha1.PodStatus, 64)
		w.records[r.Name] = r
	}
	return w
}

func BenchmarkScrapeOf1000Jobs(b *testing.B) {
	w := many(1000)
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(w.metrics)
	for b.Loop() {
		if _, err := registry.Gather(); err != nil {
			b.Fatal(err)
		}
	}
}

// golden compares all metrics with a file of testdata.
func golden(t *testing.T, m *metrics.Metrics, file string) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(m)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, family := range families {
		if _, err := expfmt.MetricFamilyToText(&text, family); err != nil {
			t.Fatal(err)
		}
	}
	mpitest.Golden(t, file, unused.ReplaceAllString(text.String(), ""))
	problems, err := testutil.GatherAndLint(registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		if !allowed(problem) {
			t.Errorf("%s: %s", problem.Metric, problem.Text)
		}
	}
}

// allowed are names that are given.
func allowed(problem promlint.Problem) bool {
	return strings.HasSuffix(problem.Metric, "ing_total") || strings.HasSuffix(problem.Metric, "queued_total")
}

// TestDocs: docs/metrics.md lists every metric, with its labels, and no others; the alerts and the queries of other pages ask for
// no metric, and the alerts for no code, that does not exist. testdata/names.yaml lists all metrics for the tests of hack/monitoring, with those of controller-runtime.
func TestDocs(t *testing.T) {
	descs := make(chan *prometheus.Desc, 100)
	newWorld().metrics.Describe(descs)
	metrics.Certificates(nil).Describe(descs)
	tracing.NewSpans().Describe(descs)
	logstore.New(logstore.Settings{}, nil, nil, logs.Masker{}, nil, nil).Describe(descs)
	close(descs)
	fields := regexp.MustCompile(`fqName: "([^"]+)", help: "([^"]+)", unit: "", constLabels: \{\}, variableLabels: \{([^}]*)\}`)
	known := map[string]string{}
	for desc := range descs {
		parts := fields.FindStringSubmatch(desc.String())
		if parts == nil {
			t.Fatalf("%s has no help", desc)
		}
		known[parts[1]] = parts[3]
	}
	names := maps.Clone(known)
	served := make(chan *prometheus.Desc, 1000)
	controllerruntime.Registry.(prometheus.Collector).Describe(served)
	close(served)
	for desc := range served {
		if parts := fields.FindStringSubmatch(desc.String()); parts != nil && regexp.MustCompile("^(controller_runtime|workqueue)_").MatchString(parts[1]) {
			names[parts[1]] = parts[3]
		}
	}
	mpitest.Golden(t, "names", names)
	docs := read(t, "docs", "metrics.md")
	row := regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| [a-z]+ \\| ([^|]*)\\| [^|]+ \\| .+ \\|$")
	told := map[string]bool{}
	for _, columns := range row.FindAllStringSubmatch(docs, -1) {
		name, labels := columns[1], strings.TrimSpace(strings.ReplaceAll(strings.ReplaceAll(columns[2], "`", ""), ", ", ","))
		told[name] = true
		if want, is := known[name]; !is {
			t.Errorf("docs/metrics.md tells of %s, which there is not", name)
		} else if labels != want {
			t.Errorf("docs/metrics.md says that %s has the labels %q, it has %q", name, labels, want)
		}
	}
	for name := range known {
		if !told[name] {
			t.Errorf("docs/metrics.md has no row for %s", name)
		}
	}
	used := regexp.MustCompile(`\b(?:training_operator_)?mpijob_[a-z_]+`)
	suffix := regexp.MustCompile(`_(bucket|sum|count)$`)
	alerts := read(t, "config", "prometheus", "alerts.yaml")
	for _, text := range []string{docs, alerts, read(t, "docs", "admin", "capacity.md"), read(t, "docs", "runbooks.md")} {
		for _, name := range used.FindAllString(text, -1) {
			if _, is := known[suffix.ReplaceAllString(name, "")]; !is && !strings.HasSuffix(name, "_") {
				t.Errorf("%s is asked for, which there is not", name)
			}
		}
	}
	for _, asked := range regexp.MustCompile(`code=~"([A-Za-z|]+)"`).FindAllStringSubmatch(alerts, -1) {
		for code := range strings.SplitSeq(asked[1], "|") {
			if !codes.IsExplained(code) {
				t.Errorf("the alerts ask for the code %s, which no finding has", code)
			}
		}
	}
}

// TestWarningsHaveAlerts: an alert fires for each warning of running jobs but those that only make a job slower, and the pages name the same codes.
func TestWarningsHaveAlerts(t *testing.T) {
	slower := []string{codes.CPUThrottled, codes.RanksShareCores, codes.Straggler, codes.RanksIdle, codes.FigureConstant}
	asked := map[string][]string{}
	for _, rule := range regexp.MustCompile(`- alert: (\w+)\n +expr: [^\n]*code=~"([A-Za-z|]+)"`).FindAllStringSubmatch(read(t, "config", "prometheus", "alerts.yaml"), -1) {
		asked[rule[1]] = strings.Split(rule[2], "|")
	}
	warns, stuck := asked["MPIJobWarns"], asked["MPIJobStuck"]
	table := regexp.MustCompile("(?m)^\\| `.*").FindAllString(section(t, read(t, "docs", "metrics.md"), "Be warned before a job fails"), -1)
	for _, entry := range codes.Entries() {
		if !codes.Has(entry.Code, codes.Warns) {
			continue
		}
		alerts := 0
		for _, list := range [][]string{slower, warns, stuck} {
			if slices.Contains(list, entry.Code) {
				alerts++
			}
		}
		if alerts != 1 {
			t.Errorf("%s is in %d of the lists of MPIJobWarns, MPIJobStuck and of what only makes a job slower", entry.Code, alerts)
		}
		if !slices.ContainsFunc(table, func(row string) bool { return strings.Contains(row, "`"+entry.Code+"`") }) {
			t.Errorf("docs/metrics.md does not list %s", entry.Code)
		}
	}
	for _, code := range warns {
		if !codes.Has(code, codes.Warns) {
			t.Errorf("MPIJobWarns asks for %s, which is no warning", code)
		}
	}
	row := regexp.MustCompile("(?m)^\\| `MPIJobWarns` \\| .*").FindString(read(t, "docs", "metrics.md"))
	for page, text := range map[string]string{"docs/metrics.md": row, "docs/runbooks.md": section(t, read(t, "docs", "runbooks.md"), "MPIJobWarns")} {
		var named []string
		for _, word := range regexp.MustCompile("`([A-Za-z]+)`").FindAllStringSubmatch(text, -1) {
			if codes.IsExplained(word[1]) {
				named = append(named, word[1])
			}
		}
		if diff := cmp.Diff(warns, named, cmpopts.SortSlices(strings.Compare)); diff != "" {
			t.Errorf("%s: the codes of MPIJobWarns differ (-alert +page)\n%s", page, diff)
		}
	}
}

// section returns the part of a page under a heading.
func section(t *testing.T, page, heading string) string {
	t.Helper()
	_, text, found := strings.Cut(page, "\n## "+heading+"\n")
	if !found {
		t.Fatalf("there is no heading %s", heading)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	return text
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(append([]string{"..", ".."}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
