package progress

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
		// ready are the two samples.
		ready [2]bool
		want  agentapi.Doing
	}{
		"computes":                    {user: 10 * time.Second, want: agentapi.Busy},
		"computes on a shared core":   {user: 2 * time.Second, system: 100 * time.Millisecond, want: agentapi.Busy},
		"polls":                       {user: 6 * time.Second, system: 4 * time.Second, want: agentapi.Polling},
		"polls on a shared core":      {user: 600 * time.Millisecond, system: 400 * time.Millisecond, want: agentapi.Polling},
		"gets no CPU":                 {user: 50 * time.Millisecond, queued: 9 * time.Second, want: agentapi.Busy},
		"gets no CPU, in the kernel":  {system: 50 * time.Millisecond, queued: 9 * time.Second, want: agentapi.Busy},
		"waits for its first turn":    {ready: [2]bool{true, true}, want: agentapi.Busy},
		"woke up just now":            {ready: [2]bool{false, true}, wait: "poll_schedule_timeout", want: agentapi.Blocked},
		"was awake":                   {ready: [2]bool{true, false}, wait: "hrtimer_nanosleep", want: agentapi.Sleeping},
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
			before := Usage{At: start, User: time.Hour, System: time.Minute, Queued: time.Second, Bytes: 1 << 40, Ready: test.ready[0]}
			after := Usage{
				At: start.Add(10 * time.Second), User: before.User + test.user, System: before.System + test.system, Queued: before.Queued + test.queued,
				Bytes: before.Bytes + test.bytes, Wait: test.wait, Device: test.device, Ready: test.ready[1],
			}
			samples := Samples{}
			samples.Add(before)
			if got := samples.Add(after); got != test.want {
				t.Errorf("it is %s, want %s", got, test.want)
			}
		})
	}
}

// TestPollingNeedsEnoughCPU: a rank that polls with little of a CPU is known to poll once it has had enough of it, and stays
// so.
func TestPollingNeedsEnoughCPU(t *testing.T) {
	r := Samples{}
	current := Usage{At: time.Unix(1000, 0)}
	r.Add(current)
	var got []agentapi.Doing
	for range 6 {
		current.At = current.At.Add(10 * time.Second)
		current.User, current.System, current.Queued = current.User+30*time.Millisecond, current.System+50*time.Millisecond, current.Queued+5*time.Second
		got = append(got, r.Add(current))
	}
	want := []agentapi.Doing{"busy", "busy", "polling", "polling", "polling", "polling"}
	if !slices.Equal(got, want) {
		t.Errorf("it is %v, want %v", got, want)
	}
}

// TestStarvedPolling: a rank that polls and then gets no CPU at all still polls.
func TestStarvedPolling(t *testing.T) {
	r := Samples{}
	current := Usage{At: time.Unix(1000, 0), Ready: true}
	r.Add(current)
	current.At, current.User, current.System = current.At.Add(10*time.Second), time.Second, time.Second
	got := []agentapi.Doing{r.Add(current)}
	for range 3 {
		current.At = current.At.Add(10 * time.Second)
		got = append(got, r.Add(current))
	}
	if want := []agentapi.Doing{"polling", "polling", "polling", "polling"}; !slices.Equal(got, want) {
		t.Errorf("it is %v, want %v", got, want)
	}
}
