package collector_test

import (
	"cmp"
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/tracing"
)

const uid = "0f3d9c6e-5a4b-4c1d-8e2f-102030405060"

var began = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func at(seconds int) metav1.Time {
	return metav1.NewTime(began.Add(time.Duration(seconds) * time.Second))
}

// collector runs a collector with TLS. It returns where it receives spans, by protocol, the file with its CA, and what it received.
func collector(t *testing.T) (endpoints map[string]string, ca string, received *consumertest.TracesSink) {
	t.Helper()
	dir := t.TempDir()
	chain, key, err := cert.GenerateSelfSignedCertKey("localhost", []net.IP{{127, 0, 0, 1}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	ca = filepath.Join(dir, "ca.crt")
	certificate := map[string]any{"cert_file": ca, "key_file": filepath.Join(dir, "key")}
	for path, data := range map[string][]byte{ca: chain, filepath.Join(dir, "key"): key} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	addresses := map[string]string{"grpc": free(t), "http": free(t)}
	factory := otlpreceiver.NewFactory()
	config := factory.CreateDefaultConfig()
	if err := confmap.NewFromStringMap(map[string]any{"protocols": map[string]any{
		"grpc": map[string]any{"endpoint": addresses["grpc"], "tls": certificate},
		"http": map[string]any{"endpoint": addresses["http"], "tls": certificate},
	}}).Unmarshal(config); err != nil {
		t.Fatal(err)
	}
	received = &consumertest.TracesSink{}
	receiver, err := factory.CreateTraces(t.Context(), receivertest.NewNopSettings(factory.Type()), config, received)
	if err != nil {
		t.Fatal(err)
	}
	if err := receiver.Start(t.Context(), componenttest.NewNopHost()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = receiver.Shutdown(context.Background()) })
	return map[string]string{"grpc": "https://" + addresses["grpc"], "http/protobuf": "https://" + addresses["http"]}, ca, received
}

// free returns a local address that nothing listens on.
func free(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// records are those that are written of a job: it waits in a queue, starts, connects, and succeeds.
func records() []v1alpha1.JobReport {
	report := v1alpha1.JobReport{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "pi-0f3d9c6e"}}
	report.Spec.JobRef = v1alpha1.JobReference{APIVersion: "kubeflow.org/v2beta1", Kind: "MPIJob", Name: "pi", UID: uid}
	start, end := at(0), at(90)
	report.Status.StartTime = &start
	var all []v1alpha1.JobReport
	write := func(phase v1alpha1.Phase, change func(*v1alpha1.JobReportStatus)) {
		report.Status.Phase = phase
		change(&report.Status)
		all = append(all, *report.DeepCopy())
	}
	write(v1alpha1.PhaseQueued, func(s *v1alpha1.JobReportStatus) {
		s.PhaseTimes = []v1alpha1.PhaseTime{{Phase: v1alpha1.PhaseQueued, Since: at(0)}}
	})
	write(v1alpha1.PhaseInitializing, func(s *v1alpha1.JobReportStatus) {
		s.PhaseTimes[0].Seconds = 30
		s.PhaseTimes = append(s.PhaseTimes, v1alpha1.PhaseTime{Phase: v1alpha1.PhaseInitializing, Since: at(30)})
	})
	write(v1alpha1.PhaseRunning, func(s *v1alpha1.JobReportStatus) {
		s.PhaseTimes[1].Seconds = 10
		s.PhaseTimes = append(s.PhaseTimes, v1alpha1.PhaseTime{Phase: v1alpha1.PhaseRunning, Since: at(40)})
		s.Startup = &v1alpha1.Startup{Since: at(30), Milliseconds: 10000, Steps: []v1alpha1.StartupStep{
			{Name: v1alpha1.StepAdmission, StartMilliseconds: -30000, Milliseconds: 30000},
			{Name: v1alpha1.StepContainers, StartMilliseconds: 2000, Milliseconds: 8000, Pod: "pi-worker-1", Node: "node-1"},
		}}
	})
	write(v1alpha1.PhaseSucceeded, func(s *v1alpha1.JobReportStatus) {
		s.CompletionTime = &end
		s.PhaseTimes[2].Seconds = 50
		s.PhaseTimes = append(s.PhaseTimes, v1alpha1.PhaseTime{Phase: v1alpha1.PhaseSucceeded, Since: at(90)})
		s.Startup.Steps = append(s.Startup.Steps,
			v1alpha1.StartupStep{Name: v1alpha1.StepConnected, StartMilliseconds: 10000, Milliseconds: 250},
			v1alpha1.StartupStep{Name: v1alpha1.StepMPIInit, StartMilliseconds: 10250, Milliseconds: 400})
		s.Timeline = []v1alpha1.TimelineEntry{{Event: "Created", Time: at(0)}, {Event: "Succeeded", Time: at(90)}}
	})
	return all
}

// sessions are those of the launcher, as its agent reports them at its end.
func sessions() agentapi.Sessions {
	return agentapi.Sessions{Count: 2, First: at(40).UnixMilli(), List: []agentapi.Session{
		{Host: "pi-worker-1", Connected: 250, Ranks: 650, End: 49_000},
		{Host: "pi-worker-0", At: 10, Connected: 90, Ranks: 400, End: 49_500},
	}}
}

// TestCollector: the collector receives each part of a job once, in the trace whose ID is in the job's record, also if one operator
// sends the first half and another one the second half; over TLS, with both protocols.
func TestCollector(t *testing.T) {
	for _, protocol := range []string{"grpc", "http/protobuf"} {
		t.Run(protocol, func(t *testing.T) {
			endpoints, ca, received := collector(t)
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoints[protocol])
			t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
			t.Setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", ca)
			t.Setenv("OTEL_SERVICE_NAME", "jobs-of-a-test")
			all := records()
			var previous *v1alpha1.JobReport
			for _, half := range [][]v1alpha1.JobReport{all[:2], all[2:]} {
				operator, err := tracing.FromEnvironment(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for _, next := range half {
					if previous != nil {
						next.Status.Trace = previous.Status.Trace
					}
					operator.Begin(&next.Status, mpi.Job{UID: uid})
					operator.Send(previous, next, sessions())
					previous = &next
				}
				operator.Close()
			}
			if previous.Status.Trace == nil || previous.Status.Trace.ID != strings.ReplaceAll(uid, "-", "") {
				t.Fatalf("the record has the trace %+v", previous.Status.Trace)
			}
			want := []span{
				{"MPIJob", "", "0s", "1m30s", "Created,Succeeded"},
				{"Queued", "MPIJob", "0s", "30s", ""},
				{"Initializing", "MPIJob", "30s", "40s", ""},
				{"Running", "MPIJob", "40s", "1m30s", ""},
				{"Startup", "MPIJob", "0s", "40.65s", ""},
				{"Admission", "Startup", "0s", "30s", ""},
				{"Containers", "Startup", "32s", "40s", ""},
				{"Connected", "Startup", "40s", "40.25s", ""},
				{"MPIInit", "Startup", "40.25s", "40.65s", ""},
				{"Session", "MPIJob", "40s", "1m29s", "Connected,RanksStarted"},
				{"Session", "MPIJob", "40.01s", "1m29.51s", "Connected,RanksStarted"},
			}
			got := spans(t, received, previous.Status.Trace.ID)
			order := func(a, b span) int { return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.start, b.start)) }
			slices.SortFunc(want, order)
			slices.SortFunc(got, order)
			if diff := gocmp.Diff(want, got, gocmp.AllowUnexported(span{})); diff != "" {
				t.Errorf("the spans differ (-want +got):\n%s", diff)
			}
		})
	}
}

