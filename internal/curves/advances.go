package curves

import (
	"math"
	"slices"
	"time"
)

// Advance is when a program last printed that it goes on.
type Advance struct {
	// Last is when the step, the epoch or a figure in its lines last changed; zero if it printed none.
	Last time.Time
	// Longest is the longest time between two such changes in a row.
	Longest time.Duration
}

// LastAdvance returns when lines with figures last differed from those before. The first line is a change, too; one that repeats the line
// before is none.
func LastAdvance(lines []Line) (a Advance) {
	for i, line := range lines {
		if line.Time.IsZero() || i > 0 && isRepeated(lines[i-1], line) {
			continue
		}
		if !a.Last.IsZero() {
			a.Longest = max(a.Longest, line.Time.Sub(a.Last))
		}
		a.Last = line.Time
	}
	return a
}

// isRepeated reports whether two lines have the same step, epoch and figures.
func isRepeated(before, line Line) bool {
	same := func(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }
	return same(before.Step, line.Step) && same(before.Epoch, line.Epoch) &&
		slices.EqualFunc(before.Figures, line.Figures, func(a, b Figure) bool { return a.Name == b.Name && same(a.Value, b.Value) })
}
