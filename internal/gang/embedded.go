package gang

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/phrase"
)

// Entry is a gang as the embedded queue sees it.
type Entry struct {
	UID             types.UID
	Namespace, Name string
	// Request is what is still to be placed: all pods of a gang that waits, and those that one that runs has lost.
	Request Request
	// Priority is that of its pods. Preempts is set where gangs of a lower one may be stopped for it.
	Priority int32
	Preempts bool
	// Since is when it began to wait, or when its first pod came.
	Since time.Time
	// Holds are what the pods of a gang that runs have, those on their way out not counted.
	Holds []Hold
	// Leaving is set if a running gang is evicted, Passed if a gang was admitted ahead of others.
	Leaving, Passed bool
}

func (e *Entry) key() string { return e.Namespace + "/" + e.Name }

// Decision is the result of one scheduling cycle.
type Decision struct {
	// Admit are the gangs whose pods are to be made, and where. Among them are gangs that run and have lost pods.
	Admit map[types.UID]Placement
	// Held are those that wait.
	Held map[types.UID]Held
	// Evict are the gangs that have to go, all of each, for one of a higher priority.
	Evict map[types.UID]Eviction
}

// Eviction is why a gang has to go.
type Eviction struct {
	// For names the gang that it makes room for, NAMESPACE/NAME.
	For string
	// Priority is that of its own pods, Over that of the other's.
	Priority, Over int32
}

// Held is why a gang waits.
type Held struct {
	// Position is its place among the Of gangs that wait, 1 for the next; 0 where it can never be placed.
	Position, Of int32
	// PodsFit is how many of its pods have room now, on NodesFit of the NodesTotal nodes.
	PodsFit, NodesFit, NodesTotal int32
	// Never is set where it has no room even on an empty cluster, and Partly where some of its workers would have: its pods would hold
	// nodes for nothing.
	Never, Partly bool
	// Reason is why it waits, and Message that reason's text; empty if the lacking resource is unknown.
	Reason  codes.Code
	Message string
}

// keepers is how many of the first in line have room kept for them.
const keepers = 8

// Decide goes once over the queue. It places gangs from the first to the last. The first ones that have no room keep some
// for themselves, on nodes that they can do with when those who are there have gone; others pass them only where that
// does not take any of this room. So none waits longer than for those that were there before it, however many pass.
//
// The same arguments give the same decision. What pods hold, also those that were decided on and are not made yet, is in
// the snapshot.
func Decide(now time.Time, nodes *Snapshot, waiting, running []Entry, usage Usage) Decision {
	p := pass{
		nodes: nodes, free: nodes.free(), empty: nodes.empty(), running: sorted(running), total: nodes.total(), ever: map[string]bool{},
		decision: Decision{Admit: map[types.UID]Placement{}, Held: map[types.UID]Held{}, Evict: map[types.UID]Eviction{}},
	}
	for i := range p.running {
		p.complete(&p.running[i])
	}
	for _, entry := range inOrder(now, waiting, usage.with(p.total, p.running), p.share) {
		p.try(&entry)
	}
	for uid, held := range p.decision.Held {
		held.Of = p.line
		p.decision.Held[uid] = held
	}
	return p.decision
}

func sorted(entries []Entry) []Entry {
	entries = slices.Clone(entries)
	slices.SortFunc(entries, func(a, b Entry) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.key(), b.key())) })
	return entries
}

// pass is one way through the queue.
type pass struct {
	nodes    *Snapshot
	running  []Entry
	decision Decision
	// free is what is left, empty what there would be if nothing ran, and total what the cluster has in all.
	free, empty space
	total       Totals
	// keep are the gangs that room is reserved for, and spare is the room that is left for others.
	keep  []*Entry
	spare space
	// line is how many are in line so far.
	line int32
	// ever remembers which requests an empty cluster has room for.
	ever map[string]bool
}

