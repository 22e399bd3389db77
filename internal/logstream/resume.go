package logstream

import "time"

// resume knows how far a log was read, so that it can be read on after the connection was cut: no line twice, and none
// lost. The API takes a time in whole seconds to read from, and lines may have the same time, or be a little out of order
// since a program writes to two pipes. So it asks for the last two seconds again and counts their lines: as many are
// skipped.
type resume struct {
	// middle is set for a log that is not read from its beginning.
	middle bool
	// first is the time of the first line that was read, newest the latest of all.
	first, newest time.Time
	// second is the latest whole second of a line; last is how many lines of it were read, before how many of the second
	// before that.
	second       time.Time
	last, before int
	// skip is how many lines are still to be skipped, and skipped how many were.
	skip, skipped int
}

// from is where to read on.
func (r *resume) from() time.Time { return r.second.Add(-time.Second) }

// again prepares to read what there is since from.
func (r *resume) again() { r.skip, r.skipped = r.last+r.before, 0 }

// isNew takes note of a line by its time and reports whether it was not read before.
func (r *resume) isNew(at time.Time) bool {
	if r.skip > 0 {
		switch {
		case r.middle && at.Before(r.first):
			// The user wanted none so old.
			return false
		case !at.After(r.newest):
			r.skip--
			r.skipped++
			return false
		}
		// The log was started again meanwhile: the lines read from the old one are not in it.
		r.skip, r.last, r.before = 0, 0, r.skipped
	}
	switch second := at.Truncate(time.Second); {
	case second.Equal(r.second):
		r.last++
	case second.Equal(r.second.Add(time.Second)):
		r.second, r.last, r.before = second, 1, r.last
	case second.After(r.second):
		r.second, r.last, r.before = second, 1, 0
	case second.Equal(r.from()):
		r.before++
	}
	if r.first.IsZero() {
		r.first = at
	}
	if at.After(r.newest) {
		r.newest = at
	}
	return true
}
