package outcome

import (
	"slices"
	"testing"
	"time"

	"opendatahub.io/mpijob/internal/agent/records"
	"opendatahub.io/mpijob/internal/agentapi"
)

var (
	crash  = agentapi.RankEnd{Rank: 1, ExitCode: 139, Signal: 11, Program: "train", At: 6000}
	failed = agentapi.RankEnd{Rank: 2, ExitCode: 42, Program: "train", At: 5000}
	piped  = agentapi.RankEnd{Rank: 0, ExitCode: 141, Signal: 13, Program: "train", At: 1}
	killed = agentapi.RankEnd{Rank: 0, ExitCode: 137, Signal: 9, Program: "train"}
)

// sessionOf returns the record of a session of the launcher 7, in which ranks failed.
func sessionOf(over bool, quietSince int64, ends ...agentapi.RankEnd) records.Record {
	r := records.Record{Host: "pi-worker-0", Process: 100, Ancestors: []int{8, 7}, Over: over, Worker: &agentapi.Summary{Ranks: ends}}
	if !over {
		r.Worker.Activity = &agentapi.Activity{Ranks: []agentapi.RankActivity{{Rank: 3, Doing: agentapi.Polling, Since: quietSince}}, StillSince: quietSince}
	}
	return r
}

func TestLauncherIsOverdue(t *testing.T) {
	now := time.Unix(2000, 0)
	quiet := now.Add(-25 * time.Second).Unix()
	disconnected := sessionOf(true, 0, killed)
	disconnected.Trouble = agentapi.ConnectionLost
	ssh := disconnected
	ssh.Worker = nil
	unsampled := sessionOf(false, 0)
	unsampled.Worker = nil
	unreached := records.Record{Host: "pi-worker-7", Process: 100, Ancestors: []int{8, 7}, Over: true, Trouble: agentapi.Unreachable, Why: "no such host"}
	idle := sessionOf(false, quiet)
	idle.Worker.Activity = &agentapi.Activity{}
	another := sessionOf(true, 0, crash)
	another.Ancestors = []int{6}
	for name, test := range map[string]struct {
		records  []records.Record
		own      agentapi.Activity
		tolerant bool
		over     bool
		since    time.Duration
		want     bool
	}{
		"MPI stopped the host, others compute":       {records: []records.Record{sessionOf(true, 0, crash, killed), sessionOf(false, 0)}, since: 20 * time.Second, want: true},
		"exit code, the host's others were killed":   {records: []records.Record{sessionOf(true, 0, failed, killed), sessionOf(false, 0)}, since: 20 * time.Second, want: true},
		"exit code, others wait":                     {records: []records.Record{sessionOf(true, 0, failed), sessionOf(false, quiet)}, since: 20 * time.Second, want: true},
		"exit code, others compute":                  {records: []records.Record{sessionOf(true, 0, failed), sessionOf(false, 0)}, since: time.Hour},
		"exit code on the same host, others wait":    {records: []records.Record{sessionOf(false, quiet, failed)}, since: 20 * time.Second, want: true},
		"killed by somebody, others wait":            {records: []records.Record{sessionOf(false, quiet, killed)}, since: 20 * time.Second, want: true},
		"ranks beside the launcher wait":             {records: []records.Record{sessionOf(true, 0, failed)}, own: *sessionOf(false, quiet).Worker.Activity, since: 20 * time.Second, want: true},
		"ranks beside the launcher compute":          {records: []records.Record{sessionOf(true, 0, failed)}, own: *sessionOf(false, 0).Worker.Activity, since: 20 * time.Second},
		"they have waited for a moment":              {records: []records.Record{sessionOf(true, 0, failed), sessionOf(false, now.Unix()-5)}, since: 20 * time.Second},
		"MPI is about to end the others":             {records: []records.Record{sessionOf(true, 0, crash), sessionOf(false, quiet)}, since: 19 * time.Second},
		"told to continue":                           {records: []records.Record{sessionOf(true, 0, crash, killed), sessionOf(false, quiet)}, since: time.Hour, tolerant: true},
		"the launcher has ended":                     {records: []records.Record{sessionOf(true, 0, crash, killed), sessionOf(false, quiet)}, since: time.Hour, over: true},
		"none is left":                               {records: []records.Record{sessionOf(true, 0, crash, killed)}, since: time.Hour},
		"no rank failed":                             {records: []records.Record{sessionOf(true, 0), sessionOf(false, quiet)}, since: time.Hour},
		"a host was lost, others wait":               {records: []records.Record{disconnected, sessionOf(false, quiet)}, since: 20 * time.Second, want: true},
		"a host was lost, others compute":            {records: []records.Record{disconnected, sessionOf(false, 0)}, since: 20 * time.Second, want: true},
		"all hosts were lost":                        {records: []records.Record{disconnected}, since: 20 * time.Second, want: true},
		"a program's own ssh was disconnected":       {records: []records.Record{ssh, sessionOf(false, quiet)}, since: time.Hour},
		"a host was not reached, no rank started":    {records: []records.Record{unreached, idle}, since: 20 * time.Second, want: true},
		"a host was not reached by a rank's own ssh": {records: []records.Record{unreached, sessionOf(false, quiet)}, since: time.Hour},
		"MPI is about to notice the host":            {records: []records.Record{unreached}, since: 19 * time.Second},
		"MPI is about to notice the lost host":       {records: []records.Record{disconnected}, since: 19 * time.Second},
		"a host was lost, told to continue":          {records: []records.Record{disconnected}, since: time.Hour, tolerant: true},
		"a rank crashed and its worker was deleted":  {records: []records.Record{sessionOf(true, 0, crash), disconnected, sessionOf(false, quiet)}, since: time.Hour, want: true},
		"the other ranks were not sampled":           {records: []records.Record{sessionOf(true, 0, failed), unsampled}, since: time.Hour},
		"the rank of an earlier launcher had failed": {records: []records.Record{another, sessionOf(false, quiet)}, since: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			launchers := []*Launcher{{PID: 6, Over: true, Code: 139}, {PID: 7, Tolerant: test.tolerant, Over: test.over, Code: -1}}
			all := Launches(launchers, nil, test.records, &test.own)
			if got := all[1].IsOverdue(now.Add(-test.since), 20*time.Second, now); got != test.want {
				t.Errorf("%v, want %v: %+v", got, test.want, all[1])
			}
		})
	}
}

