package admission

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"opendatahub.io/mpijob/internal/cluster"
	"opendatahub.io/mpijob/internal/kinds/mpijob"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/plan"
)

// noGangs finds nothing wrong with the placement of jobs.
type noGangs struct{}

func (noGangs) Check(mpi.Job) (field.ErrorList, []string) { return nil, nil }
func (noGangs) Gates(mpi.Job) bool                        { return false }
func (noGangs) HasAdmitted(mpi.Job, string, time.Time) bool {
	return false
}
func (noGangs) MayGetNodes() bool { return false }

// review is a request of the API server about a job as large as it takes: 3 MiB, of variables, which take the most memory.
func review(t *testing.T) []byte {
	t.Helper()
	job := mpitest.MPIJob("attacker", 2)
	job.TypeMeta = metav1.TypeMeta{APIVersion: kubeflow.SchemeGroupVersion.String(), Kind: "MPIJob"}
	main := &job.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker].Template.Spec.Containers[0]
	for i := range 100_000 {
		main.Env = append(main.Env, corev1.EnvVar{Name: fmt.Sprint("V", i), Value: "1"})
	}
	object, err := json.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: "1", Operation: admissionv1.Create, Namespace: "attacker", Name: "pi", Object: k8sruntime.RawExtension{Raw: object},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if size := len(body); size < 5<<19 || size > 3<<20 {
		t.Fatalf("the request has %d bytes", size)
	}
	return body
}

// TestWebhookFlood: 500 of the largest jobs at a time take a bounded amount of the operator's memory, whatever is answered.
func TestWebhookFlood(t *testing.T) {
	ctrl.SetLogger(logr.Discard())
	scheme := k8sruntime.NewScheme()
	for _, add := range []func(*k8sruntime.Scheme) error{kubeflow.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	var api client.Client = fake.NewClientBuilder().WithScheme(scheme).Build()
	handlers := map[string]admission.Handler{
		authorsWebhook: admission.HandlerFunc(recordAuthors),
		mpiJobWebhook: &validator{
			kind: mpijob.Kind{}, decoder: admission.NewDecoder(scheme), cluster: cluster.New(api, api, nil, clock.RealClock{}), settings: plan.Settings{NetworkPolicies: true}, gangs: noGangs{},
		},
	}
	for name, handler := range handlers {
		t.Run(name, func(t *testing.T) {
			var now, most, served atomic.Int64
			webhook := &admission.Webhook{Handler: handler}
			counted := http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
				n := now.Add(request.ContentLength)
				defer now.Add(-request.ContentLength)
				for before := most.Load(); n > before && !most.CompareAndSwap(before, n); before = most.Load() {
				}
				if n > requestBudget {
					// Without a limit, the flood would take all memory of the machine.
					http.Error(response, "over the budget", http.StatusInternalServerError)
					return
				}
				served.Add(1)
				webhook.ServeHTTP(response, request)
			})
			server := httptest.NewServer(withinBudget(counted))
			defer server.Close()
			body := review(t)

			heap := newHeapWatch()
			var flood sync.WaitGroup
			var refused, answered atomic.Int64
			for range 500 {
				flood.Go(func() {
					response, err := http.Post(server.URL, "application/json", bytes.NewReader(body)) //nolint:noctx // ends with the server
					if err != nil {
						// The server answers and closes the connection while the body is being sent.
						refused.Add(1)
						return
					}
					defer response.Body.Close()
					text, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10))
					switch {
					case response.StatusCode == http.StatusServiceUnavailable:
						refused.Add(1)
					case response.StatusCode == http.StatusOK && strings.Contains(string(text), `"uid":"1"`):
						answered.Add(1)
					default:
						t.Errorf("status %d: %s", response.StatusCode, text)
					}
				})
			}
			flood.Wait()
			peak := heap.stop()
			t.Logf("500 requests of %d KiB at a time: %d answered, %d refused; at most %d KiB in process, %d MiB of heap",
				len(body)>>10, answered.Load(), refused.Load(), most.Load()>>10, peak>>20)
			if most.Load() > requestBudget {
				t.Errorf("%d bytes were in process at a time, more than %d", most.Load(), requestBudget)
			}
			if answered.Load() == 0 || answered.Load() > served.Load() {
				t.Errorf("%d were answered, %d processed", answered.Load(), served.Load())
			}
			// About 200 MiB are measured. The operator's limit is 512 MiB.
			if peak > 400<<20 {
				t.Errorf("the heap had %d MiB", peak>>20)
			}
			// The budget is free again.
			response, err := http.Post(server.URL, "application/json", bytes.NewReader(body)) //nolint:noctx // as above
			if err != nil || response.StatusCode != http.StatusOK {
				t.Errorf("after the flood: %v, %v", response, err)
			}
			_ = response.Body.Close()
		})
	}
}

// heapWatch measures the largest heap.
type heapWatch struct {
	end  chan struct{}
	peak chan uint64
}

func newHeapWatch() heapWatch {
	w := heapWatch{end: make(chan struct{}), peak: make(chan uint64)}
	runtime.GC()
	go func() {
		var most uint64
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapInuse)
			select {
			case <-w.end:
				w.peak <- most
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	return w
}

func (w heapWatch) stop() uint64 {
	close(w.end)
	return <-w.peak
}
