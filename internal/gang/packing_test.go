package gang

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// gpu is a device of which tests' pods ask for some.
const gpu = "example.com/gpu"

// world builds snapshots and pods of one numbering of resources.
type world struct {
	resources *Resources
	nodes     []Node
}

func newWorld() *world { return &world{resources: NewResources()} }

// node adds a node with so many GPUs, so many thousandths of a CPU, and room for 110 pods.
func (w *world) node(gpus, cpu int64, change ...func(*Node)) *world {
	n := Node{Name: fmt.Sprintf("node-%03d", len(w.nodes)), Ready: true, Labels: map[string]string{}}
	n.Labels[corev1.LabelHostname] = n.Name
	n.Allocatable = w.resources.Totals(list(gpus, cpu, 110))
	for _, c := range change {
		c(&n)
	}
	w.nodes = append(w.nodes, n)
	return w
}

func (w *world) snapshot() *Snapshot { return &Snapshot{Resources: w.resources, Nodes: w.nodes} }

func list(gpus, cpu, pods int64) corev1.ResourceList {
	return corev1.ResourceList{
		gpu: *resource.NewQuantity(gpus, resource.DecimalSI), corev1.ResourceCPU: *resource.NewMilliQuantity(cpu, resource.DecimalSI),
		corev1.ResourcePods: *resource.NewQuantity(pods, resource.DecimalSI),
	}
}

// shape is that of a pod that asks for so much.
func (w *world) shape(gpus, cpu int64, change ...func(*corev1.PodSpec)) *Shape {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}}}
	asked := list(gpus, cpu, 0)
	delete(asked, corev1.ResourcePods)
	pod.Spec.Containers[0].Resources.Requests = asked
	for _, c := range change {
		c(&pod.Spec)
	}
	shape := w.resources.ShapeOf(pod)
	return &shape
}

// workers is a request for a launcher that asks for nothing and workers of a GPU each.
func (w *world) workers(n int) Request {
	return Request{Launcher: w.shape(0, 0), Worker: w.shape(1, 0), Workers: n}
}

func onZone(zone string) func(*corev1.PodSpec) {
	return func(spec *corev1.PodSpec) { spec.NodeSelector = map[string]string{"zone": zone} }
}

// zoned adds nodes with so many GPUs, two to a zone.
func zoned(w *world, gpus ...int64) {
	for i, n := range gpus {
		w.node(n, 0, func(node *Node) { node.Labels["zone"] = fmt.Sprint(i / 2) })
	}
}

