package tracing

import (
	"context"

	"go.opentelemetry.io/otel/codes"
	oteltrace "go.opentelemetry.io/otel/trace"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/trace"
)

// Begin sets the trace of a job in its record, unless it has one or has ended.
func (t *Tracing) Begin(status *v1alpha1.JobReportStatus, job mpi.Job) {
	if t == nil || status.Trace != nil || status.CompletionTime != nil {
		return
	}
	status.Trace = trace.Begin(job)
}

// Send sends the spans that are new in a record that was written. The previous record is nil the first time. sessions are those of the
// launcher's runs that have ended, as far as they are known, the latest run first.
func (t *Tracing) Send(previous *v1alpha1.JobReport, next v1alpha1.JobReport, sessions ...agentapi.Sessions) {
	if t == nil {
		return
	}
	for _, span := range trace.Spans(previous, next, sessions...) {
		t.send(span)
	}
}

func (t *Tracing) send(s trace.Span) {
	ctx := context.WithValue(context.Background(), idKey{}, s)
	if s.Parent.IsValid() {
		ctx = oteltrace.ContextWithRemoteSpanContext(ctx, oteltrace.NewSpanContext(oteltrace.SpanContextConfig{
			TraceID: s.Trace, SpanID: s.Parent, TraceFlags: oteltrace.FlagsSampled, Remote: true,
		}))
	}
	_, span := t.jobs.Start(ctx, s.Name, oteltrace.WithTimestamp(s.Start), oteltrace.WithAttributes(s.Attributes...))
	for _, event := range s.Events {
		span.AddEvent(event.Name, oteltrace.WithTimestamp(event.At))
	}
	if s.Failed {
		span.SetStatus(codes.Error, s.Error)
	}
	span.End(oteltrace.WithTimestamp(s.End))
}

type idKey struct{}

// jobIDs gives spans the IDs that they have in the job's trace.
type jobIDs struct{}

// NewIDs returns the IDs of a span without a parent.
func (jobIDs) NewIDs(ctx context.Context) (oteltrace.TraceID, oteltrace.SpanID) {
	span, _ := ctx.Value(idKey{}).(trace.Span)
	return span.Trace, span.ID
}

// NewSpanID returns the ID of a span with a parent.
func (jobIDs) NewSpanID(ctx context.Context, _ oteltrace.TraceID) oteltrace.SpanID {
	span, _ := ctx.Value(idKey{}).(trace.Span)
	return span.ID
}
