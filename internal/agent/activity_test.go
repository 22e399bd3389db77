package agent

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

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

// TestUsageOfRealProcesses: /proc tells computing from sleeping.
func TestUsageOfRealProcesses(t *testing.T) {
	tests := map[string]struct {
		command []string
		want    agentapi.Doing
	}{
		"sleep":             {[]string{"sleep", "60"}, agentapi.Sleeping},
		"loop":              {[]string{"sh", "-c", "while :; do :; done"}, agentapi.Busy},
		"pipe":              {[]string{"cat"}, agentapi.Blocked},
		"script of a loop":  {[]string{"sh", "-c", "sh -c 'while :; do :; done'; true"}, agentapi.Busy},
		"script of a sleep": {[]string{"sh", "-c", "sleep 60; true"}, agentapi.Sleeping},
		"script of a pipe":  {[]string{"sh", "-c", "cat; true"}, agentapi.Blocked},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			command := exec.Command(test.command[0], test.command[1:]...)
			input, writer, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer input.Close()
			defer writer.Close()
			command.Stdin, command.SysProcAttr = input, &syscall.SysProcAttr{Setpgid: true}
			if err := command.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = unix.Kill(-command.Process.Pid, unix.SIGKILL); _ = command.Wait() }()
			sample := func() processUsage {
				pid := command.Process.Pid
				u, ok := readUsages(append([]int{pid}, startedBy(map[int]int32{pid: 0})[pid]...), time.Now())
				if !ok {
					t.Fatal("it has no usage")
				}
				return u
			}
			// A busy machine gives a process its time late.
			deadline := time.Now().Add(30 * time.Second)
			samples, got := rankSamples{}, agentapi.Doing("")
			samples.add(sample())
			for got != test.want && time.Now().Before(deadline) {
				time.Sleep(200 * time.Millisecond)
				got = samples.add(sample())
			}
			if got != test.want && (got != agentapi.Blocked || samples.last.wait != "") {
				t.Errorf("it is %s (%s), want %s", got, samples.last.wait, test.want)
			}
		})
	}
}

// TestEndedProcessesSayNothing: a process that has ended, and that its parent has not collected, does not hide what the others do.
func TestEndedProcessesSayNothing(t *testing.T) {
	command := exec.Command("true")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = command.Wait() }()
	pid := command.Process.Pid
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if state, ok := readStat(pid); ok && state.state == 'Z' {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the process does not end")
		}
	}
	if u, ok := readUsage(pid, time.Now()); !ok || u.wait != waitsForChild {
		t.Errorf("it waits in %q (%t), want %q", u.wait, ok, waitsForChild)
	}
	r := ranks{processes: map[int]*process{pid: {rank: 0}}}
	if got := r.sampleActivity(time.Now()); len(got.Ranks) > 0 {
		t.Errorf("ranks are %v, want none", got.Ranks)
	}
}

func TestCountTraffic(t *testing.T) {
	const table = `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: 5000000 1000    0    0    0     0          0         0 5000000 1000    0    0    0     0       0          0
  eth0: 1000 10    0    0    0     0          0         0 200 2    0    0    0     0       0          0
  net1:30 1 0 0 0 0 0 0 4 1 0 0 0 0 0 0
`
	if got := countTraffic(table); got != 1234 {
		t.Errorf("%d bytes, want 1234", got)
	}
}

