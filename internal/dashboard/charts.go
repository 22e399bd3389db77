package dashboard

import (
	"maps"
	"slices"
)

// Chart is a figure of each pod over time.
type Chart struct {
	Title string `json:"title"`
	// Unit is cores, bytes, bytes/s, packets/s or percent.
	Unit  string      `json:"unit"`
	Lines []ChartLine `json:"lines"`
	// Aggregates are the mean of the pods, and their sum unless the unit is percent; none for a single pod.
	Aggregates []ChartLine `json:"aggregates"`
}

// ChartLine is the figure of a pod, or of all.
type ChartLine struct {
	Name    string   `json:"name"`
	Samples []Sample `json:"samples"`
}

// Sample is a value at a time, in seconds since 1970.
type Sample struct {
	Time  int64   `json:"t"`
	Value float64 `json:"v"`
}

// aggregate adds to each chart of several pods their mean and, unless the unit is percent, their sum.
func aggregate(charts []Chart) []Chart {
	for i := range charts {
		chart := &charts[i]
		chart.Aggregates = []ChartLine{}
		if len(chart.Lines) < 2 {
			continue
		}
		sums, counts := map[int64]float64{}, map[int64]int{}
		for _, line := range chart.Lines {
			for _, sample := range line.Samples {
				sums[sample.Time] += sample.Value
				counts[sample.Time]++
			}
		}
		sum, mean := ChartLine{Name: "Sum"}, ChartLine{Name: "Mean"}
		for _, at := range slices.Sorted(maps.Keys(sums)) {
			sum.Samples = append(sum.Samples, Sample{at, sums[at]})
			mean.Samples = append(mean.Samples, Sample{at, sums[at] / float64(counts[at])})
		}
		chart.Aggregates = append(chart.Aggregates, mean)
		if chart.Unit != "percent" {
			chart.Aggregates = append(chart.Aggregates, sum)
		}
	}
	return charts
}
