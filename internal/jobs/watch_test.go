package jobs

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"opendatahub.io/mpijob/api/v1alpha1"
)

// inSynctest runs a test in which time passes as soon as all goroutines wait.
func inSynctest(test func(t *testing.T)) func(t *testing.T) {
	return func(t *testing.T) { synctest.Test(t, test) }
}

// clocked returns a client that goes by the time of a synctest.
func clocked(c *Client) *Client {
	c.now = time.Now
	return c
}

// setPhase changes the phase of a report as the operator does.
func setPhase(t *testing.T, s *server, report *v1alpha1.JobReport, phase v1alpha1.Phase, ended bool) {
	t.Helper()
	report.Status.Phase = phase
	if ended {
		report.Status.CompletionTime = ago(0)
	}
	if err := s.api.Update(t.Context(), report); err != nil {
		t.Error(err)
	}
}

// failingWatch is an API client whose first requests for lists or watches fail.
type failingWatch struct {
	client.WithWatch
	lists, watches []error
	// requests are the lists and watches so far.
	requests []string
}

func pop(errs *[]error) error {
	if len(*errs) == 0 {
		return nil
	}
	err := (*errs)[0]
	*errs = (*errs)[1:]
	return err
}

func (f *failingWatch) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	f.requests = append(f.requests, "list")
	if err := pop(&f.lists); err != nil {
		return err
	}
	return f.WithWatch.List(ctx, list, options...)
}

func (f *failingWatch) Watch(ctx context.Context, list client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
	f.requests = append(f.requests, "watch")
	if err := pop(&f.watches); err != nil {
		return nil, err
	}
	return f.WithWatch.Watch(ctx, list, options...)
}

func TestWatchReports(t *testing.T) {
	t.Parallel()
	unreachable := apierrors.NewServiceUnavailable("down")
	for name, test := range map[string]struct {
		lists, watches []error
		want           string
		requests       []string
	}{
		"a change":             {requests: []string{"list", "watch"}},
		"interrupted":          {lists: []error{unreachable, unreachable}, watches: []error{unreachable}, requests: []string{"list", "list", "list", "watch", "list", "watch"}},
		"forbidden lists":      {lists: []error{forbidden("jobreports")}, want: "list JobReports: ", requests: []string{"list"}},
		"forbidden watches":    {watches: []error{forbidden("jobreports")}, want: "watch JobReports: ", requests: []string{"list", "watch"}},
		"down for two minutes": {lists: slices.Repeat([]error{unreachable}, 120), want: "list JobReports: ", requests: slices.Repeat([]string{"list"}, 62)},
	} {
		t.Run(name, inSynctest(func(t *testing.T) {
			report := reportFor("MPIJob", "pi", "pi-uid", v1alpha1.JobReportStatus{Phase: v1alpha1.PhaseQueued})
			other := reportFor("MPIJob", "other", "o", v1alpha1.JobReportStatus{Phase: v1alpha1.PhaseFailed})
			other.Namespace = "elsewhere"
			c, s := newServer(t, report, other)
			api := &failingWatch{WithWatch: s.api, lists: test.lists, watches: test.watches}
			c.api = api
			var phases []v1alpha1.Phase
			err := clocked(c).WatchReports(t.Context(), "ns", func(got *v1alpha1.JobReport) (bool, error) {
				phases = append(phases, got.Status.Phase)
				if api.requests[len(api.requests)-1] == "watch" {
					return true, nil
				}
				if len(test.watches) == 0 || len(phases) > 1 {
					go func() {
						time.Sleep(time.Millisecond) // in the synctest's time: once the watch is there
						setPhase(t, s, report, v1alpha1.PhaseRunning, false)
					}()
				}
				return false, nil
			})
			if test.want != "" {
				if err == nil || !strings.HasPrefix(err.Error(), test.want) {
					t.Errorf("%v, want %s", err, test.want)
				}
			} else if err != nil || phases[len(phases)-1] != v1alpha1.PhaseRunning || slices.Contains(phases, v1alpha1.PhaseFailed) {
				t.Errorf("the phases are %v: %v", phases, err)
			}
			if !slices.Equal(api.requests, test.requests) {
				t.Errorf("%d requests: %v", len(api.requests), api.requests)
			}
		}))
	}
}

// TestWatchEndsWithItsFunction: an error of the function, and the end of the context, end the watch.
func TestWatchEndsWithItsFunction(t *testing.T) {
	t.Parallel()
	wrong := errors.New("wrong")
	report := reportFor("MPIJob", "pi", "pi-uid", v1alpha1.JobReportStatus{})
	c, _ := newServer(t, report)
	if err := c.WatchReports(t.Context(), "ns", func(*v1alpha1.JobReport) (bool, error) { return false, wrong }); !errors.Is(err, wrong) {
		t.Errorf("the function's error becomes %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := c.WatchReports(ctx, "ns", func(*v1alpha1.JobReport) (bool, error) { cancel(); return false, nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the end of the context becomes %v", err)
	}
}

// TestWatchIsExpired: an API server that no longer has the resource version is asked for a list again.
func TestWatchIsExpired(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		report := reportFor("MPIJob", "pi", "pi-uid", v1alpha1.JobReportStatus{})
		c, s := newServer(t, report)
		watches := 0
		c.api = interceptor.NewClient(s.api, interceptor.Funcs{Watch: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
			watches++
			events := watch.NewFakeWithChanSize(2, false)
			events.Error(&metav1.Status{Code: 410, Reason: metav1.StatusReasonExpired, Message: "too old resource version"})
			return events, nil
		}})
		seen := 0
		err := clocked(c).WatchJob(t.Context(), Job{Kind: "MPIJob", Namespace: "ns", Name: "pi", UID: "pi-uid"}, func(*v1alpha1.JobReport) (bool, error) {
			seen++
			return seen == 3, nil
		})
		if err != nil || seen != 3 || watches != 2 {
			t.Errorf("%d reports in %d watches: %v", seen, watches, err)
		}
	})
}
