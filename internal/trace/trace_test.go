package trace_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	oteltrace "go.opentelemetry.io/otel/trace"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/diagnose"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/report"
	"opendatahub.io/mpijob/internal/trace"
)

const uid = "0f3d9c6e-5a4b-4c1d-8e2f-102030405060"

func newJob() mpi.Job { return mpitest.Job(2, func(j *mpi.Job) { j.UID = uid }) }

// life is a job whose records are written one after the other, and the spans that were sent.
type life struct {
	t    *testing.T
	job  mpi.Job
	last *v1alpha1.JobReport
	sent []trace.Span
}

// pass writes a record as the operator does. change adds what a test does not observe by pods.
func (l *life) pass(after time.Duration, seen jobstate.Observed, outcome jobstate.Outcome, change func(*v1alpha1.JobReportStatus)) {
	l.t.Helper()
	seen.Now = mpitest.Now.Add(after)
	if outcome.Phase == v1alpha1.PhaseQueued {
		seen.Queue = &jobstate.QueueState{Name: "team"}
	}
	next := report.Make(l.job, seen, jobstate.Evidence{}, outcome, diagnose.Job(l.job, seen, jobstate.Evidence{}, outcome), l.last)
	if next.Status.Trace == nil {
		next.Status.Trace = trace.Begin(l.job)
	}
	if change != nil {
		change(&next.Status)
	}
	l.sent = append(l.sent, trace.Spans(l.last, next)...)
	l.last = &next
}

// lines prints spans with the times since the job was created.
func (l *life) lines() []string {
	names := map[oteltrace.SpanID]string{}
	for _, span := range l.sent {
		names[span.ID] = span.Name
	}
	var lines []string
	since := func(at time.Time) float64 { return at.Sub(mpitest.Now).Seconds() }
	for _, span := range l.sent {
		line := fmt.Sprintf("%g-%g %s", since(span.Start), since(span.End), span.Name)
		if span.Parent.IsValid() {
			line += " of " + names[span.Parent]
		}
		if span.Failed {
			line += " failed: " + span.Error
		}
		for _, attribute := range span.Attributes {
			if strings.HasPrefix(string(attribute.Key), "k8s.pod") || strings.HasPrefix(string(attribute.Key), "error") {
				line += fmt.Sprintf(" %s=%s", attribute.Key, attribute.Value.AsString())
			}
		}
		lines = append(lines, line)
	}
	return lines
}

// running returns the pods of a job, which were created, placed, started and ready one second after the other.
func running(job mpi.Job, created time.Duration) jobstate.Observed {
	at := func(after time.Duration) metav1.Time { return metav1.NewTime(mpitest.Now.Add(created + after)) }
	seen := jobstate.Observed{Launcher: mpitest.Launcher(job), LauncherPods: []*corev1.Pod{mpitest.LauncherPod(job, 0, corev1.PodRunning)}, Workers: mpitest.Workers(job, corev1.PodRunning)}
	for i, pod := range seen.AllPods() {
		pod.CreationTimestamp, pod.Spec.NodeName = at(0), fmt.Sprintf("node-%d", i)
		late := time.Duration(i) * time.Second // worker 1 is the slowest
		pod.Status.Conditions = []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: at(time.Second)},
			{Type: "PodReadyToStartContainers", Status: corev1.ConditionTrue, LastTransitionTime: at(2 * time.Second)},
			{Type: corev1.PodInitialized, Status: corev1.ConditionTrue, LastTransitionTime: at(2 * time.Second)},
			{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: at(5*time.Second + 2*late)},
		}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "main", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at(3*time.Second + late)}},
		}}
	}
	return seen
}

