// Package times compares times, of which the zero value is none.
package times

import "time"

// Earlier returns the earlier of two times.
func Earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// Later returns the later of two times.
func Later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// Shortest returns the shortest duration above 0; 0 if there is none.
func Shortest(durations ...time.Duration) time.Duration {
	shortest := time.Duration(0)
	for _, d := range durations {
		if d > 0 && (shortest == 0 || d < shortest) {
			shortest = d
		}
	}
	return shortest
}
