// Package tracing sends the traces of jobs, and of the operator's reconciles, to an OpenTelemetry collector.
//
// Spans are put into a queue of bounded size, from which they are sent in batches in the background: nothing waits for a
// collector. What does not fit, or is not accepted, is lost and counted. A nil *Tracing sends nothing.
package tracing

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	oteltrace "go.opentelemetry.io/otel/trace"
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"opendatahub.io/mpijob/internal/version"
)

// scope is the name of what creates the spans.
const scope = "opendatahub.io/mpijob"

// Tracing sends spans.
type Tracing struct {
	jobs, passes oteltrace.Tracer
	// requests is the provider of passes.
	requests  oteltrace.TracerProvider
	providers []*sdktrace.TracerProvider
	spans     *prometheus.CounterVec
}

// FromEnvironment returns what the standard variables OTEL_* configure
// (https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables); nil if they name no endpoint for traces, or
// turn traces off.
func FromEnvironment(ctx context.Context) (*Tracing, error) {
	endpoint := first("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
	disabled, _ := strconv.ParseBool(os.Getenv("OTEL_SDK_DISABLED"))
	if endpoint == "" || disabled {
		return nil, nil
	}
	switch name := os.Getenv("OTEL_TRACES_EXPORTER"); name {
	case "", "otlp":
	case "none":
		return nil, nil
	default:
		return nil, fmt.Errorf("OTEL_TRACES_EXPORTER: %q is not supported; use otlp or none", name)
	}
	shown, err := withoutSecrets(endpoint)
	if err != nil {
		return nil, err
	}
	logger := log.Log.WithName("tracing")
	otel.SetLogger(logger)
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { logger.Error(err, "OpenTelemetry") }))
	exporter, err := newExporter(ctx)
	if err != nil {
		return nil, err
	}
	logger.Info("traces are sent", "endpoint", shown)
	return New(ctx, exporter)
}

// withoutSecrets returns an endpoint without what may be a secret in it: its user, password and query. Its errors do not contain it.
func withoutSecrets(endpoint string) (string, error) {
	at, err := url.Parse(endpoint)
	if err != nil || at.Host == "" {
		return "", errors.New("OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: is not a URL; use one such as https://collector.observability.svc:4318")
	}
	at.User, at.RawQuery, at.Fragment = nil, "", ""
	return at.String(), nil
}

// newExporter returns an exporter that the environment configures. It connects in the background.
func newExporter(ctx context.Context) (sdktrace.SpanExporter, error) {
	var exporter sdktrace.SpanExporter
	var err error
	switch protocol := first("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"); protocol {
	case "", "http/protobuf":
		exporter, err = otlptracehttp.New(ctx)
	case "grpc":
		exporter, err = otlptracegrpc.New(ctx)
	default:
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL: %q is not supported; use http/protobuf or grpc", protocol)
	}
	if err != nil {
		return nil, fmt.Errorf("set up sending of traces: %w", err)
	}
	return exporter, nil
}

// first returns the value of the first of these environment variables that is set.
func first(names ...string) string {
	for _, name := range names {
		if value := os.Getenv(name); value != "" {
			return value
		}
	}
	return ""
}

// New returns a Tracing that sends spans with an exporter, which it shuts down. The environment configures the resource, the
// queues, and the sampling of reconciles. All jobs are sampled: their spans are few.
func New(ctx context.Context, exporter sdktrace.SpanExporter) (*Tracing, error) {
	emitter, err := resource.New(ctx,
		resource.WithAttributes(semconv.ServiceName("mpijob-operator"), semconv.ServiceVersion(version.Get().Version)),
		resource.WithTelemetrySDK(), resource.WithHost(), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("describe the sender of traces: %w", err)
	}
	t := &Tracing{spans: NewSpans()}
	// Reconciles are many. Their spans have a queue of their own, so that they displace no spans of jobs.
	jobs := t.provider(exporter, sdktrace.WithResource(emitter), sdktrace.WithSampler(sdktrace.AlwaysSample()), sdktrace.WithIDGenerator(jobIDs{}))
	passes := t.provider(exporter, sdktrace.WithResource(emitter))
	t.jobs, t.passes, t.requests = jobs.Tracer(scope), passes.Tracer(scope), passes
	return t, nil
}

