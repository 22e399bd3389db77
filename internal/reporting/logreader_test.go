package reporting

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/flowcontrol"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/cluster"
	"opendatahub.io/mpijob/internal/curves"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/metrics"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

// program is a job that runs, and what its launcher says.
type program struct {
	job   mpi.Job
	seen  jobstate.Observed
	says  v1alpha1.Training
	last  time.Time
	reads []string
	// speaks is set if it prints a line at all times, and unreadable if its log cannot be read.
	speaks, unreadable bool
}

func newProgram(silent time.Duration) *program {
	p := &program{job: mpitest.Job(1), last: mpitest.Now}
	p.job.Lifecycle.SilentAfter, p.job.Launch = silent, mpi.LaunchSSHD
	pod := mpitest.LauncherPod(p.job, 0, corev1.PodRunning)
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(mpitest.Now)}}}}
	p.seen.LauncherPods = []*corev1.Pod{pod}
	return p
}

func (p *program) listen(_ context.Context, _ mpi.Job, seen jobstate.Observed) jobstate.Evidence {
	p.reads = append(p.reads, seen.Now.Sub(mpitest.Now).String())
	if p.unreadable {
		return jobstate.Evidence{}
	}
	if p.speaks {
		p.last = seen.Now
	}
	return jobstate.Evidence{Logs: map[string]jobstate.Log{p.seen.LauncherPods[0].Name: {Lines: []string{"a line"}, LastAt: p.last}}, Training: p.says}
}

// passes makes a pass whenever it is due, until some time after the start.
func (p *program) passes(ctx context.Context, l *logReader, until time.Duration) (last jobstate.Evidence) {
	for after := time.Duration(0); after <= until; {
		p.seen.Now = mpitest.Now.Add(after)
		evidence, next := l.readIfDue(ctx, p.job, p.seen)
		last, after = evidence, after+next
	}
	return last
}

func TestJobsAreListenedTo(t *testing.T) {
	t.Parallel()
	step := v1alpha1.Training{Step: "1", Loss: "0.5"}
	tests := map[string]struct {
		every, silent, until time.Duration
		says                 v1alpha1.Training
		want                 string
	}{
		"one that tells":                {30 * time.Second, time.Hour, 6*time.Minute + 10*time.Second, step, "[0s 30s 1m0s 1m30s 2m0s 2m30s 3m0s 3m30s 4m0s 4m30s 5m0s 5m30s 6m0s]"},
		"one that tells nothing":        {2 * time.Minute, time.Hour, 15 * time.Minute, v1alpha1.Training{}, "[0s 2m0s 4m0s 6m0s 8m0s 10m0s 12m0s 14m0s]"},
		"one that tells nothing, later": {30 * time.Second, time.Hour, 8 * time.Minute, v1alpha1.Training{}, "[0s 30s 1m0s 1m30s 2m0s 2m30s 3m0s 3m30s 4m0s 4m30s 5m0s 6m0s 7m0s 8m0s]"},
		"when silence is worth a word":  {2 * time.Minute, 15 * time.Minute, 20 * time.Minute, v1alpha1.Training{}, "[0s 2m0s 4m0s 6m0s 8m0s 10m0s 12m0s 14m0s 15m1s 17m1s 19m1s]"},
		"whose silence is short":        {30 * time.Second, 20 * time.Second, 40 * time.Second, v1alpha1.Training{}, "[0s 10s 20s 30s 40s]"},
		"whose progress nobody asks of": {0, time.Hour, 3 * time.Minute, step, "[0s 1m0s 2m0s 3m0s]"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := newProgram(test.silent)
			p.says = test.says
			last := p.passes(t.Context(), newLogReader(p.listen, test.every), test.until)
			if fmt.Sprint(p.reads) != test.want {
				t.Errorf("it was listened to at %v, want %s", p.reads, test.want)
			}
			if want := test.says; test.every > 0 && last.Training != want || test.every == 0 && last.Training != (v1alpha1.Training{}) {
				t.Errorf("its progress is %+v", last.Training)
			}
		})
	}
}

