package tracing_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/tracing"
)

const uid = "0f3d9c6e-5a4b-4c1d-8e2f-102030405060"

// left returns two records of a job, between which it left the phase Pending.
func left(t *testing.T, tr *tracing.Tracing) (previous *v1alpha1.JobReport, next v1alpha1.JobReport) {
	t.Helper()
	at := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	previous = &v1alpha1.JobReport{Spec: v1alpha1.JobReportSpec{JobRef: v1alpha1.JobReference{Kind: "MPIJob", Name: "pi", UID: uid}}}
	previous.Status = v1alpha1.JobReportStatus{Phase: v1alpha1.PhasePending, PhaseTimes: []v1alpha1.PhaseTime{{Phase: v1alpha1.PhasePending, Since: at}}}
	tr.Begin(&previous.Status, mpi.Job{UID: uid})
	next = *previous.DeepCopy()
	next.Status.Phase, next.Status.PhaseTimes[0].Seconds = v1alpha1.PhaseRunning, 7
	return previous, next
}

// TestOff: without an endpoint, or turned off, nothing is sent, and all functions can be called.
func TestOff(t *testing.T) {
	for name, env := range map[string]map[string]string{
		"no endpoint": {},
		"no SDK":      {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:4318", "OTEL_SDK_DISABLED": "true"},
		"no traces":   {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:4318", "OTEL_TRACES_EXPORTER": "none"},
	} {
		t.Run(name, func(t *testing.T) {
			for key, value := range env {
				t.Setenv(key, value)
			}
			tr, err := tracing.FromEnvironment(t.Context())
			if tr != nil || err != nil {
				t.Fatalf("got %v, %v", tr, err)
			}
			previous, next := left(t, tr)
			if previous.Status.Trace != nil {
				t.Error("the record has a trace")
			}
			tr.Send(previous, next)
			config := &rest.Config{}
			if tr.WrapRequests(config); config.WrapTransport != nil {
				t.Error("requests are wrapped")
			}
			ctx, pass := tr.StartPass(t.Context(), "MPIJob", "ns", "pi")
			stepCtx, step := pass.Step(ctx, "act")
			if ctx != t.Context() || stepCtx != ctx {
				t.Error("the context has changed")
			}
			pass.Link(previous)
			step.End(errors.New("failed"))
			pass.End(nil)
			tr.Close()
		})
	}
}

func TestUnsupported(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://localhost:4318/v1/traces")
	for key, value := range map[string]string{"OTEL_TRACES_EXPORTER": "zipkin", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"} {
		t.Run(key, func(t *testing.T) {
			t.Setenv(key, value)
			if tr, err := tracing.FromEnvironment(t.Context()); tr != nil || err == nil {
				t.Errorf("%s=%s is accepted", key, value)
			}
		})
	}
}

// TestEndpointIsLoggedWithoutSecrets: the user, password and query of the endpoint do not appear in the log or in an error.
func TestEndpointIsLoggedWithoutSecrets(t *testing.T) {
	var logged strings.Builder
	log.SetLogger(funcr.New(func(prefix, args string) { logged.WriteString(prefix + " " + args + "\n") }, funcr.Options{}))
	for endpoint, want := range map[string]string{
		"https://ops:s3cret@127.0.0.1:4318": "https://127.0.0.1:4318", "https://127.0.0.1:4318/v1?token=s3cret": "https://127.0.0.1:4318/v1",
		"https://ops:s3cret@127.0.0.1:4318/%zz": "", "ops:s3cret@127.0.0.1:4318": "", "http://127.0.0.1:4318/#s3cret": "http://127.0.0.1:4318/",
	} {
		logged.Reset()
		t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
		tr, err := tracing.FromEnvironment(t.Context())
		tr.Close()
		if (err != nil) != (want == "") || err != nil && strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", endpoint, err)
		}
		if got := logged.String(); strings.Contains(got, "s3cret") || !strings.Contains(got, want) {
			t.Errorf("%s: the log has %s", endpoint, got)
		}
	}
}

// TestBegin: a job gets its trace with its first record, keeps it, and gets none once it has ended: the records of finished jobs
// are not written again when traces are turned on.
func TestBegin(t *testing.T) {
	tr, err := tracing.New(t.Context(), tracetest.NewInMemoryExporter())
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	var status v1alpha1.JobReportStatus
	tr.Begin(&status, mpi.Job{UID: uid})
	first := status.Trace
	tr.Begin(&status, mpi.Job{UID: uid, TraceParent: mpi.TraceParent{TraceID: "4bf92f3577b34da6a3ce929d0e0e4736", SpanID: "00f067aa0ba902b7", Sampled: true}})
	if status.Trace != first || first.ID != "0f3d9c6e5a4b4c1d8e2f102030405060" {
		t.Errorf("the trace is %+v, then %+v", first, status.Trace)
	}
	ended := v1alpha1.JobReportStatus{CompletionTime: &metav1.Time{}}
	if tr.Begin(&ended, mpi.Job{UID: uid}); ended.Trace != nil {
		t.Error("a finished job gets a trace")
	}
}

// TestUnreachable: a collector that accepts connections and never answers delays nothing. What its queue has no room for is
// dropped at once, the rest is given up when the operator stops, and all of it is counted.
func TestUnreachable(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+listener.Addr().String())
	t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "200")
	t.Setenv("OTEL_BSP_EXPORT_TIMEOUT", "200")
	t.Setenv("OTEL_BSP_MAX_QUEUE_SIZE", "10")
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "60000")
	for _, protocol := range []string{"grpc", "http/protobuf"} {
		t.Run(protocol, func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
			tr, err := tracing.FromEnvironment(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			previous, next := left(t, tr)
			for range 100 {
				tr.Send(previous, next)
			}
			if dropped := count(t, tr, "dropped"); dropped == 0 {
				t.Error("no span is dropped")
			}
			tr.Close()
			if sent, failed, dropped := count(t, tr, "sent"), count(t, tr, "failed"), count(t, tr, "dropped"); sent != 0 || failed+dropped != 100 {
				t.Errorf("%v are sent, %v failed, %v dropped of 100 spans", sent, failed, dropped)
			}
		})
	}
}

