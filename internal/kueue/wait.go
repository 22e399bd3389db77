package kueue

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
)

// What is kept of waits, and how many comparable ones there must be to say anything.
const (
	maxLines   = 1000
	maxSamples = 200
	minSamples = 10
)

// Line is where jobs wait for each other: a queue of a back end's, or a namespace where the back end has no queues.
type Line struct{ Backend, Namespace, Queue string }

// LineOf is the one that a job waits in; false where it waits in none.
func LineOf(job mpi.Job, seen jobstate.Observed) (Line, bool) {
	switch {
	case seen.Queue != nil:
		return Line{Backend: seen.Queue.Backend, Namespace: job.Namespace, Queue: seen.Queue.Name}, true
	case seen.Gang != nil:
		return Line{Backend: seen.Gang.Backend, Namespace: job.Namespace, Queue: job.Gang.Queue}, true
	}
	return Line{}, false
}

// Waits are how long jobs have waited until they were let in: the latest 200 of each line, of 1,000 lines at most. The
// zero value knows of none. One at a time may use it.
type Waits struct {
	lines map[Line][]wait
}

// wait is how long a job of so many pods waited, until a time.
type wait struct {
	job   types.UID
	pods  int32
	took  time.Duration
	until time.Time
}

// Add takes note of a job that was let in. It counts once.
func (w *Waits) Add(line Line, job types.UID, pods int32, took time.Duration, until time.Time) {
	known, found := w.lines[line]
	if slices.ContainsFunc(known, func(old wait) bool { return old.job == job }) {
		return
	}
	if !found {
		if w.lines == nil {
			w.lines = map[Line][]wait{}
		}
		w.forget(maxLines - 1)
	}
	at, _ := slices.BinarySearchFunc(known, until, func(old wait, until time.Time) int { return old.until.Compare(until) })
	known = slices.Insert(known, at, wait{job: job, pods: pods, took: max(0, took), until: until})
	w.lines[line] = known[max(0, len(known)-maxSamples):]
}

// forget drops the queues with the longest time since the last admission, until at most this many are left.
func (w *Waits) forget(most int) {
	for len(w.lines) > most {
		var oldest Line
		var at time.Time
		for line, known := range w.lines {
			if last := known[len(known)-1].until; at.IsZero() || last.Before(at) {
				oldest, at = line, last
			}
		}
		delete(w.lines, oldest)
	}
}

// Of is how long jobs waited in a line that are comparable with one of so many pods: those of half to twice as many.
func (w *Waits) Of(line Line, pods int32) jobstate.Wait {
	of := jobstate.Wait{FewestPods: (pods + 1) / 2, MostPods: 2 * pods}
	var took []time.Duration
	for _, known := range w.lines[line] {
		if known.pods >= of.FewestPods && known.pods <= of.MostPods {
			took = append(took, known.took)
		}
	}
	of.Samples = int32(len(took))
	if len(took) < minSamples {
		return of
	}
	slices.Sort(took)
	// The shortest time within which so many of a hundred were let in.
	within := func(percent int) time.Duration { return took[(len(took)*percent+99)/100-1] }
	of.Known, of.P50, of.P90 = true, within(50), within(90)
	return of
}
