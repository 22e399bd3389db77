package dashboard

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestChartsHaveAggregates(t *testing.T) {
	line := func(name string, values ...float64) ChartLine {
		samples := []Sample{}
		for i, value := range values {
			samples = append(samples, Sample{int64(15 * i), value})
		}
		return ChartLine{name, samples}
	}
	charts := aggregate([]Chart{
		{Title: "CPU", Unit: "cores", Lines: []ChartLine{line("a", 1, 2, 3), line("b", 3, 4)}},
		{Title: "GPU utilization", Unit: "percent", Lines: []ChartLine{line("a", 50), line("b", 100)}},
		{Title: "Memory", Unit: "bytes", Lines: []ChartLine{line("a", 1)}},
	})
	want := [][]ChartLine{{line("Mean", 2, 3, 3), line("Sum", 4, 6, 3)}, {line("Mean", 75)}, {}}
	for i, chart := range charts {
		if diff := cmp.Diff(want[i], chart.Aggregates); diff != "" {
			t.Errorf("%s (-want +got):\n%s", chart.Title, diff)
		}
	}
}
