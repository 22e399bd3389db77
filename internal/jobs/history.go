package jobs

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/curves"
)

// UsageText returns what a job used, as its agents measured it, in one line; "" if it is unknown.
func UsageText(usage *v1alpha1.Usage) string {
	if usage == nil {
		return ""
	}
	var parts []string
	of := func(value, limit int64, metric v1alpha1.MetricName) string {
		text := MetricText(metric, value)
		if limit > 0 {
			number, unit, _ := strings.Cut(text, " ")
			limitNumber, limitUnit, _ := strings.Cut(MetricText(metric, limit), " ")
			if strings.TrimSuffix(unit, "s") == strings.TrimSuffix(limitUnit, "s") {
				return number + " of " + limitNumber + " " + limitUnit
			}
			return text + " of " + limitNumber + " " + limitUnit
		}
		return text
	}
	if m := v1alpha1.FindMetric(usage.Metrics, v1alpha1.MetricCPU); m != nil {
		parts = append(parts, "CPU "+of(m.Mean, m.Limit, m.Metric)+" on average")
	}
	if m := v1alpha1.FindMetric(usage.Metrics, v1alpha1.MetricMemory); m != nil {
		parts = append(parts, "memory "+of(m.Max, m.Limit, m.Metric)+" at most")
	}
	if m := v1alpha1.FindMetric(usage.Metrics, v1alpha1.MetricGPU); m != nil {
		parts = append(parts, "GPU "+of(m.Mean, m.Limit, m.Metric)+" on average")
	}
	if m := v1alpha1.FindMetric(usage.Metrics, v1alpha1.MetricThrottled); m != nil && m.Mean >= 5 {
		parts = append(parts, "throttled "+MetricText(m.Metric, m.Mean)+" of the time")
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, ", ") + " (measured)"
}

// firstUsage is when the agents of a job that has begun to run have reported its usage, and usagePeriod the time between two samples.
const (
	firstUsage  = 2 * time.Minute
	usagePeriod = 10 * time.Second
)

// NoUsageText returns why the report of a job has no usage over time; "" if it has.
func NoUsageText(status v1alpha1.JobReportStatus, now time.Time) string {
	switch running, ended := status.RunningTime, status.CompletionTime; {
	case status.Usage != nil:
		return ""
	case running == nil && ended != nil:
		return "The job never ran, so it has no usage over time."
	case running == nil:
		return "The usage over time is reported a minute after the ranks have started."
	case ended == nil && now.Sub(running.Time) < firstUsage:
		return "The job has run for " + RunDuration(status, now) + ": its usage over time is reported a minute after the ranks have started."
	case ended != nil && ended.Sub(running.Time) <= usagePeriod:
		return "The job ran for " + RunDuration(status, now) + ", too short for a usage over time: its agents take a sample every 10 s."
	case status.MPI.Implementation == "":
		return "The job has no usage over time: its pods have no agent, which only MPI jobs have."
	case ended == nil && status.Workers.Wanted == 0:
		return "The usage over time of a job without workers is reported when the launcher ends."
	case ended == nil:
		return "The job has no usage over time: its pods have no agent, which measures it, or the agent has not started the ranks (launch: sshd)."
	}
	return "The job has no usage over time: its pods had no agent, which measures it, or the launcher was ended before it could report."
}

// MetricText returns a figure of a metric with its unit.
func MetricText(metric v1alpha1.MetricName, value int64) string {
	switch metric {
	case v1alpha1.MetricCPU:
		return thousandths(value, "core")
	case v1alpha1.MetricGPU:
		return thousandths(value, "GPU")
	case v1alpha1.MetricMemory, v1alpha1.MetricGPUMemory:
		return binary(value, "MiB", "GiB", "TiB")
	case v1alpha1.MetricNetwork, v1alpha1.MetricIO:
		return binary(value, "KiB/s", "MiB/s", "GiB/s")
	case v1alpha1.MetricMajorFaults:
		return fmt.Sprintf("%d /min", value)
	}
	if value > 0 && value < 10 {
		return "<1 %"
	}
	return fmt.Sprintf("%d %%", (value+5)/10)
}

