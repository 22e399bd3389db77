package logstream

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// How long lines wait for earlier ones of other pods.
const (
	// window is for pods that write as we read.
	window = 250 * time.Millisecond
	// opening is for a log that was asked for and has not answered yet.
	opening = 5 * time.Second
	// catchingUp is for a log whose past is still being read.
	catchingUp = time.Second
	// complete is for logs that are read up to their end, and not followed.
	complete = 10 * time.Second
)

// Bounds of memory: the limit of all queues of a job, the smallest share of each, what the queues of a job may always hold,
// and the size of a line without its text.
const (
	budget      = 32 << 20
	leastShare  = 64 << 10
	leastMerged = 256 << 10
	lineCost    = 160
)

// Budget limits the bytes of the lines that wait in several runs at once. Beyond it, each run keeps the little that it needs to
// put lines in order.
type Budget struct {
	limit int64
	used  atomic.Int64
}

// NewBudget returns a budget with a limit in bytes.
func NewBudget(limit int64) *Budget { return &Budget{limit: limit} }

// Used returns how many bytes of lines wait.
func (b *Budget) Used() int64 { return b.used.Load() }

// merger puts lines of many logs in the order of time. Each log has a queue of bounded size: who reads it waits while it
// is full. A line goes on when every other log has a later one, or has had time enough to bring it.
type merger struct {
	mu     sync.Mutex
	wake   chan struct{}
	queues []*queue
	// shared is the budget of several mergers; nil for none. bytes is what the queues hold.
	shared *Budget
	bytes  int
	// closed is set after the last queue was added.
	closed bool
}

// queue holds the lines of one log that wait.
type queue struct {
	merger *merger
	// whole is set for a log that is read up to its end, and stored for one whose reader brings lines, ends or fails in a limited time: lines
	// of others wait for it, however long that takes.
	whole, stored bool
	lines         []held
	head          int
	bytes         int
	space         chan struct{}
	// number orders lines of the same time.
	number int

	isOpen, ended bool
	// active is when anything was last heard of it, openedAt when it first answered, readTo the time of the latest line
	// that was read, wanted or not.
	active, openedAt, readTo time.Time
}

// held is a line that waits, and since when.
type held struct {
	Line
	since time.Time
}

func newMerger(shared *Budget) *merger { return &merger{wake: make(chan struct{}, 1), shared: shared} }

// hold counts bytes of lines that were added or, if negative, removed.
func (m *merger) hold(bytes int) {
	m.bytes += bytes
	if m.shared != nil {
		m.shared.used.Add(int64(bytes))
	}
}

// release gives back what lines hold that nobody takes any more.
func (m *merger) release() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hold(-m.bytes)
}

// add makes a queue for a further log.
func (m *merger) add(whole bool) *queue {
	q := &queue{merger: m, whole: whole, space: make(chan struct{}, 1), active: time.Now()}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queues = append(m.queues, q)
	return q
}

// addStored makes a queue for a further log that is stored.
func (m *merger) addStored() *queue {
	q := m.add(true)
	q.stored = true
	return q
}

// close declares that no more queues will be added.
func (m *merger) close() {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	signal(m.wake)
}

// opened says that the log has answered.
func (q *queue) opened() {
	q.merger.mu.Lock()
	q.active = time.Now()
	if !q.isOpen {
		q.isOpen, q.openedAt = true, q.active
	}
	q.merger.mu.Unlock()
	signal(q.merger.wake)
}

// reached says up to what time the log was read, although no line of then was wanted, or the next one is later.
func (q *queue) reached(readTo time.Time) {
	q.merger.mu.Lock()
	if readTo.After(q.readTo) {
		q.readTo = readTo
	}
	q.merger.mu.Unlock()
	signal(q.merger.wake)
}

// end declares that no more lines will be added.
func (q *queue) end() {
	q.merger.mu.Lock()
	q.ended = true
	q.merger.mu.Unlock()
	signal(q.merger.wake)
}

