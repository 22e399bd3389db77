// Package trace derives the spans of a job's trace from its record, the JobReport.
//
// A span is complete when what it stands for has ended. Spans are those that are complete in a record that was written and
// were not in the record before, so that each is returned once, also if operators restart. IDs follow from the job's UID.
package trace

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	oteltrace "go.opentelemetry.io/otel/trace"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/mpi"
)

// Span is a part of a job's life.
type Span struct {
	Trace oteltrace.TraceID
	ID    oteltrace.SpanID
	// Parent is zero for the job itself, unless it is part of another trace.
	Parent     oteltrace.SpanID
	Name       string
	Start, End time.Time
	Attributes []attribute.KeyValue
	Events     []Event
	// Failed is whether the job failed in this part, and Error is why.
	Failed bool
	Error  string
}

// Event is something that happened at a time.
type Event struct {
	Name string
	At   time.Time
}

// Attributes of spans for which OpenTelemetry defines none.
const (
	AttributeKind           = "mpijob.kind"
	AttributeName           = "mpijob.name"
	AttributeUID            = "mpijob.uid"
	attributePhase          = "mpijob.phase"
	attributeReason         = "mpijob.reason"
	attributeReport         = "mpijob.report"
	attributeImage          = "mpijob.image"
	attributeRuntime        = "mpijob.runtime"
	attributeQueue          = "mpijob.queue"
	attributeImplementation = "mpijob.mpi.implementation"
	attributeVersions       = "mpijob.mpi.versions"
	attributeWorkers        = "mpijob.workers"
	attributeRanks          = "mpijob.ranks"
	attributeAttempts       = "mpijob.launcher.attempts"
	attributeMedian         = "mpijob.median_ms"
	attributeSessions       = "mpijob.sessions"
	attributeHost           = "mpijob.host"
)

// nameStartup is the span of a start, the parent of its steps.
const nameStartup = "Startup"

// Begin returns the trace of a job; nil if its caller's trace is not sampled.
func Begin(job mpi.Job) *v1alpha1.Trace {
	switch parent := job.TraceParent; {
	case parent == (mpi.TraceParent{}):
		return &v1alpha1.Trace{ID: idOf(job.UID).String()}
	case parent.Sampled:
		return &v1alpha1.Trace{ID: parent.TraceID, Parent: parent.SpanID}
	}
	return nil
}

// idOf returns the trace ID of a job of its own: its UID, of which the last 7 bytes are random, as W3C Trace Context asks for.
func idOf(uid types.UID) (id oteltrace.TraceID) {
	if raw, err := hex.DecodeString(strings.ReplaceAll(string(uid), "-", "")); err == nil && len(raw) == len(id) {
		copy(id[:], raw)
		if id.IsValid() {
			return id
		}
	}
	sum := sha256.Sum256([]byte(uid))
	copy(id[:], sum[:])
	return id
}

// spanID returns the ID of a part of a job.
func spanID(uid types.UID, part string) (id oteltrace.SpanID) {
	sum := sha256.Sum256([]byte(string(uid) + " " + part))
	copy(id[:], sum[:])
	return id
}

// Job returns the trace and the span of a job; false if it has no trace.
func Job(record *v1alpha1.JobReport) (oteltrace.TraceID, oteltrace.SpanID, bool) {
	if record == nil || record.Status.Trace == nil {
		return oteltrace.TraceID{}, oteltrace.SpanID{}, false
	}
	id, err := oteltrace.TraceIDFromHex(record.Status.Trace.ID)
	return id, spanID(record.Spec.JobRef.UID, "job"), err == nil
}

