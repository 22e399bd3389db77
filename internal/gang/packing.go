package gang

import (
	"cmp"
	"encoding/json"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	helpers "k8s.io/component-helpers/resource"
	scheduling "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// Resources numbers the resources of a cluster, so that amounts of them are plain numbers. It may be used from several
// goroutines.
type Resources struct {
	mu      sync.RWMutex
	numbers map[corev1.ResourceName]int
	names   []corev1.ResourceName
}

// NewResources returns a numbering without any resource.
func NewResources() *Resources {
	return &Resources{numbers: map[corev1.ResourceName]int{}}
}

// Amount is how much there is of a resource: thousandths of a CPU, and units of everything else.
type Amount struct {
	Resource int
	Quantity int64
}

// Amounts are the requests of a pod, by the number of the resource. A resource that is not listed is not requested.
type Amounts []Amount

// Totals are the amounts of all resources, indexed by the number of the resource; beyond the end they are 0.
type Totals []int64

// Amounts turns a list of resources into amounts.
func (r *Resources) Amounts(list corev1.ResourceList) Amounts {
	amounts := make(Amounts, 0, len(list))
	for name, quantity := range list {
		if n := units(name, quantity); n > 0 {
			amounts = append(amounts, Amount{Resource: r.number(name), Quantity: n})
		}
	}
	slices.SortFunc(amounts, func(a, b Amount) int { return a.Resource - b.Resource })
	return amounts
}

// Totals turns a list of resources into totals.
func (r *Resources) Totals(list corev1.ResourceList) Totals {
	return Totals(nil).Plus(r.Amounts(list))
}

func units(name corev1.ResourceName, quantity resource.Quantity) int64 {
	if name == corev1.ResourceCPU {
		return quantity.MilliValue()
	}
	return quantity.Value()
}

func (r *Resources) number(name corev1.ResourceName) int {
	r.mu.RLock()
	number, found := r.numbers[name]
	r.mu.RUnlock()
	if found {
		return number
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if number, found := r.numbers[name]; found {
		return number
	}
	r.numbers[name] = len(r.names)
	r.names = append(r.names, name)
	return len(r.names) - 1
}

// text says an amount with its unit.
func (r *Resources) text(number int, quantity int64) (name, amount string) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	resourceName := r.names[number]
	q := resource.NewQuantity(quantity, resource.DecimalSI)
	switch {
	case resourceName == corev1.ResourceCPU:
		q = resource.NewMilliQuantity(quantity, resource.DecimalSI)
	case resourceName == corev1.ResourceMemory, resourceName == corev1.ResourceEphemeralStorage, strings.HasPrefix(string(resourceName), corev1.ResourceHugePagesPrefix):
		q = resource.NewQuantity(quantity, resource.BinarySI)
	}
	return string(resourceName), q.String()
}

// Plus adds amounts. The totals are used up: only the result is valid from then on.
func (t Totals) Plus(amounts Amounts) Totals { return t.add(amounts, 1) }

// Minus takes amounts away, below 0 where there is less. As with Plus, only the result is valid from then on.
func (t Totals) Minus(amounts Amounts) Totals { return t.add(amounts, -1) }

func (t Totals) add(amounts Amounts, times int64) Totals {
	for _, a := range amounts {
		for a.Resource >= len(t) {
			t = append(t, 0)
		}
		t[a.Resource] += times * a.Quantity
	}
	return t
}

func (t Totals) plus(more Totals) Totals {
	for i, n := range more {
		if i >= len(t) {
			t = append(t, 0)
		}
		t[i] += n
	}
	return t
}

// PodRequests are what a pod holds of its node from when it is placed until it has ended, as kube-scheduler counts it:
// a place for a pod is among it.
func PodRequests(pod *corev1.Pod) corev1.ResourceList {
	list := helpers.PodRequests(pod, helpers.PodResourcesOptions{UseStatusResources: true})
	list[corev1.ResourcePods] = *resource.NewQuantity(1, resource.DecimalSI)
	return list
}

// Shape is what a pod requires of its node. Two pods with the same key have equal requirements.
type Shape struct {
	Requests Amounts
	// where is the text of the pod's node constraints: pods with the same text may run on the same nodes.
	where       string
	affinity    nodeaffinity.RequiredNodeAffinity
	tolerations []corev1.Toleration
}

// ShapeOf is the shape of a pod, as the API server has completed it: with default requests in place.
func (r *Resources) ShapeOf(pod *corev1.Pod) Shape {
	says := struct {
		Selector    map[string]string
		Affinity    *corev1.NodeAffinity
		Tolerations []corev1.Toleration
	}{Selector: pod.Spec.NodeSelector, Tolerations: pod.Spec.Tolerations}
	if pod.Spec.Affinity != nil {
		says.Affinity = pod.Spec.Affinity.NodeAffinity
	}
	where, err := json.Marshal(says)
	if err != nil {
		// What came as JSON goes back to JSON.
		panic(err)
	}
	return Shape{
		Requests: r.Amounts(PodRequests(pod)), where: string(where),
		affinity: nodeaffinity.GetRequiredNodeAffinity(pod), tolerations: pod.Spec.Tolerations,
	}
}

// Node is a machine of the cluster with what pods hold of it.
type Node struct {
	Name   string
	Labels map[string]string
	Taints []corev1.Taint
	// Ready is set while its kubelet says so; Unschedulable where an administrator lets no new pods onto it (cordon).
	Ready, Unschedulable bool
	// Allocatable is what pods can have of it in all. Used is what they have, and Leaving is how much of that those on
	// their way out have.
	Allocatable, Used, Leaving Totals
}

// takes reports whether pods of a shape may go to the node, whatever is free there. With ever it does not count what may
// pass by itself: that the node is not ready, cordoned, or short of something.
func (n *Node) takes(s *Shape, ever bool) bool {
	counts := func(taint *corev1.Taint) bool {
		passes := ever && strings.HasPrefix(taint.Key, "node.kubernetes.io/")
		return !passes && (taint.Effect == corev1.TaintEffectNoSchedule || taint.Effect == corev1.TaintEffectNoExecute)
	}
	if !ever && !n.Ready {
		return false
	}
	cordon := corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}
	if !ever && n.Unschedulable && !scheduling.TolerationsTolerateTaint(logr.Discard(), s.tolerations, &cordon, true) {
		return false
	}
	if _, untolerated := scheduling.FindMatchingUntoleratedTaint(logr.Discard(), n.Taints, s.tolerations, counts, true); untolerated {
		return false
	}
	node := corev1.Node{}
	node.Name, node.Labels = n.Name, n.Labels
	match, err := s.affinity.Match(&node)
	return match && err == nil
}

