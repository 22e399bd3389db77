package curves

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"opendatahub.io/mpijob/api/v1alpha1"
)

// Divergence is a loss that is not a number, or has become much larger than it was.
type Divergence struct {
	Curve v1alpha1.TrainingCurve
	// NotFinite is the value that is not a number, and At the place of the first one in a row; "" if the loss has grown.
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

// growing are the names of losses that do not grow by design. Those of critics and discriminators do.
var growing = []string{"loss", "train_loss", "training_loss", "val_loss", "valid_loss", "validation_loss", "eval_loss", "test_loss"}

// FindDivergence returns the first figure that diverges: a loss, or another that shows in each step how far a program is, such as a residual; false if none does. now is the time at which a program runs on, zero if it has ended.
func FindDivergence(all *v1alpha1.TrainingCurves, now time.Time) (Divergence, bool) {
	if all == nil {
		return Divergence{}, false
	}
	isLast := now.IsZero() || now.Sub(all.Until.Time) >= longPause
	for _, curve := range all.Figures {
		if !IsLoss(curve.Name) && !converging.MatchString(curve.Name) {
			continue
		}
		// What is no loss can begin with an infinite value, and have no value where nothing is compared.
		if found, isNone := isNotFinite(curve, isLast && IsLoss(curve.Name)); isNone && (IsLoss(curve.Name) || isResidual(curve.Name) || wasFinite(curve)) {
			return found, true
		}
		if found, grows := growth(curve); grows && slices.Contains(growing, curve.Name) {
			return found, true
		}
	}
	return Divergence{}, false
}

// isResidual reports whether a figure is the residual of a solver by its name.
func isResidual(name string) bool { return strings.Contains(name, "resid") }

// wasFinite reports whether a curve has a number: the error to a solution that is unknown never is one.
func wasFinite(curve v1alpha1.TrainingCurve) bool {
	return slices.ContainsFunc(Values(curve), isFinite)
}

// IsLoss reports whether a figure is a loss by its name.
func IsLoss(name string) bool { return name == "loss" || strings.HasSuffix(name, "_loss") }

const (
	// window is how many points a level is the median of: single outliers do not count.
	window = 5
	// fewest is the least number of points of a loss that can have grown.
	fewest = 4 * window
	// muchMore is how much a loss is above its least level, and moreThanAtStart how much above its first one.
	muchMore, moreThanAtStart = 3, 1.5
	// manyNotFinite is from how many values in a row a loss is not a number, and longPause after what time one is enough: programs with mixed
	// precision leave out a step whose loss is not a number, and go on.
	manyNotFinite, longPause = 3, 2 * time.Minute
)

// isNotFinite reports whether the latest values of a loss are no numbers. isLast is whether no other is expected soon.
func isNotFinite(curve v1alpha1.TrainingCurve, isLast bool) (Divergence, bool) {
	values := Values(curve)
	first := len(values)
	for first > 0 && !isFinite(values[first-1]) {
		first--
	}
	if first == len(values) || curve.NotFiniteCount < manyNotFinite && !isLast {
		return Divergence{}, false
	}
	found := Divergence{Curve: curve, NotFinite: notFiniteValue(curve, first), At: curve.At[first]}
	// Points are left out: the first of the values is that place, unless there was a number since.
	if at := curve.NotFiniteAt; at != nil && (first == 0 || *at > curve.At[first-1]) {
		found.At = *at
	}
	return found, true
}

// growth reports whether a loss has become much larger than it was.
func growth(curve v1alpha1.TrainingCurve) (Divergence, bool) {
	var points []Point
	for i, value := range Values(curve) {
		if isFinite(value) {
			points = append(points, Point{curve.At[i], value})
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

// notFiniteValue returns the value of a point that is not a number.
func notFiniteValue(curve v1alpha1.TrainingCurve, point int) string {
	if value, err := strconv.ParseFloat(curve.Values[point], 64); err == nil && math.IsInf(value, 0) {
		return curve.Values[point]
	}
	return "NaN"
}
