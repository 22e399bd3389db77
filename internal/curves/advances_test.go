package curves_test

import (
	"math"
	"testing"
	"time"

	"opendatahub.io/mpijob/internal/curves"
)

func TestLastAdvance(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 29, 11, 7, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	line := func(seconds int, epoch float64, figures ...curves.Figure) curves.Line {
		return curves.Line{Time: at(seconds), Step: math.NaN(), Epoch: epoch, Figures: figures}
	}
	loss := func(value float64) curves.Figure { return curves.Figure{Name: "loss", Value: value} }
	for name, test := range map[string]struct {
		lines []curves.Line
		want  curves.Advance
	}{
		"none":            {nil, curves.Advance{}},
		"one":             {[]curves.Line{line(5, 1)}, curves.Advance{Last: at(5)}},
		"epochs":          {[]curves.Line{line(5, 1), line(25, 2), line(50, 3)}, curves.Advance{Last: at(50), Longest: 25 * time.Second}},
		"losses":          {[]curves.Line{line(5, math.NaN(), loss(2)), line(15, math.NaN(), loss(1))}, curves.Advance{Last: at(15), Longest: 10 * time.Second}},
		"the same again":  {[]curves.Line{line(5, 1, loss(2)), line(25, 1, loss(2)), line(45, 1, loss(2))}, curves.Advance{Last: at(5)}},
		"the same NaN":    {[]curves.Line{line(5, math.NaN(), loss(math.NaN())), line(25, math.NaN(), loss(math.NaN()))}, curves.Advance{Last: at(5)}},
		"another figure":  {[]curves.Line{line(5, 1, loss(2)), line(25, 1, curves.Figure{Name: "accuracy", Value: 2})}, curves.Advance{Last: at(25), Longest: 20 * time.Second}},
		"an unknown time": {[]curves.Line{{Epoch: 1}, line(25, 2)}, curves.Advance{Last: at(25)}},
	} {
		if got := curves.LastAdvance(test.lines); got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}
