package logs

import (
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"opendatahub.io/mpijob/internal/curves"
)

// ParseCurveLine reads the figures in a line that was written at a time: the loss, the accuracy, what ParseFigures finds, and all figures of
// a line of the form {"training": {...}}. It returns false if there are none.
func ParseCurveLine(text string, at time.Time) (curves.Line, bool) {
	training, _ := ParseTraining(text)
	line := curves.Line{Time: at, Step: number(training.Step), Epoch: number(training.Epoch)}
	known := map[string]bool{}
	add := func(name string, value float64) {
		if !known[name] && len(line.Figures) < curves.MaxCurves {
			known[name] = true
			line.Figures = append(line.Figures, curves.Figure{Name: name, Value: value})
		}
	}
	for _, value := range []struct{ name, text string }{{"loss", training.Loss}, {"accuracy", training.Accuracy}} {
		if value.text != "" {
			add(value.name, number(value.text))
		}
	}
	all := ParseFigures(text)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		add(name, all[name])
	}
	for _, figure := range reportedFigures(text) {
		add(figure.Name, figure.Value)
	}
	if step, found := solverFigures(text); len(found) > 0 && (step >= 0 || !math.IsNaN(line.Step)) {
		if math.IsNaN(line.Step) {
			line.Step = step
		}
		for _, figure := range found {
			add(figure.Name, figure.Value)
		}
	}
	// An epoch or a step without a figure is kept: the steps of the next lines are those of that epoch.
	return line, len(line.Figures) > 0 || training.Epoch != ""
}

var (
	// solverStep is the step in a line of a solver, such as "iteration 12", and solverFigure its distance from the solution, such as "residual 1.5e-07"
	// or "rel_error=0.25". An integer after "error" is an exit code.
	solverStep   = regexp.MustCompile(`(?i)(?:^|[\s,;|(\[{])(?:step|iteration|iter|it) ?[=:#]? ?(\d{1,15})(?:/\d+)?(?:$|[\s,;|:)\]}])`)
	solverFigure = regexp.MustCompile(`(?i)(?:^|[\s,;|(\[{])((?:[a-z0-9]+_)?(?:residual|residuum|error|energy)(?:_norm)?) ?[=:]? ?([-+]?(?:\d+\.\d*(?:e[-+]?\d+)?|\d+e[-+]?\d+|nan|inf(?:inity)?))(?:$|[\s,;|)\]}])`)
)

// solverFigures returns the figures in a line of a solver, and its step, -1 if it has none. Those of other ranks than 0 do not count.
func solverFigures(text string) (step float64, found []curves.Figure) {
	text, counts := untag(text)
	if !counts {
		return -1, nil
	}
	text, step = text[:min(len(text), enough)], -1
	if at := solverStep.FindStringSubmatch(text); at != nil {
		step = number(at[1])
	}
	for len(found) < curves.MaxCurves {
		at := solverFigure.FindStringSubmatchIndex(text)
		if at == nil {
			break
		}
		if name := strings.ToLower(text[at[2]:at[3]]); curves.ValidName(name) {
			found = append(found, curves.Figure{Name: name, Value: number(text[at[4]:at[5]])})
		}
		// What ends one figure may begin the next one.
		text = text[at[5]:]
	}
	return step, found
}

// number returns a number as programs print it, such as 1,200 or 3/10 or 87.5%; NaN if it is none.
func number(text string) float64 {
	text, isShare := strings.CutSuffix(strings.ReplaceAll(text, ",", ""), "%")
	text, _, _ = strings.Cut(text, "/")
	value, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil && !math.IsInf(value, 0): // 1e999 is infinite
		return math.NaN()
	case isShare:
		return value / 100
	}
	return value
}

// reportedFigures returns the figures of a line of the form {"training": {...}} by their names, without step and epoch.
func reportedFigures(text string) []curves.Figure {
	text, counts := untag(text)
	if !counts {
		return nil
	}
	object, is := reportedObject(text)
	if !is {
		return nil
	}
	var found []curves.Figure
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if progressNames[name] != nil || !curves.ValidName(name) {
			continue
		}
		if text, isText := jsonText(object[name]); isText {
			if value, err := strconv.ParseFloat(text, 64); err == nil {
				found = append(found, curves.Figure{Name: name, Value: value})
			}
		}
	}
	return found
}

// Points returns the figures in the lines of a log, each of which has the time that the kubelet puts before it.
func Points(log string) []curves.Line {
	var found []curves.Line
	for line := range strings.Lines(log) {
		stamp, text, _ := strings.Cut(strings.TrimRight(line, "\r\n"), " ")
		at, err := time.Parse(time.RFC3339Nano, stamp)
		if err != nil || len(text) > enough {
			continue
		}
		if point, is := ParseCurveLine(text, at); is {
			found = append(found, point)
		}
	}
	return found
}