// count returns how many spans had a result.
func count(t *testing.T, tr *tracing.Tracing, result string) float64 {
	t.Helper()
	return testutil.ToFloat64(tr.Spans().WithLabelValues(result))
}

// TestPasses: a reconcile is a trace of its own, with its steps and requests, and a link to the job's trace. Requests outside of a
// reconcile are not recorded, and no trace is sent to the API server.
func TestPasses(t *testing.T) {
	headers := make(chan http.Header, 2)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		headers <- r.Header
		http.Error(w, "no", http.StatusNotFound)
	}))
	defer server.Close()
	exporter := tracetest.NewInMemoryExporter()
	tr, err := tracing.New(t.Context(), keep{exporter})
	if err != nil {
		t.Fatal(err)
	}
	config := &rest.Config{Host: server.URL}
	tr.WrapRequests(config)
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	previous, _ := left(t, tr)
	request := func(ctx context.Context) error {
		_, err := api.CoreV1().Pods("ns").Get(ctx, "pi", metav1.GetOptions{})
		return err
	}
	ctx, pass := tr.StartPass(t.Context(), "MPIJob", "ns", "pi")
	stepCtx, step := pass.Step(ctx, "act")
	failed := request(stepCtx)
	step.End(failed)
	pass.Link(previous)
	pass.End(nil)
	_ = request(t.Context())
	tr.Close()

	spans := exporter.GetSpans()
	if len(spans) != 3 {
		t.Fatalf("there are %d spans: %+v", len(spans), spans)
	}
	get, act, root := spans[0], spans[1], spans[2]
	if root.Name != "reconcile" || root.Parent.IsValid() || act.Name != "act" || act.Parent.SpanID() != root.SpanContext.SpanID() || get.Parent.SpanID() != act.SpanContext.SpanID() {
		t.Errorf("the spans are %+v", spans)
	}
	if act.Status.Code != codes.Error || act.Status.Description != "NotFound" {
		t.Errorf("the step ended with %+v", act.Status)
	}
	if len(root.Links) != 1 || root.Links[0].SpanContext.TraceID().String() != previous.Status.Trace.ID {
		t.Errorf("the links are %+v", root.Links)
	}
	for range 2 {
		if header := <-headers; header.Get("Traceparent") != "" {
			t.Errorf("the request has the header %v", header)
		}
	}
}

// keep keeps the spans of an exporter that is shut down.
type keep struct{ *tracetest.InMemoryExporter }

func (keep) Shutdown(context.Context) error { return nil }

// BenchmarkOff measures what a reconcile costs that is not recorded.
func BenchmarkOff(b *testing.B) {
	var tr *tracing.Tracing
	for b.Loop() {
		ctx, pass := tr.StartPass(b.Context(), "MPIJob", "ns", "pi")
		_, step := pass.Step(ctx, "act")
		step.End(nil)
		pass.End(nil)
	}
}

// TestSampling: the variables for sampling limit the traces of reconciles, and not those of jobs.
func TestSampling(t *testing.T) {
	t.Setenv("OTEL_TRACES_SAMPLER", "always_off")
	exporter := tracetest.NewInMemoryExporter()
	tr, err := tracing.New(t.Context(), keep{exporter})
	if err != nil {
		t.Fatal(err)
	}
	tr.Send(left(t, tr))
	ctx, pass := tr.StartPass(t.Context(), "MPIJob", "ns", "pi")
	_, step := pass.Step(ctx, "act")
	step.End(nil)
	pass.End(nil)
	tr.Close()
	if spans := exporter.GetSpans(); len(spans) != 1 || spans[0].Name != "Pending" {
		t.Errorf("the spans are %+v", spans)
	}
}