// TestLife: each part of a job's life is sent once, when it has ended, with its times: a job that waits in a queue, runs, is
// suspended and resumed, and fails.
func TestLife(t *testing.T) {
	l := &life{t: t, job: newJob()}
	none := jobstate.Observed{}
	l.pass(0, none, jobstate.Outcome{Phase: v1alpha1.PhasePending}, nil)
	l.pass(1*time.Second, none, jobstate.Outcome{Phase: v1alpha1.PhaseQueued}, nil)
	l.pass(30*time.Second, none, jobstate.Outcome{Phase: v1alpha1.PhaseQueued}, nil)
	l.pass(61*time.Second, none, jobstate.Outcome{Phase: v1alpha1.PhaseInitializing}, nil)
	l.pass(70*time.Second, running(l.job, 61*time.Second), jobstate.Outcome{Phase: v1alpha1.PhaseRunning}, nil)
	l.pass(100*time.Second, none, jobstate.Outcome{Phase: v1alpha1.PhaseSuspended}, nil)
	l.pass(200*time.Second, none, jobstate.Outcome{Phase: v1alpha1.PhaseInitializing}, nil)
	l.pass(210*time.Second, running(l.job, 200*time.Second), jobstate.Outcome{Phase: v1alpha1.PhaseRunning}, nil)
	l.pass(300*time.Second, running(l.job, 200*time.Second), jobstate.Outcome{Phase: v1alpha1.PhaseFailed, Reason: "BackoffLimitExceeded", Finish: &mpi.Finish{At: mpitest.Now.Add(300 * time.Second)}}, func(s *v1alpha1.JobReportStatus) {
		s.Findings = []v1alpha1.Finding{{Code: "OutOfMemory", Summary: "Rank 3 ran out of memory."}}
	})
	l.pass(310*time.Second, none, jobstate.Outcome{Phase: v1alpha1.PhaseFailed, Reason: "BackoffLimitExceeded", Finish: &mpi.Finish{At: mpitest.Now.Add(300 * time.Second)}}, nil)
	want := []string{
		"0-1 Pending of MPIJob",
		"1-61 Queued of MPIJob",
		"61-66 Initializing of MPIJob",
		"0-61 Admission of Startup",
		"61-61 PodsCreated of Startup k8s.pod.name=pi-launcher-0",
		"61-62 Scheduled of Startup k8s.pod.name=pi-launcher-0",
		"62-63 Volumes of Startup k8s.pod.name=pi-launcher-0",
		"63-66 Containers of Startup k8s.pod.name=pi-worker-1",
		"66-70 Ready of Startup k8s.pod.name=pi-worker-1",
		"66-100 Running of MPIJob",
		"100-200 Suspended of MPIJob",
		"200-205 Initializing of MPIJob",
		"0-70 Startup of MPIJob",
		"200-200 PodsCreated of Startup k8s.pod.name=pi-launcher-0",
		"200-201 Scheduled of Startup k8s.pod.name=pi-launcher-0",
		"201-202 Volumes of Startup k8s.pod.name=pi-launcher-0",
		"202-205 Containers of Startup k8s.pod.name=pi-worker-1",
		"205-209 Ready of Startup k8s.pod.name=pi-worker-1",
		"205-300 Running of MPIJob failed: Rank 3 ran out of memory. error.type=OutOfMemory",
		"200-209 Startup of MPIJob",
		"0-300 MPIJob failed: Rank 3 ran out of memory. error.type=OutOfMemory",
	}
	if diff := cmp.Diff(want, l.lines()); diff != "" {
		t.Errorf("the spans differ (-want +got):\n%s", diff)
	}
}

// TestRandomLives: whatever phases a job passes through, no span is sent twice, the spans of a phase add up to the time that
// the report has for it, and each parent is sent in the end.
func TestRandomLives(t *testing.T) {
	phases := []v1alpha1.Phase{v1alpha1.PhasePending, v1alpha1.PhaseQueued, v1alpha1.PhaseGangScheduling, v1alpha1.PhaseInitializing, v1alpha1.PhaseRunning, v1alpha1.PhaseSuspended}
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		l := &life{t: t, job: newJob()}
		at := time.Duration(0)
		var created time.Duration
		for range 2 + random.IntN(12) {
			phase := phases[random.IntN(len(phases))]
			seen := jobstate.Observed{}
			if phase == v1alpha1.PhaseRunning {
				if l.last == nil || l.last.Status.Phase != phase {
					created = at
					at += 10 * time.Second
				}
				seen = running(l.job, created)
			}
			l.pass(at, seen, jobstate.Outcome{Phase: phase}, nil)
			at += time.Duration(random.IntN(100)) * time.Second
		}
		end := jobstate.Outcome{Phase: v1alpha1.PhaseSucceeded, Finish: &mpi.Finish{Succeeded: true, At: mpitest.Now.Add(at)}}
		l.pass(at, running(l.job, created), end, nil)
		l.pass(at+time.Minute, jobstate.Observed{}, end, nil)

		ids, took := map[oteltrace.SpanID]bool{}, map[string]int64{}
		for _, span := range l.sent {
			if ids[span.ID] {
				t.Errorf("seed %d: span %s is sent twice", seed, span.Name)
			}
			ids[span.ID] = true
			took[span.Name] += int64(span.End.Sub(span.Start) / time.Second)
			if span.Trace.String() != strings.ReplaceAll(uid, "-", "") {
				t.Errorf("seed %d: span %s is in trace %s", seed, span.Name, span.Trace)
			}
		}
		for _, span := range l.sent {
			if root := span.Name == "MPIJob"; root == ids[span.Parent] {
				t.Errorf("seed %d: the parent of span %s is %s", seed, span.Name, span.Parent)
			}
		}
		for _, phase := range l.last.Status.PhaseTimes {
			if got := took[string(phase.Phase)]; got != phase.Seconds {
				t.Errorf("seed %d: the spans of phase %s took %d s, the report has %d s\n%s", seed, phase.Phase, got, phase.Seconds, strings.Join(l.lines(), "\n"))
			}
		}
		if t.Failed() {
			return
		}
	}
}

