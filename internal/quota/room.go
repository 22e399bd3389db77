package quota

import "slices"

// Room is the free quota of a namespace as jobs take and release it (waiting.Room).
type Room struct {
	quotas []Quota
	// running and waiting are the pods of each job.
	running, waiting [][]Pods
}

// NewRoom returns the room that quotas have besides pods that are ahead and do not exist yet.
func NewRoom(quotas []Quota, ahead []Pods, running, waiting [][]Pods) *Room {
	r := &Room{quotas: slices.Clone(quotas), running: running, waiting: waiting}
	r.use(ahead, 1)
	return r
}

// Place takes the room for a waiting job, and reports whether there is enough.
func (r *Room) Place(i int) bool {
	if len(Shortages(r.waiting[i], nil, r.quotas)) > 0 {
		return false
	}
	r.use(r.waiting[i], 1)
	return true
}

// Release gives back what a running job uses.
func (r *Room) Release(i int) { r.use(r.running[i], -1) }

// ReleasePlaced gives back what a waiting job was given.
func (r *Room) ReleasePlaced(i int) { r.use(r.waiting[i], -1) }

// use adds the usage of pods so many times.
func (r *Room) use(pods []Pods, times int64) {
	if len(pods) == 0 {
		return
	}
	counted := slices.Clone(pods)
	for i := range counted {
		counted[i].Count *= times
	}
	for i := range r.quotas {
		r.quotas[i].Used = sum(r.quotas[i], counted)
	}
}
