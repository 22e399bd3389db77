package waiting_test

import (
	"fmt"
	"testing"
	"time"

	"opendatahub.io/mpijob/internal/waiting"
)

var noon = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// gpus is a room of which running and waiting jobs hold and need whole GPUs. It counts how often it is asked.
type gpus struct {
	free         int
	holds, needs []int
	places       int
}

func (g *gpus) Place(i int) bool {
	g.places++
	if g.free < g.needs[i] {
		return false
	}
	g.free -= g.needs[i]
	return true
}
func (g *gpus) Release(i int)       { g.free += g.holds[i] }
func (g *gpus) ReleasePlaced(i int) { g.free += g.needs[i] }

// hours are ten durations, of 1 to 10 times a tenth of some hours.
func usual(hours float64) (took []time.Duration) {
	for i := range 10 {
		took = append(took, time.Duration(float64(i+1)/10*hours*float64(time.Hour)))
	}
	return took
}

func at(hour, minute int) time.Time {
	return time.Date(2026, 11, 26, hour, minute, 0, 0, time.UTC)
}

// TestStarts: when jobs start follows from when those before them end, at the time of the clock.
func TestStarts(t *testing.T) {
	running := func(from time.Time, change ...func(*waiting.Job)) waiting.Job {
		job := waiting.Job{Namespace: "ns", Name: "runs", Start: from}
		for _, c := range change {
			c(&job)
		}
		return job
	}
	deadline := func(d time.Duration) func(*waiting.Job) { return func(j *waiting.Job) { j.Deadline = d } }
	since := func(from time.Time) func(*waiting.Job) { return func(j *waiting.Job) { j.DeadlineFrom = from } }
	usually := func(hours float64) func(*waiting.Job) { return func(j *waiting.Job) { j.Usual = usual(hours) } }
	lingers := func(d time.Duration) func(*waiting.Job) { return func(j *waiting.Job) { j.Lingers = d } }
	wait := func(name string, change ...func(*waiting.Job)) waiting.Job {
		job := running(time.Time{}, change...)
		job.Name = name
		return job
	}
	type estimate struct {
		from, by time.Time
		basis    waiting.Basis
		reason   waiting.Reason
		other    string
	}
	for name, c := range map[string]struct {
		now     time.Time
		free    int
		running []waiting.Job
		holds   []int
		waiting []waiting.Job
		needs   []int
		want    []estimate
	}{
		"there is room": {
			now: noon, free: 4, waiting: []waiting.Job{wait("a")}, needs: []int{4},
			want: []estimate{{by: noon}},
		},
		"a deadline that counts from before it ran": {
			now: noon, running: []waiting.Job{running(at(11, 30), deadline(time.Hour), since(at(11, 15)))}, holds: []int{4},
			waiting: []waiting.Job{wait("a", deadline(time.Hour), since(at(12, 0))), wait("b")}, needs: []int{4, 4},
			want: []estimate{{by: at(12, 15), basis: waiting.Deadlines}, {by: at(13, 0), basis: waiting.Deadlines}},
		},
		"a deadline bounds it": {
			now: noon, running: []waiting.Job{running(at(11, 30), deadline(time.Hour))}, holds: []int{4},
			waiting: []waiting.Job{wait("a")}, needs: []int{4},
			want: []estimate{{by: at(12, 30), basis: waiting.Deadlines}},
		},
		"half an hour later the deadline is as far": {
			now: at(12, 29), running: []waiting.Job{running(at(11, 30), deadline(time.Hour))}, holds: []int{4},
			waiting: []waiting.Job{wait("a")}, needs: []int{4},
			want: []estimate{{by: at(12, 30), basis: waiting.Deadlines}},
		},
		"a job past its deadline is being stopped": {
			now: at(13, 0), running: []waiting.Job{running(at(11, 30), deadline(time.Hour))}, holds: []int{4},
			waiting: []waiting.Job{wait("a")}, needs: []int{4},
			want: []estimate{{by: at(13, 0), basis: waiting.Deadlines}},
		},
		"durations bound it": {
			now: noon, running: []waiting.Job{running(noon, usually(10))}, holds: []int{4},
			waiting: []waiting.Job{wait("a")}, needs: []int{4},
			want: []estimate{{from: at(17, 0), by: at(21, 0), basis: waiting.Durations}},
		},
		"only jobs count that ran longer than this one has": {
			now: at(18, 30), running: []waiting.Job{running(noon, usually(10))}, holds: []int{4},
			waiting: []waiting.Job{wait("a")}, needs: []int{4},
			want: []estimate{{from: at(20, 0), by: at(22, 0), basis: waiting.Durations}},
		},
		"it runs longer than similar jobs": {
			now: at(20, 30), running: []waiting.Job{running(noon, usually(10))}, holds: []int{4},
			waiting: []waiting.Job{wait("a")}, needs: []int{4},
			want: []estimate{{reason: waiting.Overdue, other: "runs"}},
		},
		"it runs longer than similar jobs, and has a deadline": {
			now: at(20, 30), running: []waiting.Job{running(noon, usually(10), deadline(9*time.Hour))}, holds: []int{4},
			waiting: []waiting.Job{wait("a")}, needs: []int{4},
			want: []estimate{{by: at(21, 0), basis: waiting.Deadlines}},
		},
		"a deadline ends it before similar jobs did": {
			now: noon, running: []waiting.Job{running(noon, usually(10), deadline(6*time.Hour))}, holds: []int{4},
			waiting: []waiting.Job{wait("a")}, needs: []int{4},
			want: []estimate{{from: at(17, 0), by: at(18, 0), basis: waiting.DeadlinesAndDurations}},
		},
		"nothing bounds it": {
			now: noon, running: []waiting.Job{running(at(11, 0))}, holds: []int{4},
			waiting: []waiting.Job{wait("a"), wait("b")}, needs: []int{4, 1},
			want: []estimate{{reason: waiting.NoDeadline, other: "runs"}, {reason: waiting.NoneAhead, other: "a"}},
		},
		"the job is named without which there is no room": {
			now: noon, running: []waiting.Job{running(at(11, 0)), {Name: "large"}}, holds: []int{1, 4},
			waiting: []waiting.Job{wait("a")}, needs: []int{4},
			want: []estimate{{reason: waiting.NoDeadline, other: "large"}},
		},
		"nothing bounds a job that is not needed": {
			now: noon, running: []waiting.Job{running(at(11, 0)), running(noon, deadline(time.Hour))}, holds: []int{4, 4},
			waiting: []waiting.Job{wait("a")}, needs: []int{4},
			want: []estimate{{by: at(13, 0), basis: waiting.Deadlines}},
		},
		"others have the room": {
			now: noon, running: []waiting.Job{running(noon, deadline(time.Hour))}, holds: []int{2},
			waiting: []waiting.Job{wait("a")}, needs: []int{4},
			want: []estimate{{reason: waiting.NotReleased}},
		},
		"the pods stay when the job ends": {
			now: noon, running: []waiting.Job{running(noon, deadline(time.Hour), lingers(-1))}, holds: []int{4},
			waiting: []waiting.Job{wait("a")}, needs: []int{4},
			want: []estimate{{reason: waiting.PodsStay, other: "runs"}},
		},
		"the pods stay for a time when the job ends": {
			now: noon, running: []waiting.Job{running(noon, deadline(time.Hour), lingers(20*time.Minute))}, holds: []int{4},
			waiting: []waiting.Job{wait("a")}, needs: []int{4},
			want: []estimate{{from: at(12, 20), by: at(13, 20), basis: waiting.Deadlines}},
		},
		"those ahead run as well": {
			now: noon, running: []waiting.Job{running(noon, deadline(time.Hour))}, holds: []int{4},
			waiting: []waiting.Job{wait("a", deadline(2*time.Hour)), wait("b"), wait("c")}, needs: []int{4, 4, 1},
			want: []estimate{
				{by: at(13, 0), basis: waiting.Deadlines},
				{by: time.Date(2026, 11, 26, 15, 0, 0, 0, time.UTC), basis: waiting.Deadlines},
				{reason: waiting.NoDeadline, other: "b"},
			},
		},
		"both kinds of bounds": {
			now: noon, running: []waiting.Job{running(noon, deadline(time.Hour)), running(noon, usually(10))}, holds: []int{2, 2},
			waiting: []waiting.Job{wait("a")}, needs: []int{4},
			want: []estimate{{from: at(17, 0), by: at(21, 0), basis: waiting.DeadlinesAndDurations}},
		},
		"small jobs do not pass": {
			now: noon, free: 1, running: []waiting.Job{running(noon, deadline(time.Hour))}, holds: []int{3},
			waiting: []waiting.Job{wait("large"), wait("small")}, needs: []int{3, 1},
			want: []estimate{{by: at(13, 0), basis: waiting.Deadlines}, {by: at(13, 0), basis: waiting.Deadlines}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			room := func() waiting.Room { return &gpus{free: c.free, holds: c.holds, needs: c.needs} }
			var got []estimate
			for _, e := range waiting.Starts(c.now, c.waiting, c.running, room) {
				of := estimate{from: e.From, by: e.By, basis: e.Basis, reason: e.Reason}
				if e.Other != nil {
					of.other = e.Other.Name
				}
				got = append(got, of)
			}
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("got  %v\nwant %v", got, c.want)
			}
		})
	}
}