// provider returns a provider with a queue of its own.
func (t *Tracing) provider(exporter sdktrace.SpanExporter, options ...sdktrace.TracerProviderOption) *sdktrace.TracerProvider {
	q := &queue{SpanExporter: exporter, limit: queueSize(), errors: flowcontrol.NewTokenBucketPassiveRateLimiter(1./60, 1)}
	q.sent, q.failed, q.dropped = t.spans.WithLabelValues("sent"), t.spans.WithLabelValues("failed"), t.spans.WithLabelValues("dropped")
	q.SpanProcessor = sdktrace.NewBatchSpanProcessor(exporterOf{q}, sdktrace.WithMaxQueueSize(int(q.limit)))
	provider := sdktrace.NewTracerProvider(append(options, sdktrace.WithSpanProcessor(q))...)
	t.providers = append(t.providers, provider)
	return provider
}

// queueSize returns the number of spans that wait at most.
func queueSize() int64 {
	if size, err := strconv.ParseInt(os.Getenv("OTEL_BSP_MAX_QUEUE_SIZE"), 10, 32); err == nil && size > 0 {
		return size
	}
	return sdktrace.DefaultMaxQueueSize
}

// NewSpans returns the metric of sent and lost spans.
func NewSpans() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "mpijob_trace_spans_total", Help: "Spans of traces, by result: sent, failed (the collector did not accept them in time) or dropped (the queue was full).",
	}, []string{"result"})
}

// Spans returns the metric of sent and lost spans, by result.
func (t *Tracing) Spans() *prometheus.CounterVec { return t.spans }

// Shutdown sends what is in the queues, until the context ends.
func (t *Tracing) Shutdown(ctx context.Context) error {
	if t == nil {
		return nil
	}
	// The providers share an exporter, which the first one shuts down.
	var errs []error
	for _, provider := range t.providers {
		errs = append(errs, provider.ForceFlush(ctx))
	}
	for _, provider := range t.providers {
		errs = append(errs, provider.Shutdown(ctx))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("send the last spans: %w", err)
	}
	return nil
}

// queue limits the number of spans that were not sent yet, and counts those that were sent or lost.
type queue struct {
	sdktrace.SpanProcessor
	sdktrace.SpanExporter
	limit                 int64
	waiting               atomic.Int64
	sent, failed, dropped prometheus.Counter
	errors                flowcontrol.PassiveRateLimiter
}

// OnEnd puts a span into the queue, or drops it. It does not block.
func (q *queue) OnEnd(span sdktrace.ReadOnlySpan) {
	if q.waiting.Add(1) > q.limit {
		q.waiting.Add(-1)
		q.dropped.Inc()
		return
	}
	q.SpanProcessor.OnEnd(span)
}

// Shutdown sends the rest.
func (q *queue) Shutdown(ctx context.Context) error { return q.SpanProcessor.Shutdown(ctx) }

// exporterOf is the end of a queue.
type exporterOf struct{ *queue }

// ExportSpans sends spans. An error is counted, and logged once a minute.
func (q exporterOf) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	defer q.waiting.Add(-int64(len(spans)))
	if err := q.SpanExporter.ExportSpans(ctx, spans); err != nil {
		q.failed.Add(float64(len(spans)))
		if q.errors.TryAccept() {
			log.Log.WithName("tracing").Error(err, "spans are lost: the collector did not accept them", "spans", len(spans))
		}
		return nil
	}
	q.sent.Add(float64(len(spans)))
	return nil
}

// Shutdown shuts the exporter down.
func (q exporterOf) Shutdown(ctx context.Context) error { return q.SpanExporter.Shutdown(ctx) }

// shutdownTimeout is how long the last spans may take. The lease is released before.
const shutdownTimeout = 3 * time.Second

// Close sends what is in the queues, for a few seconds at most, and logs an error.
func (t *Tracing) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	if err := t.Shutdown(ctx); err != nil {
		log.Log.WithName("tracing").Error(err, "spans are lost")
	}
}
