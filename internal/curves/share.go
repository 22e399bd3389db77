package curves

import (
	"math"
	"strconv"
	"strings"

	"opendatahub.io/mpijob/api/v1alpha1"
)

// ShareDone returns which share of its work a program has done, 0 to 1, by the progress that it printed, or else by the epoch or step of so
// many. text is the figure that it is read from, such as "epoch 3/10". isKnown is false if there is none.
func ShareDone(t v1alpha1.Training) (share float64, text string, isKnown bool) {
	for _, figure := range []struct{ name, value string }{{"progress", t.Progress}, {"epoch", t.Epoch}, {"step", t.Step}} {
		if share, isKnown = parseShare(figure.value, figure.name == "progress"); isKnown {
			return share, figure.name + " " + figure.value, true
		}
	}
	return 0, "", false
}

// parseShare reads 3/10 and, if it is progress, also 40%, 0.4 and 40.
func parseShare(text string, isProgress bool) (share float64, isKnown bool) {
	done, of, isFraction := strings.Cut(strings.ReplaceAll(text, "_", ""), "/")
	number := strings.TrimSuffix(done, "%")
	value, err := strconv.ParseFloat(number, 64)
	switch {
	case err != nil || !isFraction && !isProgress:
		return 0, false
	case isFraction:
		most, err := strconv.ParseFloat(of, 64)
		if err != nil || !(most > 0) || math.IsInf(most, 0) {
			return 0, false
		}
		value /= most
	case number != done || value > 1:
		value /= 100
	}
	// NaN fails both comparisons.
	return value, value >= 0 && value <= 1
}

// ShareAtStart returns which share of its work a program had done when its curves begin, such as that of its checkpoint, of the figure that ShareDone
// reads; false if the curves do not show it.
func ShareAtStart(all *v1alpha1.TrainingCurves, t v1alpha1.Training) (share float64, isKnown bool) {
	const thousand = 1000
	of, by, unit := t.Step, v1alpha1.CurveByStep, int64(1)
	if _, isEpoch := parseShare(t.Epoch, false); isEpoch {
		of, by, unit = t.Epoch, v1alpha1.CurveByEpoch, thousand
	}
	_, isStep := parseShare(of, false)
	if _, isPrinted := parseShare(t.Progress, true); all == nil || !isStep || isPrinted {
		return 0, false
	}
	_, most, _ := strings.Cut(strings.ReplaceAll(of, "_", ""), "/")
	for _, curve := range all.Figures {
		if curve.By != by || curve.Offset != 0 || len(curve.At) == 0 {
			continue
		}
		// The first figures are those of the end of a step.
		before := curve.At[0] - unit
		if len(curve.At) > 1 {
			before = 2*curve.At[0] - curve.At[1]
		} else if before > 0 {
			continue
		}
		number, err := strconv.ParseFloat(most, 64)
		return max(0, float64(before)/float64(unit)/number), err == nil
	}
	return 0, false
}