// TestUntrusted: nothing is sent to a collector whose certificate is not trusted.
func TestUntrusted(t *testing.T) {
	for _, protocol := range []string{"grpc", "http/protobuf"} {
		t.Run(protocol, func(t *testing.T) {
			endpoints, _, received := collector(t)
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoints[protocol])
			t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
			t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "500")
			t.Setenv("OTEL_BSP_EXPORT_TIMEOUT", "500")
			operator, err := tracing.FromEnvironment(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			all := records()
			for i := range all {
				operator.Begin(&all[i].Status, mpi.Job{UID: uid})
			}
			operator.Send(&all[0], all[1])
			operator.Close()
			if n := received.SpanCount(); n > 0 {
				t.Errorf("%d spans are received", n)
			}
		})
	}
}

// span is what a test compares: times since the job began.
type span struct{ name, parent, start, end, events string }

// spans returns the received spans of a trace. There are no others.
func spans(t *testing.T, received *consumertest.TracesSink, trace string) (found []span) {
	t.Helper()
	names := map[string]string{}
	var all []ptrace.Span
	for _, batch := range received.AllTraces() {
		for _, resource := range batch.ResourceSpans().All() {
			if name, _ := resource.Resource().Attributes().Get("service.name"); name.AsString() != "jobs-of-a-test" {
				t.Errorf("the service is %q", name.AsString())
			}
			for _, scope := range resource.ScopeSpans().All() {
				for _, s := range scope.Spans().All() {
					if s.TraceID().String() != trace {
						t.Errorf("span %s is in trace %s", s.Name(), s.TraceID())
					}
					if namespace, _ := s.Attributes().Get("k8s.namespace.name"); namespace.AsString() != "team" {
						t.Errorf("span %s is in namespace %q", s.Name(), namespace.AsString())
					}
					names[s.SpanID().String()] = s.Name()
					all = append(all, s)
				}
			}
		}
	}
	since := func(at time.Time) string { return at.Sub(began).String() }
	for _, s := range all {
		var events []string
		for _, event := range s.Events().All() {
			events = append(events, event.Name())
		}
		found = append(found, span{s.Name(), names[s.ParentSpanID().String()], since(s.StartTimestamp().AsTime()), since(s.EndTimestamp().AsTime()), strings.Join(events, ",")})
	}
	return found
}
