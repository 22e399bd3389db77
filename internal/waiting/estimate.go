// Package waiting estimates when jobs start that wait for capacity, from what the jobs before them will release and when.
package waiting

import (
	"container/heap"
	"slices"
	"sort"
	"time"
)

// Job is a job that runs, or that waits and will run.
type Job struct {
	Namespace, Name string
	// Start is when it began to run; zero if it has not.
	Start time.Time
	// Deadline is how long it may run; 0 if nothing limits that. DeadlineFrom is when that began to count; zero: when the job starts.
	Deadline     time.Duration
	DeadlineFrom time.Time
	// Usual are the durations of similar jobs that succeeded, shortest first. Fewer than MinSamples are ignored.
	Usual []time.Duration
	// Lingers is how long its pods stay after it ends; negative: for good, so that it releases nothing.
	Lingers time.Duration
}

// Room is the capacity that jobs wait for, as it changes in the course of an estimate.
type Room interface {
	// Place takes the room for a waiting job, and reports whether there is enough.
	Place(waiting int) bool
	// Release gives back what a running job holds.
	Release(running int)
	// ReleasePlaced gives back what a waiting job was given.
	ReleasePlaced(waiting int)
}

// Basis is what an estimate follows from.
type Basis string

// The bases of estimates.
const (
	Deadlines             Basis = "Deadlines"
	Durations             Basis = "Durations"
	DeadlinesAndDurations Basis = "DeadlinesAndDurations"
	PastWaits             Basis = "PastWaits"
)

// Reason is why there is no estimate.
type Reason string

// The reasons.
const (
	// NoDeadline: a job before it has no deadline, and too few similar jobs have succeeded.
	NoDeadline Reason = "NoDeadline"
	// Overdue: a job before it has no deadline, and runs longer than similar jobs did.
	Overdue Reason = "Overdue"
	// PodsStay: the pods of a job before it stay when it ends.
	PodsStay Reason = "PodsStay"
	// NotReleased: the room is not enough even when all jobs before it have ended.
	NotReleased Reason = "NotReleased"
	// NoneAhead: there is no estimate for a job that is ahead in the queue.
	NoneAhead Reason = "NoneAhead"
	// Autoscaled: nodes may be added at any time.
	Autoscaled Reason = "Autoscaled"
	// NotForQuota: the quota is free, so that the job waits for something else.
	NotForQuota Reason = "NotForQuota"
	// FewSamples: only past waits can be compared, and they are too few.
	FewSamples Reason = "FewSamples"
	// WaitedLonger: only past waits can be compared, and nearly all of them were shorter.
	WaitedLonger Reason = "WaitedLonger"
)

// Estimate is when a job is expected to start.
type Estimate struct {
	// From is when the jobs before it have ended if they take their usual time, zero if they may end at any time. By is
	// when they have ended if they take long; zero if there is no estimate.
	From, By time.Time
	Basis    Basis
	// Reason is why there is no estimate. Other is the job that it is about; nil if it is about none.
	Reason Reason
	Other  *Job
}

// IsZero reports whether nothing was estimated.
func (e Estimate) IsZero() bool { return e.By.IsZero() && e.Reason == "" }

// end is when a job ends.
type end struct {
	// likely is the expected time, and latest the time that nearly all such jobs, or a deadline, do not exceed.
	likely, latest time.Time
	basis          Basis
	// unbounded is why nothing is known; empty if it is.
	unbounded Reason
}

// minRemaining is how many similar jobs must have run for longer than a job has so far.
const minRemaining = 3

// releaseOf returns when a job that runs at a time releases its capacity.
func (j *Job) releaseOf(now time.Time) end {
	if j.Lingers < 0 {
		return end{unbounded: PodsStay}
	}
	e := j.endOf(now)
	e.likely, e.latest = e.likely.Add(j.Lingers), e.latest.Add(j.Lingers)
	return e
}

// endOf returns when a job ends that runs at a time.
func (j *Job) endOf(now time.Time) end {
	start := j.Start
	if start.IsZero() || start.After(now) {
		start = now
	}
	var e end
	if len(j.Usual) >= MinSamples {
		longer := j.Usual[sort.Search(len(j.Usual), func(i int) bool { return j.Usual[i] > now.Sub(start) }):]
		if len(longer) >= minRemaining {
			e = end{likely: start.Add(Within(longer, 50)), latest: start.Add(Within(longer, 90)), basis: Durations}
		} else {
			e.unbounded = Overdue
		}
	} else {
		e.unbounded = NoDeadline
	}
	if j.Deadline <= 0 {
		return e
	}
	// A job past its deadline is being stopped.
	deadline := start.Add(j.Deadline)
	if !j.DeadlineFrom.IsZero() {
		deadline = j.DeadlineFrom.Add(j.Deadline)
	}
	if deadline.Before(now) {
		deadline = now
	}
	switch {
	case e.unbounded != "":
		return end{likely: now, latest: deadline, basis: Deadlines}
	case deadline.Before(e.latest):
		e.latest, e.basis = deadline, Deadlines
		if deadline.Before(e.likely) {
			e.likely = deadline
		} else {
			e.basis = DeadlinesAndDurations
		}
	}
	return e
}

