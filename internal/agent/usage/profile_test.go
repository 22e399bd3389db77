package usage_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"opendatahub.io/mpijob/internal/agent/usage"
	"opendatahub.io/mpijob/internal/agentapi"
)

// profiled is a host whose ranks ran for 100 s, and were in functions of MPI for some seconds each.
func profiled(name string, first int32, seconds ...int64) agentapi.HostUsage {
	h := host(name, 1000, 10, 0, 100)
	h.Usage.Profile = &agentapi.Profile{
		Calls: []agentapi.CallProfile{{Call: "Allreduce", Count: 10, Time: 3000, Bytes: 80}, {Call: "Send", Count: 1, Time: 5}},
		Sizes: []int64{1, 0, 0, 0, 0, 2},
	}
	for i, in := range seconds {
		h.Usage.Profile.Ranks = append(h.Usage.Profile.Ranks, agentapi.RankProfile{Rank: first + int32(i), Elapsed: 100_000, Communication: in * 1000})
	}
	return h
}

// inRun is a host whose ranks were profiled in a run that began at a time, after others.
func inRun(h agentapi.HostUsage, launch string, began int64, others ...string) agentapi.HostUsage {
	h.Usage.Profile.Launch, h.Usage.Profile.Began, h.Usage.Profile.Other = launch, began, others
	return h
}

// shorter is a host whose ranks ran for some seconds.
func shorter(h agentapi.HostUsage, seconds int64) agentapi.HostUsage {
	for i := range h.Usage.Profile.Ranks {
		h.Usage.Profile.Ranks[i].Elapsed = seconds * 1000
	}
	return h
}

func TestJobProfile(t *testing.T) {
	t.Parallel()
	late := func(p *agentapi.Profile) string {
		if p.Late == nil {
			return "none"
		}
		text := fmt.Sprint(p.Late.Rank, " ", p.Late.Waited)
		for _, rank := range p.Late.In(p.Ranks) {
			if rank != p.Late.Rank {
				text += fmt.Sprint(", ", rank)
			}
		}
		return text
	}
	for name, test := range map[string]struct {
		hosts []agentapi.HostUsage
		want  string
	}{
		"balanced":                              {[]agentapi.HostUsage{profiled("a", 0, 20, 21), profiled("b", 2, 19, 20)}, "4 ranks, 80000 of 400000, at most 81000; late none"},
		"one is late":                           {[]agentapi.HostUsage{profiled("a", 0, 60, 62), profiled("b", 2, 5, 61)}, "4 ranks, 188000 of 400000, at most 95000; late 2 56000"},
		"one of two is late":                    {[]agentapi.HostUsage{profiled("a", 0, 60, 5)}, "2 ranks, 65000 of 200000, at most 95000; late 1 55000"},
		"one waits for many":                    {[]agentapi.HostUsage{profiled("a", 0, 90, 5, 6, 5)}, "4 ranks, 106000 of 400000, at most 95000; late none"},
		"half of them are late":                 {[]agentapi.HostUsage{profiled("a", 0, 60, 61, 5, 6)}, "4 ranks, 132000 of 400000, at most 95000; late 2 56000, 3"},
		"two of eight are late":                 {[]agentapi.HostUsage{profiled("a", 0, 60, 61, 60, 61), profiled("b", 4, 12, 10, 62, 60)}, "8 ranks, 386000 of 800000, at most 90000; late 5 51000, 4"},
		"one is late, another a little":         {[]agentapi.HostUsage{profiled("a", 0, 60, 61, 60, 61, 5, 35)}, "6 ranks, 282000 of 600000, at most 95000; late 4 55000"},
		"all differ":                            {[]agentapi.HostUsage{profiled("a", 0, 5, 20, 35, 50, 65, 80)}, "6 ranks, 255000 of 600000, at most 95000; late none"},
		"a little later":                        {[]agentapi.HostUsage{profiled("a", 0, 14, 14, 14, 5)}, "4 ranks, 47000 of 400000, at most 95000; late none"},
		"a rank of a shorter program":           {[]agentapi.HostUsage{profiled("a", 0, 60, 61), shorter(profiled("b", 2, 5), 6)}, "3 ranks, 126000 of 206000, at most 40000; late none"},
		"one rank":                              {[]agentapi.HostUsage{profiled("a", 0, 14)}, "1 ranks, 14000 of 100000, at most 86000; late none"},
		"two runs":                              {[]agentapi.HostUsage{inRun(profiled("a", 0, 14), "1.1.1", 2000), inRun(profiled("b", 0, 16), "1.2.1", 3000)}, "1 ranks, 16000 of 100000, at most 84000; late none"},
		"a run on some of the hosts":            {[]agentapi.HostUsage{inRun(profiled("a", 0, 14), "1.2.1", 3000, "1.1.1"), inRun(profiled("b", 1, 16), "1.1.1", 2000)}, "1 ranks, 14000 of 100000, at most 86000; late none"},
		"a host without a profile":              {[]agentapi.HostUsage{profiled("a", 0, 14), host("b", 1000, 10, 0, 100)}, "1 ranks, 14000 of 100000, at most 86000; late none"},
		"a host with nonsense is left out":      {[]agentapi.HostUsage{profiled("a", 0, 14), profiled("b", 1, -4)}, "1 ranks, 14000 of 100000, at most 86000; late none"},
		"a host with a rank of a negative kind": {[]agentapi.HostUsage{profiled("a", 0, 14), profiled("b", -1, 4)}, "1 ranks, 14000 of 100000, at most 86000; late none"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u, _ := usage.Job(test.hosts)
			p := u.Profile
			if p == nil {
				t.Fatal("no profile")
			}
			if got := fmt.Sprintf("%d ranks, %d of %d, at most %d; late %s", p.RankCount, p.Communication, p.Elapsed, p.MaxComputation, late(p)); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
	several, _ := usage.Job([]agentapi.HostUsage{
		inRun(profiled("a", 0, 20), "1.3.1", 5000, "1.1.1", "1.2.1"), inRun(profiled("b", 1, 20), "1.3.1", 4900, "1.1.1"), inRun(profiled("c", 0, 20), "1.4.1", 4950), host("d", 1000, 10, 0, 100),
	})
	if p := several.Profile; p.Began != 4950 || p.Runs != 4 || p.RankCount != 1 {
		t.Errorf("of four runs, it is the one that began at %d with %d ranks, of %d", p.Began, p.RankCount, p.Runs)
	}
	u, _ := usage.Job([]agentapi.HostUsage{profiled("a", 0, 20), profiled("b", 1, 20)})
	want := []agentapi.CallProfile{{Call: "Allreduce", Count: 20, Time: 6000, Bytes: 160}, {Call: "Send", Count: 2, Time: 10}}
	if diff := cmp.Diff(want, u.Profile.Calls); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]int64{2, 0, 0, 0, 0, 4}, u.Profile.Sizes); diff != "" {
		t.Error(diff)
	}
	if u, _ := usage.Job([]agentapi.HostUsage{host("a", 1000, 10, 0, 100)}); u.Profile != nil {
		t.Errorf("a job without a profile has %+v", u.Profile)
	}
}

