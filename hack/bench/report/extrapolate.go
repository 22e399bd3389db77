package report

import (
	"slices"
	"time"
)

// Pace is what was seen of a run that was cut short.
type Pace struct {
	// Start is when the run began and Cut when it was cut short.
	Start, Cut time.Time
	// Arrivals are when objects came, of the Want that were to come; in any order.
	Arrivals []time.Time
	Want     int
}

// Whole is how long the run would have taken, had it gone on as in its second half: in the first, a contestant
// may still have lived on what its rate limiters let it save up. It is zero if nothing came in the second half.
func (p Pace) Whole() time.Duration {
	seen := p.Cut.Sub(p.Start)
	perObject := p.perObject()
	if perObject == 0 {
		return 0
	}
	return seen + time.Duration(float64(p.Want-len(p.Arrivals))*perObject)
}

// perObject is the nanoseconds from one object to the next in the second half.
func (p Pace) perObject() float64 {
	half := p.Start.Add(p.Cut.Sub(p.Start) / 2)
	late := slices.Clone(p.Arrivals)
	late = slices.DeleteFunc(late, func(t time.Time) bool { return !t.After(half) })
	if len(late) == 0 {
		return 0
	}
	return float64(p.Cut.Sub(half)) / float64(len(late))
}

// Share is how much of the objects came before the cut.
func (p Pace) Share() float64 { return float64(len(p.Arrivals)) / float64(p.Want) }
