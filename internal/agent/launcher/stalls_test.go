package launcher

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"opendatahub.io/mpijob/internal/agent/records"
	"opendatahub.io/mpijob/internal/agent/stacks"
	"opendatahub.io/mpijob/internal/agentapi"
)

// TestStallReport: a line about a lack of progress comes with the places of the ranks, which are asked for once in a while.
func TestStallReport(t *testing.T) {
	t.Parallel()
	asked, written := 0, []string(nil)
	line := int32(41)
	r := &stallReport{answers: make(chan []agentapi.HostStacks, 1), write: func(text string) { written = append(written, text) }, stacks: func() []agentapi.HostStacks {
		asked++
		return []agentapi.HostStacks{{Host: "pi-worker-0", Ranks: []agentapi.RankStack{
			{Rank: 0, Threads: []agentapi.ThreadStack{{Frames: []agentapi.Frame{{File: "/app/train.py", Line: line, Function: "main"}}}}},
			{Rank: 1, Error: "it is no Python program"},
		}}}
	}}
	now := time.Unix(1000, 0)
	report := func(text string) { r.report(text, now) }
	answer := func() { r.add(<-r.answers, now) }

	report("all 2 ranks wait")
	report("all 2 ranks are idle")
	answer()
	now = now.Add(stackAge - 1)
	report("all 2 ranks wait")
	report(agentapi.StallOver)
	now, line = now.Add(1), 42
	report("all 2 ranks wait")
	report(agentapi.StallOver)
	answer()
	now = now.Add(1)
	report("all 2 ranks wait")
	const place = "\nmpi-agent: stack of rank 0: main (/app/train.py:"
	want := []string{
		"mpi-agent: no progress: all 2 ranks are idle" + place + "41)", "mpi-agent: no progress: all 2 ranks wait" + place + "41)", "mpi-agent: no progress: over",
		"mpi-agent: no progress: over", "mpi-agent: no progress: all 2 ranks wait" + place + "42)",
	}
	if diff := cmp.Diff(want, written); diff != "" || asked != 2 {
		t.Errorf("asked %d times: %s", asked, diff)
	}
}

// TestPlacesOfEndedPrograms: ranks whose Python code has returned are named, if others are in theirs.
func TestPlacesOfEndedPrograms(t *testing.T) {
	t.Parallel()
	ended := func(rank int32) agentapi.RankStack {
		return agentapi.RankStack{Rank: rank, Error: agentapi.NoPythonCode}
	}
	running := agentapi.RankStack{Rank: 0, Threads: []agentapi.ThreadStack{{Frames: []agentapi.Frame{{File: "/app/train.py", Line: 8, Function: "<module>"}}}}}
	for name, test := range map[string]struct {
		ranks []agentapi.RankStack
		want  []string
	}{
		"one":  {[]agentapi.RankStack{running, ended(1)}, []string{"rank 1: its program has ended", "rank 0: <module> (/app/train.py:8)"}},
		"two":  {[]agentapi.RankStack{ended(2), running, ended(1)}, []string{"ranks 1, 2: its program has ended", "rank 0: <module> (/app/train.py:8)"}},
		"all":  {[]agentapi.RankStack{ended(0), ended(1)}, nil},
		"none": {[]agentapi.RankStack{running, {Rank: 1, Error: "it is no Python program"}}, []string{"rank 0: <module> (/app/train.py:8)"}},
	} {
		r := stallReport{}
		r.add([]agentapi.HostStacks{{Ranks: test.ranks}}, time.Unix(1000, 0))
		if diff := cmp.Diff(test.want, r.places); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestEndedProgramsStayEnded: a rank whose program has ended is named also if its host does not answer again, until there is progress.
func TestEndedProgramsStayEnded(t *testing.T) {
	t.Parallel()
	waits := agentapi.RankStack{Rank: 0, Threads: []agentapi.ThreadStack{{Frames: []agentapi.Frame{{File: "/app/train.py", Line: 8, Function: "<module>"}}}}}
	const ended, place = "rank 1: its program has ended", "rank 0: <module> (/app/train.py:8)"
	r := stallReport{write: func(string) {}}
	for _, step := range []struct {
		name string
		// one is what is known of rank 1; nil: its host does not answer.
		one  *agentapi.RankStack
		over bool
		want []string
	}{
		{"read", &agentapi.RankStack{Rank: 1, Error: agentapi.NoPythonCode}, false, []string{ended, place}},
		{"no answer", nil, false, []string{ended, place}},
		{"not readable", &agentapi.RankStack{Rank: 1, Error: "its memory cannot be read"}, false, []string{ended, place}},
		{"after progress", nil, true, []string{place}},
		{"read again", &agentapi.RankStack{Rank: 1, Error: agentapi.NoPythonCode}, false, []string{ended, place}},
		{"a rank of another program", &agentapi.RankStack{Rank: 1, Threads: waits.Threads}, false, []string{"ranks 0, 1: <module> (/app/train.py:8)"}},
	} {
		hosts := []agentapi.HostStacks{{Ranks: []agentapi.RankStack{waits}}}
		if step.one != nil {
			hosts = append(hosts, agentapi.HostStacks{Ranks: []agentapi.RankStack{*step.one}})
		}
		if step.over {
			r.report(agentapi.StallOver, time.Unix(1000, 0))
		}
		r.add(hosts, time.Unix(1000, 0))
		if diff := cmp.Diff(step.want, r.places); diff != "" {
			t.Errorf("%s: %s", step.name, diff)
		}
	}
}

// TestHostsToAsk: of many hosts, those are asked whose ranks do not only wait for a message.
func TestHostsToAsk(t *testing.T) {
	t.Parallel()
	host := func(name string, doing agentapi.Doing) records.Record {
		return records.Record{Host: name, Port: 7, Reached: time.Unix(1, 0), Worker: &agentapi.Summary{Activity: &agentapi.Activity{Ranks: []agentapi.RankActivity{{Doing: doing}}}}}
	}
	over := host("over", agentapi.Busy)
	over.Over = true
	all := []records.Record{over, {Host: "unreached"}, host("polls", agentapi.Polling), host("is-blocked", agentapi.Blocked), host("computes", agentapi.Busy), host("sleeps", agentapi.Sleeping)}
	want := []stacks.Host{{Name: "computes", Port: 7}, {Name: "sleeps", Port: 7}, {Name: "polls", Port: 7}, {Name: "is-blocked", Port: 7}}
	if got := hostsToAsk(all); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for range mostStackHosts {
		all = append(all, host("more", agentapi.Polling))
	}
	if got := hostsToAsk(all); len(got) != mostStackHosts || got[0].Name != "computes" {
		t.Errorf("%d hosts are asked, %v first", len(got), got[0])
	}
}