// Snapshot is what a cluster's nodes had at a time. One at a time may use it.
type Snapshot struct {
	At        time.Time
	Resources *Resources
	// Nodes are all of the cluster's, by name.
	Nodes []Node

	// matches are the nodes that take pods of a shape, by the node constraints of the shape.
	matches map[match][]bool
	spare   [][]int
}

type match struct {
	where string
	ever  bool
}

func (s *Snapshot) takes(shape *Shape, ever bool) []bool {
	key := match{shape.where, ever}
	nodes, found := s.matches[key]
	if !found {
		nodes = make([]bool, len(s.Nodes))
		for i := range s.Nodes {
			nodes[i] = s.Nodes[i].takes(shape, ever)
		}
		if s.matches == nil {
			s.matches = map[match][]bool{}
		}
		s.matches[key] = nodes
	}
	return nodes
}

// find is the place of a node among the snapshot's, -1 where it has none of that name.
func (s *Snapshot) find(name string) int {
	at, found := slices.BinarySearchFunc(s.Nodes, name, func(n Node, name string) int { return strings.Compare(n.Name, name) })
	if !found {
		return -1
	}
	return at
}

// space is what is free on each of a snapshot's nodes.
type space []Totals

// free is what nothing has asked for.
func (s *Snapshot) free() space {
	all := make(space, len(s.Nodes))
	for i := range s.Nodes {
		all[i] = slices.Clone(s.Nodes[i].Allocatable)
		for r, n := range s.Nodes[i].Used {
			if r < len(all[i]) {
				all[i][r] -= n
			}
		}
	}
	return all
}

