package curves

import (
	"math"
	"slices"
	"strings"

	"opendatahub.io/mpijob/api/v1alpha1"
)

// Divergence is a loss that is not a number, or has become much larger than it was.
type Divergence struct {
	Curve v1alpha1.TrainingCurve
	// NotFinite is the value that is not a number, and At its place; "" if the loss has grown.
	NotFinite string
	At        int64
	// Least and Latest are points of a loss that has grown.
	Least, Latest Point
}

// Point is a value at a place.
type Point struct {
	At    int64
	Value float64
}

// FindDivergence returns the first loss that diverges; false if none does.
func FindDivergence(all *v1alpha1.TrainingCurves) (Divergence, bool) {
	if all == nil {
		return Divergence{}, false
	}
	for _, curve := range all.Figures {
		if curve.Name != "loss" && !strings.HasSuffix(curve.Name, "_loss") {
			continue
		}
		if found, diverges := divergenceOf(curve); diverges {
			return found, true
		}
	}
	return Divergence{}, false
}

const (
	// window is how many points a level is the median of: single outliers do not count.
	window = 5
	// fewest is the least number of points of a loss that can have grown.
	fewest = 4 * window
	// muchMore is how much a loss is above its least level, and moreThanAtStart how much above its first one.
	muchMore, moreThanAtStart = 3, 1.5
)

func divergenceOf(curve v1alpha1.TrainingCurve) (Divergence, bool) {
	values := Values(curve)
	var points []Point
	for i, value := range values {
		if isFinite(value) {
			points = append(points, Point{curve.At[i], value})
		}
	}
	if at := curve.NotFiniteAt; at != nil {
		// Programs with mixed precision leave out a step whose loss is not a number, and go on.
		later := slices.IndexFunc(points, func(p Point) bool { return p.At > *at })
		if later < 0 || len(points)-later < window || !isFinite(values[len(values)-1]) {
			return Divergence{Curve: curve, NotFinite: notFiniteValue(curve), At: *at}, true
		}
	}
	if len(points) < fewest {
		return Divergence{}, false
	}
	first, latest := level(points[:window]), level(points[len(points)-window:])
	least := first
	for i := range points[:len(points)-window+1] {
		if l := level(points[i : i+window]); l.Value < least.Value {
			least = l
		}
	}
	// Some losses are negative: ratios mean nothing for them.
	grown := least.Value > 0 && latest.Value > muchMore*least.Value && latest.Value > moreThanAtStart*first.Value
	return Divergence{Curve: curve, Least: least, Latest: latest}, grown
}

// level returns the point with the median value.
func level(points []Point) Point {
	sorted := slices.Clone(points)
	slices.SortStableFunc(sorted, func(a, b Point) int {
		switch {
		case a.Value < b.Value:
			return -1
		case a.Value > b.Value:
			return 1
		}
		return 0
	})
	return sorted[len(sorted)/2]
}

// notFiniteValue returns the first value of a curve that is not a number; NaN if it has been left out.
func notFiniteValue(curve v1alpha1.TrainingCurve) string {
	for i, value := range Values(curve) {
		if math.IsInf(value, 0) {
			return curve.Values[i]
		} else if math.IsNaN(value) {
			break
		}
	}
	return "NaN"
}