// complete places what a gang that runs has lost, as far as there is room. The rest is left to the cluster's scheduler.
func (p *pass) complete(entry *Entry) {
	if entry.Request.Pods() == 0 || entry.Leaving {
		return
	}
	f := p.nodes.fit(p.free, entry.Request, false)
	p.decision.Admit[entry.UID] = f.place(p.nodes, p.free, nil)
}

func (p *pass) try(entry *Entry) {
	f := p.nodes.fit(p.free, entry.Request, false)
	defer p.nodes.drop(f)
	switch {
	case f.ok() && len(p.keep) == 0:
		p.decision.Admit[entry.UID] = f.place(p.nodes, p.free, nil)
		return
	case f.ok():
		p.pass(entry, f)
		return
	}
	if never, empty := p.never(entry, f); never {
		p.decision.Held[entry.UID] = p.impossible(entry, f, empty)
		return
	}
	held := p.held(f)
	held.Reason, held.Message = p.shortage(entry, f)
	if len(p.keep) < keepers && p.keepFor(entry) {
		held.Reason, held.Message = codes.Preempting, codes.Status(codes.Preempting, nil)
	}
	p.decision.Held[entry.UID] = held
}

// pass lets a gang in that has room, if that is not kept for others.
func (p *pass) pass(entry *Entry, now fit) {
	f := p.nodes.fit(p.spare, entry.Request, false)
	defer p.nodes.drop(f)
	if f.ok() {
		placed := f.place(p.nodes, p.spare, nil)
		placed.Passed = true
		p.free.take(p.nodes, entry.Request, placed)
		p.decision.Admit[entry.UID] = placed
		return
	}
	held, first := p.held(now), p.keep[0]
	held.Reason = codes.CapacityReserved
	held.Message = codes.Status(held.Reason, map[string]string{"first": named(first, entry), "pods": phrase.Count(first.Request.Pods(), "pod")})
	p.decision.Held[entry.UID] = held
}

// held puts a gang in line.
func (p *pass) held(f fit) Held {
	p.line++
	return Held{
		Position: p.line,
		PodsFit:  int32(f.pods), NodesFit: int32(f.nodes), NodesTotal: int32(len(p.nodes.Nodes)),
	}
}

// never reports whether a request has no room even if nothing ran, and what room there would be then.
func (p *pass) never(entry *Entry, now fit) (bool, fit) {
	key := entry.Request.key()
	if fits, known := p.ever[key]; known && fits {
		return false, now
	}
	empty := p.nodes.fit(p.empty, entry.Request, true)
	defer p.nodes.drop(empty)
	p.ever[key] = empty.ok()
	return !empty.ok(), empty
}

func (p *pass) impossible(entry *Entry, f, empty fit) Held {
	nodes := len(p.nodes.Nodes)
	held := Held{Never: true, Partly: empty.workers() > 0, PodsFit: int32(f.pods), NodesFit: int32(f.nodes), NodesTotal: int32(nodes)}
	switch {
	case nodes == 0:
		held.Reason = codes.NoNodes
	case empty.pods == 0 && empty.short < 0:
		held.Reason = codes.NoMatchingNode
	default:
		held.Reason = codes.GangNeverFits
	}
	held.Message = codes.Status(held.Reason, map[string]string{
		"have": strconv.Itoa(empty.pods), "pods": phrase.Count(entry.Request.Pods(), "pod"), "nodes": phrase.Count(nodes, "node"), "why": p.asks(entry, empty),
	})
	return held
}

