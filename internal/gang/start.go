package gang

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"opendatahub.io/mpijob/internal/waiting"
)

// EstimateStarts estimates when the gangs start that a decision holds, from when those before them end. describe returns how long
// a gang runs. Gangs that can never be placed have no estimate.
func EstimateStarts(now time.Time, nodes *Snapshot, decision Decision, held, running []Entry, describe func(types.UID) waiting.Job) map[types.UID]waiting.Estimate {
	line := slices.DeleteFunc(slices.Clone(held), func(e Entry) bool { return decision.Held[e.UID].Position == 0 })
	if len(line) == 0 {
		return nil
	}
	slices.SortFunc(line, func(a, b Entry) int {
		return cmp.Compare(decision.Held[a.UID].Position, decision.Held[b.UID].Position)
	})
	start := nodeRoom{nodes: nodes, free: nodes.free(), line: line, placed: make([]Placement, len(line))}
	for i := range nodes.Nodes {
		start.free[i] = start.free[i].plus(nodes.Nodes[i].Leaving)
	}
	var before []waiting.Job
	for _, entry := range slices.Concat(running, held) {
		placement, admitted := decision.Admit[entry.UID]
		_, evicted := decision.Evict[entry.UID]
		switch {
		case entry.Leaving || evicted:
			// Its room is about to be free.
			start.free.give(nodes, entry.Holds)
			continue
		case admitted:
			start.free.take(nodes, entry.Request, placement)
			entry.Holds = append(slices.Clone(entry.Holds), holdsOf(entry.Request, placement)...)
		}
		if len(entry.Holds) > 0 {
			before = append(before, describe(entry.UID))
			start.holds = append(start.holds, entry.Holds)
		}
	}
	jobs := make([]waiting.Job, len(line))
	for i := range line {
		jobs[i] = describe(line[i].UID)
	}
	estimates := waiting.Starts(now, jobs, before, func() waiting.Room {
		room := start
		room.free, room.placed = start.free.clone(), slices.Clone(start.placed)
		return &room
	})
	byGang := make(map[types.UID]waiting.Estimate, len(line))
	for i, estimate := range estimates {
		byGang[line[i].UID] = estimate
	}
	return byGang
}

// nodeRoom is the room on nodes.
type nodeRoom struct {
	nodes *Snapshot
	free  space
	// holds are what running gangs have; line are the gangs that wait, and placed where their pods went.
	holds  [][]Hold
	line   []Entry
	placed []Placement
}

// Place implements waiting.Room.
func (r *nodeRoom) Place(i int) bool {
	f := r.nodes.fit(r.free, r.line[i].Request, false)
	defer r.nodes.drop(f)
	if !f.ok() {
		return false
	}
	r.placed[i] = f.place(r.nodes, r.free, nil)
	return true
}

// Release implements waiting.Room.
func (r *nodeRoom) Release(i int) { r.free.give(r.nodes, r.holds[i]) }

// ReleasePlaced implements waiting.Room.
func (r *nodeRoom) ReleasePlaced(i int) {
	r.free.give(r.nodes, holdsOf(r.line[i].Request, r.placed[i]))
}

// holdsOf returns what pods hold that were placed.
func holdsOf(request Request, placed Placement) []Hold {
	var holds []Hold
	add := func(node string, shape *Shape) {
		if node != "" && shape != nil {
			holds = append(holds, Hold{Node: node, Amount: Totals(nil).Plus(shape.Requests)})
		}
	}
	add(placed.Launcher, request.Launcher)
	for _, node := range placed.Workers {
		add(node, request.Worker)
	}
	return holds
}