// Displaces reports whether pods of a request might have to displace some that hold these amounts: their node has not room for all of the request,
// and lacks something that they have.
func (s *Snapshot) Displaces(request Request, holds []Hold) bool {
	asked := map[int]int64{}
	add := func(shape *Shape, count int64) {
		if shape == nil {
			return
		}
		for _, a := range shape.Requests {
			asked[a.Resource] += a.Quantity * count
		}
	}
	add(request.Worker, int64(request.Workers))
	add(request.Launcher, 1)
	free := s.free()
	return slices.ContainsFunc(holds, func(hold Hold) bool {
		i := s.find(hold.Node)
		for r, amount := range hold.Amount {
			if i >= 0 && amount > 0 && r < len(free[i]) && free[i][r] < asked[r] {
				return true
			}
		}
		return false
	})
}

// Others is what pods that the embedded scheduler has not placed have of nodes, by the node's name and their priority.
type Others map[string]map[int32]Totals

// Lowest returns the lowest priority of the pods; false if there are none.
func (o Others) Lowest() (lowest int32, some bool) {
	for _, byPriority := range o {
		for priority := range byPriority {
			if !some || priority < lowest {
				lowest, some = priority, true
			}
		}
	}
	return lowest, some
}

// FitsByPreemption reports whether a request would have room if all other pods of a lower priority were preempted.
func (s *Snapshot) FitsByPreemption(request Request, priority int32, others Others) bool {
	free := s.free()
	for i := range s.Nodes {
		for other, has := range others[s.Nodes[i].Name] {
			if other < priority {
				free[i] = free[i].plus(has)
			}
		}
	}
	f := s.fit(free, request, false)
	defer s.drop(f)
	return f.ok()
}

// empty is what would be free if nothing ran.
func (s *Snapshot) empty() space {
	all := make(space, len(s.Nodes))
	for i := range s.Nodes {
		all[i] = s.Nodes[i].Allocatable
	}
	return all
}

func (s space) clone() space {
	all := make(space, len(s))
	for i := range s {
		all[i] = slices.Clone(s[i])
	}
	return all
}

// Request is pods that are to be placed together: workers that are alike, and a launcher or none.
type Request struct {
	// Launcher is nil where none is to be placed, Worker where there are no workers.
	Launcher, Worker *Shape
	Workers          int
	// Least is how many of the pods have to find room so that any is placed; 0: all.
	Least int
	// Together is a label of which all nodes of the pods have the same value, if possible, or else with Firmly none are
	// placed; empty: they may be anywhere.
	Together string
	Firmly   bool
}

// Pods is how many pods there are to place.
func (r Request) Pods() int {
	if r.Launcher != nil {
		return r.Workers + 1
	}
	return r.Workers
}

// least is how many pods have to find room: the launcher always, since without it the others have nothing to do.
func (r Request) least() int {
	if r.Least <= 0 || r.Least > r.Pods() {
		return r.Pods()
	}
	return r.Least
}

// fit is where the pods of a request have room.
type fit struct {
	request Request
	// launcher is the node for the launcher, -1 where it has none or is not asked for.
	launcher int
	// rooms are how many workers each node can take next to the launcher.
	rooms []int
	// pods is how many of the pods have room; nodes is how many nodes have room for one.
	pods, nodes int
	// short is the resource of which most nodes have too little for one worker more, -1 where that is none's fault.
	short int
	// domain is the value of the label of which all nodes have the same; empty if they may be anywhere.
	domain string
}

func (f fit) ok() bool {
	return f.pods >= f.request.least() && (f.request.Launcher == nil || f.launcher >= 0)
}

// workers is how many of the workers have room.
func (f fit) workers() int {
	if f.launcher >= 0 {
		return f.pods - 1
	}
	return f.pods
}