// TestProfileSize: the profile of a large job fits where its usage is reported, with the rank that the others wait for.
func TestProfileSize(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	hosts := largeJob()
	for i := range hosts {
		p := &agentapi.Profile{Sizes: []int64{1 << 40, 1 << 40, 1 << 40, 1 << 40, 1 << 40, 1 << 40}}
		for j := range 8 {
			p.Ranks = append(p.Ranks, agentapi.RankProfile{Rank: int32(8*i + j), Elapsed: 86_400_000, Communication: 40_000_000 + random.Int64N(1_000_000)})
		}
		for j := range agentapi.MaxProfileCalls {
			p.Calls = append(p.Calls, agentapi.CallProfile{Call: fmt.Sprintf("Ireduce_scatter_%c%c", 'a'+j/26, 'a'+j%26), Count: 1 << 40, Time: 86_400_000, Bytes: 1 << 50})
		}
		hosts[i].Usage.Profile = p
	}
	hosts[50].Usage.Profile.Ranks[3].Communication = 1_000_000
	u, _ := usage.Job(hosts)
	for most, calls := range map[int]int{usage.LineSize: agentapi.MaxJobCalls, 3500: 4, 1500: 0} {
		small := usage.Within(u, most)
		if small == nil {
			t.Fatalf("nothing fits into %d bytes", most)
		}
		if data, err := json.Marshal(small); err != nil || len(data) > most {
			t.Errorf("%d bytes, want at most %d: %v", len(data), most, err)
		}
		p := small.Profile
		if calls == 0 && p == nil {
			continue
		}
		if p == nil || len(p.Calls) < calls || p.Late == nil || p.Late.Rank != 403 || p.RankCount != 512 {
			t.Fatalf("%d bytes: %+v", most, p)
		}
		t.Logf("at most %d bytes: %d ranks and %d calls", most, len(p.Ranks), len(p.Calls))
		if len(p.Ranks) > 0 && !slices.ContainsFunc(p.Ranks, func(r agentapi.RankProfile) bool { return r.Rank == 403 }) {
			t.Errorf("%d bytes: the late rank is not among %d ranks", most, len(p.Ranks))
		}
	}
}
