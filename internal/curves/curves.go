// Package curves keeps the figures that programs print over time, in curves of bounded size, and finds losses that diverge.
package curves

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
)

// The limits of curves. They are those of the API's schema.
const (
	MaxCurves = 8
	MaxPoints = 120
)

// namePattern is that of the API's schema.
var namePattern = regexp.MustCompile(`^[a-z][a-z0-9_]{0,31}$`)

// ValidName reports whether a curve can have a name.
func ValidName(name string) bool { return namePattern.MatchString(name) }

// Line is a line of a log with figures. Step and Epoch are NaN if the line has none.
type Line struct {
	Time        time.Time
	Step, Epoch float64
	Figures     []Figure
}

// Figure is a figure with its name. Its value can be NaN and infinite.
type Figure struct {
	Name  string
	Value float64
}

// Add returns curves with the figures of lines, in the order of the log. Lines that are not later than those of the curves are known.
// The curves are not changed; nil stands for none.
func Add(before *v1alpha1.TrainingCurves, lines []Line) *v1alpha1.TrainingCurves {
	var all *v1alpha1.TrainingCurves
	for _, line := range lines {
		// The API keeps microseconds.
		at := metav1.NewMicroTime(line.Time.Truncate(time.Microsecond).UTC())
		known := all
		if known == nil {
			known = before
		}
		if line.Time.IsZero() || known != nil && !known.Until.Before(&at) {
			continue
		}
		if all == nil {
			if all = before.DeepCopy(); all == nil {
				all = &v1alpha1.TrainingCurves{}
			}
		}
		all.Until = at
		addLine(all, line)
	}
	if all == nil || len(all.Figures) == 0 {
		return before
	}
	return all
}

func addLine(all *v1alpha1.TrainingCurves, line Line) {
	epoch, hasEpoch := place(1000 * line.Epoch)
	if hasEpoch {
		all.Epoch = epoch
	}
	step, hasStep := place(line.Step)
	for _, figure := range line.Figures {
		i := slices.IndexFunc(all.Figures, func(c v1alpha1.TrainingCurve) bool { return c.Name == figure.Name })
		if i < 0 {
			if len(all.Figures) == MaxCurves || !ValidName(figure.Name) {
				continue
			}
			by := v1alpha1.CurveByTime
			switch {
			case hasStep:
				by = v1alpha1.CurveByStep
			case hasEpoch:
				by = v1alpha1.CurveByEpoch
			}
			all.Figures = append(all.Figures, v1alpha1.TrainingCurve{Name: figure.Name, By: by, Width: 1})
			i = len(all.Figures) - 1
		}
		curve := &all.Figures[i]
		switch {
		case curve.By == v1alpha1.CurveByTime:
			add(curve, line.Time.Unix(), figure.Value)
		case curve.By == v1alpha1.CurveByEpoch && hasEpoch:
			add(curve, epoch, figure.Value)
		case curve.By == v1alpha1.CurveByStep && hasStep:
			if last := len(curve.At) - 1; last >= 0 && all.Epoch > curve.Epoch && step <= (curve.At[last]-curve.Offset)/2 {
				// The steps of each epoch are counted from the start.
				curve.Offset = min(curve.At[last], maxPlace)
			}
			add(curve, step+curve.Offset, figure.Value)
		}
		curve.Epoch = all.Epoch
	}
}

// maxPlace is the largest step, and the largest epoch in thousandths.
const maxPlace = 1_000_000_000_000_000

// place returns a number as the place of a point; false if it cannot be one.
func place(number float64) (int64, bool) {
	if !(number >= 0 && number <= maxPlace) { // or NaN
		return 0, false
	}
	return int64(math.Round(number)), true
}

// add adds a value. A program that goes back has started again, from a checkpoint: what follows replaces what it had reached.
func add(curve *v1alpha1.TrainingCurve, at int64, value float64) {
	if cut, _ := slices.BinarySearch(curve.At, at); cut < len(curve.At) {
		if curve.At[len(curve.At)-1] > at {
			curve.NotFiniteCount = 0
		}
		curve.At, curve.Values = curve.At[:cut], curve.Values[:cut]
		if curve.NotFiniteAt != nil && *curve.NotFiniteAt >= at {
			curve.NotFiniteAt = nil
		}
	}
	switch {
	case isFinite(value):
		curve.NotFiniteCount = 0
	case curve.NotFiniteAt == nil:
		curve.NotFiniteAt = &at
		fallthrough
	default:
		curve.NotFiniteCount = min(curve.NotFiniteCount, math.MaxInt32-1) + 1
	}
	appendPoint(curve, at, text(value))
	for len(curve.At) > MaxPoints {
		curve.Width *= 2
		ats, values := curve.At, curve.Values
		curve.At, curve.Values = nil, nil
		for i := range ats {
			appendPoint(curve, ats[i], values[i])
		}
	}
}

// appendPoint appends a point, or replaces the last one if it is in the same part of the axis.
func appendPoint(curve *v1alpha1.TrainingCurve, at int64, value string) {
	last := len(curve.At) - 1
	if last >= 0 && curve.At[last]/curve.Width == at/curve.Width {
		curve.At[last], curve.Values[last] = at, value
		return
	}
	curve.At, curve.Values = append(curve.At, at), append(curve.Values, value)
}

func isFinite(value float64) bool { return !math.IsNaN(value) && !math.IsInf(value, 0) }

// text returns a value as the API keeps it.
func text(value float64) string {
	switch {
	case math.IsInf(value, 1):
		return "Inf"
	case math.IsInf(value, -1):
		return "-Inf"
	}
	return strconv.FormatFloat(value, 'g', 6, 64)
}

// Values returns the values of a curve as numbers; NaN for those that are none.
func Values(curve v1alpha1.TrainingCurve) []float64 {
	values := make([]float64, min(len(curve.At), len(curve.Values)))
	for i := range values {
		value, err := strconv.ParseFloat(curve.Values[i], 64)
		if err != nil {
			value = math.NaN()
		}
		values[i] = value
	}
	return values
}
