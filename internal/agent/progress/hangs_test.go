package progress

import (
	"cmp"
	"fmt"
	"slices"
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
			activity.StillSince = since.Unix()
		}
		for i, d := range doings {
			rank := agentapi.RankActivity{Rank: int32(i), Doing: d}
			if d != agentapi.Busy && !since.IsZero() {
				rank.Since = since.Unix()
			}
			activity.Ranks = append(activity.Ranks, rank)
		}
		return records.Record{Host: "pi-worker-0", Worker: &agentapi.Summary{Activity: activity}}
	}
	minutes, long := now.Add(-200*time.Second), now.Add(-1000*time.Second)
	still := func(r records.Record, since int64) records.Record {
		r.Worker.Activity.StillSince = since
		return r
	}
	calling := func(r records.Record, seconds int64) records.Record {
		r.Worker.Activity.Unanswered = &agentapi.Unanswered{Address: "10.0.0.7:443", Since: now.Unix() - seconds}
		return r
	}
	locked := func(r records.Record) records.Record {
		r.Worker.Activity.Ranks[1].For = "the lock of /data/index.lock"
		return r
	}
	stored := func(r records.Record, on string) records.Record {
		r.Worker.Activity.Ranks[1].For = on
		return r
	}
	device := func(r records.Record) records.Record {
		for i := range r.Worker.Activity.Ranks {
			r.Worker.Activity.Ranks[i].Device = true
		}
		return r
	}
	idleGPU := func(r records.Record, since time.Time) records.Record {
		for i := range r.Worker.Activity.Ranks {
			r.Worker.Activity.Ranks[i].GPUIdleSince = since.Unix()
		}
		return device(r)
	}
	// at is the host of another worker whose ranks have other numbers, and slow one whose ranks something slows down.
	at := func(r records.Record, worker int32) records.Record {
		r.Host = fmt.Sprintf("pi-worker-%d.pi.ns.svc", worker)
		for i := range r.Worker.Activity.Ranks {
			r.Worker.Activity.Ranks[i].Rank += 2 * worker
		}
		return r
	}
	slow := func(r records.Record, by agentapi.Slowness) records.Record {
		by.Since = cmp.Or(by.Since, minutes.Unix())
		r.Worker.Activity.Slow = &by
		return r
	}
	// waiting is a host whose ranks have waited most of the time.
	waiting := func(r records.Record) records.Record {
		for i := range r.Worker.Activity.Ranks {
			r.Worker.Activity.Ranks[i].Waits = true
		}
		return r
	}
	throttled, faults, queued := agentapi.Slowness{Throttled: 40}, agentapi.Slowness{Faults: 150}, agentapi.Slowness{Queued: 60}
	over := host(quiet, agentapi.Polling)
	over.Over = true
	crashed := []agentapi.RankEnd{{Rank: 1, ExitCode: 139, Signal: 11, Program: "train"}}
	tests := map[string]struct {
		hosts       []records.Record
		own         agentapi.Activity
		failed      []agentapi.RankEnd
		failedAt    time.Time
		noInterface *agentapi.InterfaceSetting
		want        string
	}{
		"all wait without an interface":               {hosts: []records.Record{calling(host(quiet, agentapi.Polling, agentapi.Polling), 100)}, noInterface: &agentapi.InterfaceSetting{Name: "btl_tcp_if_include", Value: "ib0", Has: []string{"lo", "eth0"}}, want: "all 2 ranks wait, since 00:32:40 UTC; polling: 0, 1; btl_tcp_if_include selects ib0, pods have lo, eth0; pi-worker-0 gets no answer from 10.0.0.7:443"},
		"all poll":                                    {hosts: []records.Record{host(quiet, agentapi.Polling, agentapi.Polling)}, want: "all 2 ranks wait, since 00:32:40 UTC; polling: 0, 1"},
		"a host has had no rank for long":             {hosts: []records.Record{host(quiet, agentapi.Polling, agentapi.Polling), reached(host(time.Time{}), now.Add(-time.Minute))}, want: "all 2 ranks wait, since 00:32:40 UTC; polling: 0, 1"},
		"a host has not reported for long":            {hosts: []records.Record{host(quiet, agentapi.Polling, agentapi.Polling), reached(records.Record{}, now.Add(-time.Minute))}, want: "all 2 ranks wait, since 00:32:40 UTC; polling: 0, 1"},
		"a host has no rank yet":                      {hosts: []records.Record{host(quiet, agentapi.Polling, agentapi.Polling), reached(host(time.Time{}), now.Add(-59*time.Second))}},
		"one sleeps while the others wait":            {hosts: []records.Record{host(quiet, agentapi.Polling, agentapi.Sleeping, agentapi.Blocked)}, want: "all 3 ranks wait, since 00:32:40 UTC; sleeping: 1; blocked: 2; polling: 0"},
		"all sleep, and one calls in vain":            {hosts: []records.Record{calling(host(quiet, agentapi.Sleeping, agentapi.Sleeping), 100)}, want: "all 2 ranks wait, since 00:32:40 UTC; sleeping: 0, 1; pi-worker-0 gets no answer from 10.0.0.7:443"},
		"the only rank calls in vain":                 {hosts: []records.Record{calling(host(quiet, agentapi.Blocked), 100)}, want: "the only rank is idle, since 00:32:40 UTC; blocked: 0; pi-worker-0 gets no answer from 10.0.0.7:443"},
		"one calls in vain, but computes":             {hosts: []records.Record{calling(host(quiet, agentapi.Busy, agentapi.Busy), 100)}},
		"the launcher calls in vain":                  {own: agentapi.Activity{Unanswered: &agentapi.Unanswered{Address: "10.0.0.7:443", Since: now.Unix() - 30}}, want: "the launcher gets no answer from 10.0.0.7:443, since 00:32:50 UTC"},
		"the launcher calls for a moment":             {own: agentapi.Activity{Unanswered: &agentapi.Unanswered{Address: "10.0.0.7:443", Since: now.Unix() - 29}}},
		"only for a moment":                           {hosts: []records.Record{host(now.Add(-20*time.Second), agentapi.Polling, agentapi.Polling)}},
		"one computes":                                {hosts: []records.Record{host(time.Time{}, agentapi.Polling, agentapi.Busy)}},
		"one computes on another host":                {hosts: []records.Record{host(quiet, agentapi.Polling), host(time.Time{}, agentapi.Busy)}},
		"all sleep as they want":                      {hosts: []records.Record{host(quiet, agentapi.Sleeping, agentapi.Sleeping)}},
		"all sleep for minutes":                       {hosts: []records.Record{host(minutes, agentapi.Sleeping, agentapi.Sleeping)}, want: "all 2 ranks are idle, since 00:30:00 UTC; sleeping: 0, 1"},
		"one of them waits for a lock":                {hosts: []records.Record{locked(host(minutes, agentapi.Sleeping, agentapi.Blocked))}, want: "all 2 ranks wait, since 00:30:00 UTC; sleeping: 0; blocked: 1; rank 1 waits for the lock of /data/index.lock"},
		"one of them writes a file for a moment":      {hosts: []records.Record{stored(host(quiet, agentapi.Polling, agentapi.Blocked), agentapi.ForFileServer)}},
		"one of them writes pages for a moment":       {hosts: []records.Record{stored(host(quiet, agentapi.Polling, agentapi.Blocked), agentapi.ForStorage)}},
		"one of them writes a file for minutes":       {hosts: []records.Record{stored(host(minutes, agentapi.Polling, agentapi.Blocked), agentapi.ForFileServer)}, want: "all 2 ranks wait, since 00:30:00 UTC; blocked: 1; polling: 0; rank 1 waits for a file server"},
		"one of them writes and one calls in vain":    {hosts: []records.Record{calling(stored(host(quiet, agentapi.Polling, agentapi.Blocked), agentapi.ForStorage), 100)}, want: "all 2 ranks wait, since 00:32:40 UTC; blocked: 1; polling: 0; rank 1 waits for storage; pi-worker-0 gets no answer from 10.0.0.7:443"},
		"a rank alone":                                {hosts: []records.Record{host(quiet, agentapi.Polling)}},
		"a rank alone for minutes":                    {hosts: []records.Record{host(minutes, agentapi.Blocked)}, want: "the only rank is idle, since 00:30:00 UTC; blocked: 0"},
		"a GPU works for minutes":                     {hosts: []records.Record{device(host(minutes, agentapi.Blocked, agentapi.Blocked))}},
		"GPUs were busy a moment ago":                 {hosts: []records.Record{idleGPU(host(long, agentapi.Blocked, agentapi.Blocked), quiet)}},
		"GPUs are idle for minutes":                   {hosts: []records.Record{idleGPU(host(long, agentapi.Blocked, agentapi.Blocked), minutes)}, want: "all 2 ranks wait, since 00:30:00 UTC; blocked: 0, 1"},
		"GPUs for long":                               {hosts: []records.Record{device(host(long, agentapi.Blocked, agentapi.Blocked))}, want: "all 2 ranks are idle, since 00:16:40 UTC; blocked: 0, 1"},
		"all wait for one that computes":              {hosts: []records.Record{host(minutes, agentapi.Polling, agentapi.Busy, agentapi.Blocked)}, want: "2 of 3 ranks wait for rank 1, since 00:30:00 UTC; busy: 1; blocked: 2; polling: 0"},
		"all wait for one, for a moment":              {hosts: []records.Record{host(quiet, agentapi.Polling, agentapi.Busy)}},
		"all wait for one that uses the network":      {hosts: []records.Record{still(host(minutes, agentapi.Polling, agentapi.Busy), 0)}},
		"a main program waits for those that compute": {hosts: []records.Record{host(minutes, agentapi.Blocked, agentapi.Busy, agentapi.Busy)}},
		"one sleeps and one computes":                 {hosts: []records.Record{host(minutes, agentapi.Blocked, agentapi.Sleeping, agentapi.Busy)}},
		"GPUs wait for one that computes":             {hosts: []records.Record{device(host(minutes, agentapi.Blocked, agentapi.Busy))}},
		"one is throttled":                            {hosts: []records.Record{host(minutes, agentapi.Polling, agentapi.Polling), slow(at(host(minutes, agentapi.Busy, agentapi.Polling), 1), throttled)}, want: "3 of 4 ranks wait for rank 2 (slower: pi-worker-1 is throttled 40 % of the time), since 00:30:00 UTC; busy: 2; polling: 0, 1, 3"},
		"all ranks of a pod are throttled":            {hosts: []records.Record{host(minutes, agentapi.Polling, agentapi.Polling), slow(at(host(minutes, agentapi.Busy, agentapi.Busy), 1), throttled)}, want: "2 of 4 ranks wait for ranks 2, 3 (slower: pi-worker-1 is throttled 40 % of the time), since 00:30:00 UTC; busy: 2, 3; polling: 0, 1"},
		"all ranks of a pod are busy":                 {hosts: []records.Record{host(minutes, agentapi.Polling, agentapi.Polling), at(host(minutes, agentapi.Busy, agentapi.Busy), 1)}},
		"one reads its memory from a disk":            {hosts: []records.Record{host(minutes, agentapi.Polling, agentapi.Polling), slow(at(host(minutes, agentapi.Busy, agentapi.Polling), 1), faults)}, want: "3 of 4 ranks wait for rank 2 (slower: pi-worker-1 has 150 major page faults per second), since 00:30:00 UTC; busy: 2; polling: 0, 1, 3"},
		"one is on a busy node":                       {hosts: []records.Record{host(minutes, agentapi.Polling, agentapi.Polling), slow(at(host(minutes, agentapi.Busy, agentapi.Polling), 1), queued)}, want: "3 of 4 ranks wait for rank 2 (slower: the ranks of pi-worker-1 wait for a CPU 60 % of the time), since 00:30:00 UTC; busy: 2; polling: 0, 1, 3"},
		"all are on a busy node":                      {hosts: []records.Record{slow(host(minutes, agentapi.Polling, agentapi.Polling), queued), slow(at(host(minutes, agentapi.Busy, agentapi.Polling), 1), queued)}, want: "3 of 4 ranks wait for rank 2, since 00:30:00 UTC; busy: 2; polling: 0, 1, 3"},
		"another pod is throttled":                    {hosts: []records.Record{slow(host(minutes, agentapi.Polling, agentapi.Polling), throttled), at(host(minutes, agentapi.Busy, agentapi.Polling), 1)}, want: "3 of 4 ranks wait for rank 2, since 00:30:00 UTC; busy: 2; polling: 0, 1, 3"},
		"a throttled one that exchanges data":         {hosts: []records.Record{waiting(host(time.Time{}, agentapi.Polling, agentapi.Busy)), slow(at(host(time.Time{}, agentapi.Busy, agentapi.Busy), 1), throttled)}, want: "2 of 4 ranks wait for ranks 2, 3 (slower: pi-worker-1 is throttled 40 % of the time), since 00:30:00 UTC; mostly waiting: 0, 1"},
		"a throttled one, for a moment":               {hosts: []records.Record{waiting(host(time.Time{}, agentapi.Polling, agentapi.Busy)), slow(at(host(time.Time{}, agentapi.Busy, agentapi.Busy), 1), agentapi.Slowness{Throttled: 40, Since: now.Unix() - 50})}},
		"a throttled one for which nobody waits":      {hosts: []records.Record{host(time.Time{}, agentapi.Polling, agentapi.Busy), slow(at(host(time.Time{}, agentapi.Busy, agentapi.Busy), 1), throttled)}},
		"a throttled one that waits itself":           {hosts: []records.Record{waiting(host(time.Time{}, agentapi.Polling, agentapi.Busy)), slow(at(waiting(host(time.Time{}, agentapi.Polling, agentapi.Polling)), 1), throttled)}},
		"all are throttled":                           {hosts: []records.Record{waiting(slow(host(time.Time{}, agentapi.Polling), throttled)), slow(at(host(time.Time{}, agentapi.Busy, agentapi.Busy), 1), throttled)}},
		"a throttled one, others have GPUs":           {hosts: []records.Record{device(waiting(host(time.Time{}, agentapi.Polling))), slow(at(host(time.Time{}, agentapi.Busy), 1), throttled)}},
		"a throttled one alone":                       {hosts: []records.Record{slow(host(time.Time{}, agentapi.Busy, agentapi.Busy), throttled)}},
		"two pods on a busy node":                     {hosts: []records.Record{host(minutes, agentapi.Polling, agentapi.Polling), slow(at(host(minutes, agentapi.Busy, agentapi.Busy), 1), queued), at(host(minutes, agentapi.Polling, agentapi.Polling), 2), slow(at(host(minutes, agentapi.Busy, agentapi.Polling), 3), agentapi.Slowness{Queued: 70})}, want: "5 of 8 ranks wait for ranks 2, 3, 6 (slower: the ranks of pi-worker-1, pi-worker-3 wait for a CPU 60 % or more of the time), since 00:30:00 UTC; busy: 2, 3, 6; polling: 0, 1, 4, 5 and 1 more"},
		"two throttled pods":                          {hosts: []records.Record{slow(host(minutes, agentapi.Busy, agentapi.Polling), throttled), slow(at(host(minutes, agentapi.Busy, agentapi.Polling), 1), throttled), at(host(minutes, agentapi.Polling, agentapi.Polling), 2), at(host(minutes, agentapi.Polling, agentapi.Polling), 3)}, want: "6 of 8 ranks wait for ranks 0, 2 (slower: pi-worker-0, pi-worker-1 are throttled 40 % of the time), since 00:30:00 UTC; busy: 0, 2; polling: 1, 3, 4, 5 and 2 more"},
		"two throttled pods that exchange data":       {hosts: []records.Record{slow(host(time.Time{}, agentapi.Busy), throttled), slow(at(host(time.Time{}, agentapi.Busy), 1), agentapi.Slowness{Throttled: 40, Since: now.Unix() - 90}), at(waiting(host(time.Time{}, agentapi.Polling)), 2), at(waiting(host(time.Time{}, agentapi.Busy)), 3)}, want: "2 of 4 ranks wait for ranks 0, 2 (slower: pi-worker-0, pi-worker-1 are throttled 40 % of the time), since 00:31:50 UTC; mostly waiting: 4, 6"},
		"two of three pods are slow":                  {hosts: []records.Record{slow(host(minutes, agentapi.Busy, agentapi.Polling), faults), slow(at(host(minutes, agentapi.Busy, agentapi.Polling), 1), faults), at(host(minutes, agentapi.Polling, agentapi.Polling), 2)}},
		"two pods that differ":                        {hosts: []records.Record{slow(host(minutes, agentapi.Busy, agentapi.Polling), faults), slow(at(host(minutes, agentapi.Busy, agentapi.Polling), 1), throttled), at(host(minutes, agentapi.Polling, agentapi.Polling), 2), at(host(minutes, agentapi.Polling, agentapi.Polling), 3)}},
		"few of many keep the others waiting":         {hosts: []records.Record{host(minutes, append(slices.Repeat([]agentapi.Doing{agentapi.Polling}, 14), agentapi.Busy, agentapi.Busy)...)}, want: "14 of 16 ranks wait for ranks 14, 15, since 00:30:00 UTC; busy: 14, 15; polling: 0, 1, 2, 3 and 10 more"},
		"another host has not started":                {hosts: []records.Record{host(quiet, agentapi.Polling, agentapi.Polling), {Host: "pi-worker-1"}}},
		"another host's session is over":              {hosts: []records.Record{host(quiet, agentapi.Polling, agentapi.Polling), over}, want: "all 2 ranks wait, since 00:32:40 UTC; polling: 0, 1"},
		"ranks beside the launcher":                   {own: *host(quiet, agentapi.Polling, agentapi.Polling).Worker.Activity, want: "all 2 ranks wait, since 00:32:40 UTC; polling: 0, 1"},
		"nothing runs":                                {},
		"others go on after a rank failed":            {hosts: []records.Record{host(time.Time{}, agentapi.Busy)}, failed: crashed, failedAt: now.Add(-time.Minute), want: "Rank 1 (train) ended by signal 11 (SIGSEGV), but 1 other rank still runs, since 00:32:20 UTC"},
		"MPI is about to end the others":              {hosts: []records.Record{host(time.Time{}, agentapi.Busy)}, failed: crashed, failedAt: now.Add(-5 * time.Second)},
		"a rank failed, and none is left to run":      {hosts: []records.Record{over}, failed: crashed, failedAt: now.Add(-time.Minute)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := judgeStall(test.hosts, test.own, agentapi.Summary{Ranks: test.failed, NoInterface: test.noInterface}, test.failedAt, now); got != test.want {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

func TestStallsAreReportedOnce(t *testing.T) {
	var w StallWatch
	var lines []string
	for _, text := range []string{"", "a", "a", "b", "", "", "a", "a (slower: p is 10 %), b", "a (slower: p is 20 %), b", "a, b", "c (slower: p is 20 %), b"} {
		lines = append(lines, w.next(text))
	}
	if got := strings.Join(lines, "|"); got != "|a||b|over||a|a (slower: p is 10 %), b|||c (slower: p is 20 %), b" {
		t.Errorf("lines are %q", got)
	}
}