func TestFitCountsPodsAndNodes(t *testing.T) {
	t.Parallel()
	tainted := func(n *Node) {
		n.Taints = []corev1.Taint{{Key: "gpu", Value: "a", Effect: corev1.TaintEffectNoSchedule}}
	}
	tolerant := func(spec *corev1.PodSpec) {
		spec.Tolerations = []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}}
	}
	tests := map[string]struct {
		nodes         func(*world)
		request       func(*world) Request
		fits          bool
		pods, onNodes int
	}{
		"all of them": {
			nodes:   func(w *world) { w.node(4, 0).node(4, 0) },
			request: func(w *world) Request { return w.workers(8) }, fits: true, pods: 9, onNodes: 2,
		},
		"five of nine": {
			nodes:   func(w *world) { w.node(3, 0).node(2, 0) },
			request: func(w *world) Request { return Request{Launcher: w.shape(1, 0), Worker: w.shape(1, 0), Workers: 8} }, pods: 5, onNodes: 2,
		},
		"the launcher goes where it displaces nobody": {
			nodes: func(w *world) { w.node(2, 1900).node(0, 500) },
			request: func(w *world) Request {
				return Request{Launcher: w.shape(0, 500), Worker: w.shape(1, 900), Workers: 2}
			}, fits: true, pods: 3, onNodes: 2,
		},
		"the launcher displaces a worker": {
			nodes: func(w *world) { w.node(2, 2000) },
			request: func(w *world) Request {
				return Request{Launcher: w.shape(0, 500), Worker: w.shape(1, 1000), Workers: 2}
			}, pods: 2, onNodes: 1,
		},
		"the launcher has no room": {
			nodes:   func(w *world) { w.node(2, 1000) },
			request: func(w *world) Request { return Request{Launcher: w.shape(0, 1500), Worker: w.shape(1, 0), Workers: 2} }, pods: 2, onNodes: 1,
		},
		"pods are counted": {
			nodes:   func(w *world) { w.node(200, 0) },
			request: func(w *world) Request { return Request{Worker: w.shape(1, 0), Workers: 111} }, pods: 110, onNodes: 1,
		},
		"a resource that no node has": {
			nodes: func(w *world) { w.node(1, 1000) },
			request: func(w *world) Request {
				return Request{Worker: w.shape(0, 0, func(s *corev1.PodSpec) {
					s.Containers[0].Resources.Requests["example.com/other"] = resource.MustParse("1")
				}), Workers: 1}
			},
		},
		"nodes that others use": {
			nodes:   func(w *world) { w.node(4, 0, func(n *Node) { n.Used = w.resources.Totals(list(3, 0, 1)) }) },
			request: func(w *world) Request { return Request{Worker: w.shape(1, 0), Workers: 2} }, pods: 1, onNodes: 1,
		},
		"node selector": {
			nodes:   func(w *world) { w.node(4, 0, func(n *Node) { n.Labels["zone"] = "a" }).node(4, 0) },
			request: func(w *world) Request { return Request{Worker: w.shape(1, 0, onZone("a")), Workers: 5} }, pods: 4, onNodes: 1,
		},
		"node affinity": {
			nodes: func(w *world) { w.node(4, 0).node(4, 0) },
			request: func(w *world) Request {
				return Request{Worker: w.shape(1, 0, func(s *corev1.PodSpec) {
					s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
						NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
							{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpNotIn, Values: []string{"node-000"}},
						}}},
					}}}
				}), Workers: 4}
			}, fits: true, pods: 4, onNodes: 1,
		},
		"a taint":      {nodes: func(w *world) { w.node(4, 0, tainted) }, request: func(w *world) Request { return w.workers(1) }},
		"a toleration": {nodes: func(w *world) { w.node(4, 0, tainted) }, request: func(w *world) Request { return Request{Worker: w.shape(1, 0, tolerant), Workers: 1} }, fits: true, pods: 1, onNodes: 1},
		"not ready":    {nodes: func(w *world) { w.node(4, 0, func(n *Node) { n.Ready = false }) }, request: func(w *world) Request { return w.workers(1) }},
		"cordoned":     {nodes: func(w *world) { w.node(4, 0, func(n *Node) { n.Unschedulable = true }) }, request: func(w *world) Request { return w.workers(1) }},
		"no nodes":     {nodes: func(*world) {}, request: func(w *world) Request { return w.workers(1) }},
		"together": {
			nodes:   func(w *world) { zoned(w, 4, 3, 4, 3, 2, 9) },
			request: func(w *world) Request { r := w.workers(7); r.Together, r.Firmly = "zone", true; return r }, fits: true, pods: 8, onNodes: 2,
		},
		"nowhere together": {
			nodes:   func(w *world) { zoned(w, 4, 3, 4, 3) },
			request: func(w *world) Request { r := w.workers(8); r.Together, r.Firmly = "zone", true; return r }, pods: 8, onNodes: 2,
		},
		"rather together": {
			nodes:   func(w *world) { zoned(w, 4, 3, 4, 3) },
			request: func(w *world) Request { r := w.workers(8); r.Together = "zone"; return r }, fits: true, pods: 9, onNodes: 4,
		},
		"together where no node has the label": {
			nodes:   func(w *world) { w.node(4, 0) },
			request: func(w *world) Request { r := w.workers(2); r.Together, r.Firmly = "zone", true; return r },
		},
		"fewer are enough": {
			nodes:   func(w *world) { w.node(3, 0) },
			request: func(w *world) Request { r := w.workers(8); r.Least = 3; return r }, fits: true, pods: 4, onNodes: 1,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			test.nodes(w)
			request, nodes := test.request(w), w.snapshot()
			f := nodes.fit(nodes.free(), request, false)
			if f.ok() != test.fits || f.pods != test.pods || f.nodes != test.onNodes {
				t.Errorf("fits %v, %d pods on %d nodes; want %v, %d on %d", f.ok(), f.pods, f.nodes, test.fits, test.pods, test.onNodes)
			}
		})
	}
}

