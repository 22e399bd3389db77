package progress

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"opendatahub.io/mpijob/internal/agentapi"
)

func TestDoing(t *testing.T) {
	start := time.Unix(1000, 0)
	tests := map[string]struct {
		user, system, queued time.Duration
		bytes                int64
		// faults are page faults that read from a disk.
		faults int64
		// wakes is how often the main thread has slept.
		wakes  int64
		wait   string
		device bool
		// ready are the two samples, and slept is whether the thread went to sleep between them.
		ready [2]bool
		slept bool
		want  agentapi.Doing
	}{
		"computes":                           {user: 10 * time.Second, want: agentapi.Busy},
		"computes on a shared core":          {user: 2 * time.Second, system: 100 * time.Millisecond, want: agentapi.Busy},
		"polls":                              {user: 6 * time.Second, system: 4 * time.Second, want: agentapi.Polling},
		"polls on a shared core":             {user: 600 * time.Millisecond, system: 400 * time.Millisecond, want: agentapi.Polling},
		"gets no CPU":                        {user: 50 * time.Millisecond, queued: 9 * time.Second, want: agentapi.Busy},
		"gets no CPU, in the kernel":         {system: 50 * time.Millisecond, queued: 9 * time.Second, want: agentapi.Busy},
		"waits for its first turn":           {ready: [2]bool{true, true}, want: agentapi.Busy},
		"wakes up on a busy machine":         {user: 100 * time.Millisecond, queued: 3 * time.Second, ready: [2]bool{true, true}, slept: true, wait: "hrtimer_nanosleep", want: agentapi.Sleeping},
		"gets hardly any CPU":                {user: 100 * time.Millisecond, queued: 6 * time.Second, ready: [2]bool{true, true}, slept: true, want: agentapi.Busy},
		"woke up just now":                   {ready: [2]bool{false, true}, wait: "poll_schedule_timeout", want: agentapi.Blocked},
		"looks for a file on a busy machine": {system: 10 * time.Millisecond, queued: 8 * time.Second, wakes: 30, wait: "hrtimer_nanosleep", want: agentapi.Sleeping},
		"waits for events on a busy machine": {system: 10 * time.Millisecond, queued: 8 * time.Second, wakes: 30, wait: "poll_schedule_timeout", want: agentapi.Blocked},
		"computes between sleeps":            {user: 400 * time.Millisecond, queued: 8 * time.Second, wakes: 30, wait: "hrtimer_nanosleep", want: agentapi.Busy},
		"was awake":                          {ready: [2]bool{true, false}, wait: "hrtimer_nanosleep", want: agentapi.Sleeping},
		"reads a file":                       {user: time.Second, system: 4 * time.Second, bytes: 1 << 30, want: agentapi.Busy},
		"waits for a slow disk":              {bytes: 10 << 20, wait: "folio_wait_bit_common", want: agentapi.Busy},
		"waits for pages of its memory":      {user: 20 * time.Millisecond, system: 60 * time.Millisecond, faults: 1500, wakes: 1500, wait: "folio_wait_bit_common", want: agentapi.Busy},
		"reads its memory from a fast disk":  {user: 600 * time.Millisecond, system: 2 * time.Second, faults: 90_000, wakes: 90_000, want: agentapi.Busy},
		"waits, with a few pages to read":    {faults: 40, wakes: 40, wait: "poll_schedule_timeout", want: agentapi.Blocked},
		"throttled to a hundredth of a CPU":  {user: 100 * time.Millisecond, queued: 9 * time.Second, ready: [2]bool{true, true}, want: agentapi.Busy},
		"polls, throttled":                   {user: 150 * time.Millisecond, system: 100 * time.Millisecond, queued: 9 * time.Second, ready: [2]bool{true, true}, want: agentapi.Polling},
		"looks for a file all the time":      {user: 4 * time.Second, system: 6 * time.Second, want: agentapi.Polling},
		"looks for a file now and then":      {user: 10 * time.Millisecond, system: 20 * time.Millisecond, wakes: 10, wait: "hrtimer_nanosleep", want: agentapi.Sleeping},
		"waits for a message":                {wait: "poll_schedule_timeout", want: agentapi.Blocked},
		"sleeps":                             {wait: "hrtimer_nanosleep", want: agentapi.Sleeping},
		"waits for its GPU":                  {wait: "poll_schedule_timeout", device: true, want: agentapi.Blocked},
		"polls its GPU":                      {user: 6 * time.Second, system: 4 * time.Second, device: true, want: agentapi.Busy},
		"waits, the kernel tells not":        {want: agentapi.Blocked},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			sleeps := int64(7)
			threads := func(ready bool) map[int]int64 {
				if ready {
					return map[int]int64{40: sleeps}
				}
				return nil
			}
			before := Usage{At: start, User: time.Hour, System: time.Minute, Queued: time.Second, Bytes: 1 << 40, Ready: threads(test.ready[0])}
			if test.slept {
				sleeps++
			}
			after := Usage{
				At: start.Add(10 * time.Second), User: before.User + test.user, System: before.System + test.system, Queued: before.Queued + test.queued,
				Bytes: before.Bytes + test.bytes, Faults: test.faults, Wait: test.wait, Device: test.device, Ready: threads(test.ready[1]), Sleeps: test.wakes,
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

// TestWakingUp: a rank that sleeps again and again, and is awake in some samples, sleeps. One that has slept for the last time does not.
func TestWakingUp(t *testing.T) {
	r := Samples{}
	current := Usage{At: time.Unix(1000, 0)}
	r.Add(current)
	var got []agentapi.Doing
	for _, wait := range []string{"do_wait", "hrtimer_nanosleep", "do_wait", "", "hrtimer_nanosleep", "pipe_read", "pipe_read", "pipe_read", "pipe_read", "pipe_read", "pipe_read"} {
		current.At, current.Wait = current.At.Add(SamplePeriod), wait
		got = append(got, r.Add(current))
	}
	want := []agentapi.Doing{"blocked", "sleeping", "sleeping", "sleeping", "sleeping", "sleeping", "sleeping", "sleeping", "sleeping", "sleeping", "blocked"}
	if !slices.Equal(got, want) {
		t.Errorf("it is %v, want %v", got, want)
	}
}

// TestStarvedPolling: a rank that polls and then gets no CPU at all still polls.
func TestStarvedPolling(t *testing.T) {
	r := Samples{}
	current := Usage{At: time.Unix(1000, 0), Ready: map[int]int64{40: 7}}
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

// TestPollingOnABusyMachine: the kernel counts by its ticks which time is its own. If a rank that polls has had little of a CPU, a sample with less of
// it does not show that the rank computes; more of a CPU does, and a sample without any of it.
func TestPollingOnABusyMachine(t *testing.T) {
	for name, test := range map[string]struct {
		// user and system are milliseconds of each sample after the first one, in which the rank polls.
		user, system []int64
		want         []agentapi.Doing
	}{
		"a smaller share":               {[]int64{250, 180, 250}, []int64{60, 110, 60}, []agentapi.Doing{"polling", "polling", "polling"}},
		"smaller shares of more time":   {[]int64{250, 250, 250, 250}, []int64{50, 50, 50, 50}, []agentapi.Doing{"polling", "polling", "polling", "busy"}},
		"hardly any time of the kernel": {[]int64{300, 300}, []int64{10, 10}, []agentapi.Doing{"busy", "busy"}},
		"a CPU of its own":              {[]int64{4000}, []int64{900}, []agentapi.Doing{"busy"}},
	} {
		t.Run(name, func(t *testing.T) {
			r, current := Samples{}, Usage{At: time.Unix(1000, 0)}
			r.Add(current)
			current.At, current.User, current.System = current.At.Add(SamplePeriod), time.Second, time.Second
			if got := r.Add(current); got != agentapi.Polling {
				t.Fatalf("it is %s", got)
			}
			var got []agentapi.Doing
			for i := range test.user {
				current.At = current.At.Add(SamplePeriod)
				current.User += time.Duration(test.user[i]) * time.Millisecond
				current.System += time.Duration(test.system[i]) * time.Millisecond
				got = append(got, r.Add(current))
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("it is %v, want %v", got, test.want)
			}
		})
	}
}

// TestDoubts: a rank that waits, and has computed in one sample with little of a CPU, still waits. A second sample, or one with more of a CPU,
// shows that it computes.
func TestDoubts(t *testing.T) {
	for name, test := range map[string]struct {
		// milliseconds are the CPU times of the samples after the rank waited.
		milliseconds []int64
		want         []agentapi.Doing
		// ready is whether it is ready to run all the time.
		ready bool
	}{
		"gets no CPU":          {[]int64{0, 0, 0}, []agentapi.Doing{"blocked", "blocked", "blocked"}, true},
		"gets one after that":  {[]int64{0, 300, 10, 300}, []agentapi.Doing{"blocked", "blocked", "blocked", "busy"}, true},
		"once":                 {[]int64{300, 0, 300, 0}, []agentapi.Doing{"blocked", "blocked", "blocked", "blocked"}, false},
		"twice":                {[]int64{300, 300, 300}, []agentapi.Doing{"blocked", "busy", "busy"}, false},
		"with more of a CPU":   {[]int64{2000, 2000}, []agentapi.Doing{"busy", "busy"}, false},
		"and waits after that": {[]int64{300, 300, 0, 300}, []agentapi.Doing{"blocked", "busy", "blocked", "blocked"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var f Follower
			at, used := time.Unix(1000, 0), Usage{Wait: "poll_schedule_timeout"}
			sample := func(cpu int64) agentapi.RankActivity {
				at = at.Add(SamplePeriod)
				used.At, used.User = at, used.User+time.Duration(cpu)*time.Millisecond
				return f.Sample(at, []RankUsage{{Processes: []int{7}, Used: used, Known: true}}, Network{}, Counts{}, unmarked{}).Ranks[0]
			}
			sample(0)
			since := sample(0).Since
			if test.ready {
				used.Ready = map[int]int64{7: 1}
				sample(0)
			}
			var got []agentapi.Doing
			for _, cpu := range test.milliseconds {
				r := sample(cpu)
				got = append(got, r.Doing)
				if r.Doing == agentapi.Blocked && !slices.Contains(got, agentapi.Busy) && r.Since != since {
					t.Errorf("it waits since %d, want %d", r.Since, since)
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("it is %v, want %v", got, test.want)
			}
		})
	}
}

// starving is a kernel under which a rank that waits in MPI uses its pages only in some samples.
type starving struct{ uses []CodeUse }

func (s *starving) Used([]int) (CodeUse, bool) {
	use := s.uses[0]
	s.uses = s.uses[1:]
	return use, true
}
func (s *starving) Clear([]int) bool { return true }

// TestCodeOfStarvedRanks: a rank that gets no CPU between two samples shows nothing, and its marks stay until it does.
func TestCodeOfStarvedRanks(t *testing.T) {
	none, mpi, other := CodeUse{}, CodeUse{MPI: true}, CodeUse{MPI: true, Other: true}
	for name, test := range map[string]struct {
		uses []CodeUse
		want []bool
	}{
		"waits":            {[]CodeUse{none, none, mpi, none, mpi}, []bool{false, false, false, true, true, true}},
		"computes":         {[]CodeUse{none, other}, []bool{false, false, false, false}},
		"takes long":       {[]CodeUse{{Cost: time.Second}}, []bool{false, false, false, false}},
		"waits, then goes": {[]CodeUse{mpi, none, other}, []bool{false, true, true, false, false}},
	} {
		t.Run(name, func(t *testing.T) {
			var w CodeWatch
			kernel := &starving{test.uses}
			for i, want := range test.want {
				if got := w.RunsOnlyMPI(kernel, []int{7}, time.Unix(1000, 0).Add(time.Duration(i)*SamplePeriod), true, false); got != want {
					t.Errorf("sample %d: %v, want %v", i, got, want)
				}
			}
			if len(kernel.uses) > 0 {
				t.Errorf("the kernel was asked %d times less often than expected", len(kernel.uses))
			}
		})
	}
}

// unmarked is a kernel without marks of pages.
type unmarked struct{}

func (unmarked) Used([]int) (CodeUse, bool) { return CodeUse{}, false }
func (unmarked) Clear([]int) bool           { return false }

// TestFollower: since when a rank is not busy, and its pod is still, begins with the last sample before, and is kept.
func TestFollower(t *testing.T) {
	start := time.Unix(1000, 0)
	used := func(rank int32, seconds int, doing agentapi.Doing) RankUsage {
		u := Usage{At: start.Add(time.Duration(seconds) * time.Second), Wait: "poll_schedule_timeout"}
		if doing == agentapi.Busy {
			u.User = time.Duration(seconds) * time.Second
		}
		return RankUsage{Rank: rank, Processes: []int{int(rank) + 10}, Used: u, Known: true}
	}
	var f Follower
	var last agentapi.Activity
	for _, seconds := range []int{0, 10, 20} {
		last = f.Sample(start.Add(time.Duration(seconds)*time.Second), []RankUsage{used(0, seconds, agentapi.Blocked), used(1, seconds, agentapi.Busy)}, Network{Bytes: 100}, Counts{}, unmarked{})
	}
	want := agentapi.Activity{StillSince: 1000, Ranks: []agentapi.RankActivity{{Rank: 0, Doing: agentapi.Blocked, Since: 1000}, {Rank: 1, Doing: agentapi.Busy}}}
	if diff := cmp.Diff(want, last); diff != "" || last.QuietSince() != 0 {
		t.Errorf("quiet since %d, activity (-want +got):\n%s", last.QuietSince(), diff)
	}
	loud := f.Sample(start.Add(30*time.Second), []RankUsage{used(0, 30, agentapi.Blocked)}, Network{Bytes: 1 << 20}, Counts{}, unmarked{})
	if loud.StillSince != 0 || loud.Ranks[0].Since != 1000 || loud.QuietSince() != 0 {
		t.Errorf("a pod that sends data: %+v", loud)
	}
	quiet := f.Sample(start.Add(40*time.Second), []RankUsage{used(0, 40, agentapi.Blocked)}, Network{Bytes: 1 << 20}, Counts{}, unmarked{})
	if quiet.QuietSince() != 1030 {
		t.Errorf("quiet since %d", quiet.QuietSince())
	}
	ended := used(0, 50, agentapi.Blocked)
	ended.Known = false
	if got := f.Sample(start.Add(50*time.Second), []RankUsage{ended}, Network{Bytes: 1 << 20}, Counts{}, unmarked{}); got.StillSince != 0 || got.QuietSince() != 0 {
		t.Errorf("a rank that ended: %+v", got)
	}
}

// spinning is a kernel that marks the pages that one rank uses: MPI's, and with looked those of its program, which somebody has read.
type spinning struct{ looked bool }

func (s *spinning) Used([]int) (CodeUse, bool) { return CodeUse{MPI: true, Other: s.looked}, true }
func (s *spinning) Clear([]int) bool           { s.looked = false; return true }

// TestLookedInto: that the agent reads a rank's memory, and sends what it found, is not taken for something that the rank does.
func TestLookedInto(t *testing.T) {
	for name, test := range map[string]struct {
		told bool
		want []agentapi.Doing
	}{
		"looked into":         {true, []agentapi.Doing{"busy", "busy", "polling", "polling", "polling"}},
		"used by the program": {false, []agentapi.Doing{"busy", "busy", "polling", "busy", "busy"}},
	} {
		t.Run(name, func(t *testing.T) {
			var f Follower
			var got []agentapi.Doing
			kernel, bytes, still := &spinning{}, int64(0), int64(0)
			for i := range 5 {
				at := time.Unix(1000, 0).Add(time.Duration(i) * SamplePeriod)
				if i == 3 {
					kernel.looked, bytes = true, 1<<20
					if test.told {
						f.LookedInto()
					}
				}
				activity := f.Sample(at, []RankUsage{{Processes: []int{7}, Used: Usage{At: at, User: time.Duration(i) * SamplePeriod}, Known: true}}, Network{Bytes: bytes}, Counts{}, kernel)
				got, still = append(got, activity.Ranks[0].Doing), activity.StillSince
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("it is %v, want %v", got, test.want)
			}
			if test.told != (still == 1000) {
				t.Errorf("the pod is still since %d", still)
			}
		})
	}
}

// TestUnanswered: a connection is unanswered if it is being opened in two samples in a row; the one that is tried the longest counts.
func TestUnanswered(t *testing.T) {
	start := time.Unix(1000, 0)
	steps := []struct {
		connecting []string
		want       *agentapi.Unanswered
	}{
		{[]string{"10.0.0.7:443"}, nil},
		{[]string{"10.0.0.1:80", "10.0.0.7:443"}, &agentapi.Unanswered{Address: "10.0.0.7:443", Since: 1000}},
		{[]string{"10.0.0.1:80", "10.0.0.7:443"}, &agentapi.Unanswered{Address: "10.0.0.7:443", Since: 1000}},
		{[]string{"10.0.0.1:80"}, &agentapi.Unanswered{Address: "10.0.0.1:80", Since: 1005}},
		{nil, nil},
		{[]string{"10.0.0.1:80"}, nil},
	}
	var f Follower
	for i, step := range steps {
		got := f.Sample(start.Add(time.Duration(i)*SamplePeriod), nil, Network{Connecting: step.connecting}, Counts{}, unmarked{})
		if diff := cmp.Diff(step.want, got.Unanswered); diff != "" {
			t.Errorf("sample %d (-want +got):\n%s", i, diff)
		}
	}
}
