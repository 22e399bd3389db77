package gang

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"opendatahub.io/mpijob/internal/mpi"
)

// Past is what a job's record says of its waiting so far.
type Past struct {
	// Since is when it began; zero: it is not known to wait.
	Since time.Time
	// Attempts is how often the job was put back, EvictedAt when that was last, and NextTry until when it rests.
	Attempts           int32
	EvictedAt, NextTry time.Time
	// Ran is set once all of the job's pods have run at a time.
	Ran bool
}

const (
	firstRest = 30 * time.Second
	longRest  = 10 * time.Minute
)

// Rest is how long a job rests that was put back for so many times.
func Rest(attempts int32) time.Duration {
	rest := firstRest
	for range attempts - 1 {
		if rest *= 2; rest >= longRest {
			return longRest
		}
	}
	return rest
}

// Rests tells whether a job that was put back rests, or has pods left that have to go: it is nobody's turn then.
func Rests(job mpi.Job, seen mpi.Observed, past Past) bool {
	return past.Attempts > 0 && (seen.Now.Before(past.NextTry) || past.Attempts > job.Gang.Requeues || leftover(seen, past.EvictedAt))
}

// Clock adds to a state since when the job waits, and puts the job back if that takes too long.
//
// Two times are measured. While no pod has a place nothing is held, and the job may wait for as long as its user lets it.
// While some have a place and others none, the job keeps others from running: that is bounded. What is decided is first
// kept in the job's record and done in the next pass, so that an operator that starts anew in between goes on with it.
func Clock(job mpi.Job, seen mpi.Observed, past Past, state mpi.GangState) mpi.GangState {
	now := seen.Now.UTC().Truncate(time.Second)
	if past.Attempts == 0 && !state.Waits() {
		return state
	}
	if state.Since = past.Since; state.Since.IsZero() {
		state.Since = now
	}
	state.Attempts, state.EvictedAt, state.NextTry = past.Attempts, past.EvictedAt, past.NextTry
	if Rests(job, seen, past) {
		state.Hold = true
		state.Evict = leftover(seen, past.EvictedAt) || launcherOn(seen)
		state.GaveUp = past.Attempts > job.Gang.Requeues && !leftover(seen, past.EvictedAt)
		state.Again = past.NextTry.Sub(seen.Now)
		return state
	}
	// A launcher that runs may do without some that were there, as elastic programs do; not without those that never were:
	// it waits for them. A queue has a clock of its own.
	if !state.Waits() || state.Never || seen.Queue != nil || past.Ran && launcherRuns(seen) {
		return state
	}
	from, limit := later(state.Since, past.NextTry), job.Gang.Timeout
	switch first := firstPlaced(job, seen); {
	case !first.IsZero():
		from = later(from, first)
	case !job.Gang.TimeoutSet:
		return state
	}
	if left := from.Add(limit).Sub(seen.Now); left > 0 {
		state.Again = soonest(state.Again, left)
		return state
	}
	state.Attempts++
	state.EvictedAt, state.NextTry = now, now.Add(Rest(state.Attempts))
	state.Hold, state.Again = true, time.Millisecond
	return state
}

// firstPlaced is when the first of the pods that have a place got it; zero where none has one.
func firstPlaced(job mpi.Job, seen mpi.Observed) (first time.Time) {
	for _, pod := range pods(job, seen) {
		if pod.Spec.NodeName == "" {
			continue
		}
		at := pod.CreationTimestamp.Time
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue {
				at = c.LastTransitionTime.Time
			}
		}
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}

// leftover tells whether there is a pod from before a job was put back that nobody has deleted yet.
func leftover(seen mpi.Observed, evicted time.Time) bool {
	old := func(pod *corev1.Pod) bool {
		return pod.DeletionTimestamp == nil && !pod.CreationTimestamp.After(evicted)
	}
	for _, pod := range seen.LauncherPods {
		if old(pod) && !mpi.HasEnded(pod) {
			return true
		}
	}
	for _, worker := range seen.Workers {
		if old(worker.Pod) {
			return true
		}
	}
	return false
}

// launcherOn tells whether the launcher's Job may make a pod.
func launcherOn(seen mpi.Observed) bool {
	return seen.Launcher != nil && !mpi.HasFinished(seen.Launcher) && !ptr.Deref(seen.Launcher.Spec.Suspend, false)
}

func launcherRuns(seen mpi.Observed) bool {
	return slices.ContainsFunc(seen.LauncherPods, mpi.IsRunning)
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// soonest is the shorter one of two times; 0 is none.
func soonest(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}