// TestWhatMayPassIsNotForEver: a node that is not ready or cordoned counts for what can ever be.
// TestFitsByPreemption: other pods of a lower priority make room where that is what lacks.
func TestFitsByPreemption(t *testing.T) {
	t.Parallel()
	w := newWorld()
	// pods are GPUs that pods of jobs have of a node, and that others have, by priority.
	type pods struct {
		jobs   int64
		others map[int32]int64
	}
	for name, test := range map[string]struct {
		nodes   []pods
		workers int
		want    bool
	}{
		"it has room as it is":         {[]pods{{0, nil}}, 4, true},
		"one of its nodes":             {[]pods{{0, nil}, {2, map[int32]int64{0: 2}}}, 6, true},
		"several priorities":           {[]pods{{0, map[int32]int64{0: 2, 9: 2}}}, 4, true},
		"too little would go":          {[]pods{{2, map[int32]int64{0: 2}}}, 4, false},
		"they have the same priority":  {[]pods{{0, map[int32]int64{10: 4}}}, 4, false},
		"they have a higher priority":  {[]pods{{0, map[int32]int64{0: 1, 11: 3}}}, 4, false},
		"no node is large enough ever": {[]pods{{0, map[int32]int64{0: 4}}}, 5, false},
		"nothing but jobs":             {[]pods{{4, nil}}, 1, false},
	} {
		w.nodes = nil
		others := Others{}
		for i, has := range test.nodes {
			used, name := has.jobs, fmt.Sprintf("node-%03d", i)
			others[name] = map[int32]Totals{}
			for priority, gpus := range has.others {
				others[name][priority] = w.resources.Totals(list(gpus, 0, 1))
				used += gpus
			}
			w.node(4, 1000, func(n *Node) { n.Used = w.resources.Totals(list(used, 0, 1)) })
		}
		nodes := w.snapshot()
		free := nodes.free()
		if got := nodes.FitsByPreemption(w.workers(test.workers), 10, others); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
		if !reflect.DeepEqual(free, nodes.free()) {
			t.Errorf("%s: it changes the snapshot to %v", name, nodes.free())
		}
	}
}

// TestDisplaces: pods may be displaced if their node has too little left of something that they have.
func TestDisplaces(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.node(4, 1000, func(n *Node) { n.Used = w.resources.Totals(list(4, 100, 2)) }).node(4, 1000)
	for name, test := range map[string]struct {
		node      string
		gpus, cpu int64
		want      bool
	}{
		"GPUs where they lack":          {"node-000", 2, 100, true},
		"none of the GPUs":              {"node-000", 0, 100, false},
		"GPUs where others are free":    {"node-001", 2, 100, false},
		"a node that is gone":           {"node-002", 2, 100, false},
		"CPUs of which enough are free": {"node-000", 0, 900, false},
	} {
		if got := w.snapshot().Displaces(Request{Launcher: w.shape(0, 100), Worker: w.shape(1, 300), Workers: 2}, []Hold{{Node: test.node, Amount: w.resources.Totals(list(test.gpus, test.cpu, 1))}}); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}

func TestWhatMayPassIsNotForEver(t *testing.T) {
	t.Parallel()
	w := newWorld().node(4, 0, func(n *Node) { n.Unschedulable = true }).node(4, 0, func(n *Node) {
		n.Ready, n.Taints = false, []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}}
	})
	nodes := w.snapshot()
	if f := nodes.fit(nodes.free(), w.workers(8), false); f.pods != 0 {
		t.Errorf("%d pods fit, want 0", f.pods)
	}
	if f := nodes.fit(nodes.empty(), w.workers(8), true); !f.ok() {
		t.Errorf("%d pods would ever fit, want all", f.pods)
	}
}

