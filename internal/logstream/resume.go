package logstream

import "time"

// Resume knows how far a log was read, so that it can be read on after the connection was cut: no line twice, and none
// lost. The API takes a time in whole seconds to read from, and lines may have the same time, or be a little out of order
// since a program writes to two pipes. So it asks for the last two seconds again and counts their lines: as many are
// skipped.
type Resume struct {
	// middle is set for a log that is not read from its beginning.
	middle bool
	// first is the time of the first line that was read.
	first time.Time
	// Newest is the latest time of all lines.
	Newest time.Time `json:"newest"`
	// Second is the latest whole second of a line; Last is how many lines of it were read, Before how many of the second
	// before that.
	Second time.Time `json:"second"`
	Last   int       `json:"last"`
	Before int       `json:"before,omitempty"`
	// skip is how many lines are still to be skipped, and skipped how many were.
	skip, skipped int
	// missed is set once lines that were read were not in the log any more, so that lines after them may be gone, too.
	missed bool
}

// Begun reports whether any line was read.
func (r *Resume) Begun() bool { return !r.Second.IsZero() }

// Missed reports whether lines between those that were read may be missing.
func (r *Resume) Missed() bool { return r.missed }

// From is where to read on.
func (r *Resume) From() time.Time { return r.Second.Add(-time.Second) }

// Again prepares to read what there is since From.
func (r *Resume) Again() { r.skip, r.skipped = r.Last+r.Before, 0 }

// IsNew takes note of a line by its time and reports whether it was not read before.
func (r *Resume) IsNew(at time.Time) bool {
	if r.skip > 0 {
		switch {
		case r.middle && at.Before(r.first):
			// The user wanted none so old.
			return false
		case !at.After(r.Newest):
			r.skip--
			r.skipped++
			return false
		}
		// The log was started again meanwhile: the lines read from the old one are not in it.
		r.skip, r.Last, r.Before, r.missed = 0, 0, r.skipped, true
	}
	switch second := at.Truncate(time.Second); {
	case second.Equal(r.Second):
		r.Last++
	case second.Equal(r.Second.Add(time.Second)):
		r.Second, r.Last, r.Before = second, 1, r.Last
	case second.After(r.Second):
		r.Second, r.Last, r.Before = second, 1, 0
	case second.Equal(r.From()):
		r.Before++
	}
	if r.first.IsZero() {
		r.first = at
	}
	if at.After(r.Newest) {
		r.Newest = at
	}
	return true
}
