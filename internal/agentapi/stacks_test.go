package agentapi

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestIsLibraryFile(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]bool{
		"/usr/lib64/python3.9/threading.py":                        true,
		"/usr/lib/python3/dist-packages/mpi4py/run.py":             true,
		"/opt/venv/lib/python3.12/site-packages/torch/__init__.py": true,
		"/usr/local/lib/python3.12/asyncio/runners.py":             true,
		"<frozen importlib._bootstrap>":                            true,
		"mpi4py/MPI/Comm.pyx":                                      true,
		"/app/train.py":                                            false,
		"train.py":                                                 false,
		"<string>":                                                 false,
		"<stdin>":                                                  false,
		"<ipython-input-3-1a2b3c>":                                 false,
		"<__array_function__ internals>":                           true,
		"<attrs generated init a.B>":                               true,
		"/app/lib/python/train.py":                                 false,
		"/app/lib/python3-code/train.py":                           false,
		"/app/lib/pythonic/lib/python3.9/json/decoder.py":          true,
		"/app/lib/python3.9":                                       false,
		"":                                                         false,
	} {
		if got := IsLibraryFile(file); got != want {
			t.Errorf("%s: %t, want %t", file, got, want)
		}
	}
}

// TestGroupStacks: ranks at the same place are named together, the few first, by the program's own calls.
func TestGroupStacks(t *testing.T) {
	t.Parallel()
	library := Frame{File: "/usr/lib64/python3.9/threading.py", Line: 312, Function: "wait"}
	at := func(rank int32, frames ...Frame) RankStack {
		return RankStack{Rank: rank, Threads: []ThreadStack{{Frames: frames}, {Frames: []Frame{{File: "/app/other.py", Line: 1, Function: "run"}}}}}
	}
	loads, main, barrier := Frame{File: "/app/train.py", Line: 42, Function: "load_batch"}, Frame{File: "/app/train.py", Line: 60, Function: "main"}, Frame{File: "/app/train.py", Line: 61, Function: "main", Source: "comm.Barrier()"}
	hosts := []HostStacks{
		{Host: "w-1", Ranks: []RankStack{at(3, library, barrier), at(2, barrier), {Rank: 4, Error: "it is no Python program"}}},
		{Host: "w-0", Ranks: []RankStack{at(0, barrier), at(1, library, loads, main)}},
		{Host: "w-2", Error: "it is no agent"},
		{Host: "w-3", Ranks: []RankStack{at(7, library)}},
	}
	var got []string
	for _, group := range GroupStacks(hosts) {
		got = append(got, group.String())
	}
	want := []string{
		"rank 1: load_batch (/app/train.py:42) < main (/app/train.py:60)", "rank 7: wait (/usr/lib64/python3.9/threading.py:312)",
		"ranks 0, 2, 3: main (/app/train.py:61) | comm.Barrier()",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	inline := func(rank int32, program string, line int32) RankStack {
		r := at(rank, Frame{File: "<string>", Line: line, Function: "<module>"}, Frame{File: "/app/x.py", Line: 1, Function: "run"})
		r.Inline = program
		return r
	}
	long := "import time; time.sleep(600); print('the master has slept')"
	for name, test := range map[string]struct {
		ranks []RankStack
		want  []string
	}{
		"one program":    {[]RankStack{inline(0, "a()", 2), inline(1, "a()", 2), at(2, main)}, []string{"rank 2: main (/app/train.py:60)", "ranks 0, 1: <module> (<string>:2) < run (/app/x.py:1)"}},
		"two programs":   {[]RankStack{inline(0, "a()", 2), inline(1, "b(1/2)", 2), inline(2, "b(1/2)", 2)}, []string{"rank 0: <module> (python -c 'a()':2) < run (/app/x.py:1)", "ranks 1, 2: <module> (python -c 'b(1/2)':2) < run (/app/x.py:1)"}},
		"they are alike": {[]RankStack{inline(0, long+"1", 1), inline(1, long+"2", 1)}, []string{"rank 0: <module> (python -c 'import time; time.sleep(600); print('th…':1) < run (/app/x.py:1)", "rank 1: <module> (python -c 'import time; time.sleep(600); print('th…':1) < run (/app/x.py:1)"}},
	} {
		var got []string
		for _, group := range GroupStacks([]HostStacks{{Host: "w-0", Ranks: test.ranks}}) {
			got = append(got, group.String())
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	deep := StackGroup{Ranks: []int32{0, 1, 2, 3, 4, 5}}
	for range 20 {
		deep.Frames = append(deep.Frames, Frame{File: "/" + strings.Repeat("a", 290) + " < b.py", Function: strings.Repeat("f", 290)})
	}
	if text := deep.String(); len(text) > 900 || !strings.HasPrefix(text, "ranks 0, 1, 2, 3 and 2 more: ff") || strings.Contains(text, " < ") {
		t.Errorf("a long stack is %d bytes: %s", len(text), text)
	}
}

// TestLimitStacks: stacks that are too large lose other threads first.
func TestLimitStacks(t *testing.T) {
	t.Parallel()
	stack := ThreadStack{Frames: []Frame{{File: "/app/train.py", Line: 1, Function: "main"}}}
	var ranks []RankStack
	for rank := range int32(8) {
		ranks = append(ranks, RankStack{Rank: rank, Threads: []ThreadStack{stack, stack, stack}})
	}
	ranks = append(ranks, RankStack{Rank: 8, Error: "it is no Python program"})
	for most, want := range map[int][2]int{1 << 20: {9, 3}, 1000: {9, 1}, 500: {4, 1}, 1: {0, 0}} {
		got := LimitStacks(ranks, most)
		if len(got) != want[0] || len(got) > 0 && len(got[0].Threads) != want[1] {
			t.Errorf("%d bytes: %+v", most, got)
		}
		if data, err := json.Marshal(got); err != nil || len(data) > most && len(got) > 0 {
			t.Errorf("%d bytes instead of %d, %v", len(data), most, err)
		}
	}
	if len(ranks[0].Threads) != 3 {
		t.Error("the argument was changed")
	}
}
