package controller

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// TestPositionsOfManyJobs: each of the jobs that wait in a queue has a position, and Kueue is asked for a page of a thousand at a time, once for
// all jobs. What an interrupted reading had is used.
func TestPositionsOfManyJobs(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		jobs int
		// failsFrom is the page from which Kueue does not answer; ignores is whether it knows no offset.
		failsFrom    int
		ignores      bool
		known, pages int
	}{
		"none":              {jobs: 0, failsFrom: 99, pages: 1},
		"a page":            {jobs: 999, failsFrom: 99, known: 999, pages: 1},
		"exactly a page":    {jobs: 1000, failsFrom: 99, known: 1000, pages: 2},
		"two pages":         {jobs: 1500, failsFrom: 99, known: 1500, pages: 2},
		"too many":          {jobs: 25_000, failsFrom: 99, known: 20_000, pages: 20},
		"interrupted":       {jobs: 1500, failsFrom: 1, known: 1000, pages: 2},
		"without an offset": {jobs: 1500, failsFrom: 99, ignores: true, known: 1000, pages: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pages := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				from, _ := strconv.Atoi(r.URL.Query().Get("offset"))
				limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
				pages++
				if from >= test.failsFrom*1000 {
					w.WriteHeader(http.StatusServiceUnavailable)
					return
				}
				if test.ignores {
					from = 0
				}
				items := []map[string]any{}
				for i := from; i < min(from+limit, test.jobs); i++ {
					items = append(items, map[string]any{"metadata": map[string]any{"name": fmt.Sprint("job-", i)}, "positionInLocalQueue": i, "positionInClusterQueue": i + 1})
				}
				w.Header().Set("Content-Type", "application/json")
				_ = json.NewEncoder(w).Encode(map[string]any{"items": items})
			}))
			defer server.Close()
			core, err := typedcore.NewForConfig(&rest.Config{Host: server.URL, QPS: -1})
			if err != nil {
				t.Fatal(err)
			}
			positions, now, known := newPositions(core.RESTClient()), time.Now(), 0
			for i := range test.jobs {
				// A job that Kueue does not list yet is asked about again later.
				switch position := positions.positionOf(t.Context(), types.NamespacedName{Namespace: "ns", Name: "queue"}, fmt.Sprint("job-", i), now); {
				case position != nil && (position.InQueue != int32(i) || position.InClusterQueue != int32(i)+1):
					t.Fatalf("job %d is at %+v", i, position)
				case position != nil:
					known++
				}
			}
			if test.jobs == 0 {
				positions.positionOf(t.Context(), types.NamespacedName{Namespace: "ns", Name: "queue"}, "job", now)
			}
			if known != test.known || pages != test.pages {
				t.Errorf("%d of %d jobs have a position, by %d pages, want %d by %d", known, test.jobs, pages, test.known, test.pages)
			}
		})
	}
}