// thousandths returns a number of things that is counted in thousandths, with at most two decimals.
func thousandths(value int64, thing string) string {
	decimals := 1
	if value < 1000 {
		decimals = 2
	}
	text := strconv.FormatFloat(float64(value)/1000, 'f', decimals, 64)
	text = strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
	if text == "" {
		text = "0"
	}
	if text != "1" {
		thing += "s"
	}
	return text + " " + thing
}

// binary returns an amount in the largest of the units in which it is at least 1.
func binary(value int64, units ...string) string {
	amount := float64(value)
	for len(units) > 1 && amount >= 1024 {
		amount, units = amount/1024, units[1:]
	}
	text := strconv.FormatFloat(amount, 'f', 1, 64)
	return strings.TrimSuffix(text, ".0") + " " + units[0]
}

// Sparkline draws points as a line of characters, at most so many: the height of each is its share of the largest value. Times in which
// nothing was measured are spaces.
func Sparkline(points []int64, largest int64, width int) string {
	const levels = "▁▂▃▄▅▆▇█"
	heights := []rune(levels)
	width = max(1, width)
	per := (len(points) + width - 1) / width
	var line strings.Builder
	for len(points) > 0 {
		sum, known := int64(0), int64(0)
		for _, point := range points[:min(per, len(points))] {
			if point >= 0 {
				sum, known = sum+point, known+1
			}
		}
		points = points[min(per, len(points)):]
		if known == 0 {
			line.WriteByte(' ')
			continue
		}
		share := float64(sum) / float64(known) / float64(max(1, largest))
		line.WriteRune(heights[min(len(heights)-1, max(0, int(share*float64(len(heights)))))])
	}
	return line.String()
}

// CurveRow is a figure that the program printed, as text.
type CurveRow struct {
	Name, First, Least, Greatest, Latest string
	// Reached is the place of the latest value: a step, an epoch or a time.
	Reached string
	// Chart is a line of characters, from the least value to the greatest one.
	Chart string
}

// CurveRows returns the figures that the program printed over time, with charts of at most so many characters.
func CurveRows(all *v1alpha1.TrainingCurves, width int) []CurveRow {
	if all == nil {
		return nil
	}
	var rows []CurveRow
	for _, curve := range all.Figures {
		values := curves.Values(curve)
		if len(values) == 0 {
			continue
		}
		least, greatest := math.Inf(1), math.Inf(-1)
		for _, value := range values {
			if !math.IsNaN(value) && !math.IsInf(value, 0) {
				least, greatest = min(least, value), max(greatest, value)
			}
		}
		row := CurveRow{Name: curve.Name, First: figureText(values[0]), Latest: figureText(values[len(values)-1]), Reached: placeText(curve.By, curve.At[len(values)-1]), Least: "-", Greatest: "-"}
		if least <= greatest {
			row.Least, row.Greatest = figureText(least), figureText(greatest)
		}
		const levels = 999
		points := make([]int64, len(values))
		for i, value := range values {
			switch {
			case math.IsNaN(value) || math.IsInf(value, 0):
				points[i] = -1
			case greatest > least:
				points[i] = int64((value - least) / (greatest - least) * levels)
			}
		}
		row.Chart = Sparkline(points, levels+1, width)
		rows = append(rows, row)
	}
	return rows
}

// CurvesText returns the figures that the program printed in one line, such as loss 2.3 to 0.41; "" if there are none.
func CurvesText(all *v1alpha1.TrainingCurves) string {
	const width = 12
	var parts []string
	for _, row := range CurveRows(all, width) {
		parts = append(parts, row.Name+" "+row.First+" to "+row.Latest+" "+row.Chart)
	}
	return strings.Join(parts, ", ")
}

func figureText(value float64) string { return strconv.FormatFloat(value, 'g', 4, 64) }

// placeText returns a place on the axis of a curve.
func placeText(by v1alpha1.CurveAxis, at int64) string {
	switch by {
	case v1alpha1.CurveByEpoch:
		return "epoch " + figureText(float64(at)/1000)
	case v1alpha1.CurveByTime:
		return time.Unix(at, 0).UTC().Format(time.RFC3339)
	}
	return "step " + strconv.FormatInt(at, 10)
}
