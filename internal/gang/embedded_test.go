package gang

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"opendatahub.io/mpijob/internal/codes"
)

var begin = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

// entry is a gang of a namespace that has waited for so many minutes.
func entry(namespace, name string, request Request, minutes int, change ...func(*Entry)) Entry {
	e := Entry{
		UID: types.UID(namespace + "/" + name), Namespace: namespace, Name: name, Request: request, Preempts: true,
		Since: begin.Add(-time.Duration(minutes) * time.Minute),
	}
	for _, c := range change {
		c(&e)
	}
	return e
}

func priority(n int32) func(*Entry) { return func(e *Entry) { e.Priority = n } }

// on makes a gang one that runs, with so many GPUs on each node, and has the nodes used.
func (w *world) on(e Entry, gpus ...int64) Entry {
	for i, n := range gpus {
		if n == 0 {
			continue
		}
		amount := w.resources.Totals(list(n, 0, n))
		w.nodes[i].Used = slices.Clone(w.nodes[i].Used).plus(amount)
		e.Holds = append(e.Holds, Hold{Node: w.nodes[i].Name, Amount: amount})
	}
	e.Request = Request{}
	return e
}

func letIn(d Decision) []string {
	var names []string
	for _, uid := range slices.Sorted(maps.Keys(d.Admit)) {
		names = append(names, string(uid))
	}
	return names
}

func TestAllPodsOrNone(t *testing.T) {
	t.Parallel()
	w := newWorld().node(3, 0).node(2, 0)
	job := entry("a", "big", Request{Launcher: w.shape(1, 0), Worker: w.shape(1, 0), Workers: 8}, 1)
	held := Decide(begin, w.snapshot(), []Entry{job}, nil, Usage{})
	want := Held{
		PodsFit: 5, NodesFit: 2, NodesTotal: 2, Of: 0, Never: true, Partly: true, Reason: codes.GangNeverFits,
		Message: "Only 5 of 9 pods fit on the cluster's 2 nodes, even if it is empty: each worker requests 1 of example.com/gpu. Use fewer or smaller workers, or add nodes.",
	}
	if diff := cmp.Diff(want, held.Held["a/big"]); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	w.node(4, 0)
	now := Decide(begin, w.snapshot(), []Entry{job}, nil, Usage{})
	placed, is := now.Admit["a/big"]
	if !is || placed.Launcher == "" || slices.Contains(placed.Workers, "") || len(placed.Workers) != 8 {
		t.Errorf("with room for 9 it is placed as %+v; %+v", placed, now.Held)
	}
}