// asks says where pods have to be, and how much of the scarcest resource each worker asks for.
func (p *pass) asks(entry *Entry, f fit) string {
	if entry.Request.Launcher != nil && f.launcher < 0 && !entry.Request.Firmly {
		return ": the launcher " + p.launcherLacks(entry)
	}
	var parts []string
	if entry.Request.Firmly {
		text := "all pods must run on nodes with the same " + entry.Request.Together
		if f.domain != "" {
			text += fmt.Sprintf(", of which %s has room for the most", f.domain)
		}
		parts = append(parts, text)
	}
	for _, a := range entry.Request.workerRequests() {
		if a.Resource == f.short {
			name, amount := p.nodes.Resources.text(a.Resource, a.Quantity)
			parts = append(parts, fmt.Sprintf("each worker requests %s of %s", amount, name))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return ": " + strings.Join(parts, "; ")
}

// launcherLacks states of which resource a launcher requests more than any empty node has.
func (p *pass) launcherLacks(entry *Entry) string {
	takes := p.nodes.takes(entry.Request.Launcher, true)
	for _, a := range entry.Request.Launcher.Requests {
		largest := int64(0)
		for i, node := range p.empty {
			if takes[i] && a.Resource < len(node) {
				largest = max(largest, node[a.Resource])
			}
		}
		if a.Quantity <= largest {
			continue
		}
		name, asked := p.nodes.Resources.text(a.Resource, a.Quantity)
		_, most := p.nodes.Resources.text(a.Resource, largest)
		return fmt.Sprintf("requests %s of %s, and no node has more than %s", asked, name, most)
	}
	return "does not fit"
}

// shortage says what there is too little of. The message is empty if that is unknown.
func (p *pass) shortage(entry *Entry, f fit) (reason codes.Code, message string) {
	if f.short < 0 {
		if entry.Request.Launcher != nil && f.launcher < 0 {
			return codes.LauncherUnplaced, codes.Status(codes.LauncherUnplaced, nil)
		}
		return codes.InsufficientCapacity, ""
	}
	if entry.Request.Together != "" {
		return codes.TopologyFull, codes.Status(codes.TopologyFull, map[string]string{"resource": entry.Request.Together})
	}
	free, largest := int64(0), int64(0)
	takes := p.nodes.takes(entry.Request.Worker, false)
	for i, node := range p.free {
		if takes[i] && f.short < len(node) {
			free, largest = free+max(0, node[f.short]), max(largest, node[f.short])
		}
	}
	for _, a := range entry.Request.workerRequests() {
		if a.Resource != f.short {
			continue
		}
		text := func(quantity int64) string {
			_, amount := p.nodes.Resources.text(a.Resource, quantity)
			return amount
		}
		name, all := p.nodes.Resources.text(a.Resource, a.Quantity*int64(entry.Request.Workers))
		values := map[string]string{"want": all, "resource": name, "have": text(free)}
		if a.Quantity > largest && free > 0 {
			values["most"] = fmt.Sprintf(", and no more than %s on one node: each worker requests %s", text(largest), text(a.Quantity))
		}
		return codes.InsufficientCapacity, codes.Status(codes.InsufficientCapacity, values)
	}
	return codes.InsufficientCapacity, ""
}

// named names a gang to another: by its name to those of its own namespace only.
func named(entry, to *Entry) string {
	if entry.Namespace == to.Namespace {
		return "the job " + entry.Name
	}
	return "a job of another namespace"
}

// keepFor keeps room for a gang, and reports whether pods are on their way out for it. It counts on those that go anyway;
// then on gangs of a lower priority, which are evicted for the first in line; then on all gangs but those that have
// passed it; and then on all. What is kept comes from the first of these that is enough; where none is, others than
// gangs are in the way, and nothing is kept.
func (p *pass) keepFor(entry *Entry) (leaving bool) {
	soon := p.free.clone()
	for i := range p.nodes.Nodes {
		soon[i] = soon[i].plus(p.nodes.Nodes[i].Leaving)
	}
	for i := range p.running {
		if p.running[i].Leaving {
			soon.give(p.nodes, p.running[i].Holds)
		}
	}
	if p.keepOf(entry, soon) {
		return true
	}
	if len(p.keep) == 0 && entry.Preempts && p.preempt(entry, soon) {
		return true
	}
	for _, all := range []bool{false, true} {
		later := soon.clone()
		for i := range p.running {
			r := &p.running[i]
			if passed := r.Passed && r.Since.After(entry.Since); !r.Leaving && (all || !passed) {
				later.give(p.nodes, r.Holds)
			}
		}
		if p.keepOf(entry, later) {
			return false
		}
	}
	return false
}

// keepOf keeps room for a gang out of what is to be free, where it can such that is free already; false where all of
// that is not enough for it.
func (p *pass) keepOf(entry *Entry, later space) bool {
	f := p.nodes.fit(later, entry.Request, false)
	defer p.nodes.drop(f)
	if !f.ok() {
		return false
	}
	now := p.nodes.fit(p.free, entry.Request, false)
	f.place(p.nodes, later, now.rooms)
	if p.spare == nil {
		p.spare = p.free.clone()
	}
	for i := range p.spare {
		for r := range p.spare[i] {
			left := int64(0)
			if r < len(later[i]) {
				left = later[i][r]
			}
			p.spare[i][r] = min(p.spare[i][r], left)
		}
	}
	p.keep = append(p.keep, entry)
	return true
}

// preempt evicts gangs of a lower priority than the first in line has: as few as will do, of the lowest priority and the
// youngest first.
func (p *pass) preempt(first *Entry, soon space) bool {
	var victims []*Entry
	for i := range p.running {
		if v := &p.running[i]; v.Priority < first.Priority && !v.Leaving {
			victims = append(victims, v)
		}
	}
	slices.SortStableFunc(victims, func(a, b *Entry) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), b.Since.Compare(a.Since))
	})
	fits := func(victims []*Entry) bool {
		then := soon.clone()
		for _, v := range victims {
			then.give(p.nodes, v.Holds)
		}
		f := p.nodes.fit(then, first.Request, false)
		defer p.nodes.drop(f)
		return f.ok()
	}
	if len(victims) == 0 || !fits(victims) {
		return false
	}
	// More victims never leave less room, so that halving finds the fewest from the front.
	enough := 1 + sort.Search(len(victims)-1, func(n int) bool { return fits(victims[:n+1]) })
	chosen := slices.Clone(victims[:enough])
	// Of these, those that matter most are spared where the rest will do.
	for i := range slices.Backward(slices.Clone(chosen)) {
		if spared := slices.Delete(slices.Clone(chosen), i, i+1); fits(spared) {
			chosen = spared
		}
	}
	for _, v := range chosen {
		soon.give(p.nodes, v.Holds)
		p.decision.Evict[v.UID] = Eviction{For: first.key(), Priority: v.Priority, Over: first.Priority}
	}
	return p.keepOf(first, soon)
}