// Spans returns the spans that are complete in a record and were not in the previous one, which is nil the first time. A job
// that had ended when it was first observed has none.
//
// Sessions are not part of a record. Those of the launcher's runs, the latest first, have spans at the end of the job.
func Spans(previous *v1alpha1.JobReport, next v1alpha1.JobReport, sessions ...agentapi.Sessions) []Span {
	id, root, traced := Job(&next)
	var before v1alpha1.JobReportStatus
	if previous != nil {
		before = previous.Status
	}
	ended := next.Status.CompletionTime != nil
	if !traced || before.CompletionTime != nil || previous == nil && ended {
		return nil
	}
	b := builder{record: next, trace: id, root: root}
	spans := b.phases(before)
	spans = append(spans, b.startups(before)...)
	if ended {
		spans = append(spans, b.sessions(sessions)...)
		spans = append(spans, b.job(countSessions(sessions)))
	}
	return spans
}

// builder makes the spans of a job.
type builder struct {
	record v1alpha1.JobReport
	trace  oteltrace.TraceID
	root   oteltrace.SpanID
}

// span returns a span of the job. Clocks differ: none ends before it starts.
func (b builder) span(part string, parent oteltrace.SpanID, name string, start, end time.Time, attributes ...attribute.KeyValue) Span {
	ref := b.record.Spec.JobRef
	if end.Before(start) {
		end = start
	}
	return Span{
		Trace: b.trace, ID: spanID(ref.UID, part), Parent: parent, Name: name, Start: start, End: end,
		Attributes: append([]attribute.KeyValue{
			semconv.K8SNamespaceName(b.record.Namespace),
			attribute.String(AttributeKind, ref.Kind), attribute.String(AttributeName, ref.Name), attribute.String(AttributeUID, string(ref.UID)),
		}, attributes...),
	}
}

// phases returns a span for each phase that the job has left, or entered again. A record has when each phase was last entered and
// how long it took in all: the difference to the record before is the last time.
func (b builder) phases(before v1alpha1.JobReportStatus) (spans []Span) {
	status := b.record.Status
	for _, phase := range status.PhaseTimes {
		start, seconds := phase.Since.Time, phase.Seconds
		known := slices.IndexFunc(before.PhaseTimes, func(t v1alpha1.PhaseTime) bool { return t.Phase == phase.Phase })
		if known >= 0 {
			start, seconds = before.PhaseTimes[known].Since.Time, seconds-before.PhaseTimes[known].Seconds
		}
		isCurrent := phase.Phase == status.Phase && (known < 0 || phase.Since.Equal(&before.PhaseTimes[known].Since))
		if isCurrent || known >= 0 && before.Phase != phase.Phase {
			continue
		}
		end := start.Add(time.Duration(seconds) * time.Second)
		span := b.span("phase "+string(phase.Phase)+" "+second(start), b.root, string(phase.Phase), start, end)
		if status.Phase == v1alpha1.PhaseFailed && phase == lastPhase(status) {
			b.fail(&span)
		}
		spans = append(spans, span)
	}
	return spans
}

// lastPhase returns the phase before the end of a job.
func lastPhase(status v1alpha1.JobReportStatus) (last v1alpha1.PhaseTime) {
	for _, phase := range status.PhaseTimes {
		if phase.Phase != status.Phase && !phase.Since.Before(&last.Since) {
			last = phase
		}
	}
	return last
}

// startups returns a span for each step of a start that has become known, and one for the start itself when the job has ended
// or is started again: until then, later steps may become known.
func (b builder) startups(before v1alpha1.JobReportStatus) (spans []Span) {
	now, old := b.record.Status.Startup, before.Startup
	replaced := old != nil && (now == nil || !now.Since.Equal(&old.Since))
	if replaced {
		spans = append(spans, b.startup(*old))
		old = nil
	}
	if now == nil {
		return spans
	}
	parent := spanID(b.record.Spec.JobRef.UID, startupPart(now.Since))
	for _, step := range now.Steps {
		if old != nil && slices.ContainsFunc(old.Steps, func(known v1alpha1.StartupStep) bool { return known.Name == step.Name }) {
			continue
		}
		start := now.Since.Add(time.Duration(step.StartMilliseconds) * time.Millisecond)
		span := b.span(startupPart(now.Since)+" "+string(step.Name), parent, string(step.Name), start, start.Add(time.Duration(step.Milliseconds)*time.Millisecond))
		if step.Pod != "" {
			span.Attributes = append(span.Attributes, semconv.K8SPodName(step.Pod))
		}
		if step.Node != "" {
			span.Attributes = append(span.Attributes, semconv.K8SNodeName(step.Node))
		}
		if step.MedianMilliseconds > 0 {
			span.Attributes = append(span.Attributes, attribute.Int64(attributeMedian, step.MedianMilliseconds))
		}
		spans = append(spans, span)
	}
	if b.record.Status.CompletionTime != nil {
		spans = append(spans, b.startup(*now))
	}
	return spans
}