// TestQuietJobsAreReadMoreOften: the agent of a job that prints nothing may have reported that its ranks wait.
func TestQuietJobsAreReadMoreOften(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		speaks     bool
		unreadable bool
		launch     string
		want       string
	}{
		"quiet":               {false, false, mpi.LaunchAgent, "[0s 30s 50s 1m10s 1m30s]"},
		"prints":              {true, false, mpi.LaunchAgent, "[0s 30s 1m0s 1m30s]"},
		"cannot be read":      {false, true, mpi.LaunchAgent, "[0s 30s 1m0s 1m30s]"},
		"quiet, has no agent": {false, false, mpi.LaunchSSHD, "[0s 30s 1m0s 1m30s]"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProgram(time.Hour)
			p.speaks, p.unreadable, p.job.Launch = test.speaks, test.unreadable, test.launch
			if p.passes(t.Context(), newLogReader(p.listen, 30*time.Second), 90*time.Second); fmt.Sprint(p.reads) != test.want {
				t.Errorf("its log was read at %v, want %s", p.reads, test.want)
			}
		})
	}
}

// TestPassesInBetweenReadNothing: they know what was heard, though not the lines of a program that speaks.
func TestPassesInBetweenReadNothing(t *testing.T) {
	t.Parallel()
	p := newProgram(time.Hour)
	p.says = v1alpha1.Training{Step: "1", Loss: "0.5"}
	l := newLogReader(p.listen, 30*time.Second)
	p.passes(t.Context(), l, 0)
	p.seen.Now = mpitest.Now.Add(10 * time.Second)
	evidence, next := l.readIfDue(t.Context(), p.job, p.seen)
	log := evidence.Logs[p.seen.LauncherPods[0].Name]
	if len(p.reads) != 1 || next != 20*time.Second || evidence.Training != p.says || !log.LastAt.Equal(p.last) || len(log.Lines) > 0 {
		t.Errorf("after %d reads it is known %+v, and asked again after %s", len(p.reads), evidence, next)
	}
	if l.readLast(t.Context(), p.job, p.seen).Training != p.says || len(p.reads) != 2 || len(l.jobs) != 0 {
		t.Errorf("at its end it was listened to %d times, and %d jobs are kept", len(p.reads), len(l.jobs))
	}
}

// TestFewAreListenedToAtOnce: the others do not wait, but come again soon.
func TestFewAreListenedToAtOnce(t *testing.T) {
	t.Parallel()
	p := newProgram(time.Hour)
	inside, release, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	l := newLogReader(func(context.Context, mpi.Job, jobstate.Observed) jobstate.Evidence {
		inside <- struct{}{}
		<-release
		return jobstate.Evidence{}
	}, time.Second)
	hear := func(i int) time.Duration {
		job := p.job
		job.UID = types.UID(fmt.Sprint(i))
		_, next := l.readIfDue(t.Context(), job, jobstate.Observed{Now: mpitest.Now})
		return next
	}
	for i := range maxReaders {
		go func() { hear(i); done <- struct{}{} }()
		<-inside
	}
	if next := hear(maxReaders); next < time.Second || next > 2*time.Second {
		t.Errorf("one too many is to come again after %s", next)
	}
	close(release)
	for range maxReaders {
		<-done
	}
}

