package report

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func values(all ...float64) []Value {
	var some []Value
	for _, v := range all {
		some = append(some, Value{Value: v})
	}
	return some
}

// TestMedianRun: the run is the one that Summarize has the median of; of an even number, the smaller one in the middle.
func TestMedianRun(t *testing.T) {
	for _, test := range []struct {
		values []Value
		want   int
	}{{values(5), 0}, {values(3, 1, 2), 2}, {values(4, 1, 3, 2), 3}, {values(1, 1, 1), 1}} {
		if got := MedianRun(test.values); got != test.want {
			t.Errorf("the median run of %v is %d, want %d", test.values, got, test.want)
		}
	}
}

func TestSummarize(t *testing.T) {
	tests := map[string]struct {
		values []Value
		want   Summary
	}{
		"one run":                {values: values(3), want: Summary{Median: 3, Min: 3, Max: 3, Runs: 1}},
		"the middle of three":    {values: values(9, 1, 2), want: Summary{Median: 2, Min: 1, Max: 9, Runs: 3}},
		"between the middle two": {values: values(4, 1, 2, 100), want: Summary{Median: 3, Min: 1, Max: 100, Runs: 4}},
		"one of them is extrapolated": {
			values: []Value{{Value: 5}, {Value: 6, Extrapolated: true}, {Value: 7}},
			want:   Summary{Median: 6, Min: 5, Max: 7, Runs: 3, Extrapolated: true},
		},
		"one of them is a lower bound": {values: []Value{{Value: 5, AtLeast: true}}, want: Summary{Median: 5, Min: 5, Max: 5, Runs: 1, AtLeast: true}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Summarize(test.values)); diff != "" {
				t.Errorf("the summary differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhole(t *testing.T) {
	start := time.Unix(0, 0)
	at := func(seconds ...float64) []time.Time {
		var times []time.Time
		for _, s := range seconds {
			times = append(times, start.Add(time.Duration(s*float64(time.Second))))
		}
		return times
	}
	tests := map[string]struct {
		pace Pace
		want time.Duration
	}{
		"a steady rate":                       {pace: Pace{Cut: start.Add(4 * time.Second), Arrivals: at(1, 2, 3, 4), Want: 10}, want: 10 * time.Second},
		"a burst at first does not count":     {pace: Pace{Cut: start.Add(4 * time.Second), Arrivals: at(0, 0, 0, 0, 0, 3, 4), Want: 10}, want: 7 * time.Second},
		"all has come":                        {pace: Pace{Cut: start.Add(4 * time.Second), Arrivals: at(1, 2, 3, 4), Want: 4}, want: 4 * time.Second},
		"nothing in the second half: unknown": {pace: Pace{Cut: start.Add(4 * time.Second), Arrivals: at(0, 1), Want: 10}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.pace.Start = start
			if got := test.pace.Whole(); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func sample() []Case {
	return []Case{
		NewCase("create/64", "s", "ours", map[string][]Value{"ours": values(0.25, 0.2, 0.3), "peer": values(13.6), "floor": values(0.2)}),
		NewCase("burst/100x64", "s", "ours", map[string][]Value{"ours": values(10), "peer": {{Value: 1280, Extrapolated: true}}}),
		NewCase("memory/burst", "MiB", "ours", map[string][]Value{"ours": values(80), "peer": {{Value: 60, AtLeast: true}}}),
	}
}

func TestTable(t *testing.T) {
	var got strings.Builder
	if err := Table(&got, sample(), "ours", []string{"peer", "floor"}); err != nil {
		t.Fatal(err)
	}
	want := `
          case  unit  ours   peer     ×  floor    ×
     create/64     s  0.25   13.6  54.4    0.2  0.8
  burst/100x64     s    10  ~1280   128      -    -
  memory/burst   MiB    80    ≥60  0.75      -    -
`
	if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), got.String()); diff != "" {
		t.Errorf("the table differs (-want +got):\n%s", diff)
	}
}

func TestFigures(t *testing.T) {
	for value, want := range map[float64]string{0: "0", 0.01234: "0.0123", 0.25: "0.25", 1: "1", 13.649: "13.6", 100: "100", 1280.4: "1280", 999.7: "1000"} {
		if got := figures(value); got != want {
			t.Errorf("figures(%v) is %q, want %q", value, got, want)
		}
	}
}

func TestWrite(t *testing.T) {
	folder := t.TempDir()
	file, err := Report{Suite: "mpijob", Cases: sample()}.Write(folder)
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(folder, "mpijob.json"); file != want {
		t.Errorf("it went to %s, want %s", file, want)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	// What tools read of it, which therefore stays as it is.
	var got struct {
		Cases []struct {
			Name, Unit string
			Ours       float64
			Peers      map[string]float64
		}
	}
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	first := got.Cases[0]
	if first.Name != "create/64" || first.Unit != "s" || first.Ours != 0.25 || first.Peers["peer"] != 13.6 || first.Peers["floor"] != 0.2 {
		t.Errorf("the first case reads as %+v", first)
	}
}
