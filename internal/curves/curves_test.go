package curves_test

import (
	"math"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/curves"
)

var begin = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// at returns a line that was written so many seconds after the begin; its figure is the loss.
func at(seconds int, step, epoch, loss float64) curves.Line {
	return curves.Line{Time: begin.Add(time.Duration(seconds) * time.Second), Step: step, Epoch: epoch, Figures: []curves.Figure{{Name: "loss", Value: loss}}}
}

var none = math.NaN()

func lossOf(name string, value float64) []curves.Figure {
	return []curves.Figure{{Name: name, Value: value}}
}

func TestAdd(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		lines  []curves.Line
		by     v1alpha1.CurveAxis
		at     []int64
		values []string
		broken *int64
	}{
		"by step":             {[]curves.Line{at(0, 10, 1, 2.5), at(1, 20, 1, 1.25)}, v1alpha1.CurveByStep, []int64{10, 20}, []string{"2.5", "1.25"}, nil},
		"by epoch":            {[]curves.Line{at(0, none, 0.25, 2.5), at(1, none, 0.5, 1.25)}, v1alpha1.CurveByEpoch, []int64{250, 500}, []string{"2.5", "1.25"}, nil},
		"by time":             {[]curves.Line{at(0, none, none, 2.5), at(7, none, none, 1.25)}, v1alpha1.CurveByTime, []int64{begin.Unix(), begin.Unix() + 7}, []string{"2.5", "1.25"}, nil},
		"known lines":         {[]curves.Line{at(5, 10, none, 2), at(5, 11, none, 9), at(4, 12, none, 9)}, v1alpha1.CurveByStep, []int64{10}, []string{"2"}, nil},
		"the same step":       {[]curves.Line{at(0, 10, none, 2), at(1, 10, none, 3)}, v1alpha1.CurveByStep, []int64{10}, []string{"3"}, nil},
		"without a step":      {[]curves.Line{at(0, 10, none, 2), at(1, none, none, 3)}, v1alpha1.CurveByStep, []int64{10}, []string{"2"}, nil},
		"from a checkpoint":   {[]curves.Line{at(0, 10, 1, 2), at(1, 20, 1, none), at(2, 30, 1, 1), at(3, 15, 1, 1.5)}, v1alpha1.CurveByStep, []int64{10, 15}, []string{"2", "1.5"}, nil},
		"steps of each epoch": {[]curves.Line{at(0, 50, 1, 3), at(1, 100, 1, 2), at(2, 50, 2, 1.5), at(3, 100, 2, 1), at(4, 50, 3, 0.5)}, v1alpha1.CurveByStep, []int64{50, 100, 150, 200, 250}, []string{"3", "2", "1.5", "1", "0.5"}, nil},
		"not a number":        {[]curves.Line{at(0, 10, none, 2), at(1, 20, none, none), at(2, 30, none, math.Inf(1)), at(3, 40, none, math.Inf(-1))}, v1alpha1.CurveByStep, []int64{10, 20, 30, 40}, []string{"2", "NaN", "Inf", "-Inf"}, new(int64(20))},
		"absurd steps":        {[]curves.Line{at(0, 10, none, 2), at(1, -3, none, 2), at(2, 1e300, none, 2), at(3, math.Inf(1), none, 2)}, v1alpha1.CurveByStep, []int64{10}, []string{"2"}, nil},
		"a long number":       {[]curves.Line{at(0, 10, none, -1.23456789e-300)}, v1alpha1.CurveByStep, []int64{10}, []string{"-1.23457e-300"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := curves.Add(nil, test.lines)
			want := []v1alpha1.TrainingCurve{{Name: "loss", By: test.by, Width: 1, At: test.at, Values: test.values, NotFiniteAt: test.broken}}
			got := all.Figures
			for i := len(test.values) - 1; test.broken != nil && i >= 0 && test.at[i] >= *test.broken; i-- {
				want[0].NotFiniteCount++
			}
			got[0].Offset, got[0].Epoch = 0, 0
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("curves (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAddInParts(t *testing.T) {
	t.Parallel()
	var lines []curves.Line
	for i := range 1000 {
		lines = append(lines, at(i, float64(i), float64(i/100), 1/float64(i+1)))
	}
	whole := curves.Add(nil, lines)
	var parts *v1alpha1.TrainingCurves
	for i := 0; i < len(lines); i += 37 {
		before := parts.DeepCopy()
		// The end of a log contains lines that were read before.
		next := curves.Add(parts, lines[max(0, i-20):min(len(lines), i+37)])
		if diff := cmp.Diff(before, parts); diff != "" {
			t.Fatalf("the curves before have changed:\n%s", diff)
		}
		parts = next
	}
	if diff := cmp.Diff(whole, parts); diff != "" {
		t.Errorf("read in parts (-whole +parts):\n%s", diff)
	}
	curve := whole.Figures[0]
	if n := len(curve.At); n > curves.MaxPoints || n < curves.MaxPoints/2 || curve.At[n-1] != 999 || curve.Values[n-1] != "0.001" {
		t.Errorf("%d points, the last one at %d: %s", n, curve.At[n-1], curve.Values[n-1])
	}
	if got := curves.Add(parts, lines); got != parts {
		t.Error("lines that are known change the curves")
	}
}

// TestAddHostile: whatever a program prints, curves stay within the limits of the API.
func TestAddHostile(t *testing.T) {
	t.Parallel()
	var all *v1alpha1.TrainingCurves
	steps := []float64{1, 1e15, 2, 1e14, math.NaN(), -1, 3, 1e15, 1e16}
	for i := range 5000 {
		line := curves.Line{Time: begin.Add(time.Duration(i) * time.Millisecond), Step: steps[i%len(steps)] + float64(i), Epoch: steps[(i/7)%len(steps)]}
		for _, name := range []string{"loss", "f" + strconv.Itoa(i), "BAD", "", "x\x1b[31m", "a_name_that_is_longer_than_32_characters"} {
			line.Figures = append(line.Figures, curves.Figure{Name: name, Value: math.Pow(-1.7, float64(i%2000))})
		}
		all = curves.Add(all, []curves.Line{line})
	}
	if len(all.Figures) != curves.MaxCurves {
		t.Fatalf("%d curves", len(all.Figures))
	}
	for _, curve := range all.Figures {
		if !curves.ValidName(curve.Name) || len(curve.At) > curves.MaxPoints || len(curve.At) != len(curve.Values) {
			t.Errorf("%q has %d places and %d values", curve.Name, len(curve.At), len(curve.Values))
		}
		for i, value := range curve.Values {
			if len(value) > 16 || i > 0 && curve.At[i] <= curve.At[i-1] {
				t.Fatalf("%q has the value %q at %d after %d", curve.Name, value, curve.At[i], curve.At[max(0, i-1)])
			}
		}
	}
}

func TestFindDivergence(t *testing.T) {
	t.Parallel()
	series := func(count int, loss func(i int) float64) (lines []curves.Line) {
		for i := range count {
			lines = append(lines, at(i, float64(10*i), none, loss(i)))
		}
		return lines
	}
	named := func(name string, count int, value func(i int) float64) []curves.Line {
		lines := series(count, value)
		for i := range lines {
			lines[i].Figures[0].Name = name
		}
		return lines
	}
	falling := func(i int) float64 { return 2 / (1 + float64(i)/10) }
	until := func(end int, then func(i int) float64) func(i int) float64 {
		return func(i int) float64 {
			if i < end {
				return falling(i)
			}
			return then(i)
		}
	}
	for name, test := range map[string]struct {
		lines     []curves.Line
		diverges  bool
		notFinite string
		// since is the place of the first value that is not a number.
		since int64
	}{
		"falls":                     {series(300, falling), false, "", 0},
		"NaN":                       {series(50, until(40, func(int) float64 { return none })), true, "NaN", 400},
		"NaN for long":              {series(900, until(40, func(int) float64 { return none })), true, "NaN", 400},
		"NaN at once":               {series(3, func(int) float64 { return none }), true, "NaN", 0},
		"infinite":                  {series(50, until(40, func(int) float64 { return math.Inf(1) })), true, "Inf", 400},
		"NaN, and goes on":          {series(60, func(i int) float64 { return map[bool]float64{true: none, false: falling(i)}[i == 20] }), false, "", 0},
		"NaN in one step":           {series(41, until(40, func(int) float64 { return none })), false, "", 0},
		"NaN in two steps":          {series(42, until(40, func(int) float64 { return none })), false, "", 0},
		"NaN a moment ago":          {series(46, until(40, func(i int) float64 { return map[bool]float64{true: none, false: falling(i)}[i < 45] })), false, "", 0},
		"NaN now and then":          {series(99, func(i int) float64 { return map[bool]float64{true: none, false: falling(i)}[i%3 == 2] }), false, "", 0},
		"NaN again":                 {series(60, func(i int) float64 { return map[bool]float64{true: none, false: falling(i)}[i == 20 || i >= 50] }), true, "NaN", 500},
		"grows":                     {series(100, until(60, func(i int) float64 { return 0.3 * math.Pow(1.2, float64(i-60)) })), true, "", 0},
		"grows a little":            {series(100, until(60, func(i int) float64 { return 0.3 + float64(i-60)/100 })), false, "", 0},
		"an outlier":                {series(100, func(i int) float64 { return map[bool]float64{true: 99, false: falling(i)}[i%30 == 29] }), false, "", 0},
		"too few":                   {series(19, func(i int) float64 { return math.Exp(float64(i)) }), false, "", 0},
		"grows from the start":      {series(40, func(i int) float64 { return math.Exp(float64(i) / 5) }), true, "", 0},
		"negative":                  {series(40, func(i int) float64 { return -math.Exp(float64(i) / 5) }), false, "", 0},
		"a residual that is NaN":    {named("residual", 30, func(i int) float64 { return map[bool]float64{true: none, false: falling(i)}[i >= 10] }), true, "NaN", 100},
		"a residual that grows":     {named("residual", 40, func(i int) float64 { return math.Exp(float64(i) / 5) }), false, "", 0},
		"a residual from the start": {named("residual", 30, func(int) float64 { return none }), true, "NaN", 0},
		"an infinite residual before the first step": {named("residual", 1, func(int) float64 { return math.Inf(1) }), false, "", 0},
		"an error that is never known":               {named("rel_error", 30, func(int) float64 { return none }), false, "", 0},
		"an error that is lost":                      {named("rel_error", 30, func(i int) float64 { return map[bool]float64{true: none, false: falling(i)}[i >= 10] }), true, "NaN", 100},
		"an accuracy that is NaN":                    {named("accuracy", 30, func(int) float64 { return none }), false, "", 0},
		"negative, then grows":                       {series(40, func(i int) float64 { return float64(i*i) - 10 }), false, "", 0},
		"NaN in lines of the same second": {slices.Concat(series(9, falling), []curves.Line{
			{Time: begin.Add(20 * time.Second), Step: none, Epoch: none, Figures: lossOf("g_loss", 1)},
			{Time: begin.Add(21 * time.Second), Step: none, Epoch: none, Figures: lossOf("g_loss", none)},
			{Time: begin.Add(21300 * time.Millisecond), Step: none, Epoch: none, Figures: lossOf("g_loss", none)},
			{Time: begin.Add(21600 * time.Millisecond), Step: none, Epoch: none, Figures: lossOf("g_loss", none)},
		}), true, "NaN", begin.Unix() + 21},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := curves.Add(nil, test.lines)
			found, diverges := curves.FindDivergence(all, all.Until.Time)
			if diverges != test.diverges || found.NotFinite != test.notFinite || found.At != test.since {
				t.Errorf("found %t, %+v", diverges, found)
			}
		})
	}
	// A program that prints nothing after a loss that is not a number, or has ended, does not go on.
	one := curves.Add(nil, series(41, until(40, func(int) float64 { return none })))
	for now, want := range map[time.Time]bool{one.Until.Add(time.Minute): false, one.Until.Add(3 * time.Minute): true, {}: true} {
		if found, diverges := curves.FindDivergence(one, now); diverges != want || diverges && found.At != 400 {
			t.Errorf("at %s: found %t, %+v", now, diverges, found)
		}
	}
	// The losses of critics and discriminators grow by design, and are numbers.
	for name, want := range map[string]bool{"loss": true, "train_loss": true, "val_loss": true, "eval_loss": true, "value_loss": false, "critic_loss": false, "d_loss": false} {
		for _, grows := range []bool{true, false} {
			lines := series(40, func(i int) float64 { return map[bool]float64{true: math.Exp(float64(i) / 5), false: none}[grows] })
			for i := range lines {
				lines[i].Figures[0].Name = name
			}
			if found, diverges := curves.FindDivergence(curves.Add(nil, lines), begin); diverges != (want || !grows) {
				t.Errorf("%s, which grows: %t: found %t, %+v", name, grows, diverges, found)
			}
		}
	}
	if _, diverges := curves.FindDivergence(nil, begin); diverges {
		t.Error("no curves diverge")
	}
	accuracy := at(0, 1, none, none)
	accuracy.Figures[0].Name = "accuracy"
	if _, diverges := curves.FindDivergence(curves.Add(nil, []curves.Line{accuracy}), begin); diverges {
		t.Error("an accuracy diverges")
	}
}
