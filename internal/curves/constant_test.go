package curves_test

import (
	"math"
	"testing"
	"time"

	"opendatahub.io/mpijob/internal/curves"
)

func TestFindConstant(t *testing.T) {
	t.Parallel()
	const stuck = 4.76837158203125e-07
	// series prints a figure at each step, one a second, whose value is stuck from a step on.
	series := func(name string, count, from int, value float64) (lines []curves.Line) {
		for i := range count {
			v := value
			if i < from {
				v = 1.2345678 / float64(i+1)
			}
			lines = append(lines, curves.Line{Time: begin.Add(time.Duration(i) * time.Second), Step: float64(i), Epoch: math.NaN(), Figures: lossOf(name, v)})
		}
		return lines
	}
	withoutSteps := series("residual", 100, 5, stuck)
	for i := range withoutSteps {
		withoutSteps[i].Step = math.NaN()
	}
	fast := series("loss", 100, 5, stuck)
	for i := range fast {
		fast[i].Time = begin.Add(time.Duration(i) * 100 * time.Millisecond)
	}
	moves := series("loss", 100, 5, stuck)
	moves[60].Figures = lossOf("loss", stuck*1.0001)
	for name, test := range map[string]struct {
		lines []curves.Line
		since int64
		want  bool
	}{
		"a residual":            {series("residual", 70, 5, stuck), 5, true},
		"a loss":                {series("loss", 100, 20, 0.6931472), 20, true},
		"an error":              {series("rel_error", 100, 20, 0.6931472), 20, true},
		"few":                   {series("residual", 60, 5, stuck), 0, false},
		"it moves":              {moves, 0, false},
		"it falls":              {series("loss", 500, 500, 0), 0, false},
		"zero":                  {series("loss", 100, 5, 0), 0, false},
		"a rounded value":       {series("loss", 100, 5, 0.0123), 0, false},
		"an accuracy":           {series("accuracy", 100, 5, 0.6931472), 0, false},
		"an accuracy of 1":      {series("accuracy", 100, 5, 1), 0, false},
		"a learning rate":       {series("learning_rate", 100, 5, 5.12345e-05), 0, false},
		"a loss of a test":      {series("val_loss", 100, 5, 0.6931472), 0, false},
		"an energy":             {series("energy", 100, 5, -76.026765), 0, false},
		"without steps":         {withoutSteps, 0, false},
		"in less than a minute": {fast, 0, false},
		"not a number":          {series("loss", 100, 5, math.NaN()), 0, false},
	} {
		all := curves.Add(nil, test.lines)
		got, is := curves.FindConstant(all, begin, all.Until.Time)
		if is != test.want || is && got.Since != test.since {
			t.Errorf("%s: %t since %d", name, is, got.Since)
		}
		if _, is := curves.FindConstant(all, begin, all.Until.Add(time.Hour)); is {
			t.Errorf("%s: the program prints nothing any more", name)
		}
	}
}

// TestConstantStays: once a figure is constant, it stays so, however many of its points are left out.
func TestConstantStays(t *testing.T) {
	t.Parallel()
	for _, apart := range []int{1, 7, 100} {
		was := false
		for count := 65; count < 700; count++ {
			var lines []curves.Line
			for i := range count {
				lines = append(lines, at(i, float64(apart*i), none, 1.2345678/float64(min(i, 50)+1)))
			}
			all := curves.Add(nil, lines)
			_, is := curves.FindConstant(all, begin, all.Until.Time)
			if was && !is {
				t.Errorf("steps of %d: not after %d lines", apart, count)
			}
			was = is
		}
		if !was {
			t.Errorf("steps of %d: never", apart)
		}
	}
}
