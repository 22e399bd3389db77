package operator_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/kueue"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

// pendingList plays Kueue's visibility API: it lists Workloads in an order, as far as limit and offset say.
type pendingList struct {
	next  http.RoundTripper
	order atomic.Pointer[[]string]
	// asked counts the requests.
	asked atomic.Int64
}

// RoundTrip answers requests for the visibility API.
func (p *pendingList) RoundTrip(request *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(request.URL.Path, "/pendingworkloads") {
		return p.next.RoundTrip(request)
	}
	p.asked.Add(1)
	from, _ := strconv.Atoi(request.URL.Query().Get("offset"))
	limit, _ := strconv.Atoi(request.URL.Query().Get("limit"))
	order := *p.order.Load()
	items := []map[string]any{}
	for i := from; i < min(from+limit, len(order)); i++ {
		items = append(items, map[string]any{"metadata": map[string]any{"name": order[i]}, "positionInLocalQueue": i, "positionInClusterQueue": i})
	}
	body, err := json.Marshal(map[string]any{"items": items})
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: http.StatusOK, Request: request, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}, nil
}

// TestPositionsOfAllQueuedJobs: each of 1,500 jobs that wait in a queue of Kueue has its position in its report, and has the new one after the
// queue has moved. Requests are counted and not timed: how long it takes depends on the machine. It does not run beside others, whose waits
// it would make longer.
func TestPositionsOfAllQueuedJobs(t *testing.T) {
	const jobs, moved = 1500, 100
	namespace := newNamespace(t)
	names := make([]string, jobs)
	for i := range names {
		names[i] = fmt.Sprintf("job-%04d", i)
	}
	var kueues pendingList
	kueues.order.Store(&names)
	next := make(chan string)
	var creating sync.WaitGroup
	var failed atomic.Pointer[error]
	for range 8 {
		creating.Go(func() {
			for name := range next {
				if err := createQueued(t, namespace, name); err != nil {
					failed.Store(&err)
				}
			}
		})
	}
	for _, name := range names {
		next <- name
	}
	close(next)
	creating.Wait()
	if err := failed.Load(); err != nil {
		t.Fatal(*err)
	}
	startWith(t, namespace, func(config *rest.Config) {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			kueues.next = next
			return &kueues
		})
	})
	positioned := func(first int) func() error {
		return func() error {
			var list v1alpha1.JobReportList
			if err := api.List(t.Context(), &list, client.InNamespace(namespace)); err != nil {
				return err
			}
			right, wrong := 0, ""
			for _, report := range list.Items {
				want := slices.Index(names[first:], report.Spec.JobRef.Name) + 1
				if s := report.Status.Scheduling; want == 0 || s != nil && s.Position != nil && int(*s.Position) == want {
					right++
				} else {
					wrong = fmt.Sprintf("%s is at %+v, want %d", report.Spec.JobRef.Name, s, want)
				}
			}
			if right < jobs {
				return fmt.Errorf("%d of %d reports have the position: %s", right, jobs, wrong)
			}
			return nil
		}
	}
	const limit = 4 * time.Minute
	eventuallyWithin(t, limit, "each job has a position", positioned(0))
	// Kueue lists those that are left.
	left := names[moved:]
	kueues.order.Store(&left)
	began, before := time.Now(), kueues.asked.Load()
	eventuallyWithin(t, limit, "each job has its new position", positioned(moved))
	took, asked := time.Since(began), kueues.asked.Load()-before
	t.Logf("all reports had the new positions after %s, for which Kueue was asked %d times", took, asked)
	// Two pages every 15 s for all jobs, and every 2 s for those that Kueue no longer lists.
	if most := int64(2 * (took/(2*time.Second) + 2)); asked > most {
		t.Errorf("Kueue was asked %d times in %s, want at most %d", asked, took, most)
	}
}

// createQueued creates a job in a queue, and its Workload, which waits.
func createQueued(t *testing.T, namespace, name string) error {
	t.Helper()
	job := mpitest.MPIJob(namespace, 1)
	job.Name, job.Labels, job.Spec.RunPolicy.Suspend = name, map[string]string{mpi.LabelQueue: "team"}, new(true)
	workload := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"queueName": "team", "active": true}}}
	workload.SetGroupVersionKind(kueue.WorkloadKind)
	workload.SetNamespace(namespace)
	workload.SetName(name)
	if err := api.Create(t.Context(), job); err != nil {
		return err
	}
	workload.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(job, kubeflow.SchemeGroupVersion.WithKind(kubeflow.Kind))})
	if err := api.Create(t.Context(), workload); err != nil {
		return errors.Join(errors.New("create the Workload"), err)
	}
	return nil
}