func TestJudgeStall(t *testing.T) {
	now := time.Unix(2000, 0)
	reached := func(r record, at time.Time) record {
		r.Reached = at
		return r
	}
	quiet := now.Add(-40 * time.Second)
	host := func(since time.Time, doings ...agentapi.Doing) record {
		activity := &agentapi.Activity{}
		if !since.IsZero() {
			activity.QuietSince = since.Unix()
		}
		for i, d := range doings {
			activity.Ranks = append(activity.Ranks, agentapi.RankActivity{Rank: int32(i), Doing: d})
		}
		return record{Host: "pi-worker-0", Worker: &agentapi.Summary{Activity: activity}}
	}
	over := host(quiet, agentapi.Polling)
	over.Over = true
	crashed := []agentapi.RankEnd{{Rank: 1, ExitCode: 139, Signal: 11, Program: "train"}}
	tests := map[string]struct {
		hosts    []record
		own      agentapi.Activity
		failed   []agentapi.RankEnd
		failedAt time.Time
		want     string
	}{
		"all poll":                               {hosts: []record{host(quiet, agentapi.Polling, agentapi.Polling)}, want: "all 2 ranks wait, since 00:32:40 UTC; polling: 0, 1"},
		"a host has had no rank for long":        {hosts: []record{host(quiet, agentapi.Polling, agentapi.Polling), reached(host(time.Time{}), now.Add(-time.Minute))}, want: "all 2 ranks wait, since 00:32:40 UTC; polling: 0, 1"},
		"a host has not reported for long":       {hosts: []record{host(quiet, agentapi.Polling, agentapi.Polling), reached(record{}, now.Add(-time.Minute))}, want: "all 2 ranks wait, since 00:32:40 UTC; polling: 0, 1"},
		"a host has no rank yet":                 {hosts: []record{host(quiet, agentapi.Polling, agentapi.Polling), reached(host(time.Time{}), now.Add(-59*time.Second))}},
		"one sleeps while the others wait":       {hosts: []record{host(quiet, agentapi.Polling, agentapi.Sleeping, agentapi.Blocked)}, want: "all 3 ranks wait, since 00:32:40 UTC; sleeping: 1; blocked: 2; polling: 0"},
		"only for a moment":                      {hosts: []record{host(now.Add(-20*time.Second), agentapi.Polling, agentapi.Polling)}},
		"one computes":                           {hosts: []record{host(time.Time{}, agentapi.Polling, agentapi.Busy)}},
		"one computes on another host":           {hosts: []record{host(quiet, agentapi.Polling), host(time.Time{}, agentapi.Busy)}},
		"all sleep as they want":                 {hosts: []record{host(quiet, agentapi.Sleeping, agentapi.Sleeping)}},
		"a rank alone":                           {hosts: []record{host(quiet, agentapi.Polling)}},
		"another host has not started":           {hosts: []record{host(quiet, agentapi.Polling, agentapi.Polling), {Host: "pi-worker-1"}}},
		"another host's session is over":         {hosts: []record{host(quiet, agentapi.Polling, agentapi.Polling), over}, want: "all 2 ranks wait, since 00:32:40 UTC; polling: 0, 1"},
		"ranks beside the launcher":              {own: *host(quiet, agentapi.Polling, agentapi.Polling).Worker.Activity, want: "all 2 ranks wait, since 00:32:40 UTC; polling: 0, 1"},
		"nothing runs":                           {},
		"others go on after a rank failed":       {hosts: []record{host(time.Time{}, agentapi.Busy)}, failed: crashed, failedAt: now.Add(-time.Minute), want: "Rank 1 (train) ended by signal 11 (SIGSEGV), but 1 other rank still runs, since 00:32:20 UTC"},
		"MPI is about to end the others":         {hosts: []record{host(time.Time{}, agentapi.Busy)}, failed: crashed, failedAt: now.Add(-5 * time.Second)},
		"a rank failed, and none is left to run": {hosts: []record{over}, failed: crashed, failedAt: now.Add(-time.Minute)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := judgeStall(test.hosts, test.own, test.failed, test.failedAt, now); got != test.want {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

func TestStallsAreReportedOnce(t *testing.T) {
	var w stallWatch
	var lines []string
	for _, text := range []string{"", "a", "a", "b", "", "", "a"} {
		lines = append(lines, w.next(text))
	}
	if got := strings.Join(lines, ","); got != ",a,,b,over,,a" {
		t.Errorf("lines are %q", got)
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