func TestLostFailure(t *testing.T) {
	for name, test := range map[string]struct {
		records  []records.Record
		own      []agentapi.RankEnd
		launcher Launcher
		command  int
		want     int32
	}{
		"the command itself succeeded":              {records: []records.Record{sessionOf(true, 0, killed, failed)}, launcher: Launcher{PID: 7, Code: -1}, command: 7, want: 42},
		"others crashed because of it":              {records: []records.Record{sessionOf(true, 0, piped, crash), sessionOf(true, 0, failed)}, launcher: Launcher{PID: 7, Code: -1}, command: 7, want: 42},
		"a script's launcher succeeded":             {records: []records.Record{sessionOf(true, 0, failed)}, launcher: Launcher{PID: 7, Over: true, Code: 0}, command: 5, want: 42},
		"a script handled the failure":              {records: []records.Record{sessionOf(true, 0, failed)}, launcher: Launcher{PID: 7, Over: true, Code: 42}, command: 5},
		"a script's launcher ended unknown":         {records: []records.Record{sessionOf(true, 0, failed)}, launcher: Launcher{PID: 7, Over: true, Code: -1}, command: 5},
		"told to continue":                          {records: []records.Record{sessionOf(true, 0, failed)}, launcher: Launcher{PID: 7, Over: true, Code: 0, Tolerant: true}, command: 7},
		"ranks that were ended at the end":          {records: []records.Record{sessionOf(true, 0, killed)}, launcher: Launcher{PID: 7, Over: true, Code: 0}, command: 7},
		"a rank in the launcher's pod":              {own: []agentapi.RankEnd{crash}, launcher: Launcher{PID: 7, Over: true, Code: 0}, command: 7, want: 139},
		"a rank in the launcher's pod, long before": {own: []agentapi.RankEnd{crash}, launcher: Launcher{PID: 7, Over: true, Code: 0, BadEnds: 1}, command: 7},
		"all ranks succeeded":                       {records: []records.Record{sessionOf(true, 0)}, launcher: Launcher{PID: 7, Over: true, Code: 0}, command: 7},
	} {
		t.Run(name, func(t *testing.T) {
			_, end, lost := lostFailure(Launches([]*Launcher{&test.launcher}, test.own, test.records, nil), test.command)
			if end.ExitCode != test.want || lost != (test.want != 0) {
				t.Errorf("%+v, %v; want %d", end, lost, test.want)
			}
		})
	}
}