// fit finds room for a request. Of several places in which all pods are together it takes the smallest.
func (s *Snapshot) fit(free space, request Request, ever bool) fit {
	if request.Together == "" {
		return s.fitOn(free, request, ever, nil)
	}
	best := fit{request: request, launcher: -1, rooms: s.rooms(), short: -1}
	size := 0
	for value, nodes := range s.placesBy(request.Together) {
		f := s.fitOn(free, request, ever, nodes)
		if f.pods > 0 {
			f.domain = value
		}
		total := 0
		for _, n := range f.rooms {
			total += n
		}
		explains := f.pods == best.pods && f.short >= 0 && best.short < 0
		if !best.ok() && (f.pods > best.pods || explains) || f.ok() && best.ok() && total < size || f.ok() && !best.ok() {
			best, f, size = f, best, total
		}
		s.drop(f)
	}
	if best.ok() || request.Firmly {
		return best
	}
	s.drop(best)
	return s.fitOn(free, request, ever, nil)
}

// placesBy are the values of a label with the nodes of each, in the order of the values.
func (s *Snapshot) placesBy(label string) iter.Seq2[string, []bool] {
	places := map[string][]bool{}
	for i := range s.Nodes {
		value, has := s.Nodes[i].Labels[label]
		if !has {
			continue
		}
		if places[value] == nil {
			places[value] = make([]bool, len(s.Nodes))
		}
		places[value][i] = true
	}
	return func(yield func(string, []bool) bool) {
		for _, value := range slices.Sorted(maps.Keys(places)) {
			if !yield(value, places[value]) {
				return
			}
		}
	}
}

// fitOn finds room for a request on some of the nodes, or on all where that is nil. It is exact: workers are alike, so
// that each node takes as many as it can, and the launcher goes where it displaces the fewest of them.
func (s *Snapshot) fitOn(free space, request Request, ever bool, on []bool) fit {
	f := fit{request: request, launcher: -1, rooms: s.rooms(), short: -1}
	var shortOf counts
	total := 0
	if request.Worker != nil && request.Workers > 0 {
		takes := s.takes(request.Worker, ever)
		for i := range free {
			if !takes[i] || on != nil && !on[i] {
				continue
			}
			room, short := free[i].roomFor(request.Worker.Requests, nil)
			f.rooms[i] = room
			total += min(room, request.Workers)
			if short >= 0 && room < request.Workers {
				shortOf.add(short)
			}
			if room > 0 {
				f.nodes++
			}
		}
	}
	if request.Launcher != nil {
		total -= f.placeLauncher(s, free, ever, on)
	}
	if f.launcher >= 0 {
		f.pods++
	}
	f.pods += min(total, request.Workers)
	if short := shortOf.most(); short >= 0 {
		f.short = short
	}
	return f
}

// rooms is a list with a 0 for each node. Most fits are looked at and dropped: their lists are used again.
func (s *Snapshot) rooms() []int {
	if n := len(s.spare); n > 0 {
		rooms := s.spare[n-1]
		s.spare = s.spare[:n-1]
		clear(rooms)
		return rooms
	}
	return make([]int, len(s.Nodes))
}

// drop gives back what a fit has, which is not to be used any more.
func (s *Snapshot) drop(f fit) { s.spare = append(s.spare, f.rooms) }

// placeLauncher chooses the launcher's node, and returns how many workers have no room there because of it. Among equal
// nodes it takes the one that is worth least to workers.
func (f *fit) placeLauncher(s *Snapshot, free space, ever bool, on []bool) (loss int) {
	takes := s.takes(f.request.Launcher, ever)
	worth, left := 0, 0
	for i := range free {
		if !takes[i] || on != nil && !on[i] {
			continue
		}
		if n, _ := free[i].roomFor(f.request.Launcher.Requests, nil); n < 1 {
			continue
		}
		if f.rooms[i] == 0 {
			f.nodes++
		}
		beside, short := f.rooms[i], -1
		if beside > 0 {
			beside, short = free[i].roomFor(f.request.Worker.Requests, f.request.Launcher.Requests)
		}
		lost := min(f.rooms[i], f.request.Workers) - min(beside, f.request.Workers)
		if f.launcher < 0 || lost < loss || lost == loss && f.rooms[i] < worth {
			f.launcher, loss, worth, left = i, lost, f.rooms[i], beside
			if f.short = -1; lost > 0 {
				f.short = short
			}
		}
	}
	if f.launcher >= 0 {
		f.rooms[f.launcher] = left
	}
	return loss
}

