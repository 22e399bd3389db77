package kueue

import (
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/waiting"
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

// Waits are how long jobs have waited until they were admitted. The zero value has none. It may not be used concurrently.
type Waits struct{ waiting.History[Line] }

// Of returns how long jobs waited in a line that are comparable with one of so many pods: those of half to twice as many.
func (w *Waits) Of(line Line, pods int32) jobstate.Wait {
	took := w.Similar(line, pods)
	of := jobstate.Wait{Samples: int32(len(took))}
	of.FewestPods, of.MostPods = waiting.SimilarSize(pods)
	if len(took) >= waiting.MinSamples {
		of.Known, of.P50, of.P90 = true, waiting.Within(took, 50), waiting.Within(took, 90)
	}
	return of
}