// TestReadsDoNotGrowWithJobs: all jobs together have as many reads in a minute with 300 jobs as with 3,000, and none is forgotten.
func TestReadsDoNotGrowWithJobs(t *testing.T) {
	t.Parallel()
	for _, jobs := range []int{300, 1000, 3000} {
		p := newProgram(time.Hour)
		p.speaks = true
		reader := newLogReader(p.listen, 30*time.Second)
		usages := 0
		usage := newUsageReader(func(context.Context, mpi.Job, jobstate.Observed) *agentapi.Usage { usages++; return &agentapi.Usage{} })
		all := make([]mpi.Job, jobs)
		for i := range all {
			all[i] = mpitest.Job(1)
			all[i].UID = types.UID(fmt.Sprint(i))
		}
		const begin, minutes = 10 * time.Minute, 20
		p.seen.Workers = mpitest.Workers(all[0], corev1.PodRunning)
		readOf := map[types.UID]int{}
		for after := time.Duration(0); after < begin+minutes*time.Minute; after += 5 * time.Second {
			if after == begin {
				// All have begun to run at once, and their first reads are over.
				p.reads, usages, readOf = nil, 0, map[types.UID]int{}
			}
			p.seen.Now = mpitest.Now.Add(after)
			for _, job := range all {
				before := len(p.reads)
				reader.readIfDue(t.Context(), job, p.seen)
				readOf[job.UID] += len(p.reads) - before
				usage.readIfDue(t.Context(), job, p.seen)
			}
		}
		if most := minutes * 60 * logsPerSecond * 11 / 10; len(p.reads) > most {
			t.Errorf("%d jobs: %d logs were read in %d minutes, at most %d should be", jobs, len(p.reads), minutes, most)
		}
		if most := minutes * 60 * usagesPerSecond * 11 / 10; usages > most {
			t.Errorf("%d jobs: the usage of %d was read in %d minutes, at most %d should be", jobs, usages, minutes, most)
		}
		for uid, reads := range readOf {
			if reads < minutes*60*logsPerSecond/jobs-1 && reads < minutes-1 {
				t.Errorf("%d jobs: the log of %s was read %d times in %d minutes", jobs, uid, reads, minutes)
			}
		}
	}
}

