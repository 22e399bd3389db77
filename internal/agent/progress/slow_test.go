package progress

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"opendatahub.io/mpijob/internal/agentapi"
)

// TestSlowWatch: what slows a pod down counts from half a minute on, by the latest minute, with figures that rarely change.
func TestSlowWatch(t *testing.T) {
	start := time.Unix(1000, 0)
	// per is what is counted each second.
	for name, test := range map[string]struct {
		per    Counts
		queued float64
		want   *agentapi.Slowness
	}{
		"nothing":                  {Counts{Needed: 10, Throttled: 1, Faults: 3}, 0.4, nil},
		"no limit":                 {Counts{}, 0, nil},
		"throttled":                {Counts{Needed: 10, Throttled: 4.3}, 0.1, &agentapi.Slowness{Since: 1000, Throttled: 40}},
		"always throttled":         {Counts{Needed: 10, Throttled: 10}, 1, &agentapi.Slowness{Since: 1000, Throttled: 100, Queued: 100}},
		"reads memory from a disk": {Counts{Faults: 170}, 0, &agentapi.Slowness{Since: 1000, Faults: 150}},
		"waits for a CPU":          {Counts{}, 0.67, &agentapi.Slowness{Since: 1000, Queued: 60}},
	} {
		t.Run(name, func(t *testing.T) {
			var w slowWatch
			for i := range 40 {
				seconds := float64(i) * SamplePeriod.Seconds()
				counts := Counts{Needed: test.per.Needed * seconds, Throttled: test.per.Throttled * seconds, Faults: test.per.Faults * seconds}
				got, want := w.next(counts, test.queued, start.Add(time.Duration(i)*SamplePeriod)), test.want
				if i < latestSamples/2 {
					want = nil
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("sample %d (-want +got):\n%s", i, diff)
				}
			}
			for i := range latestSamples + 1 {
				w.next(Counts{}, 0, start.Add(time.Duration(40+i)*SamplePeriod))
			}
			if got := w.next(Counts{}, 0, start.Add(time.Hour)); got != nil {
				t.Errorf("when it is over, it is %+v", got)
			}
		})
	}
}

// TestMostlyWaiting: a rank that was not busy in most samples of a minute waits, although it is busy at times.
func TestMostlyWaiting(t *testing.T) {
	for name, test := range map[string]struct {
		// busy are the samples of each four in which it is busy.
		busy int
		want bool
	}{"never busy": {0, true}, "a quarter": {1, true}, "half": {2, false}, "always": {4, false}} {
		t.Run(name, func(t *testing.T) {
			var s Samples
			for i := range 40 {
				what := agentapi.Polling
				if i%4 < test.busy {
					what = agentapi.Busy
				}
				if got := s.keepWaits(what); got != (test.want && i >= latestSamples/2-1) {
					t.Fatalf("sample %d: %v", i, got)
				}
			}
		})
	}
}
