package outcome

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"opendatahub.io/mpijob/internal/agent/hostfile"
	"opendatahub.io/mpijob/internal/agent/records"
	"opendatahub.io/mpijob/internal/agentapi"
)

// TestIdleHosts: a host is idle if no rank was observed on it in any launch although ranks were on others, or nothing was started
// on any. What lasted only a few seconds is no proof.
func TestIdleHosts(t *testing.T) {
	t.Parallel()
	session := func(host string, seconds, ranks int32) records.Record {
		return records.Record{Host: host, Reached: time.Unix(1, 0), Over: true, Seconds: seconds, Worker: &agentapi.Summary{RanksSeen: ranks}}
	}
	tree := func(host string, behind ...agentapi.HostUse) records.Record {
		r := session(host, 60, 2)
		r.Worker.Through = behind
		return r
	}
	open := func(host string, ranks int32) records.Record {
		r := session(host, 0, ranks)
		r.Over = false
		return r
	}
	now := time.Unix(61, 0)
	for name, test := range map[string]struct {
		records []records.Record
		want    int32
	}{
		"all are used":                         {[]records.Record{session("a", 60, 2), session("b", 60, 2)}, 0},
		"one has no ranks":                     {[]records.Record{session("a", 60, 2), session("b", 60, 0)}, 1},
		"one was not connected":                {[]records.Record{session("a", 60, 2)}, 1},
		"one has no ranks, for a moment":       {[]records.Record{session("a", 3, 2), session("b", 3, 0)}, 0},
		"one was not connected, for a moment":  {[]records.Record{session("a", 3, 2)}, 1},
		"no rank was observed":                 {[]records.Record{session("a", 60, 0), session("b", 60, 0)}, 0},
		"nothing was started":                  {nil, 2},
		"one after the other":                  {[]records.Record{session("a", 60, 2), session("b", 60, 2), session("a", 60, 0)}, 0},
		"one has not told":                     {[]records.Record{session("a", 60, 2), {Host: "b", Reached: time.Unix(1, 0), Seconds: 60}}, 0},
		"one could not be reached":             {[]records.Record{session("a", 60, 2), {Host: "b", Seconds: 60}}, 1},
		"more hosts than were expected":        {[]records.Record{session("a", 60, 2), session("b", 60, 2), session("c", 60, 2)}, 0},
		"a session is open that has no ranks":  {[]records.Record{session("a", 60, 2), open("b", 0)}, 1},
		"a session is open that has ranks":     {[]records.Record{session("a", 60, 2), open("b", 1)}, 0},
		"the same host by its full name":       {[]records.Record{session("a", 60, 2), session("b", 60, 0), session("b.job.ns.svc", 60, 2)}, 0},
		"another host was connected":           {[]records.Record{session("a", 60, 2), session("b", 60, 2), session("storage", 60, 0)}, 0},
		"addresses instead of names":           {[]records.Record{session("10.0.0.1", 60, 2), session("10.0.0.2", 60, 2)}, 0},
		"a host reached the other one":         {[]records.Record{tree("a", agentapi.HostUse{Host: "b", RanksSeen: 2})}, 0},
		"the other one has no ranks":           {[]records.Record{tree("a", agentapi.HostUse{Host: "b"})}, 1},
		"a host that may have reached another": {[]records.Record{session("a", 60, 2), {Host: "c", Reached: time.Unix(1, 0), Seconds: 60}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := idleHosts(test.records, hostfile.Hosts{Others: 2, SlotsOf: map[string]int32{"a": 2, "b": 2}}, now); got != test.want {
				t.Errorf("%d, want %d", got, test.want)
			}
		})
	}
	three := hostfile.Hosts{Others: 3, SlotsOf: map[string]int32{"a": 2, "b": 2, "c": 2}}
	if got := idleHosts([]records.Record{session("a", 60, 2), {Host: "b", Reached: time.Unix(1, 0)}}, three, now); got != 0 {
		t.Errorf("%d of those that host b may have reached are idle", got)
	}
}

