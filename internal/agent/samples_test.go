package agent

import (
	"slices"
	"testing"
	"time"

	"opendatahub.io/mpijob/internal/agentapi"
)

func TestDoing(t *testing.T) {
	start := time.Unix(1000, 0)
	tests := map[string]struct {
		user, system, queued time.Duration
		bytes                int64
		wait                 string
		device               bool
		want                 agentapi.Doing
	}{
		"computes":                    {user: 10 * time.Second, want: agentapi.Busy},
		"computes on a shared core":   {user: 2 * time.Second, system: 100 * time.Millisecond, want: agentapi.Busy},
		"polls":                       {user: 6 * time.Second, system: 4 * time.Second, want: agentapi.Polling},
		"polls on a shared core":      {user: 600 * time.Millisecond, system: 400 * time.Millisecond, want: agentapi.Polling},
		"gets no CPU":                 {user: 50 * time.Millisecond, queued: 9 * time.Second, want: agentapi.Busy},
		"gets no CPU, in the kernel":  {system: 50 * time.Millisecond, queued: 9 * time.Second, want: agentapi.Busy},
		"reads a file":                {user: time.Second, system: 4 * time.Second, bytes: 1 << 30, want: agentapi.Busy},
		"waits for a slow disk":       {bytes: 10 << 20, wait: "folio_wait_bit_common", want: agentapi.Busy},
		"waits for a message":         {wait: "poll_schedule_timeout", want: agentapi.Blocked},
		"sleeps":                      {wait: "hrtimer_nanosleep", want: agentapi.Sleeping},
		"waits for its GPU":           {wait: "poll_schedule_timeout", device: true, want: agentapi.Busy},
		"polls its GPU":               {user: 6 * time.Second, system: 4 * time.Second, device: true, want: agentapi.Busy},
		"waits, the kernel tells not": {want: agentapi.Blocked},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			before := processUsage{at: start, user: time.Hour, system: time.Minute, queued: time.Second, bytes: 1 << 40}
			after := processUsage{
				at: start.Add(10 * time.Second), user: before.user + test.user, system: before.system + test.system, queued: before.queued + test.queued,
				bytes: before.bytes + test.bytes, wait: test.wait, device: test.device,
			}
			samples := rankSamples{}
			samples.add(before)
			if got := samples.add(after); got != test.want {
				t.Errorf("it is %s, want %s", got, test.want)
			}
		})
	}
}

// TestPollingNeedsEnoughCPU: a rank that polls with little of a CPU is known to poll once it has had enough of it, and stays
// so.
func TestPollingNeedsEnoughCPU(t *testing.T) {
	r := rankSamples{}
	current := processUsage{at: time.Unix(1000, 0)}
	r.add(current)
	var got []agentapi.Doing
	for range 6 {
		current.at = current.at.Add(10 * time.Second)
		current.user, current.system, current.queued = current.user+30*time.Millisecond, current.system+50*time.Millisecond, current.queued+5*time.Second
		got = append(got, r.add(current))
	}
	want := []agentapi.Doing{"busy", "busy", "polling", "polling", "polling", "polling"}
	if !slices.Equal(got, want) {
		t.Errorf("it is %v, want %v", got, want)
	}
}
