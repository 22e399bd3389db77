package gang

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/podstatus"
	"opendatahub.io/mpijob/internal/times"
)

// Past is how a job has waited so far, as its JobReport records it.
type Past struct {
	// Since is when the wait began; zero if the job does not wait.
	Since time.Time
	// Attempts is how often the job was put back, EvictedAt when that was last, and NextTry until when it rests.
	Attempts           int32
	EvictedAt, NextTry time.Time
	// RanSince is when all of the job's pods last began to run together; zero if they never have.
	RanSince time.Time
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

// Rests reports whether a job that was put back rests, or has pods left that have to go: it is nobody's turn then.
func Rests(job mpi.Job, seen jobstate.Observed, past Past) bool {
	return past.Attempts > 0 && (seen.Now.Before(past.NextTry) || past.Attempts > job.Gang.Requeues || leftover(seen, past.EvictedAt))
}

// Clock adds to a state the time at which the wait began, and puts the job back into the queue if the wait is too long.
//
// Two times are measured. While no pod has a node the job holds nothing, and may wait as long as its user allows. While
// some pods have a node and others do not, the job keeps others from running: this time is bounded. A decision is first
// written to the JobReport and carried out in the next reconcile, so that it survives a restart of the operator.
func Clock(job mpi.Job, seen jobstate.Observed, past Past, state jobstate.GangState) jobstate.GangState {
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
	// A launcher that runs may do without some that were there since it started, as elastic programs do. It waits for the others.
	//
	// A job that never fits waits for other nodes, unless its user bounds how long.
	//
	// The back end ends the turn of a job for which others make room, which is no try.
	endless := (state.Never || state.Turn) && !job.Gang.TimeoutSet
	if !state.Waits() || endless || hasOtherClock(job, seen, past, state) || ranAll(seen, past) {
		return state
	}
	from, limit := times.Later(state.Since, past.NextTry), job.Gang.Timeout
	switch first := firstPlaced(job, seen); {
	case !first.IsZero() && state.Free:
		// Settle has counted it as starting for that long.
		from = times.Later(first, past.NextTry)
	case !first.IsZero():
		from = times.Later(from, first)
	case !job.Gang.TimeoutSet || job.External:
		return state
	}
	if left := from.Add(limit).Sub(seen.Now); left > 0 {
		state.Again = times.Shortest(state.Again, left)
		return state
	}
	state.Attempts++
	state.EvictedAt, state.NextTry = now, now.Add(Rest(state.Attempts))
	state.Hold, state.Again = true, time.Millisecond
	return state
}

// bindTime is how long the scheduler may take to bind the pods of a job that were created together.
const bindTime = 15 * time.Second

// Settle sets whether a job that is placed as a whole by default is only starting: its pods are made, and each of them has a
// node or is new. A pod that does not exist now, such as a launcher between two tries, is no reason to wait.
func Settle(job mpi.Job, seen jobstate.Observed, state *jobstate.GangState) {
	if state.Hold || state.Evict {
		return
	}
	state.Starting = true
	limit := bindTime
	if state.Free {
		// The conditions of its pods explain more than their number.
		limit = job.Gang.Timeout
	}
	for _, pod := range PodsOf(job, seen) {
		if pod.Spec.NodeName != "" || podstatus.HasEnded(pod) {
			continue
		}
		left := pod.CreationTimestamp.Add(limit).Sub(seen.Now)
		if left <= 0 {
			state.Starting = false
			return
		}
		state.Again = times.Shortest(state.Again, left)
	}
}

// firstPlaced is when the first of the pods that have a place got it; zero where none has one.
func firstPlaced(job mpi.Job, seen jobstate.Observed) (first time.Time) {
	for _, pod := range PodsOf(job, seen) {
		if pod.Spec.NodeName == "" {
			continue
		}
		at := podstatus.ScheduledAt(pod)
		if at.IsZero() {
			at = pod.CreationTimestamp.Time
		}
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}

// leftover reports whether a pod from before the job was put back still exists and is not being deleted.
func leftover(seen jobstate.Observed, evicted time.Time) bool {
	old := func(pod *corev1.Pod) bool {
		return pod.DeletionTimestamp == nil && !pod.CreationTimestamp.After(evicted)
	}
	for _, pod := range seen.LauncherPods {
		if old(pod) && !podstatus.HasEnded(pod) {
			return true
		}
	}
	for _, worker := range seen.Workers {
		// Suspended Jobs keep their ended pods.
		if old(worker.Pod) && (seen.Gate == nil || !podstatus.HasEnded(worker.Pod)) {
			return true
		}
	}
	return false
}

// launcherOn reports whether the launcher's Job may make a pod.
func launcherOn(seen jobstate.Observed) bool {
	return seen.Launcher != nil && !jobstate.HasFinished(seen.Launcher) && !ptr.Deref(seen.Launcher.Spec.Suspend, false)
}

// hasOtherClock reports whether another clock bounds how long a job in a queue is half placed, until all of its pods have run since its
// admission: that of its user's time (kueue.TurnOf), or the scheduler's, which places all pods of a PodGroup at once.
func hasOtherClock(job mpi.Job, seen jobstate.Observed, past Past, state jobstate.GangState) bool {
	if seen.Queue == nil || state.Backend == Embedded && !job.Gang.TimeoutSet {
		return false
	}
	return !seen.Queue.Admitted || past.RanSince.Before(seen.Queue.AdmittedAt)
}

// ranAll reports whether the launcher runs, and all of the job's pods have run since it started.
func ranAll(seen jobstate.Observed, past Past) bool {
	n := len(seen.LauncherPods)
	if n == 0 || !podstatus.IsRunning(seen.LauncherPods[n-1]) {
		return false
	}
	started := podstatus.LatestStart(seen.LauncherPods[n-1])
	return !started.IsZero() && !past.RanSince.Before(started)
}