// roomFor is how many pods that ask for amounts a node can take that has so much free, less taken; and which resource
// ends it, -1 where none does.
func (t Totals) roomFor(ask, taken Amounts) (count, short int) {
	count, short = math.MaxInt32, -1
	for _, a := range ask {
		have := int64(0)
		if a.Resource < len(t) {
			have = t[a.Resource]
		}
		for _, other := range taken {
			if other.Resource == a.Resource {
				have -= other.Quantity
			}
		}
		if have < a.Quantity {
			return 0, a.Resource
		}
		if n := int(have / a.Quantity); n < count {
			count, short = n, a.Resource
		}
	}
	return count, short
}

// counts are how often each number was counted.
type counts []int

func (c *counts) add(number int) {
	for number >= len(*c) {
		*c = append(*c, 0)
	}
	(*c)[number]++
}

// most is the number with the highest count, -1 where nothing was counted.
func (c counts) most() int {
	best := -1
	for number, n := range c {
		if n > 0 && (best < 0 || n > c[best]) {
			best = number
		}
	}
	return best
}

// Placement is where pods of a request go: names of nodes.
type Placement struct {
	// Launcher is empty where none was asked for, or it has no room.
	Launcher string
	// Workers has a node for each worker; empty for those that have no room.
	Workers []string
	// Passed is set where others are before the gang, which have no room.
	Passed bool
}

// place chooses nodes for the pods that have room, and takes that room away. Workers go to as few nodes as possible,
// since those on one node reach each other fastest: to the largest first, and the last of them to the smallest that has
// room for them. Before that count nodes in the order of before, highest first, where it is given.
func (f fit) place(s *Snapshot, free space, before []int) Placement {
	placed := Placement{Workers: make([]string, f.request.Workers)}
	if f.launcher >= 0 {
		placed.Launcher = s.Nodes[f.launcher].Name
		free[f.launcher] = free[f.launcher].Minus(f.request.Launcher.Requests)
	}
	first := func(i int) int {
		if before == nil {
			return 0
		}
		return before[i]
	}
	var order []int
	for i, n := range f.rooms {
		if n > 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(first(b), first(a)), cmp.Compare(f.rooms[b], f.rooms[a]))
	})
	next := 0
	for len(order) > 0 && next < f.request.Workers {
		left := f.request.Workers - next
		at := 0
		if f.rooms[order[0]] >= left {
			// The last of those that are large enough is the smallest.
			for at+1 < len(order) && first(order[at+1]) == first(order[0]) && f.rooms[order[at+1]] >= left {
				at++
			}
		}
		// Of nodes alike the first by name.
		for at > 0 && f.rooms[order[at-1]] == f.rooms[order[at]] {
			at--
		}
		node := order[at]
		for range min(left, f.rooms[node]) {
			placed.Workers[next] = s.Nodes[node].Name
			free[node] = free[node].Minus(f.request.Worker.Requests)
			next++
		}
		order = slices.Delete(order, at, at+1)
	}
	return placed
}

// Hold is the resources that pods of one gang use on a node.
type Hold struct {
	Node   string
	Amount Totals
}

// Take reserves room on a node for a pod that does not exist yet.
func (s *Snapshot) Take(node string, amounts Amounts) {
	if i := s.find(node); i >= 0 {
		s.Nodes[i].Used = s.Nodes[i].Used.Plus(amounts)
	}
}

// HasRoom reports whether all of the amounts are free on a node.
func (s *Snapshot) HasRoom(node string, amounts Amounts) bool {
	i := s.find(node)
	if i < 0 {
		return false
	}
	allocatable, used := s.Nodes[i].Allocatable, s.Nodes[i].Used
	return !slices.ContainsFunc(amounts, func(a Amount) bool {
		free := int64(0)
		if a.Resource < len(allocatable) {
			free = allocatable[a.Resource]
		}
		if a.Resource < len(used) {
			free -= used[a.Resource]
		}
		return a.Quantity > free
	})
}