// TestStallLines: of the log of a program that is not silent, the lines about a lack of progress are kept, with the places of the ranks.
func TestStallLines(t *testing.T) {
	t.Parallel()
	const (
		stall, over = "mpi-agent: no progress: all 2 ranks wait, since 10:00:00 UTC; polling: 0, 1", "mpi-agent: no progress: over"
		place       = "mpi-agent: stack of ranks 0, 1: main (train.py:1)"
	)
	tests := map[string]struct{ lines, want []string }{
		"a place":       {[]string{"step 1", place, stall, place, "step 2"}, []string{stall, place}},
		"no place":      {[]string{place, stall}, []string{stall}},
		"it is over":    {[]string{stall, place, over, place}, nil},
		"another stall": {[]string{stall, place, over, stall}, []string{stall}},
		"none":          {[]string{"step 1", place}, nil},
		"an exception":  {[]string{"TypeError: 'NoneType' object is not subscriptable", stall, place}, []string{"TypeError: 'NoneType' object is not subscriptable", stall, place}},
	}
	for name, test := range tests {
		got := withoutLines(map[string]jobstate.Log{"pi-launcher": {Lines: test.lines}})["pi-launcher"].Lines
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// apiWithReports returns an API server without objects.
func apiWithReports(t *testing.T) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithIndex(&v1alpha1.JobReport{}, reportsByJob, jobOfReport).Build()
}

// reporterFor returns a reporter that reads nothing.
func reporterFor(api client.Client) *Reporter {
	now := clocktesting.NewFakePassiveClock(mpitest.Now)
	nothing := func(context.Context, mpi.Job, jobstate.Observed) jobstate.Evidence { return jobstate.Evidence{} }
	return &Reporter{
		client: api, clock: now, gatherer: cluster.NewGatherer(api, nil, logs.Masker{}, now), Events: record.NewFakeRecorder(100), waitTimes: &waitTimes{},
		metrics:  metrics.New(metrics.Sources{Records: func() []v1alpha1.JobReport { return nil }}, now),
		listener: newLogReader(nothing, 30*time.Second), lastLogs: newLastLogs(), jobLogs: newJobLogs(0, nil),
		usage:        newUsageReader(func(context.Context, mpi.Job, jobstate.Observed) *agentapi.Usage { return nil }),
		refreshLimit: flowcontrol.NewTokenBucketRateLimiter(refreshesPerSecond, refreshesPerSecond),
	}
}

// updateRunning updates the report of a job that runs.
func updateRunning(t *testing.T, r *Reporter, job mpi.Job, seen jobstate.Observed) error {
	t.Helper()
	previous, err := r.Report(t.Context(), job)
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.Update(t.Context(), &kubeflow.MPIJob{}, job, seen, nil, jobstate.Outcome{Phase: v1alpha1.PhaseRunning}, previous)
	return err
}

// TestFiguresOutliveAConflict: figures that were read when the report could not be written are in the next one, although a later read has only
// later lines.
func TestFiguresOutliveAConflict(t *testing.T) {
	t.Parallel()
	conflict := false
	api := interceptor.NewClient(apiWithReports(t), interceptor.Funcs{
		Patch: func(ctx context.Context, api client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			if conflict {
				return apierrors.NewConflict(schema.GroupResource{Resource: "jobreports"}, object.GetName(), nil)
			}
			return api.Patch(ctx, object, patch, options...)
		},
	})
	p := newProgram(time.Hour)
	// Each read has the lines of the last 20 s, one per second.
	listen := func(_ context.Context, _ mpi.Job, seen jobstate.Observed) (evidence jobstate.Evidence) {
		for at := seen.Now.Add(-20 * time.Second); at.Before(seen.Now); at = at.Add(time.Second) {
			evidence.CurveLines = append(evidence.CurveLines, curves.Line{Time: at, Step: at.Sub(mpitest.Now).Seconds(), Epoch: math.NaN(), Figures: []curves.Figure{{Name: "loss", Value: 1}}})
		}
		return evidence
	}
	r := reporterFor(api)
	r.listener = newLogReader(listen, 30*time.Second)
	update := func(second int) error {
		p.seen.Now = mpitest.Now.Add(time.Duration(second) * time.Second)
		return updateRunning(t, r, p.job, p.seen)
	}
	for _, step := range []struct {
		second   int
		conflict bool
	}{{30, false}, {60, true}, {61, true}, {90, true}, {91, false}, {120, false}} {
		if conflict = step.conflict; (update(step.second) != nil) != step.conflict {
			t.Errorf("after %d s: the report could be written: %v", step.second, step.conflict)
		}
	}
	got, err := r.Report(t.Context(), p.job)
	if err != nil || got.Status.Curves == nil {
		t.Fatalf("the report is %+v: %v", got, err)
	}
	var want []int64
	for _, read := range []int64{30, 60, 90, 120} {
		for step := read - 20; step < read; step++ {
			want = append(want, step)
		}
	}
	if diff := cmp.Diff(want, got.Status.Curves.Figures[0].At); diff != "" {
		t.Error(diff)
	}
	if len(r.listener.unrecorded) > 0 {
		t.Errorf("lines are still kept: %+v", r.listener.unrecorded)
	}
}

// TestLateLinesAreBounded: a report that can never be written keeps few lines, and those of jobs that are gone are dropped.
func TestLateLinesAreBounded(t *testing.T) {
	t.Parallel()
	l := newLogReader(nil, time.Second)
	l.keepLines("gone", make([]curves.Line, 5), mpitest.Now)
	l.keepLines("job", make([]curves.Line, 5*maxLateLines), mpitest.Now.Add(keepUnused+time.Second))
	if got := len(l.takeLines("gone")); got > 0 {
		t.Errorf("%d lines of a job that is gone are kept", got)
	}
	if got := len(l.takeLines("job")); got != maxLateLines {
		t.Errorf("%d lines are kept, want %d", got, maxLateLines)
	}
	if got := len(l.takeLines("job")); got > 0 {
		t.Errorf("%d lines are kept although they were taken", got)
	}
}

// TestLastTraining: the progress of a job that has ended is that of its report if its output cannot be read any more.
func TestLastTraining(t *testing.T) {
	t.Parallel()
	read, kept := v1alpha1.Training{Epoch: "4/10"}, v1alpha1.Training{Epoch: "3/10"}
	report := &v1alpha1.JobReport{Status: v1alpha1.JobReportStatus{Training: &kept}}
	ended := jobstate.Outcome{Finish: &mpi.Finish{}}
	for name, test := range map[string]struct {
		read   v1alpha1.Training
		out    jobstate.Outcome
		report *v1alpha1.JobReport
		want   v1alpha1.Training
	}{
		"its pod is gone":     {v1alpha1.Training{}, ended, report, kept},
		"it was read":         {read, ended, report, read},
		"it runs":             {v1alpha1.Training{}, jobstate.Outcome{}, report, v1alpha1.Training{}},
		"no report":           {v1alpha1.Training{}, ended, nil, v1alpha1.Training{}},
		"a report without it": {v1alpha1.Training{}, ended, &v1alpha1.JobReport{}, v1alpha1.Training{}},
	} {
		if got := lastTraining(test.read, test.out, test.report); got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}