// TestCaller: a job that is part of another trace has its ID, and the caller's span as parent; without sampling it has no trace.
func TestCaller(t *testing.T) {
	ended := jobstate.Outcome{Phase: v1alpha1.PhaseSucceeded, Finish: &mpi.Finish{Succeeded: true, At: mpitest.Now.Add(time.Minute)}}
	live := func(parent mpi.TraceParent, uid string) *life {
		l := &life{t: t, job: newJob()}
		l.job.TraceParent, l.job.UID = parent, types.UID(uid)
		l.pass(0, jobstate.Observed{}, jobstate.Outcome{Phase: v1alpha1.PhasePending}, nil)
		l.pass(time.Minute, running(l.job, time.Second), ended, nil)
		return l
	}
	const id, parent = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	one, other := live(mpi.TraceParent{TraceID: id, SpanID: parent, Sampled: true}, uid), live(mpi.TraceParent{TraceID: id, SpanID: parent, Sampled: true}, "11111111-5a4b-4c1d-8e2f-102030405060")
	roots := map[oteltrace.SpanID]bool{}
	for _, l := range []*life{one, other} {
		root := l.sent[len(l.sent)-1]
		if root.Trace.String() != id || root.Parent.String() != parent || l.last.Status.Trace.ID != id {
			t.Errorf("the job's span is %+v", root)
		}
		roots[root.ID] = true
		if trace, span, traced := trace.Job(l.last); !traced || trace != root.Trace || span != root.ID {
			t.Errorf("Job returns %s, %s, %v", trace, span, traced)
		}
	}
	if len(roots) != 2 {
		t.Error("two jobs of a trace have the same span")
	}
	if off := live(mpi.TraceParent{TraceID: id, SpanID: parent}, uid); len(off.sent) > 0 || off.last.Status.Trace != nil {
		t.Errorf("the trace of the caller is not sampled, and %d spans are sent", len(off.sent))
	}
	if odd := live(mpi.TraceParent{}, "not a UUID"); len(odd.last.Status.Trace.ID) != 32 {
		t.Errorf("the trace ID is %q", odd.last.Status.Trace.ID)
	}
}

// TestContent: spans have what the report has of a job, but no users; a job that had ended before it was observed has none.
func TestContent(t *testing.T) {
	l := &life{t: t, job: newJob()}
	l.job.Authors.Creator = "alice"
	l.job.Launcher.Template.Spec.Containers[0].Command = []string{"mpirun", "train", "--token=hf_" + strings.Repeat("s", 34)}
	masker, err := logs.NewMasker(nil)
	if err != nil {
		t.Fatal(err)
	}
	mask := func(s *v1alpha1.JobReportStatus) { report.MaskCommand(s, masker.Text) }
	l.pass(0, jobstate.Observed{}, jobstate.Outcome{Phase: v1alpha1.PhasePending}, mask)
	ended := jobstate.Outcome{Phase: v1alpha1.PhaseSucceeded, Workers: jobstate.Tally{Wanted: 2}, Finish: &mpi.Finish{Succeeded: true, At: mpitest.Now.Add(time.Minute)}}
	l.pass(time.Minute, running(l.job, time.Second), ended, mask)
	root := l.sent[len(l.sent)-1]
	got := map[string]string{}
	for _, attribute := range root.Attributes {
		got[string(attribute.Key)] = attribute.Value.String()
	}
	want := map[string]string{
		"k8s.namespace.name": l.job.Namespace, "mpijob.kind": "MPIJob", "mpijob.name": "pi", "mpijob.uid": uid, "mpijob.report": l.last.Name,
		"mpijob.phase": "Succeeded", "mpijob.reason": "", "mpijob.workers": "2", "mpijob.ranks": "2", "mpijob.mpi.implementation": "OpenMPI",
		"mpijob.image": l.last.Status.Run.Image, "mpijob.launcher.attempts": "1", "process.command_line": "mpirun train --token=****",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the attributes differ (-want +got):\n%s", diff)
	}
	if all := fmt.Sprintf("%+v", l.sent); strings.Contains(all, "alice") || strings.Contains(all, "hf_s") {
		t.Errorf("the spans contain a user or a secret: %s", all)
	}
	if len(root.Events) == 0 || root.Events[0].Name != "Created" || root.Events[len(root.Events)-1].Name != "Succeeded" {
		t.Errorf("the events are %+v", root.Events)
	}
	if spans := trace.Spans(nil, *l.last); len(spans) > 0 {
		t.Errorf("a job that had ended has %d spans", len(spans))
	}
}