func TestTextsOfThoseThatWait(t *testing.T) {
	t.Parallel()
	full := func(w *world) []Entry {
		return []Entry{w.on(entry("a", "one", Request{}, 60), 3, 3), w.on(entry("b", "other", Request{}, 50), 1, 0)}
	}
	tests := map[string]struct {
		nodes   func(*world)
		running func(*world) []Entry
		request func(*world) Request
		want    Held
	}{
		"no room now": {
			running: full, request: func(w *world) Request { return w.workers(3) },
			want: Held{
				Position: 1, Of: 1, PodsFit: 2, NodesFit: 2, NodesTotal: 2, Reason: codes.InsufficientCapacity,
				Message: "Workers request 3 of example.com/gpu in total, 1 is free on matching nodes.",
			},
		},
		"no room on one node": {
			running: func(w *world) []Entry { return []Entry{w.on(entry("a", "one", Request{}, 60), 3, 3)} },
			request: func(w *world) Request { return Request{Worker: w.shape(2, 0), Workers: 1} },
			want: Held{
				Position: 1, Of: 1, NodesFit: 0, NodesTotal: 2, Reason: codes.InsufficientCapacity,
				Message: "Workers request 2 of example.com/gpu in total, 2 is free on matching nodes, and no more than 1 on one node: each worker requests 2.",
			},
		},
		"labels that no node has": {
			request: func(w *world) Request { return Request{Worker: w.shape(1, 0, onZone("x")), Workers: 1} },
			want: Held{
				NodesTotal: 2, Never: true, Reason: codes.NoMatchingNode,
				Message: "No node matches its pods: compare their nodeSelector, affinity and tolerations with the nodes' labels and taints.",
			},
		},
		"workers that no domain has room for one of": {
			request: func(w *world) Request {
				return Request{Worker: w.shape(9, 0), Workers: 2, Together: corev1.LabelHostname, Firmly: true}
			},
			want: Held{
				NodesTotal: 2, Never: true, Reason: codes.GangNeverFits,
				Message: "Only 0 of 2 pods fit on the cluster's 2 nodes, even if it is empty: all pods must run on nodes with the same kubernetes.io/hostname; " +
					"each worker requests 9 of example.com/gpu. Use fewer or smaller workers, or add nodes.",
			},
		},
		"a launcher that is too large": {
			request: func(w *world) Request { return Request{Launcher: w.shape(9, 0), Worker: w.shape(1, 0), Workers: 1} },
			want: Held{
				PodsFit: 1, NodesFit: 2, NodesTotal: 2, Never: true, Partly: true, Reason: codes.GangNeverFits,
				Message: "Only 1 of 2 pods fit on the cluster's 2 nodes, even if it is empty: the launcher requests 9 of example.com/gpu, and no node has more than 4. Use fewer or smaller workers, or add nodes.",
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld().node(4, 0).node(4, 0)
			var running []Entry
			if test.running != nil {
				running = test.running(w)
			}
			d := Decide(begin, w.snapshot(), []Entry{entry("c", "job", test.request(w), 1)}, running, Usage{})
			if diff := cmp.Diff(test.want, d.Held["c/job"]); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestOrder(t *testing.T) {
	t.Parallel()
	w := newWorld().node(8, 0)
	tests := map[string]struct {
		waiting []Entry
		usage   map[string]float64
		want    string
	}{
		"age":                         {waiting: []Entry{entry("a", "young", w.workers(1), 1), entry("a", "old", w.workers(1), 2)}, want: "a/old a/young"},
		"priority":                    {waiting: []Entry{entry("a", "old", w.workers(1), 2), entry("a", "urgent", w.workers(1), 1, priority(5))}, want: "a/urgent a/old"},
		"use":                         {waiting: []Entry{entry("a", "old", w.workers(1), 2), entry("b", "poor", w.workers(1), 1)}, usage: map[string]float64{"a": 0.3}, want: "b/poor a/old"},
		"priority before use":         {waiting: []Entry{entry("a", "urgent", w.workers(1), 2, priority(1)), entry("b", "poor", w.workers(1), 9)}, usage: map[string]float64{"a": 0.9}, want: "a/urgent b/poor"},
		"hours of waiting before use": {waiting: []Entry{entry("a", "old", w.workers(1), 120), entry("b", "poor", w.workers(1), 1)}, usage: map[string]float64{"a": 0.9}, want: "a/old b/poor"},
		"turns": {
			waiting: []Entry{entry("a", "1", w.workers(2), 4), entry("a", "2", w.workers(2), 3), entry("b", "1", w.workers(2), 2), entry("b", "2", w.workers(2), 1)},
			want:    "a/1 b/1 a/2 b/2",
		},
		"names at last": {waiting: []Entry{entry("b", "y", w.workers(1), 1), entry("a", "x", w.workers(1), 1), entry("a", "w", w.workers(1), 1)}, want: "a/w b/y a/x"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nodes := w.snapshot()
			p := pass{total: nodes.total()}
			used := map[string]float64{}
			maps.Copy(used, test.usage)
			var got []string
			for _, e := range inOrder(begin, test.waiting, used, p.share) {
				got = append(got, e.key())
			}
			if diff := cmp.Diff(test.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestSmallJobsPassOnlyWhereTheyDoNotDelayTheFirst(t *testing.T) {
	t.Parallel()
	w := newWorld().node(4, 0).node(4, 0).node(4, 0)
	running := []Entry{w.on(entry("a", "r", Request{}, 60), 3, 0, 0), w.on(entry("a", "s", Request{}, 50), 0, 4, 0)}
	// The first needs two whole nodes: it keeps the third, and the one that it has the least to wait for.
	waiting := []Entry{entry("b", "first", w.workers(8), 10)}
	for i := range 6 {
		waiting = append(waiting, entry("c", fmt.Sprint("small-", i), Request{Worker: w.shape(1, 0), Workers: 1}, 5-i))
	}
	d := Decide(begin, w.snapshot(), waiting, running, Usage{})
	if len(d.Admit) != 0 {
		t.Errorf("%v pass, and the room is kept for the first: %+v", letIn(d), d.Held["b/first"])
	}
	if got := d.Held["c/small-0"]; got.Reason != codes.CapacityReserved || got.Message != "The free capacity is reserved for jobs ahead in the queue; the first is a job of another namespace, which needs 9 pods." {
		t.Errorf("the second in line waits as %+v", got)
	}
	// With a fourth node there is room beside what is kept: that is the third, the fourth, and two of the first.
	w.node(2, 0)
	d = Decide(begin, w.snapshot(), waiting, running, Usage{})
	if got := fmt.Sprint(letIn(d)); got != "[c/small-0]" {
		t.Errorf("%s pass, want the one that has room beside what is kept; %+v", got, d.Held)
	}
}

func TestOthersAreNotHeldBehindOneThatNothingCanBeKeptFor(t *testing.T) {
	t.Parallel()
	w := newWorld().node(4, 0, func(n *Node) { n.Used = Totals{} })
	w.nodes[0].Used = w.resources.Totals(list(2, 0, 2))
	d := Decide(begin, w.snapshot(), []Entry{entry("a", "big", w.workers(4), 9), entry("a", "small", w.workers(1), 1)}, nil, Usage{})
	if got := fmt.Sprint(letIn(d)); got != "[a/small]" || d.Held["a/big"].Never {
		t.Errorf("%s may start; the big one waits as %+v", got, d.Held["a/big"])
	}
	w = newWorld().node(4, 0)
	d = Decide(begin, w.snapshot(), []Entry{entry("a", "never", w.workers(40), 9), entry("a", "small", w.workers(4), 1)}, nil, Usage{})
	if got := fmt.Sprint(letIn(d)); got != "[a/small]" || !d.Held["a/never"].Never || d.Held["a/never"].Position != 0 {
		t.Errorf("%s may start; the one that never fits waits as %+v", got, d.Held["a/never"])
	}
}

func TestPreemption(t *testing.T) {
	t.Parallel()
	never := func(e *Entry) { e.Preempts = false }
	leaving := func(e *Entry) { e.Leaving = true }
	tests := map[string]struct {
		running func(*world) []Entry
		job     func(*world) Entry
		evicted string
		reason  string
	}{
		"the lowest priority goes, as a whole": {
			running: func(w *world) []Entry {
				return []Entry{w.on(entry("a", "low", Request{}, 60, priority(1)), 2, 2), w.on(entry("a", "middle", Request{}, 50, priority(2)), 2, 2)}
			},
			job: func(w *world) Entry { return entry("b", "high", w.workers(3), 1, priority(9)) }, evicted: "[a/low]", reason: codes.Preempting,
		},
		"the youngest of a priority goes": {
			running: func(w *world) []Entry {
				return []Entry{w.on(entry("a", "old", Request{}, 60), 4, 0), w.on(entry("a", "young", Request{}, 50), 0, 4)}
			},
			job: func(w *world) Entry { return entry("b", "high", w.workers(3), 1, priority(9)) }, evicted: "[a/young]", reason: codes.Preempting,
		},
		"no more than needed": {
			running: func(w *world) []Entry {
				return []Entry{w.on(entry("a", "large", Request{}, 60), 4, 0), w.on(entry("a", "small", Request{}, 50), 0, 1), w.on(entry("a", "smaller", Request{}, 40), 0, 1)}
			},
			job: func(w *world) Entry { return entry("b", "high", w.workers(4), 1, priority(9)) }, evicted: "[a/small a/smaller]", reason: codes.Preempting,
		},
		"all of them where that is needed": {
			running: func(w *world) []Entry {
				return []Entry{w.on(entry("a", "x", Request{}, 60), 4, 0), w.on(entry("a", "y", Request{}, 50), 0, 4)}
			},
			job: func(w *world) Entry { return entry("b", "high", w.workers(8), 1, priority(9)) }, evicted: "[a/x a/y]", reason: codes.Preempting,
		},
		"the same priority stays": {
			running: func(w *world) []Entry { return []Entry{w.on(entry("a", "x", Request{}, 60, priority(9)), 4, 4)} },
			job:     func(w *world) Entry { return entry("b", "high", w.workers(3), 1, priority(9)) }, evicted: "[]", reason: codes.InsufficientCapacity,
		},
		"one that does not preempt waits": {
			running: func(w *world) []Entry { return []Entry{w.on(entry("a", "x", Request{}, 60), 4, 4)} },
			job:     func(w *world) Entry { return entry("b", "high", w.workers(3), 1, priority(9), never) }, evicted: "[]", reason: codes.InsufficientCapacity,
		},
		"what goes already is enough": {
			running: func(w *world) []Entry {
				return []Entry{w.on(entry("a", "gone", Request{}, 60, leaving), 4, 0), w.on(entry("a", "stays", Request{}, 50), 0, 4)}
			},
			job: func(w *world) Entry { return entry("b", "high", w.workers(4), 1, priority(9)) }, evicted: "[]", reason: codes.Preempting,
		},
		"pods on their way out are enough": {
			running: func(w *world) []Entry {
				w.nodes[0].Used, w.nodes[0].Leaving = w.resources.Totals(list(4, 0, 4)), w.resources.Totals(list(4, 0, 4))
				return []Entry{w.on(entry("a", "stays", Request{}, 50), 0, 4)}
			},
			job: func(w *world) Entry { return entry("b", "high", w.workers(4), 1, priority(9)) }, evicted: "[]", reason: codes.Preempting,
		},
		"nobody goes in vain": {
			running: func(w *world) []Entry {
				w.nodes[1].Used = w.resources.Totals(list(4, 0, 4))
				return []Entry{w.on(entry("a", "x", Request{}, 60), 4, 0)}
			},
			job: func(w *world) Entry { return entry("b", "high", w.workers(8), 1, priority(9)) }, evicted: "[]", reason: codes.InsufficientCapacity,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld().node(4, 0).node(4, 0)
			running := test.running(w)
			job := test.job(w)
			d := Decide(begin, w.snapshot(), []Entry{job}, running, Usage{})
			evicted := []string{}
			for _, uid := range slices.Sorted(maps.Keys(d.Evict)) {
				evicted = append(evicted, string(uid))
			}
			if got := fmt.Sprint(evicted); got != test.evicted || d.Held[job.UID].Reason != test.reason {
				t.Errorf("%s are evicted, it waits as %+v; want %s, %s", got, d.Held[job.UID], test.evicted, test.reason)
			}
		})
	}
}

// TestLostPodsComeFirst: what a gang that runs has lost is placed before those that wait, and as far as there is room.
func TestLostPodsComeFirst(t *testing.T) {
	t.Parallel()
	w := newWorld().node(4, 0)
	hurt := w.on(entry("a", "hurt", Request{}, 60), 2)
	hurt.Request = Request{Worker: w.shape(1, 0), Workers: 3}
	d := Decide(begin, w.snapshot(), []Entry{entry("b", "next", w.workers(1), 99)}, []Entry{hurt}, Usage{})
	if got := fmt.Sprintf("%q", d.Admit["a/hurt"].Workers); got != `["node-000" "node-000" ""]` {
		t.Errorf("lost workers go to %s", got)
	}
	if _, is := d.Admit["b/next"]; is {
		t.Error("the next one has taken their room")
	}
}

func TestUsageFades(t *testing.T) {
	t.Parallel()
	w := newWorld().node(4, 0)
	running := []Entry{w.on(entry("a", "x", Request{}, 60), 4)}
	nodes := w.snapshot()
	u := Usage{}.After(begin, nodes, nil)
	u = u.After(begin.Add(time.Hour), nodes, running)
	if got := u.Share["a"]; got < 0.49 || got > 0.51 {
		t.Errorf("after an hour with all of the cluster its share is %f", got)
	}
	u = u.After(begin.Add(2*time.Hour), nodes, nil)
	if got := u.Share["a"]; got < 0.24 || got > 0.26 {
		t.Errorf("an hour later it is %f", got)
	}
	if u = u.After(begin.Add(48*time.Hour), nodes, nil); len(u.Share) != 0 {
		t.Errorf("two days later it is %v", u.Share)
	}
}

// sim runs the queue over time: gangs come, are let in, run and end.
type sim struct {
	w       *world
	now     time.Time
	usage   Usage
	waiting map[types.UID]Entry
	running map[types.UID]Entry
	ends    map[types.UID]time.Time
	placed  map[types.UID]Placement
	whole   map[types.UID]Request
	steps   int
}

func newSim(w *world) *sim {
	return &sim{
		w: w, now: begin, waiting: map[types.UID]Entry{}, running: map[types.UID]Entry{}, ends: map[types.UID]time.Time{},
		placed: map[types.UID]Placement{}, whole: map[types.UID]Request{},
	}
}

func (s *sim) comes(e Entry) {
	e.Since = s.now
	s.waiting[e.UID], s.whole[e.UID] = e, e.Request
}

// step makes one pass, and checks all that always holds.
func (s *sim) step(t *testing.T, lasts func(Entry) time.Duration) Decision {
	t.Helper()
	for uid, end := range s.ends {
		if !end.After(s.now) {
			s.leave(uid)
		}
	}
	nodes := s.w.snapshot()
	waiting, running := slices.Collect(maps.Values(s.waiting)), slices.Collect(maps.Values(s.running))
	s.usage = s.usage.After(s.now, nodes, running)
	d := Decide(s.now, nodes, waiting, running, s.usage)
	slices.Reverse(waiting)
	slices.Reverse(running)
	if s.steps++; s.steps%8 > 0 {
		// Comparing takes longer than deciding.
	} else if diff := cmp.Diff(d, Decide(s.now, s.w.snapshot(), waiting, running, s.usage)); diff != "" {
		t.Fatalf("the same state is decided differently in another order:\n%s", diff)
	}
	for uid := range d.Evict {
		e := s.running[uid]
		s.leave(uid)
		e.Request, e.Holds = s.whole[uid], nil
		s.comes(e)
	}
	for uid, placement := range d.Admit {
		e := s.waiting[uid]
		delete(s.waiting, uid)
		s.enter(t, e, placement)
		s.ends[uid] = s.now.Add(lasts(e))
	}
	for i := range s.w.nodes {
		n := &s.w.nodes[i]
		for r, used := range n.Used {
			if used < 0 || r >= len(n.Allocatable) && used > 0 || r < len(n.Allocatable) && used > n.Allocatable[r] {
				t.Fatalf("%s is overcommitted: %v used of %v", n.Name, n.Used, n.Allocatable)
			}
		}
	}
	return d
}

func (s *sim) enter(t *testing.T, e Entry, placement Placement) {
	t.Helper()
	if (e.Request.Launcher != nil) != (placement.Launcher != "") || len(placement.Workers) != e.Request.Workers || slices.Contains(placement.Workers, "") {
		t.Fatalf("%s is placed by half: %+v", e.key(), placement)
	}
	s.placed[e.UID] = placement
	s.move(e.Request, placement, Totals.Plus)
	free := s.w.snapshot()
	for node, amount := range placement.amounts(e.Request) {
		e.Holds = append(e.Holds, Hold{Node: free.Nodes[free.find(node)].Name, Amount: amount})
	}
	e.Request, e.Since, e.Passed = Request{}, s.now, placement.Passed
	s.running[e.UID] = e
}

func (s *sim) leave(uid types.UID) {
	s.move(s.whole[uid], s.placed[uid], Totals.Minus)
	delete(s.running, uid)
	delete(s.ends, uid)
	delete(s.placed, uid)
}

func (s *sim) move(request Request, placement Placement, move func(Totals, Amounts) Totals) {
	nodes := s.w.snapshot()
	for i, name := range append(slices.Clone(placement.Workers), placement.Launcher) {
		if at := nodes.find(name); at >= 0 {
			asks := request.workerRequests()
			if i == len(placement.Workers) {
				asks = request.Launcher.Requests
			}
			s.w.nodes[at].Used = move(slices.Clone(s.w.nodes[at].Used), asks)
		}
	}
}

// TestRandomQueues: no node is overcommitted, no gang placed by half, and the same state is decided alike, whatever
// comes and goes.
func TestRandomQueues(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		dice := rand.New(rand.NewPCG(seed, 7))
		w := newWorld()
		for range 1 + dice.IntN(8) {
			w.node(int64(dice.IntN(9)), int64(dice.IntN(9)*1000))
		}
		s := newSim(w)
		for i := range 120 {
			s.now = s.now.Add(time.Duration(dice.IntN(120)) * time.Second)
			if dice.IntN(3) > 0 {
				request := Request{Worker: w.shape(int64(dice.IntN(3)), int64(dice.IntN(3)*500)), Workers: 1 + dice.IntN(12)}
				if dice.IntN(5) > 0 {
					request.Launcher = w.shape(0, int64(dice.IntN(3)*500))
				}
				s.comes(entry(string(rune('a'+dice.IntN(4))), fmt.Sprint("job-", i), request, 0, priority(int32(dice.IntN(3)))))
			}
			if node := &w.nodes[dice.IntN(len(w.nodes))]; dice.IntN(10) == 0 {
				node.Unschedulable = !node.Unschedulable
			}
			s.step(t, func(Entry) time.Duration { return time.Duration(1+dice.IntN(20)) * time.Minute })
		}
	}
}

// TestTheLargeOneStarts: under streams of small jobs of all namespaces, a gang that needs all of the cluster starts as
// soon as those have ended that were there before it was first in line.
func TestTheLargeOneStarts(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		dice := rand.New(rand.NewPCG(seed, 9))
		w := newWorld().node(4, 0).node(4, 0).node(4, 0)
		s := newSim(w)
		const longest = 10 * time.Minute
		lasts := func(Entry) time.Duration { return time.Duration(1+dice.IntN(int(longest.Seconds()))) * time.Second }
		var came time.Time
		for i := range 1000 {
			s.now = s.now.Add(10 * time.Second)
			for n := range dice.IntN(3) {
				namespace := string(rune('a' + dice.IntN(3)))
				s.comes(entry(namespace, fmt.Sprintf("small-%d-%d", i, n), Request{Worker: w.shape(1, 0), Workers: 1 + dice.IntN(3)}, 0))
			}
			if i == 50 {
				came = s.now
				s.comes(entry("a", "large", Request{Worker: w.shape(1, 0), Workers: 7 + dice.IntN(6)}, 0))
			}
			s.step(t, lasts)
			if _, is := s.running["a/large"]; is {
				break
			}
		}
		if _, is := s.running["a/large"]; !is {
			t.Errorf("seed %d: the large one has not started in %s: %+v", seed, s.now.Sub(came), Decide(s.now, w.snapshot(), slices.Collect(maps.Values(s.waiting)), slices.Collect(maps.Values(s.running)), s.usage).Held["a/large"])
		}
		t.Logf("seed %d: started after %s", seed, s.now.Sub(came))
	}
}

// TestWhoPassesDoesNotDelay: a gang starts at the latest when all those have ended that were there or in line before
// it, though those that came later never end.
func TestWhoPassesDoesNotDelay(t *testing.T) {
	t.Parallel()
	passed := 0
	for seed := range uint64(15) {
		dice := rand.New(rand.NewPCG(seed, 11))
		w, room := newWorld(), 0
		for range 2 + dice.IntN(4) {
			gpus := 2 + dice.IntN(5)
			room += gpus
			w.node(int64(gpus), 0)
		}
		s := newSim(w)
		lasts := func(e Entry) time.Duration {
			if e.Namespace == "later" {
				return 1000 * time.Hour
			}
			return time.Duration(1+dice.IntN(30)) * time.Minute
		}
		before := 2 + dice.IntN(6)
		for i := range before {
			s.comes(entry("before", fmt.Sprint("job-", i), Request{Worker: w.shape(1, 0), Workers: 1 + dice.IntN(room/2)}, 0))
		}
		s.step(t, lasts)
		s.comes(entry("before", "large", Request{Worker: w.shape(1, 0), Workers: 1 + room/2 + dice.IntN(room/2)}, 0))
		for i := range 40 * before {
			s.now = s.now.Add(time.Minute)
			s.comes(entry("later", fmt.Sprint("small-", i), Request{Worker: w.shape(1, 0), Workers: 1 + dice.IntN(2)}, 0, priority(-1)))
			for _, placement := range s.step(t, lasts).Admit {
				if placement.Passed {
					passed++
				}
			}
			if _, is := s.running["before/large"]; is {
				break
			}
		}
		if _, is := s.running["before/large"]; !is {
			t.Errorf("seed %d: the large one waits for ever", seed)
		}
	}
	if passed == 0 {
		t.Error("no small one has passed a large one, so that nothing was tried")
	}
	t.Logf("%d small ones have passed", passed)
}

// amounts is what a placement needs of each node.
func (p Placement) amounts(request Request) map[string]Totals {
	all := map[string]Totals{}
	for _, node := range p.Workers {
		all[node] = all[node].Plus(request.Worker.Requests)
	}
	if p.Launcher != "" {
		all[p.Launcher] = all[p.Launcher].Plus(request.Launcher.Requests)
	}
	return all
}

// BenchmarkDecide is one pass over a queue of 1,000 gangs on 1,000 nodes that are nearly full.
func BenchmarkDecide(b *testing.B) {
	for name, gangs := range map[string]func(w *world, i int) Request{
		"alike": func(w *world, _ int) Request { return w.workers(64) },
		"unlike": func(w *world, i int) Request {
			return Request{Launcher: w.shape(0, 100), Worker: w.shape(1, int64(1000+i)), Workers: 16 + i%200}
		},
	} {
		b.Run(name, func(b *testing.B) {
			heap := func() uint64 {
				runtime.GC()
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				return m.HeapAlloc
			}
			before := heap()
			w := newWorld()
			var running []Entry
			for range 1000 {
				w.node(8, 64000)
			}
			for i := range 990 {
				gpus := make([]int64, i+1)
				gpus[i] = 8
				running = append(running, w.on(entry(fmt.Sprint("ns-", i%20), fmt.Sprint("running-", i), Request{}, 60), gpus...))
			}
			var waiting []Entry
			for i := range 1000 {
				request := gangs(w, i)
				waiting = append(waiting, entry(fmt.Sprint("ns-", i%20), fmt.Sprint("job-", i), request, i%60+1))
			}
			after := heap()
			b.ReportAllocs()
			for b.Loop() {
				d := Decide(begin, w.snapshot(), waiting, running, Usage{})
				if len(d.Held)+len(d.Admit) != 1000 {
					b.Fatalf("%d wait and %d are let in", len(d.Held), len(d.Admit))
				}
			}
			b.ReportMetric(float64(after-before)/(1<<20), "MiB")
		})
	}
}

// BenchmarkFit is finding room for 1,000 pods on 1,000 nodes, and choosing it.
func BenchmarkFit(b *testing.B) {
	w := newWorld()
	for range 1000 {
		w.node(8, 64000)
	}
	request := Request{Launcher: w.shape(0, 100), Worker: w.shape(4, 8000, func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{} }), Workers: 999}
	b.ReportAllocs()
	for b.Loop() {
		nodes := w.snapshot()
		free := nodes.free()
		f := nodes.fit(free, request, false)
		if !f.ok() || slices.Contains(f.place(nodes, free, nil).Workers, "") {
			b.Fatal("it does not fit")
		}
	}
}
