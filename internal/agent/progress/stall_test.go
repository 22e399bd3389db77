package progress

import (
	"strings"
	"testing"
	"time"

	"opendatahub.io/mpijob/internal/agent/records"
	"opendatahub.io/mpijob/internal/agentapi"
)

func TestJudgeStall(t *testing.T) {
	now := time.Unix(2000, 0)
	reached := func(r records.Record, at time.Time) records.Record {
		r.Reached = at
		return r
	}
	quiet := now.Add(-40 * time.Second)
	host := func(since time.Time, doings ...agentapi.Doing) records.Record {
		activity := &agentapi.Activity{}
		if !since.IsZero() {
			activity.QuietSince = since.Unix()
		}
		for i, d := range doings {
			activity.Ranks = append(activity.Ranks, agentapi.RankActivity{Rank: int32(i), Doing: d})
		}
		return records.Record{Host: "pi-worker-0", Worker: &agentapi.Summary{Activity: activity}}
	}
	over := host(quiet, agentapi.Polling)
	over.Over = true
	crashed := []agentapi.RankEnd{{Rank: 1, ExitCode: 139, Signal: 11, Program: "train"}}
	tests := map[string]struct {
		hosts    []records.Record
		own      agentapi.Activity
		failed   []agentapi.RankEnd
		failedAt time.Time
		want     string
	}{
		"all poll":                               {hosts: []records.Record{host(quiet, agentapi.Polling, agentapi.Polling)}, want: "all 2 ranks wait, since 00:32:40 UTC; polling: 0, 1"},
		"a host has had no rank for long":        {hosts: []records.Record{host(quiet, agentapi.Polling, agentapi.Polling), reached(host(time.Time{}), now.Add(-time.Minute))}, want: "all 2 ranks wait, since 00:32:40 UTC; polling: 0, 1"},
		"a host has not reported for long":       {hosts: []records.Record{host(quiet, agentapi.Polling, agentapi.Polling), reached(records.Record{}, now.Add(-time.Minute))}, want: "all 2 ranks wait, since 00:32:40 UTC; polling: 0, 1"},
		"a host has no rank yet":                 {hosts: []records.Record{host(quiet, agentapi.Polling, agentapi.Polling), reached(host(time.Time{}), now.Add(-59*time.Second))}},
		"one sleeps while the others wait":       {hosts: []records.Record{host(quiet, agentapi.Polling, agentapi.Sleeping, agentapi.Blocked)}, want: "all 3 ranks wait, since 00:32:40 UTC; sleeping: 1; blocked: 2; polling: 0"},
		"only for a moment":                      {hosts: []records.Record{host(now.Add(-20*time.Second), agentapi.Polling, agentapi.Polling)}},
		"one computes":                           {hosts: []records.Record{host(time.Time{}, agentapi.Polling, agentapi.Busy)}},
		"one computes on another host":           {hosts: []records.Record{host(quiet, agentapi.Polling), host(time.Time{}, agentapi.Busy)}},
		"all sleep as they want":                 {hosts: []records.Record{host(quiet, agentapi.Sleeping, agentapi.Sleeping)}},
		"a rank alone":                           {hosts: []records.Record{host(quiet, agentapi.Polling)}},
		"another host has not started":           {hosts: []records.Record{host(quiet, agentapi.Polling, agentapi.Polling), {Host: "pi-worker-1"}}},
		"another host's session is over":         {hosts: []records.Record{host(quiet, agentapi.Polling, agentapi.Polling), over}, want: "all 2 ranks wait, since 00:32:40 UTC; polling: 0, 1"},
		"ranks beside the launcher":              {own: *host(quiet, agentapi.Polling, agentapi.Polling).Worker.Activity, want: "all 2 ranks wait, since 00:32:40 UTC; polling: 0, 1"},
		"nothing runs":                           {},
		"others go on after a rank failed":       {hosts: []records.Record{host(time.Time{}, agentapi.Busy)}, failed: crashed, failedAt: now.Add(-time.Minute), want: "Rank 1 (train) ended by signal 11 (SIGSEGV), but 1 other rank still runs, since 00:32:20 UTC"},
		"MPI is about to end the others":         {hosts: []records.Record{host(time.Time{}, agentapi.Busy)}, failed: crashed, failedAt: now.Add(-5 * time.Second)},
		"a rank failed, and none is left to run": {hosts: []records.Record{over}, failed: crashed, failedAt: now.Add(-time.Minute)},
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
	var w StallWatch
	var lines []string
	for _, text := range []string{"", "a", "a", "b", "", "", "a"} {
		lines = append(lines, w.next(text))
	}
	if got := strings.Join(lines, ","); got != ",a,,b,over,,a" {
		t.Errorf("lines are %q", got)
	}
}