// Starts estimates when jobs start that wait in this order. No job is assumed to start before one ahead of it, although
// schedulers let small jobs pass. room returns the room as it is now; it is called at most twice.
//
// For n waiting and m running jobs, each room is asked for a place at most 2n+m+1 times.
func Starts(now time.Time, waiting, running []Job, room func() Room) []Estimate {
	if len(waiting) == 0 {
		return nil
	}
	latest := simulate(now, waiting, running, room(), func(e end) time.Time { return e.latest })
	likely := simulate(now, waiting, running, room(), func(e end) time.Time { return e.likely })
	for i := range latest {
		l := &latest[i]
		if l.By.IsZero() {
			continue
		}
		from := likely[i].By
		if from.IsZero() || from.After(l.By) {
			from = l.By
		}
		l.From, l.By = roundDown(now, from), roundUp(now, l.By)
		if !l.From.After(now) {
			l.From = time.Time{}
		}
	}
	return latest
}

// simulate returns when each waiting job starts (By) if jobs end at the time that when selects.
func simulate(now time.Time, waiting, running []Job, room Room, when func(end) time.Time) []Estimate {
	s := simulation{room: room, when: when, at: now}
	for i := range running {
		s.add(release{job: &running[i], index: i}, running[i].releaseOf(now))
	}
	result := make([]Estimate, len(waiting))
	for i := range waiting {
		for !room.Place(i) {
			if !s.release() {
				s.explain(waiting, i, result)
				return result
			}
		}
		result[i] = Estimate{By: s.at, Basis: s.basis}
		job := waiting[i]
		job.Start = s.at
		s.add(release{job: &waiting[i], index: i, placed: true}, job.releaseOf(s.at))
	}
	return result
}

// simulation is the course of time in an estimate.
type simulation struct {
	room Room
	when func(end) time.Time
	at   time.Time
	// ends are the releases that have not happened, and unbounded those of which it is unknown when they will.
	ends      releases
	unbounded []release
	// basis is what the releases so far followed from.
	basis Basis
}

// release is what a job gives back when it ends.
type release struct {
	job    *Job
	index  int
	placed bool
	at     time.Time
	basis  Basis
	reason Reason
}

func (s *simulation) add(r release, e end) {
	if e.unbounded != "" {
		r.reason = e.unbounded
		s.unbounded = append(s.unbounded, r)
		return
	}
	r.at, r.basis = s.when(e), e.basis
	heap.Push(&s.ends, r)
}

// release has the next job end, and reports whether there was one.
func (s *simulation) release() bool {
	if len(s.ends) == 0 {
		return false
	}
	next := heap.Pop(&s.ends).(release)
	if next.at.After(s.at) {
		s.at = next.at
	}
	if s.basis == "" {
		s.basis = next.basis
	} else if s.basis != next.basis {
		s.basis = DeadlinesAndDurations
	}
	s.give(next)
	return true
}

func (s *simulation) give(r release) {
	if r.placed {
		s.room.ReleasePlaced(r.index)
	} else {
		s.room.Release(r.index)
	}
}

// explain sets why there is no estimate for a job, and for those behind it: with what jobs hold for an unknown time it would have
// room, or not even then.
func (s *simulation) explain(waiting []Job, first int, result []Estimate) {
	result[first] = Estimate{Reason: NotReleased}
	for _, r := range s.unbounded {
		if s.give(r); s.room.Place(first) {
			result[first] = Estimate{Reason: r.reason, Other: r.job}
			break
		}
	}
	for i := first + 1; i < len(waiting); i++ {
		result[i] = Estimate{Reason: NoneAhead, Other: &waiting[first]}
	}
}

// releases are ordered by time, and then as they were added.
type releases []release

func (r releases) Len() int { return len(r) }
func (r releases) Less(a, b int) bool {
	if order := r[a].at.Compare(r[b].at); order != 0 {
		return order < 0
	}
	if r[a].placed != r[b].placed {
		return r[b].placed
	}
	return r[a].index < r[b].index
}
func (r releases) Swap(a, b int) { r[a], r[b] = r[b], r[a] }
func (r *releases) Push(x any)   { *r = append(*r, x.(release)) }
func (r *releases) Pop() any {
	last := (*r)[len(*r)-1]
	*r = slices.Delete(*r, len(*r)-1, len(*r))
	return last
}

// step returns the precision of a time: an estimate must not change with every observation.
func step(ahead time.Duration) time.Duration {
	switch {
	case ahead < 2*time.Hour:
		return time.Minute
	case ahead < 48*time.Hour:
		return 10 * time.Minute
	}
	return time.Hour
}

func roundDown(now, at time.Time) time.Time { return at.UTC().Truncate(step(at.Sub(now))) }

func roundUp(now, at time.Time) time.Time {
	down := roundDown(now, at)
	if down.Equal(at) {
		return down
	}
	return down.Add(step(at.Sub(now)))
}

// ByPastWaits estimates by the waits of comparable jobs, shortest first, when a job starts that has waited since a time.
func ByPastWaits(now, since time.Time, p50, p90 time.Duration) Estimate {
	by := since.Add(p90)
	if by.Before(now) {
		return Estimate{Reason: WaitedLonger}
	}
	e := Estimate{From: roundDown(now, since.Add(p50)), By: roundUp(now, by), Basis: PastWaits}
	if !e.From.After(now) {
		e.From = time.Time{}
	}
	return e
}