// give adds what pods hold.
func (s space) give(nodes *Snapshot, holds []Hold) {
	for _, h := range holds {
		if i := nodes.find(h.Node); i >= 0 {
			s[i] = s[i].plus(h.Amount)
		}
	}
}

// take takes away what a placement needs.
func (s space) take(nodes *Snapshot, request Request, placed Placement) {
	for _, node := range placed.Workers {
		if i := nodes.find(node); i >= 0 {
			s[i] = s[i].Minus(request.Worker.Requests)
		}
	}
	if i := nodes.find(placed.Launcher); i >= 0 {
		s[i] = s[i].Minus(request.Launcher.Requests)
	}
}

// total is what the cluster's nodes have in all.
func (s *Snapshot) total() Totals {
	var all Totals
	for i := range s.Nodes {
		all = all.plus(s.Nodes[i].Allocatable)
	}
	return all
}

// share is how much of the cluster pods ask for: of the resource of which that is most, from 0 to 1.
func (p *pass) share(request Request) float64 {
	sum := make(map[int]int64, 8)
	for _, a := range request.workerRequests() {
		sum[a.Resource] += a.Quantity * int64(request.Workers)
	}
	if request.Launcher != nil {
		for _, a := range request.Launcher.Requests {
			sum[a.Resource] += a.Quantity
		}
	}
	share := 0.0
	for r, n := range sum {
		share = max(share, part(n, p.total, r))
	}
	return share
}