// TestStartsIsStable: as long as nothing happens, the estimate does not change from one look to the next.
func TestStartsIsStable(t *testing.T) {
	running := []waiting.Job{{Name: "runs", Start: noon.Add(-17 * time.Second), Deadline: 90*time.Minute + 11*time.Second}}
	var first waiting.Estimate
	for seconds := range 600 {
		room := func() waiting.Room { return &gpus{holds: []int{1}, needs: []int{1}} }
		got := waiting.Starts(noon.Add(time.Duration(seconds)*time.Second), []waiting.Job{{Name: "waits"}}, running, room)[0]
		if seconds == 0 {
			first = got
		}
		if got != first || got.By != at(13, 30) {
			t.Fatalf("after %d s: %+v, first %+v", seconds, got, first)
		}
	}
}

// TestWorkIsBounded: a thousand waiting jobs behind a thousand running ones are a bounded number of steps.
func TestWorkIsBounded(t *testing.T) {
	const n = 1000
	for name, change := range map[string]func(i int, job *waiting.Job){
		"all have a deadline":    func(i int, job *waiting.Job) { job.Deadline = time.Duration(i+1) * time.Minute },
		"nothing bounds any":     func(int, *waiting.Job) {},
		"nothing bounds the odd": func(i int, job *waiting.Job) { job.Deadline = time.Duration(1-i%2) * time.Hour },
	} {
		var rooms []*gpus
		running, wait := make([]waiting.Job, n), make([]waiting.Job, n)
		holds, needs := make([]int, n), make([]int, n)
		for i := range n {
			running[i].Start = noon
			change(i, &running[i])
			change(i, &wait[i])
			holds[i], needs[i] = 1, 1+i%7
		}
		got := waiting.Starts(noon, wait, running, func() waiting.Room {
			rooms = append(rooms, &gpus{holds: holds, needs: needs})
			return rooms[len(rooms)-1]
		})
		if len(got) != n || len(rooms) > 2 {
			t.Fatalf("%s: %d estimates from %d rooms", name, len(got), len(rooms))
		}
		for _, room := range rooms {
			if room.places == 0 || room.places > 3*n+1 {
				t.Errorf("%s: a room was asked %d times, at most %d are allowed", name, room.places, 3*n+1)
			}
		}
		for i, e := range got {
			if e.By.IsZero() == (e.Reason == "") {
				t.Fatalf("%s: job %d has neither an estimate nor a reason, or both: %+v", name, i, e)
			}
			if i > 0 && e.By.Before(got[i-1].By) && !e.By.IsZero() {
				t.Fatalf("%s: job %d starts before the one ahead of it: %+v, %+v", name, i, e, got[i-1])
			}
		}
	}
}

// TestByPastWaits: the estimate ends when the job has waited longer than the others.
func TestByPastWaits(t *testing.T) {
	got := waiting.ByPastWaits(noon, at(11, 50), 20*time.Minute, time.Hour)
	if !got.From.Equal(at(12, 10)) || !got.By.Equal(at(12, 50)) || got.Basis != waiting.PastWaits {
		t.Errorf("after 10 minutes: %+v", got)
	}
	if got = waiting.ByPastWaits(at(12, 20), at(11, 50), 20*time.Minute, time.Hour); !got.From.IsZero() || !got.By.Equal(at(12, 50)) {
		t.Errorf("after 30 minutes: %+v", got)
	}
	if got = waiting.ByPastWaits(at(12, 51), at(11, 50), 20*time.Minute, time.Hour); got != (waiting.Estimate{Reason: waiting.WaitedLonger}) {
		t.Errorf("after 61 minutes: %+v", got)
	}
}
