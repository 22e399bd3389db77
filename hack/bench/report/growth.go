package report

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Percentile returns the smallest value that a share of all values do not exceed, from 0 to 1; 0 of none.
func Percentile(values []time.Duration, share float64) time.Duration {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)-1, max(0, int(math.Ceil(share*float64(len(sorted))))-1))]
}

// Exponent fits y = a·x^b by least squares of the logarithms, and returns b: 1 is linear growth. It is false with fewer than three
// points, or if a value is not above 0.
func Exponent(x, y []float64) (float64, bool) {
	if len(x) < 3 || len(x) != len(y) {
		return 0, false
	}
	var sumX, sumY, sumXX, sumXY float64
	for i := range x {
		if x[i] <= 0 || y[i] <= 0 {
			return 0, false
		}
		u, v := math.Log(x[i]), math.Log(y[i])
		sumX, sumY, sumXX, sumXY = sumX+u, sumY+v, sumXX+u*u, sumXY+u*v
	}
	n := float64(len(x))
	spread := n*sumXX - sumX*sumX
	if spread == 0 {
		return 0, false
	}
	return (n*sumXY - sumX*sumY) / spread, true
}

// Figure is one that is measured at several sizes, as cases named <name>/<size> or <name>/<size>/<more>.
type Figure struct {
	// Name of the figure, with the part behind the size: "created/p50" for cases such as created/100/p50.
	Name string
	// Each is true if the figure is for each of the jobs, and not for all of them.
	Each bool
}

// Growth returns a case growth/<figure> for each figure that was measured at three sizes or more: the exponent with which it
// grows with the size. What was cut short is left out.
func Growth(cases []Case, figures []Figure, ours string) []Case {
	var growth []Case
	for _, figure := range figures {
		values := map[string][]Value{}
		for contestant, points := range figure.Points(cases) {
			if exponent, ok := ExponentOf(points); ok {
				values[contestant] = []Value{{Value: exponent}}
			}
		}
		if len(values) > 0 {
			growth = append(growth, NewCase("growth/"+figure.Name, "exponent", ours, values))
		}
	}
	return growth
}

// Point is a size, and the total of a figure at it.
type Point struct{ X, Y float64 }

// ExponentOf returns the Exponent of points.
func ExponentOf(points []Point) (float64, bool) {
	var x, y []float64
	for _, at := range points {
		x, y = append(x, at.X), append(y, at.Y)
	}
	return Exponent(x, y)
}

// Points returns the points of each contestant. What was cut short is left out.
func (f Figure) Points(cases []Case) map[string][]Point {
	all := map[string][]Point{}
	for _, c := range cases {
		size, ok := sizeIn(c.Name, f.Name)
		if !ok {
			continue
		}
		for contestant, summary := range c.Details {
			if summary.AtLeast || summary.Extrapolated {
				continue
			}
			value := summary.Median
			if f.Each {
				value *= size
			}
			all[contestant] = append(all[contestant], Point{size, value})
		}
	}
	return all
}

// sizeIn returns the size in the name of a figure's case.
func sizeIn(name, figure string) (float64, bool) {
	first, more, _ := strings.Cut(figure, "/")
	rest, is := strings.CutPrefix(name, first+"/")
	if !is {
		return 0, false
	}
	size, behind, _ := strings.Cut(rest, "/")
	n, err := strconv.Atoi(size)
	return float64(n), err == nil && behind == more
}