func TestWorkersGoToFewNodes(t *testing.T) {
	t.Parallel()
	w := newWorld().node(2, 0).node(8, 0).node(3, 0).node(4, 0).node(3, 0)
	tests := map[int]string{
		1:  "[node-000]",
		3:  "[node-002 node-002 node-002]",
		8:  "[node-001 node-001 node-001 node-001 node-001 node-001 node-001 node-001]",
		11: "[node-001 node-001 node-001 node-001 node-001 node-001 node-001 node-001 node-002 node-002 node-002]",
	}
	for workers, want := range tests {
		nodes := w.snapshot()
		free := nodes.free()
		f := nodes.fit(free, Request{Worker: w.shape(1, 0), Workers: workers}, false)
		if got := fmt.Sprint(f.place(nodes, free, nil).Workers); got != want {
			t.Errorf("%d workers go to %s, want %s", workers, got, want)
		}
	}
}

// TestFitIsExact compares with all ways to place the pods of small gangs on small clusters.
func TestFitIsExact(t *testing.T) {
	t.Parallel()
	dice := rand.New(rand.NewPCG(1, 2))
	for round := range 3000 {
		w := newWorld()
		for range 1 + dice.IntN(3) {
			w.node(int64(dice.IntN(5)), int64(dice.IntN(5)*1000))
		}
		request := Request{Worker: w.shape(int64(dice.IntN(3)), int64(dice.IntN(3)*1000)), Workers: dice.IntN(5)}
		if dice.IntN(4) > 0 {
			request.Launcher = w.shape(int64(dice.IntN(2)), int64(dice.IntN(4)*1000))
		}
		nodes := w.snapshot()
		free := nodes.free()
		f := nodes.fit(free, request, false)
		want := mostPods(nodes.free(), request)
		if got := f.ok(); got != (want == request.Pods()) {
			t.Fatalf("round %d: it fits: %v, but %d of %d pods can be placed", round, got, want, request.Pods())
		}
		placed := f.place(nodes, free, nil)
		for i := range free {
			for r, left := range free[i] {
				if left < 0 {
					t.Fatalf("round %d: %s has %d of resource %d left", round, nodes.Nodes[i].Name, left, r)
				}
			}
		}
		have := 0
		for _, node := range placed.Workers {
			if node != "" {
				have++
			}
		}
		if f.ok() && (have != request.Workers || request.Launcher != nil && placed.Launcher == "") {
			t.Fatalf("round %d: it fits, and %d of %d workers are placed, the launcher on %q", round, have, request.Workers, placed.Launcher)
		}
	}
}

// mostPods tries everything.
func mostPods(free space, request Request) int {
	best := 0
	var workers func(free space, left int) int
	workers = func(free space, left int) int {
		if left == 0 {
			return 0
		}
		most := 0
		for i := range free {
			if n, _ := free[i].roomFor(request.Worker.Requests, nil); n > 0 {
				next := free.clone()
				next[i] = next[i].Minus(request.Worker.Requests)
				most = max(most, 1+workers(next, left-1))
				if most == left {
					return most
				}
			}
		}
		return most
	}
	if request.Launcher == nil {
		return workers(free, request.Workers)
	}
	for i := range free {
		if n, _ := free[i].roomFor(request.Launcher.Requests, nil); n > 0 {
			next := free.clone()
			next[i] = next[i].Minus(request.Launcher.Requests)
			best = max(best, 1+workers(next, request.Workers))
		}
	}
	return best
}

func TestRequestsOfPods(t *testing.T) {
	t.Parallel()
	always := corev1.ContainerRestartPolicyAlways
	cpu := func(text string) corev1.ResourceRequirements {
		return corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(text)}}
	}
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "big", Resources: cpu("3")}, {Name: "beside", RestartPolicy: &always, Resources: cpu("1")}},
		Containers:     []corev1.Container{{Name: "main", Resources: cpu("1")}},
		Overhead:       corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m")},
	}}
	resources := NewResources()
	got := resources.Totals(PodRequests(pod))
	want := resources.Totals(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3250m"), corev1.ResourcePods: resource.MustParse("1")})
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("it asks for %v, want %v", got, want)
	}
}