// TestMissedRank: the one rank whose end nobody saw has failed if the launcher ended all others.
func TestMissedRank(t *testing.T) {
	t.Parallel()
	ended := func(signal int32, of int32, numbers ...int32) (ends []agentapi.RankEnd) {
		for _, rank := range numbers {
			ends = append(ends, agentapi.RankEnd{Rank: rank, Of: of, ExitCode: 128 + signal, Signal: signal})
		}
		return ends
	}
	for name, test := range map[string]struct {
		failed   []agentapi.RankEnd
		tolerant bool
		code     int
		want     agentapi.RankEnd
	}{
		"the second of two":        {failed: ended(15, 2, 0), code: 7, want: agentapi.RankEnd{Rank: 1, Of: 2, ExitCode: 7}},
		"the first of four":        {failed: ended(9, 4, 3, 1, 2), code: 1, want: agentapi.RankEnd{Rank: 0, Of: 4, ExitCode: 1}},
		"a crash":                  {failed: ended(15, 2, 0), code: 139, want: agentapi.RankEnd{Rank: 1, Of: 2, ExitCode: 139, Signal: 11}},
		"no signal":                {failed: ended(15, 2, 0), code: 255, want: agentapi.RankEnd{Rank: 1, Of: 2, ExitCode: 255}},
		"one of two":               {failed: ended(15, 3, 0), code: 7},
		"another one failed":       {failed: ended(11, 2, 0), code: 7},
		"the launcher was stopped": {failed: ended(15, 2, 0), code: 143},
		"the launcher succeeded":   {failed: ended(15, 2, 0)},
		"the launcher runs":        {failed: ended(15, 2, 0), code: -1},
		"the number is unknown":    {failed: ended(15, 0, 0), code: 7},
		"the same one twice":       {failed: ended(15, 3, 0, 0), code: 7},
		"all were seen":            {failed: ended(15, 2, 0, 1), code: 7},
		"two programs":             {failed: append(ended(15, 3, 0), ended(15, 2, 1)...), code: 7},
		"a rank may fail":          {failed: ended(15, 2, 0), code: 7, tolerant: true},
		"no rank was seen":         {code: 7},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := Launch{Launcher: Launcher{Tolerant: test.tolerant}, Failed: test.failed}
			got, missed := l.missed(test.code)
			if want := test.want != (agentapi.RankEnd{}); missed != want || missed && got != test.want {
				t.Errorf("%+v, %v, want %+v", got, missed, test.want)
			}
		})
	}
}

