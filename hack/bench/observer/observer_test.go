package observer

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestJobOf(t *testing.T) {
	tests := map[string]struct {
		jobOf   func(string) (string, bool)
		job     string
		belongs bool
	}{
		"big-worker-12":         {jobOf: jobOfWorker, job: "big", belongs: true},
		"a-worker-b-worker-0":   {jobOf: jobOfWorker, job: "a-worker-b", belongs: true},
		"big-launcher-x7k2p":    {jobOf: jobOfWorker},
		"big-worker-x7k2p":      {jobOf: jobOfWorker},
		"big-launcher":          {jobOf: jobOfLauncher, job: "big", belongs: true},
		"somebody-elses-job-12": {jobOf: jobOfLauncher},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			job, belongs := test.jobOf(name)
			if belongs != test.belongs || belongs && job != test.job {
				t.Errorf("got %q, %v; want %q, %v", job, belongs, test.job, test.belongs)
			}
		})
	}
}

func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &Observer{failed: make(chan error, 1), objects: map[string]int{}, latest: map[string]time.Time{}, changed: make(chan struct{}, 1)}
		start := time.Now()
		go func() {
			for range 3 {
				time.Sleep(time.Second)
				o.add("a", time.Now())
				o.add("b", time.Now())
			}
			o.failed <- errors.New("broken")
		}()
		if _, complete := o.Completed("a", 1); complete {
			t.Error("a job without objects is complete")
		}
		if err := o.Wait(t.Context(), "a", 1); err != nil || time.Since(start) != 2*time.Second {
			t.Errorf("a launcher and one worker: %v after %v; want none after 2s", err, time.Since(start))
		}
		if at, complete := o.Completed("a", 1); !complete || !at.Equal(start.Add(2*time.Second)) {
			t.Errorf("a launcher and one worker were complete: %v, at %v; want at %v", complete, at, start.Add(2*time.Second))
		}
		if err := o.WaitForAll(t.Context(), 6); err != nil || time.Since(start) != 3*time.Second {
			t.Errorf("all objects: %v after %v; want none after 3s", err, time.Since(start))
		}
		if err := o.WaitForAll(t.Context(), 7); err == nil || err.Error() != "broken" {
			t.Errorf("after the watch broke: got %v", err)
		}
		enough := errors.New("enough")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, enough)
		defer cancel()
		if err := o.WaitForAll(ctx, 7); !errors.Is(err, enough) {
			t.Errorf("after the time was over: got %v, want %v", err, enough)
		}
	})
}