func TestSummaryTellsHowLongConnectingTook(t *testing.T) {
	start := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	folder := t.TempDir()
	summary := func() agentapi.Summary {
		return Summarize(agentapi.Summary{}, records.Read(folder), hostfile.Hosts{}, start.Add(time.Minute))
	}
	records.Record{Host: "b", Process: 1, Since: start.Add(time.Second), Reached: start.Add(3500 * time.Millisecond), Worker: &agentapi.Summary{InitSeconds: 0.25}}.Write(folder)
	records.Record{Host: "a", Process: 2, Since: start, Reached: start.Add(time.Second), Worker: &agentapi.Summary{InitSeconds: 0.5}}.Write(folder)
	if told := summary(); told.ConnectSeconds != 3.5 || told.InitSeconds != 0.5 || len(told.Ranks) > 0 {
		t.Errorf("the summary is %+v, want 3.5 s to connect and 0.5 s to init", told)
	}
	records.Record{Host: "c", Process: 3, Since: start}.Write(folder)
	if told := summary(); told.ConnectSeconds != 0 {
		t.Errorf("connecting took %v s, although a host is not reached", told.ConnectSeconds)
	}
}

// TestLaunchTimes: a launch is known once all hosts of the hostfile are connected, also those behind others, and its ranks once they
// run on all hosts that the launcher connected to.
func TestLaunchTimes(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	at := func(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }
	ran := func(seconds float64, through ...string) *agentapi.Summary {
		s := &agentapi.Summary{InitSeconds: seconds}
		for _, host := range through {
			s.Through = append(s.Through, agentapi.HostUse{Host: host})
		}
		return s
	}
	a := records.Record{Host: "a", Since: start, Reached: at(1), Worker: ran(3)}
	b := records.Record{Host: "b", Since: at(0.5), Reached: at(2)}
	connected := agentapi.Launch{ConnectedAt: at(2).UnixMilli(), ConnectSeconds: 2}
	running := connected
	running.RanksAt, running.InitSeconds = at(4).UnixMilli(), 3
	withRanks := b
	withRanks.Worker = ran(0.5)
	behind := a
	behind.Worker = ran(3, "c")
	for name, test := range map[string]struct {
		sessions []records.Record
		others   int32
		want     *agentapi.Launch
	}{
		"nothing was started":      {others: 2},
		"one of two":               {sessions: []records.Record{a}, others: 2},
		"one is not reached":       {sessions: []records.Record{a, {Host: "b", Since: start}}, others: 2},
		"no other hosts":           {sessions: []records.Record{a}},
		"connected":                {sessions: []records.Record{a, b}, others: 2, want: &connected},
		"ranks run":                {sessions: []records.Record{a, withRanks}, others: 2, want: &running},
		"a host behind another":    {sessions: []records.Record{behind, withRanks}, others: 3, want: &running},
		"a host behind is missing": {sessions: []records.Record{a, withRanks}, others: 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := LaunchTimes(test.sessions, hostfile.Hosts{Others: test.others}); !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

// TestMPISucceeded: a command that fails after MPI's launchers succeeded is distinguished from one whose launcher failed, or is the command itself.
func TestMPISucceeded(t *testing.T) {
	t.Parallel()
	const command = 7
	succeeded := Launch{Launcher: Launcher{PID: 8, Over: true}}
	failed, unknown, own, lost := succeeded, succeeded, succeeded, succeeded
	failed.Code, unknown.Code, own.PID = 3, -1, command
	lost.Failed = []agentapi.RankEnd{{Rank: 1, Of: 2, ExitCode: 42}}
	for name, test := range map[string]struct {
		all  []Launch
		code int
		want bool
	}{
		"it failed afterwards":   {[]Launch{succeeded}, 1, true},
		"it succeeded, too":      {[]Launch{succeeded}, 0, false},
		"two launches":           {[]Launch{succeeded, succeeded}, 1, true},
		"one of two failed":      {[]Launch{succeeded, failed}, 3, false},
		"the end is unknown":     {[]Launch{unknown}, 1, false},
		"the launcher itself":    {[]Launch{own}, 1, false},
		"a rank failed":          {[]Launch{lost}, 1, false},
		"no launcher was called": {nil, 1, false},
	} {
		var got agentapi.Summary
		if Verdict(&got, test.all, hostfile.Hosts{Others: 2}, command, test.code); got.MPISucceeded != test.want {
			t.Errorf("%s: %v", name, got.MPISucceeded)
		}
	}
}

// TestLaterSucceeded: a command that runs MPI again after ranks failed has succeeded if the last run did.
func TestLaterSucceeded(t *testing.T) {
	t.Parallel()
	const command = 7
	succeeded := Launch{Launcher: Launcher{PID: 8, Over: true}}
	failed, unknown, own := succeeded, succeeded, succeeded
	failed.Code, failed.Failed = 3, []agentapi.RankEnd{{Rank: 1, Of: 2, ExitCode: 3}}
	unknown.Code, own.PID, own.Over = -1, command, false
	for name, test := range map[string]struct {
		all  []Launch
		code int
		want bool
	}{
		"the second one succeeded":  {[]Launch{failed, succeeded}, 0, true},
		"of several":                {[]Launch{succeeded, failed, failed, succeeded}, 0, true},
		"the command is the second": {[]Launch{failed, own}, 0, true},
		"both failed":               {[]Launch{failed, failed}, 0, false},
		"the last one failed":       {[]Launch{succeeded, failed}, 0, false},
		"its end is unknown":        {[]Launch{failed, unknown}, 0, false},
		"none failed":               {[]Launch{succeeded, succeeded}, 0, false},
		"one launch":                {[]Launch{failed}, 0, false},
		"the command failed":        {[]Launch{failed, succeeded}, 1, false},
	} {
		var got agentapi.Summary
		if Verdict(&got, test.all, hostfile.Hosts{Others: 2}, command, test.code); got.LaterSucceeded != test.want {
			t.Errorf("%s: %v", name, got.LaterSucceeded)
		}
	}
}

// TestVerdict: the job's exit code is the command's, unless the command did not notice that a rank failed or no worker was used.
func TestVerdict(t *testing.T) {
	t.Parallel()
	const command = 7
	launched := func(ends ...agentapi.RankEnd) []Launch {
		return []Launch{{Launcher: Launcher{PID: command, Code: -1}, Failed: ends}}
	}
	failed := agentapi.RankEnd{Rank: 2, Of: 4, ExitCode: 42}
	for name, test := range map[string]struct {
		summary agentapi.Summary
		all     []Launch
		code    int
		want    int
		reason  agentapi.Code
		ranks   int
		idle    int32
	}{
		"success":                {summary: agentapi.Summary{HostsReached: 2, RanksSeen: 4, HostsIdle: 1}, all: launched(), idle: 1},
		"what did not matter":    {summary: agentapi.Summary{HostsReached: 2, Code: agentapi.Unreachable, Message: "x"}, all: launched()},
		"failure":                {summary: agentapi.Summary{HostsReached: 2, HostsIdle: 1, Code: agentapi.RankFailed}, all: launched(failed), code: 42, want: 42, reason: agentapi.RankFailed},
		"a failure was lost":     {summary: agentapi.Summary{HostsReached: 2}, all: launched(failed), want: 42, reason: agentapi.RankFailed},
		"no worker was used":     {summary: agentapi.Summary{RanksSeen: 4}, all: launched(), want: ignoredCode, reason: agentapi.HostfileIgnored},
		"the launcher is a host": {summary: agentapi.Summary{RanksSeen: 2}, all: launched()},
		"nobody saw the end": {
			summary: agentapi.Summary{HostsReached: 2}, all: launched(agentapi.RankEnd{Rank: 0, Of: 2, ExitCode: 143, Signal: 15}),
			code: 3, want: 3, reason: agentapi.RankFailed, ranks: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := test.summary
			code := Verdict(&got, test.all, hostfile.Hosts{Others: 2, OwnSlots: 2}, command, test.code)
			if code != test.want || got.Code != test.reason || len(got.Ranks) != test.ranks || got.HostsIdle != test.idle || int(*got.ExitCode) != code || got.Launches != 1 {
				t.Errorf("code %d, summary %+v", code, got)
			}
			if (got.Message == "") != (code == 0 || test.summary.Code != "") {
				t.Errorf("the message is %q", got.Message)
			}
		})
	}
}

// TestNoInterface: a setting is reported if no pod with ranks has an interface of it.
func TestNoInterface(t *testing.T) {
	setting := &agentapi.InterfaceSetting{Name: "btl_tcp_if_include", Value: "ib0", Has: []string{"eth0"}}
	with := func(host string, ranks int32, setting *agentapi.InterfaceSetting) records.Record {
		return records.Record{Host: host, Reached: time.Unix(1, 0), Worker: &agentapi.Summary{RanksSeen: ranks, NoInterface: setting}}
	}
	for name, test := range map[string]struct {
		own      agentapi.Summary
		sessions []records.Record
		want     bool
	}{
		"all":                       {sessions: []records.Record{with("a", 2, setting), with("b", 1, setting)}, want: true},
		"one has it":                {sessions: []records.Record{with("a", 2, setting), with("b", 1, nil)}},
		"one has no ranks":          {sessions: []records.Record{with("a", 2, setting), with("b", 0, nil), {Host: "c"}}, want: true},
		"ranks beside the launcher": {own: agentapi.Summary{RanksSeen: 1}, sessions: []records.Record{with("a", 2, setting)}},
		"only beside the launcher":  {own: agentapi.Summary{RanksSeen: 1, NoInterface: setting}, want: true},
		"nobody":                    {sessions: []records.Record{with("a", 2, nil)}},
	} {
		got := Summarize(test.own, test.sessions, hostfile.Hosts{}, time.Unix(2, 0)).NoInterface
		if (got != nil) != test.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

// TestSessions: the sessions of a launcher have their times since the first one began. Those that failed, and those whose ranks started last,
// are listed.
func TestSessions(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	at := func(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }
	ran := &agentapi.Summary{InitSeconds: 0.4}
	whole := records.Record{Host: "a.job.ns.svc", Since: at(0), Reached: at(0.25), Over: true, Seconds: 50, Worker: ran}
	open := records.Record{Host: "b", Since: at(0.1), Reached: at(2), Worker: ran}
	brief := records.Record{Host: "c", Since: at(1), Reached: at(1.5), Over: true, Worker: ran}
	lost := records.Record{Host: "d", Since: at(0), Reached: at(0.5), Over: true, Seconds: 7, Trouble: agentapi.ConnectionLost}
	never := records.Record{Host: "e", Since: at(0), Over: true, Seconds: 120, Trouble: agentapi.Unreachable}
	list := map[string]agentapi.Session{
		"whole": {Host: "a", Connected: 250, Ranks: 650, End: 50_250},
		"open":  {Host: "b", At: 100, Connected: 1900, Ranks: 2300, End: 59_900},
		"brief": {Host: "c", At: 1000, Connected: 500, Ranks: 900, End: 900},
		"lost":  {Host: "d", Connected: 500, End: 7500, Code: agentapi.ConnectionLost},
		"never": {Host: "e", End: 120_000, Code: agentapi.Unreachable},
	}
	for name, test := range map[string]struct {
		records []records.Record
		want    *agentapi.Sessions
	}{
		"none":               {nil, nil},
		"those that run":     {[]records.Record{whole, open, brief}, &agentapi.Sessions{Count: 3, First: start.UnixMilli(), List: []agentapi.Session{list["open"], list["brief"], list["whole"]}}},
		"those that failed":  {[]records.Record{whole, lost, never}, &agentapi.Sessions{Count: 3, First: start.UnixMilli(), List: []agentapi.Session{list["lost"], list["never"], list["whole"]}}},
		"many of one script": {append(slices.Repeat([]records.Record{whole}, 40), never), &agentapi.Sessions{Count: 41, First: start.UnixMilli(), List: append([]agentapi.Session{list["never"]}, slices.Repeat([]agentapi.Session{list["whole"]}, agentapi.MaxSessions-1)...)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := Summarize(agentapi.Summary{}, test.records, hostfile.Hosts{}, at(60)).Sessions
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestFirstLostHost: of several hosts in trouble, the one is named whose trouble began first, not the first by name.
func TestFirstLostHost(t *testing.T) {
	t.Parallel()
	start := time.Unix(100, 0)
	lost := func(host string, after time.Duration) records.Record {
		return records.Record{Host: host, Since: start, Reached: start, Over: true, Trouble: agentapi.ConnectionLost, Why: "lost", TroubleAt: start.Add(after)}
	}
	unreached := records.Record{Host: "worker-0", Since: start, Trouble: agentapi.Unreachable, Why: "no answer"}
	ending := records.Record{Host: "worker-9", Since: start, Reached: start, Trouble: agentapi.ConnectionLost, Why: "ends", TroubleAt: start, Worker: &agentapi.Summary{Ending: true}}
	through := records.Record{Host: "worker-2", Since: start, Reached: start, Worker: &agentapi.Summary{Hosts: []agentapi.HostTrouble{
		{Host: "worker-92", Code: agentapi.ConnectionLost, Message: "lost", At: start.Add(time.Second).UnixMilli()},
		{Host: "worker-93", Code: agentapi.Unreachable, Message: "no answer", At: start.Add(3 * time.Second).UnixMilli()},
	}}}
	for name, test := range map[string]struct {
		sessions []records.Record
		want     []string
	}{
		"lost one after the other":           {[]records.Record{lost("worker-15", 2*time.Second), lost("worker-56", 3*time.Second), lost("worker-8", time.Second)}, []string{"worker-8", "worker-15", "worker-56"}},
		"one is still waited for":            {[]records.Record{unreached, lost("worker-8", time.Second)}, []string{"worker-8", "worker-0"}},
		"a pod began to end, others lost":    {[]records.Record{lost("worker-1", time.Second), ending}, []string{"worker-9", "worker-1"}},
		"behind another one, by MPI's tree":  {[]records.Record{lost("worker-1", 2*time.Second), through}, []string{"worker-92", "worker-1", "worker-93"}},
		"known to two":                       {[]records.Record{lost("worker-92.job.ns.svc", 2*time.Second), through}, []string{"worker-92", "worker-93"}},
		"at the same time, in the old order": {[]records.Record{lost("worker-1", 0), lost("worker-2", 0)}, []string{"worker-1", "worker-2"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			told := Summarize(agentapi.Summary{}, test.sessions, hostfile.Hosts{}, start.Add(time.Minute))
			var got []string
			for _, host := range told.Hosts {
				got = append(got, host.Host)
			}
			if !slices.Equal(got, test.want) || !strings.Contains(told.Message, "Host "+test.want[0]+" ") {
				t.Errorf("got %v and %q, want %v", got, told.Message, test.want)
			}
		})
	}
}

// TestLostHosts: a worker reports the hosts of MPI's tree that were lost or given up since a time, also those behind others, and no host to
// which a program of the job had a connection of its own.
func TestLostHosts(t *testing.T) {
	t.Parallel()
	at := func(seconds int64) time.Time { return time.Unix(100+seconds, 0) }
	lost := func(host string, seconds int64) records.Record {
		return records.Record{Host: host, Reached: at(0), Over: true, Trouble: agentapi.ConnectionLost, TroubleAt: at(seconds), Worker: &agentapi.Summary{RanksSeen: 1}}
	}
	own := lost("storage", 6)
	own.Worker = nil
	through := records.Record{Host: "worker-3", Reached: at(0), Worker: &agentapi.Summary{Hosts: []agentapi.HostTrouble{{Host: "worker-300", Code: agentapi.ConnectionLost, At: at(5).UnixMilli()}}}}
	sessions := []records.Record{
		lost("worker-1", 8), lost("worker-2", 1), own, through,
		{Host: "worker-4", Over: true, Trouble: agentapi.Unreachable, TroubleAt: at(9)},
		{Host: "worker-5", Trouble: agentapi.Unreachable},
		{Host: "worker-6", Reached: at(0), Over: true},
	}
	var got []string
	for _, host := range LostHosts(sessions, at(2)) {
		got = append(got, host.Host)
	}
	if want := []string{"worker-300", "worker-1", "worker-4"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for i := range int64(20) {
		sessions = append(sessions, lost(fmt.Sprint("worker-1", i), 10+i))
	}
	if got := len(LostHosts(sessions, at(2))); got != mostHosts {
		t.Errorf("%d hosts are reported, want %d at most", got, mostHosts)
	}
}