func part(n int64, of Totals, r int) float64 {
	if r >= len(of) || of[r] <= 0 {
		return 0
	}
	return float64(n) / float64(of[r])
}

// heldShare is how much of a cluster pods have, as share.
func heldShare(holds []Hold, total Totals) float64 {
	var sum Totals
	for _, h := range holds {
		sum = sum.plus(h.Amount)
	}
	share := 0.0
	for r, n := range sum {
		share = max(share, part(n, total, r))
	}
	return share
}

// Usage is how much of the cluster the gangs of each namespace have had lately: the share that they have now counts in
// full, and what they had an hour ago by half.
type Usage struct {
	At    time.Time
	Share map[string]float64
}

// halfLife is how long it takes until what a namespace has had counts by half.
const halfLife = time.Hour

// After is the usage at a later time, if gangs have run unchanged since.
func (u Usage) After(now time.Time, nodes *Snapshot, running []Entry) Usage {
	next := Usage{At: now, Share: map[string]float64{}}
	old := 1.0
	if !u.At.IsZero() && now.After(u.At) {
		old = math.Exp2(-float64(now.Sub(u.At)) / float64(halfLife))
	}
	total := nodes.total()
	for _, r := range running {
		next.Share[r.Namespace] += (1 - old) * heldShare(r.Holds, total)
	}
	for namespace, share := range u.Share {
		if share *= old; share+next.Share[namespace] > 1e-6 {
			next.Share[namespace] += share
		}
	}
	return next
}

// with adds what gangs have now.
func (u Usage) with(total Totals, running []Entry) map[string]float64 {
	all := make(map[string]float64, len(u.Share))
	maps.Copy(all, u.Share)
	for _, r := range running {
		all[r.Namespace] += heldShare(r.Holds, total)
	}
	return all
}

// hour is the weight of one hour of waiting: as much as the use of the whole cluster. So no job waits indefinitely because
// others of the same priority have used less.
const hour = 1.0

// inOrder puts gangs into the order in which they are tried: by priority; then by how little their namespace has used,
// as if those before had been let in, less how long they wait; then by age.
func inOrder(now time.Time, waiting []Entry, used map[string]float64, share func(Request) float64) []Entry {
	queues := map[string][]Entry{}
	for _, entry := range sorted(waiting) {
		queues[entry.Namespace] = append(queues[entry.Namespace], entry)
	}
	namespaces := make([]string, 0, len(queues))
	for namespace, queue := range queues {
		slices.SortStableFunc(queue, func(a, b Entry) int { return cmp.Compare(b.Priority, a.Priority) })
		namespaces = append(namespaces, namespace)
	}
	slices.Sort(namespaces)
	weight := func(namespace string) float64 {
		return used[namespace] - hour*now.Sub(queues[namespace][0].Since).Hours()
	}
	all := make([]Entry, 0, len(waiting))
	for len(namespaces) > 0 {
		best := 0
		for i := 1; i < len(namespaces); i++ {
			a, b := queues[namespaces[i]][0], queues[namespaces[best]][0]
			if cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(weight(namespaces[i]), weight(namespaces[best])), a.Since.Compare(b.Since)) < 0 {
				best = i
			}
		}
		namespace := namespaces[best]
		entry := queues[namespace][0]
		used[namespace] += share(entry.Request)
		all = append(all, entry)
		if queues[namespace] = queues[namespace][1:]; len(queues[namespace]) == 0 {
			namespaces = slices.Delete(namespaces, best, best+1)
		}
	}
	return all
}

func (r Request) workerRequests() Amounts {
	if r.Worker == nil {
		return nil
	}
	return r.Worker.Requests
}

// key is the same for requests that ask the same.
func (r Request) key() string {
	var b strings.Builder
	for _, shape := range []*Shape{r.Launcher, r.Worker} {
		if shape != nil {
			fmt.Fprintf(&b, "%s%v", shape.where, shape.Requests)
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "%d %d %s %t", r.Workers, r.Least, r.Together, r.Firmly)
	return b.String()
}