// startup returns the span of a start, from its first step on.
func (b builder) startup(s v1alpha1.Startup) Span {
	first := int64(0)
	for _, step := range s.Steps {
		first = min(first, step.StartMilliseconds)
	}
	start, end := s.Since.Add(time.Duration(first)*time.Millisecond), s.Since.Add(time.Duration(s.Milliseconds)*time.Millisecond)
	for _, step := range s.Steps {
		if at := s.Since.Add(time.Duration(step.StartMilliseconds+step.Milliseconds) * time.Millisecond); at.After(end) {
			end = at
		}
	}
	return b.span(startupPart(s.Since), b.root, nameStartup, start, end)
}

func startupPart(since metav1.Time) string { return "startup " + second(since.Time) }

func second(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// job returns the span of the whole job, with its timeline. Who did what is left out: traces have other readers than reports.
func (b builder) job(sessions int64) Span {
	status, ref := b.record.Status, b.record.Spec.JobRef
	start := *status.CompletionTime
	if status.StartTime != nil {
		start = *status.StartTime
	}
	var parent oteltrace.SpanID
	if status.Trace.Parent != "" {
		// The API's schema has checked it.
		parent, _ = oteltrace.SpanIDFromHex(status.Trace.Parent)
	}
	span := b.span("job", parent, ref.Kind, start.Time, status.CompletionTime.Time,
		attribute.String(attributePhase, string(status.Phase)), attribute.String(attributeReason, status.Reason), attribute.String(attributeReport, b.record.Name),
		attribute.Int64(attributeWorkers, int64(status.Workers.Wanted)))
	text := func(key, value string) {
		if value != "" {
			span.Attributes = append(span.Attributes, attribute.String(key, value))
		}
	}
	text(attributeImplementation, status.MPI.Implementation)
	if status.MPI.Ranks > 0 {
		span.Attributes = append(span.Attributes, attribute.Int64(attributeRanks, status.MPI.Ranks))
	}
	if sessions > 0 {
		span.Attributes = append(span.Attributes, attribute.Int64(attributeSessions, sessions))
	}
	if run := status.Run; run != nil {
		text(attributeImage, run.Image)
		text(string(semconv.ProcessCommandLineKey), run.Command)
		text(attributeRuntime, run.Runtime)
		if len(run.MPIVersions) > 0 {
			span.Attributes = append(span.Attributes, attribute.StringSlice(attributeVersions, run.MPIVersions))
		}
		if run.Attempts > 0 {
			span.Attributes = append(span.Attributes, attribute.Int64(attributeAttempts, int64(run.Attempts)))
		}
	}
	if status.Waited != nil {
		text(attributeQueue, status.Waited.Queue)
	}
	for _, entry := range status.Timeline {
		span.Events = append(span.Events, Event{Name: entry.Event, At: entry.Time.Time})
	}
	if status.Phase == v1alpha1.PhaseFailed {
		b.fail(&span)
	}
	return span
}

// fail marks a span as that in which the job failed, with its cause.
func (b builder) fail(span *Span) {
	status := b.record.Status
	code := status.Reason
	if len(status.Findings) > 0 {
		code, span.Error = status.Findings[0].Code, status.Findings[0].Summary
	}
	span.Failed = true
	span.Attributes = append(span.Attributes, semconv.ErrorTypeKey.String(code))
}