// TestSessions: at the end of a job, each of the launcher's sessions has a span within the time of the job, at most 64 of them; all are
// counted. What is no session is left out, whatever a program of the job has written.
func TestSessions(t *testing.T) {
	start, end := metav1.NewTime(mpitest.Now), metav1.NewTime(mpitest.Now.Add(100*time.Second))
	first := mpitest.Now.Add(40 * time.Second).UnixMilli()
	run := func(count int32, sessions ...agentapi.Session) agentapi.Sessions {
		return agentapi.Sessions{Count: count, First: first, List: sessions}
	}
	good := agentapi.Session{Host: "pi-worker-0", At: 100, Connected: 250, Ranks: 650, End: 50_000}
	for name, test := range map[string]struct {
		runs  []agentapi.Sessions
		want  []string
		count string
	}{
		"none": {},
		"two workers": {
			[]agentapi.Sessions{run(2, good, agentapi.Session{Host: "pi-worker-1", Connected: 100, End: 20_000, Code: agentapi.ConnectionLost})},
			[]string{"40.1-90.1 pi-worker-0 Connected=40.35 RanksStarted=40.75", "40-60 pi-worker-1 Connected=40.1 error=ConnectionLost"},
			"2",
		},
		"one that was never connected": {[]agentapi.Sessions{run(1, agentapi.Session{Host: "pi-worker-0", End: 12_000, Code: agentapi.Unreachable})}, []string{"40-52 pi-worker-0 error=WorkerUnreachable"}, "1"},
		"two runs":                     {[]agentapi.Sessions{run(1, good), run(20, good)}, []string{"40.1-90.1 pi-worker-0 Connected=40.35 RanksStarted=40.75", "40.1-90.1 pi-worker-0 Connected=40.35 RanksStarted=40.75"}, "21"},
		"too many":                     {slices.Repeat([]agentapi.Sessions{run(100, slices.Repeat([]agentapi.Session{{Host: "h", End: 1000}}, 100)...)}, 10), slices.Repeat([]string{"40-41 h"}, 64), "1000"},
		"odd hosts":                    {[]agentapi.Sessions{run(4, agentapi.Session{}, agentapi.Session{Host: "a b"}, agentapi.Session{Host: strings.Repeat("h", 64)}, agentapi.Session{Host: "-"})}, nil, "4"},
		"odd times":                    {[]agentapi.Sessions{run(-3, agentapi.Session{Host: "a", At: -5, Connected: math.MaxInt64, Ranks: -1, End: math.MaxInt64}), {First: math.MaxInt64, List: []agentapi.Session{{Host: "b"}}}, {First: math.MinInt64, List: []agentapi.Session{{Host: "c", Code: "an odd code"}}}}, []string{"40-100 a Connected=100", "100-100 b", "0-0 c"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			previous := v1alpha1.JobReport{}
			previous.Spec.JobRef = v1alpha1.JobReference{Kind: "MPIJob", Name: "pi", UID: uid}
			previous.Status.Trace, previous.Status.StartTime = trace.Begin(newJob()), &start
			if spans := trace.Spans(&previous, *previous.DeepCopy(), test.runs...); len(spans) > 0 {
				t.Errorf("%d spans are sent while the job runs", len(spans))
			}
			next := *previous.DeepCopy()
			next.Status.CompletionTime = &end
			spans := trace.Spans(&previous, next, test.runs...)
			since := func(at time.Time) string { return fmt.Sprintf("%g", at.Sub(mpitest.Now).Seconds()) }
			attributes := func(span trace.Span) map[string]string {
				found := map[string]string{}
				for _, attribute := range span.Attributes {
					found[string(attribute.Key)] = attribute.Value.String()
				}
				return found
			}
			root := spans[len(spans)-1]
			var got []string
			ids := map[oteltrace.SpanID]bool{}
			for _, span := range spans[:len(spans)-1] {
				line := since(span.Start) + "-" + since(span.End) + " " + attributes(span)["mpijob.host"]
				for _, event := range span.Events {
					line += " " + event.Name + "=" + since(event.At)
				}
				if span.Failed {
					line += " error=" + attributes(span)["error.type"]
				}
				if span.Name != "Session" || span.Parent != root.ID || ids[span.ID] {
					t.Errorf("the span is %+v", span)
				}
				ids[span.ID] = true
				got = append(got, line)
			}
			if diff := cmp.Diff(test.want, got); diff != "" || attributes(root)["mpijob.sessions"] != test.count {
				t.Errorf("%s sessions are counted; the spans differ (-want +got):\n%s", attributes(root)["mpijob.sessions"], diff)
			}
			if again := trace.Spans(&next, next, test.runs...); len(again) > 0 {
				t.Errorf("%d spans are sent again", len(again))
			}
		})
	}
}
