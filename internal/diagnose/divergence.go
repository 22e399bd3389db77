package diagnose

import (
	"slices"
	"strconv"
	"time"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/curves"
	"opendatahub.io/mpijob/internal/diagnose/facts"
	"opendatahub.io/mpijob/internal/diagnose/loglines"
	"opendatahub.io/mpijob/internal/podstatus"
)

// trainingDiverged warns that the loss that the program prints is not a number, or has become much larger than it was.
func trainingDiverged(p *input) []Finding {
	if p.Outcome.Phase != v1alpha1.PhaseRunning && p.Outcome.Phase != v1alpha1.PhaseSucceeded {
		return nil
	}
	now := p.Seen.Now
	if p.Outcome.Phase == v1alpha1.PhaseSucceeded {
		now = time.Time{}
	}
	found, diverges := curves.FindDivergence(p.Evidence.Curves, now)
	if !diverges {
		return nil
	}
	curve := found.Curve
	point := func(at curves.Point) string { return shortNumber(at.Value) + " at " + placeText(curve.By, at.At) }
	values := map[string]string{"what": "The training", "figure": curve.Name, "is": found.NotFinite + " since " + placeText(curve.By, found.At)}
	entry := codes.Lookup(codes.TrainingDiverged)
	var warning string
	if found.NotFinite != "" {
		warning, values["where"] = p.numericWarning()
	}
	switch {
	case warning != "":
		entry.Remedies = slices.Concat(codes.InvalidOperation, entry.Remedies[:1], entry.Remedies[2:])
	case !curves.IsLoss(curve.Name):
		entry.Remedies = slices.Concat(codes.NotFiniteFigure, entry.Remedies[:1])
	}
	if !curves.IsLoss(curve.Name) {
		values["what"] = "The computation"
	}
	evidence := "Log: the first " + curve.Name + " that is no number was printed at " + placeText(curve.By, found.At) + "."
	if found.NotFinite == "" {
		// The text stays the same while the loss grows.
		values["is"] = "more than three times as large as it was, " + point(found.Least)
		evidence = "Log: the medians of five values of " + curve.Name + " are " + point(found.Least) + " and " + point(found.Latest) + "."
	}
	f := p.findAs(entry, p.Pods[:min(1, len(p.Pods))], values)
	if f.Evidence = []string{evidence}; warning != "" {
		f.Evidence = append(f.Evidence, warning)
	}
	return []Finding{f}
}

// numericWarning returns a line of a log with such a warning, and the place of the operation; "" if there is none.
func (p *input) numericWarning() (line, where string) {
	for _, pod := range p.Pods {
		if warning, place := loglines.FirstInvalidOperation(pod.Log.Lines); warning != nil {
			return facts.LogLine(pod, warning.Line), place
		}
	}
	return "", ""
}

// figureConstant notes that a figure which shows how far the program has come does not change any more, although its steps go on.
func figureConstant(p *input) []Finding {
	launcher := p.Launcher()
	if launcher == nil || p.Outcome.Phase != v1alpha1.PhaseRunning {
		return nil
	}
	found, is := curves.FindConstant(p.Evidence.Curves, podstatus.StartedAt(launcher.Pod), p.Seen.Now)
	if !is {
		return nil
	}
	values := map[string]string{"figure": found.Curve.Name, "is": found.Value, "since": placeText(found.Curve.By, found.Since)}
	evidence := "Log: " + found.Curve.Name + " is " + found.Value + " in each line since " + values["since"] + "."
	return []Finding{p.find(codes.FigureConstant, []facts.Pod{*launcher}, values, evidence)}
}

// placeText returns a place on the axis of a curve.
func placeText(by v1alpha1.CurveAxis, at int64) string {
	switch by {
	case v1alpha1.CurveByEpoch:
		return "epoch " + shortNumber(float64(at)/1000)
	case v1alpha1.CurveByTime:
		return facts.TimeText(time.Unix(at, 0))
	}
	return "step " + strconv.FormatInt(at, 10)
}

func shortNumber(value float64) string { return strconv.FormatFloat(value, 'g', 4, 64) }
