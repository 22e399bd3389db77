package curves

import (
	"regexp"
	"strings"
	"time"

	"opendatahub.io/mpijob/api/v1alpha1"
)

// Constant is a figure that has had the same value for many steps.
type Constant struct {
	Curve v1alpha1.TrainingCurve
	// Value is that value, as the curve keeps it, and Since the place from which on it was printed.
	Value string
	Since int64
}

const (
	// fewestEqual is the least number of equal values, and leastTime the least time for which they were printed.
	fewestEqual, leastTime = 60, time.Minute
	// recent is how long ago the last of them was printed at most: the program goes on.
	recent = 2 * time.Minute
	// precise is the number of digits from which a value changes in each step: others are equal since they were rounded.
	precise = 5
)

// converging are the names of figures that change in each step of a program that makes progress. Those of tests are computed from time to time only, and
// others, such as an accuracy or an energy, may stay the same for good reasons.
var converging = regexp.MustCompile(`^(?:(?:train(?:ing)?_)?(?:loss|error)|(?:[a-z0-9]+_)?(?:residual|residuum)(?:_norm)?|(?:relative|rel|abs|absolute|l2)_error)$`)

// FindConstant returns the first figure that shows by its steps that a program goes on, and by its value that it gets nowhere; false if there is none.
// started is when the program began, and now the present time.
func FindConstant(all *v1alpha1.TrainingCurves, started, now time.Time) (Constant, bool) {
	if all == nil || started.IsZero() || now.Sub(all.Until.Time) > recent {
		return Constant{}, false
	}
	for _, curve := range all.Figures {
		if found, is := constantEnd(curve, all.Until.Sub(started)); is && converging.MatchString(curve.Name) {
			return found, true
		}
	}
	return Constant{}, false
}

// constantEnd reports whether the last values of a curve are equal for long enough. lasted is how long the program has run.
func constantEnd(curve v1alpha1.TrainingCurve, lasted time.Duration) (Constant, bool) {
	last := min(len(curve.At), len(curve.Values)) - 1
	if last < 0 || curve.By == v1alpha1.CurveByTime || digits(curve.Values[last]) < precise {
		return Constant{}, false
	}
	first := last
	for first > 0 && curve.Values[first-1] == curve.Values[last] {
		first--
	}
	share := float64(curve.At[last]-curve.At[first]) / max(1, float64(curve.At[last]-curve.At[0]))
	count := float64(last - first + 1)
	if curve.Width > 1 {
		// There were more points than are kept.
		count = max(count, share*MaxPoints)
	}
	long := time.Duration(share * float64(lasted))
	return Constant{Curve: curve, Value: curve.Values[last], Since: curve.At[first]}, count >= fewestEqual && long >= leastTime
}

// digits returns the number of digits of a number without the zeros at its begin, and those of an exponent.
func digits(value string) int {
	value, _, _ = strings.Cut(value, "e")
	value = strings.TrimLeft(strings.ReplaceAll(strings.TrimPrefix(value, "-"), ".", ""), "0")
	return len(value)
}
