package report

import (
	"math"
	"testing"
	"time"
)

func TestPercentile(t *testing.T) {
	var hundred []time.Duration
	for i := range 100 {
		hundred = append(hundred, time.Duration(100-i)*time.Second)
	}
	tests := map[string]struct {
		values []time.Duration
		share  float64
		want   time.Duration
	}{
		"none":            {share: 0.5},
		"one":             {values: []time.Duration{3}, share: 0.99, want: 3},
		"half of hundred": {values: hundred, share: 0.5, want: 50 * time.Second},
		"99 of hundred":   {values: hundred, share: 0.99, want: 99 * time.Second},
		"all":             {values: hundred, share: 1, want: 100 * time.Second},
		"99 of few":       {values: []time.Duration{1, 9, 2}, share: 0.99, want: 9},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Percentile(test.values, test.share); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestExponent(t *testing.T) {
	x := []float64{30, 100, 300, 1000}
	of := func(f func(float64) float64) []float64 {
		var y []float64
		for _, v := range x {
			y = append(y, f(v))
		}
		return y
	}
	tests := map[string]struct {
		y    []float64
		want float64
		fail bool
	}{
		"constant":           {y: of(func(float64) float64 { return 7 }), want: 0},
		"linear":             {y: of(func(x float64) float64 { return 3 * x }), want: 1},
		"quadratic":          {y: of(func(x float64) float64 { return x * x / 100 }), want: 2},
		"x log x":            {y: of(func(x float64) float64 { return x * math.Log(x) }), want: 1.2},
		"linear, with noise": {y: []float64{33, 95, 310, 980}, want: 0.98},
		"a zero":             {y: []float64{0, 1, 2, 3}, fail: true},
		"too few":            {y: []float64{1, 2}, fail: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, ok := Exponent(x[:len(test.y)], test.y)
			if ok == test.fail || math.Abs(got-test.want) > 0.01 {
				t.Errorf("got %.3f, %v; want %.2f, %v", got, ok, test.want, !test.fail)
			}
		})
	}
}

func TestGrowth(t *testing.T) {
	var cases []Case
	for size, name := range map[float64]string{30: "30", 100: "100", 300: "300"} {
		cases = append(cases,
			NewCase("cpu/"+name, "s", "ours", map[string][]Value{"ours": values(size / 10), "peer": values(size * size)}),
			NewCase("requests/"+name, "requests/job", "ours", map[string][]Value{"ours": values(12)}),
			NewCase("created/"+name+"/p50", "s", "ours", map[string][]Value{"ours": values(size), "peer": {{Value: size, AtLeast: true}}}),
			NewCase("created/"+name+"/p99", "s", "ours", map[string][]Value{"ours": values(1)}),
		)
	}
	got := map[string]map[string]Summary{}
	for _, c := range Growth(cases, []Figure{{Name: "cpu"}, {Name: "requests", Each: true}, {Name: "created/p50"}, {Name: "created/p99"}, {Name: "memory"}}, "ours") {
		got[c.Name] = c.Details
	}
	want := map[string]map[string]float64{
		"growth/cpu":         {"ours": 1, "peer": 2},
		"growth/requests":    {"ours": 1},
		"growth/created/p50": {"ours": 1},
		"growth/created/p99": {"ours": 0},
	}
	if len(got) != len(want) {
		t.Errorf("got %d exponents, want %d: %v", len(got), len(want), got)
	}
	for name, exponents := range want {
		if len(got[name]) != len(exponents) {
			t.Errorf("%s: got %v, want %v", name, got[name], exponents)
		}
		for contestant, exponent := range exponents {
			if math.Abs(got[name][contestant].Median-exponent) > 1e-9 {
				t.Errorf("%s of %s: got %v, want %v", name, contestant, got[name][contestant].Median, exponent)
			}
		}
	}
}
