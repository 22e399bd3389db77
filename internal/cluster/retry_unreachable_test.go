package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

// TestSteady: an outage of ten minutes is over for a cache two seconds after its end; what a server answers is passed on.
func TestSteady(t *testing.T) {
	refused := &url.Error{Op: "Get", URL: "https://10.96.0.1:443", Err: fmt.Errorf("dial tcp: %w", syscall.ECONNREFUSED)}
	busy := apierrors.NewTooManyRequests("busy", 1)
	for name, test := range map[string]struct {
		away time.Duration
		then error
	}{
		"there":                   {},
		"away":                    {away: 10 * time.Minute},
		"away and then busy":      {away: time.Minute, then: busy},
		"there, its history gone": {then: apierrors.NewResourceExpired("too old")},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				source := Steady(&toolscache.ListWatch{WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
					if time.Since(start) < test.away {
						return nil, refused
					}
					return watch.NewFake(), test.then
				}})
				_, err := toolscache.ToListerWatcherWithContext(source).WatchWithContext(t.Context(), metav1.ListOptions{})
				if !errors.Is(err, test.then) {
					t.Errorf("the answer is %v, want %v", err, test.then)
				}
				if late := time.Since(start) - test.away; late > 2*retryInterval {
					t.Errorf("it came %s late", late)
				}
			})
		})
	}
}

// TestSteadyEnds: waiting for a server ends with whoever waits.
func TestSteadyEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		source := Steady(&toolscache.ListWatch{WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			return nil, syscall.ECONNREFUSED
		}})
		if _, err := toolscache.ToListerWatcherWithContext(source).WatchWithContext(ctx, metav1.ListOptions{}); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("the error is %v", err)
		}
	})
}