// push adds lines, once there is room for them, and says up to what time the log was read. It fails only with the context.
func (q *queue) push(ctx context.Context, lines []Line, readTo time.Time) error {
	m := q.merger
	for {
		m.mu.Lock()
		if !q.isFull() {
			break
		}
		m.mu.Unlock()
		select {
		case <-q.space:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	now := time.Now()
	for _, line := range lines {
		q.lines = append(q.lines, held{Line: line, since: now})
		q.bytes += len(line.Text) + lineCost
		m.hold(len(line.Text) + lineCost)
	}
	q.active = now
	if readTo.After(q.readTo) {
		q.readTo = readTo
	}
	m.mu.Unlock()
	signal(m.wake)
	return nil
}

// share is what a queue may hold.
func (m *merger) share() int { return max(budget/max(len(m.queues), 1), leastShare) }

// isFull reports whether a queue has no room for further lines. An empty one always has.
func (q *queue) isFull() bool {
	m := q.merger
	return q.bytes > 0 && (q.bytes >= m.share() || m.shared != nil && m.bytes >= leastMerged && m.shared.used.Load() >= m.shared.limit)
}

// next waits for lines and returns them in the order of time; none when there will be no more, or with the context.
func (m *merger) next(ctx context.Context) []Line {
	const most = 512
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		m.mu.Lock()
		lines, wait := m.take(time.Now(), most)
		over := m.closed && len(m.queues) == 0
		m.mu.Unlock()
		if len(lines) > 0 || over {
			return lines
		}
		timer.Reset(wait)
		select {
		case <-m.wake:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return nil
}

// take takes the lines that need not wait, and says how long the next one must.
func (m *merger) take(now time.Time, most int) (lines []Line, wait time.Duration) {
	m.drop()
	full, heads := m.full(), m.heads()
	settled, waits := m.settled()
	for len(lines) < most {
		if len(heads) == 0 {
			return lines, time.Hour
		}
		first := heads[0]
		if line := &first.lines[first.head]; waits && !line.Time.Before(settled) {
			if wait := m.until(line, now, full).Sub(now); wait > 0 {
				return lines, wait
			}
		}
		if lines == nil {
			lines = make([]Line, 0, min(most, m.held()))
		}
		lines = append(lines, first.pop())
		if first.empty() {
			heads = heads.withoutFirst()
			if !first.ended && (!waits || first.readTo.Before(settled)) {
				settled, waits = first.readTo, true
			}
		} else {
			heads.siftDown(0)
		}
	}
	return lines, 0
}

// held is the number of lines in all queues.
func (m *merger) held() (count int) {
	for _, q := range m.queues {
		count += len(q.lines) - q.head
	}
	return count
}

// settled returns the time up to which all logs without a waiting line were read: an earlier line need not wait for them. It
// returns false if there are none.
func (m *merger) settled() (at time.Time, waits bool) {
	for _, q := range m.queues {
		if q.empty() && !q.ended && (!waits || q.readTo.Before(at)) {
			at, waits = q.readTo, true
		}
	}
	return at, waits
}

// drop forgets queues that have ended and are empty.
func (m *merger) drop() {
	kept := m.queues[:0]
	for _, q := range m.queues {
		if !q.ended || !q.empty() {
			kept = append(kept, q)
		}
	}
	clear(m.queues[len(kept):])
	m.queues = kept
}

// full reports whether a reader may be waiting for room: then order waits for nobody who is up to date.
func (m *merger) full() bool {
	for _, q := range m.queues {
		if q.isFull() {
			return true
		}
	}
	return false
}

// heads returns the queues that hold lines as a heap, the one with the earliest line first.
func (m *merger) heads() queueHeap {
	var heads queueHeap
	for i, q := range m.queues {
		if !q.empty() {
			q.number = i
			heads = append(heads, q)
		}
	}
	for i := len(heads)/2 - 1; i >= 0; i-- {
		heads.siftDown(i)
	}
	return heads
}

// queueHeap is a binary heap of queues by the times of their first lines. container/heap would call methods of an interface
// for each line.
type queueHeap []*queue

func (h queueHeap) isBefore(i, j int) bool {
	a, b := h[i], h[j]
	order := a.lines[a.head].Time.Compare(b.lines[b.head].Time)
	return order < 0 || order == 0 && a.number < b.number
}

// siftDown moves the queue at a place down to where it belongs.
func (h queueHeap) siftDown(at int) {
	for {
		least := at
		for child := 2*at + 1; child <= 2*at+2 && child < len(h); child++ {
			if h.isBefore(child, least) {
				least = child
			}
		}
		if least == at {
			return
		}
		h[at], h[least] = h[least], h[at]
		at = least
	}
}

func (h queueHeap) withoutFirst() queueHeap {
	last := len(h) - 1
	h[0] = h[last]
	h = h[:last]
	h.siftDown(0)
	return h
}

// until is how long a line must wait for logs that may still bring an earlier one.
func (m *merger) until(line *held, now time.Time, full bool) (until time.Time) {
	for _, q := range m.queues {
		if !q.empty() || q.ended || q.readTo.After(line.Time) {
			continue
		}
		var by time.Time
		switch {
		case q.stored:
			// Its reader wakes us.
			return now.Add(time.Hour)
		case !q.isOpen:
			by = q.active.Add(opening)
		case q.whole:
			by = q.active.Add(complete)
		case q.readTo.Before(q.openedAt.Add(-2*time.Second)) && line.Time.Before(q.openedAt):
			by = q.active.Add(catchingUp)
		case !full:
			by = line.since.Add(window)
		}
		if by.After(until) {
			until = by
		}
		if until.Sub(now) > window {
			// Long enough to look again.
			return until
		}
	}
	return until
}

func (q *queue) empty() bool { return q.head == len(q.lines) }

func (q *queue) pop() Line {
	line := q.lines[q.head].Line
	q.lines[q.head] = held{}
	q.head++
	q.bytes -= len(line.Text) + lineCost
	q.merger.hold(-len(line.Text) - lineCost)
	if q.empty() {
		q.lines, q.head = q.lines[:0], 0
	} else if q.head > 1024 && 2*q.head > len(q.lines) {
		kept := copy(q.lines, q.lines[q.head:])
		clear(q.lines[kept:])
		q.lines, q.head = q.lines[:kept], 0
	}
	signal(q.space)
	return line
}

// signal wakes who waits, or who will.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
