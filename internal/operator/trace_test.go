package operator_test

import (
	"context"
	"testing"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/client-go/rest"

	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/operator"
	"opendatahub.io/mpijob/internal/tracing"
)

// kept keeps spans after the operator that sent them has stopped.
type kept struct{ *tracetest.InMemoryExporter }

func (kept) Shutdown(context.Context) error { return nil }

// TestTrace: an operator sends the first half of a job's trace, and the next one the rest: each part once, in the trace that the
// job's annotation names, which is in the report. Reconciles are linked to it, with their requests.
func TestTrace(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	const trace, parent = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	exporter := tracetest.NewInMemoryExporter()
	traced := func() (stop func()) {
		t.Helper()
		tr, err := tracing.New(t.Context(), kept{exporter})
		if err != nil {
			t.Fatal(err)
		}
		operating := operate(t, rest.CopyConfig(restConfig), operator.Options{WatchNamespaces: []string{namespace}, NetworkPolicies: true, Tracing: tr})
		return func() { operating(); tr.Close() }
	}
	stop := traced()
	runs(t, namespace, func(job *kubeflow.MPIJob) {
		job.Annotations = map[string]string{mpi.AnnotationTraceParent: "00-" + trace + "-" + parent + "-01"}
	})
	if got := reported(t, namespace, "Running").Status.Trace; got == nil || got.ID != trace || got.Parent != parent {
		t.Errorf("the report has the trace %+v", got)
	}
	stop()
	stop = traced()
	finish(t, get(t, namespace, "pi-launcher", &batchv1.Job{}))
	report := reported(t, namespace, "Succeeded")
	stop()

	sent, ids, passes := map[string]int{}, map[string]bool{}, map[string]int{}
	for _, span := range exporter.GetSpans() {
		if span.SpanContext.TraceID().String() != trace {
			passes[span.Name]++
			for _, link := range span.Links {
				passes["link to "+link.SpanContext.TraceID().String()]++
			}
			continue
		}
		sent[span.Name]++
		if id := span.SpanContext.SpanID().String(); ids[id] {
			t.Errorf("span %s is sent twice", span.Name)
		} else {
			ids[id] = true
		}
		if span.Name == "MPIJob" && (span.Parent.SpanID().String() != parent || !span.StartTime.Equal(report.Status.StartTime.Time) || !span.EndTime.Equal(report.Status.CompletionTime.Time)) {
			t.Errorf("the span of the job is %+v", span)
		}
	}
	for _, phase := range report.Status.PhaseTimes {
		if phase.Phase != report.Status.Phase && sent[string(phase.Phase)] != 1 {
			t.Errorf("%d spans of phase %s are sent", sent[string(phase.Phase)], phase.Phase)
		}
	}
	if sent["MPIJob"] != 1 {
		t.Errorf("the sent spans are %v", sent)
	}
	for _, name := range []string{"reconcile", "gather", "act", "link to " + trace, "HTTP POST", "HTTP PATCH"} {
		if passes[name] == 0 {
			t.Errorf("there is no %s in %v", name, passes)
		}
	}
}
