package operator

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

func TestOperatorWaitsForTheAPIServer(t *testing.T) {
	tests := map[string][]int{
		"ready":                            {http.StatusOK},
		"starting":                         {http.StatusInternalServerError, http.StatusServiceUnavailable, http.StatusOK},
		"it does not know yet who may ask": {http.StatusServiceUnavailable, http.StatusForbidden, http.StatusForbidden, http.StatusOK},
		"we may not ask it":                append([]int{http.StatusServiceUnavailable}, slices.Repeat([]int{http.StatusForbidden}, mostRefusals)...),
	}
	for name, answers := range tests {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(answers[min(int(asked.Add(1)), len(answers))-1])
			}))
			defer server.Close()
			if err := awaitServer(t.Context(), &rest.Config{Host: server.URL}, time.Millisecond); err != nil {
				t.Fatal(err)
			}
			if n := int(asked.Load()); n != len(answers) {
				t.Errorf("it was asked %d times, want %d", n, len(answers))
			}
		})
	}
}

func TestWaitingForTheAPIServerEndsWithTheOperator(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	nobody := server.URL
	server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := awaitServer(ctx, &rest.Config{Host: nobody}, time.Millisecond); err != nil {
		t.Error(err)
	}
}