// TestSortByCause: the first of a run's failed ranks is the one that failed by itself.
func TestSortByCause(t *testing.T) {
	segv := func(rank int32, at int64) agentapi.RankEnd {
		return agentapi.RankEnd{Rank: rank, ExitCode: 139, Signal: 11, At: at}
	}
	exit := func(rank, code int32, at int64) agentapi.RankEnd {
		return agentapi.RankEnd{Rank: rank, ExitCode: code, At: at}
	}
	term := agentapi.RankEnd{Rank: 0, ExitCode: 143, Signal: 15, At: 1}
	oom := agentapi.RankEnd{Rank: 3, ExitCode: 137, Signal: 9, OOM: true, At: 9000}
	for name, test := range map[string]struct {
		ends []agentapi.RankEnd
		want []int32
	}{
		"in the order of time":                                  {[]agentapi.RankEnd{exit(2, 1, 3000), exit(1, 1, 1000)}, []int32{1, 2}},
		"MPI ended the others":                                  {[]agentapi.RankEnd{term, exit(2, 1, 3000)}, []int32{2, 0}},
		"memory first":                                          {[]agentapi.RankEnd{exit(2, 1, 3000), oom}, []int32{3, 2}},
		"others crashed because a rank exited":                  {[]agentapi.RankEnd{segv(1, 1100), exit(2, 42, 1000)}, []int32{2, 1}},
		"a rank lost the one that crashed, seen later":          {[]agentapi.RankEnd{segv(1, 1400), exit(3, 14, 1000), exit(2, 14, 1100)}, []int32{1, 3, 2}},
		"a rank lost the one that crashed, seen first":          {[]agentapi.RankEnd{exit(3, 14, 1000), segv(1, 900)}, []int32{1, 3}},
		"an error of MPI, and a crash long afterwards":          {[]agentapi.RankEnd{exit(3, 14, 1000), segv(1, 9000)}, []int32{3, 1}},
		"an error of MPI, and MPI ended the others":             {[]agentapi.RankEnd{term, exit(3, 16, 1000)}, []int32{3, 0}},
		"a rank lost the one that exited, seen later":           {[]agentapi.RankEnd{exit(0, 15, 1000), exit(1, 42, 1200)}, []int32{1, 0}},
		"all lost a peer":                                       {[]agentapi.RankEnd{exit(3, 15, 1000), exit(1, 15, 1100)}, []int32{3, 1}},
		"a rank crashed in MPI when another exited, seen first": {[]agentapi.RankEnd{segv(1, 1000), exit(2, 42, 1300), term}, []int32{2, 1, 0}},
		"a crash, and an exit long afterwards":                  {[]agentapi.RankEnd{segv(1, 1000), exit(2, 42, 9000)}, []int32{1, 2}},
		"a crash, and an exception because of it":               {[]agentapi.RankEnd{segv(1, 1000), exit(2, 1, 1300)}, []int32{1, 2}},
		"a crash, and one that a shell passed on":               {[]agentapi.RankEnd{segv(1, 1000), exit(2, 139, 1300)}, []int32{1, 2}},
		"an error that programs have, and then a crash":         {[]agentapi.RankEnd{exit(3, 3, 1000), segv(1, 1100)}, []int32{3, 1}},
		"none": {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			sortByCause(test.ends)
			var order []int32
			for _, end := range test.ends {
				order = append(order, end.Rank)
			}
			if !slices.Equal(order, test.want) {
				t.Errorf("%v, want %v", order, test.want)
			}
		})
	}
}

// TestLaunchNamesTheFirstLostHost: the reason to end a launcher names the host that was lost first.
func TestLaunchNamesTheFirstLostHost(t *testing.T) {
	t.Parallel()
	lost := func(host string, at int64) records.Record {
		return records.Record{Host: host, Process: 100, Ancestors: []int{7}, Reached: time.Unix(1, 0), Over: true, Trouble: agentapi.ConnectionLost, Why: "lost", TroubleAt: time.Unix(at, 0), Worker: &agentapi.Summary{RanksSeen: 1}}
	}
	all := Launches([]*Launcher{{PID: 7}}, nil, []records.Record{lost("worker-1", 9), lost("worker-2", 8)}, nil)
	if got := all[0].Failure(); got != "Host worker-2 was lost: lost." {
		t.Errorf("got %q", got)
	}
	// MPI's launcher does not notice either that it has lost a host behind another one, or that one was not reached.
	for code, want := range map[agentapi.Code]string{agentapi.ConnectionLost: "Host worker-92 was lost: lost.", agentapi.Unreachable: "Host worker-92 could not be used: lost."} {
		through := records.Record{Host: "worker-3", Process: 100, Ancestors: []int{7}, Reached: time.Unix(1, 0), Worker: &agentapi.Summary{Hosts: []agentapi.HostTrouble{{Host: "worker-92", Code: code, Message: "lost", At: 8000}}}}
		of := Launches([]*Launcher{{PID: 7}}, nil, []records.Record{through}, nil)[0]
		if failedAt := time.Unix(8, 0); !of.HasFailed() || !of.IsOverdue(failedAt, time.Second, failedAt.Add(time.Minute)) || of.Failure() != want {
			t.Errorf("%s: it has failed: %v, %q, want %q", code, of.HasFailed(), of.Failure(), want)
		}
	}
}
