package tracing

import (
	"cmp"
	"context"
	"net/http"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	oteltrace "go.opentelemetry.io/otel/trace"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/trace"
)

// Pass is a reconcile, or a step of one. Nil is one that is not recorded.
type Pass struct{ span oteltrace.Span }

// StartPass begins the trace of a reconcile of a job.
func (t *Tracing) StartPass(ctx context.Context, kind, namespace, name string) (context.Context, *Pass) {
	if t == nil {
		return ctx, nil
	}
	ctx, span := t.passes.Start(ctx, "reconcile", oteltrace.WithNewRoot(), oteltrace.WithAttributes(
		semconv.K8SNamespaceName(namespace), attribute.String(trace.AttributeKind, kind), attribute.String(trace.AttributeName, name)))
	return ctx, &Pass{span: span}
}

// Step begins a step of a reconcile.
func (p *Pass) Step(ctx context.Context, name string) (context.Context, *Pass) {
	if p == nil {
		return ctx, nil
	}
	ctx, span := p.span.TracerProvider().Tracer(scope).Start(ctx, name)
	return ctx, &Pass{span: span}
}

// Link links a reconcile to the trace of its job. The record is nil if there is none.
func (p *Pass) Link(record *v1alpha1.JobReport) {
	if p == nil {
		return
	}
	if id, span, traced := trace.Job(record); traced {
		p.span.SetAttributes(attribute.String(trace.AttributeUID, string(record.Spec.JobRef.UID)))
		p.span.AddLink(oteltrace.Link{SpanContext: oteltrace.NewSpanContext(oteltrace.SpanContextConfig{
			TraceID: id, SpanID: span, TraceFlags: oteltrace.FlagsSampled, Remote: true,
		})})
	}
}

// End ends a reconcile or a step. The text of an error may contain values of the job, so that only its kind is recorded.
func (p *Pass) End(err error) {
	if p == nil {
		return
	}
	if err != nil {
		kind := cmp.Or(string(apierrors.ReasonForError(err)), semconv.ErrorTypeOther.Value.AsString())
		p.span.SetStatus(codes.Error, kind)
		p.span.SetAttributes(semconv.ErrorTypeKey.String(kind))
	}
	p.span.End()
}

// WrapRequests records the requests of reconciles to the API server as spans. Watches, leases and other requests are not part of
// a reconcile and are not recorded.
func (t *Tracing) WrapRequests(config *rest.Config) {
	if t == nil {
		return
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return otelhttp.NewTransport(next,
			otelhttp.WithTracerProvider(t.requests),
			otelhttp.WithPropagators(propagation.NewCompositeTextMapPropagator()), // the API server has traces of its own
			otelhttp.WithFilter(func(r *http.Request) bool { return oteltrace.SpanFromContext(r.Context()).IsRecording() }))
	})
}
