package cli

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/jobs"
	"opendatahub.io/mpijob/internal/phrase"
)

// historyPrinter prints what a job used over time.
type historyPrinter struct {
	linePrinter
	now time.Time
}

// chartWidth is how many characters a chart has, so that a table has at most 80.
const chartWidth = 24

// print prints the job's metrics with a chart each, then its pods and ranks.
func (p *historyPrinter) print(job jobs.Job, usage *v1alpha1.Usage) error {
	lasted := usage.Until.Sub(usage.Since.Time)
	p.line("%s used, from %s to %s (%s), in %s:", job, clock(usage.Since.Time, p.now), clock(usage.Until.Time, p.now), lasted, phrase.Count(int(usage.Pods), "pod"))
	p.line("")
	t := table{header: []string{"METRIC", "MEAN", "P95", "MAX", "LIMIT", "OVER TIME"}}
	for _, m := range usage.Metrics {
		text := func(value int64) string { return jobs.MetricText(m.Metric, value) }
		limit := "-"
		if m.Limit > 0 {
			limit = text(m.Limit)
		}
		chart := jobs.Sparkline(m.Points, max(m.Limit, slices.Max(append([]int64{0}, m.Points...))), chartWidth)
		t.rows = append(t.rows, plain(string(m.Metric), text(m.Mean), text(m.P95), text(m.Max), limit, cmp.Or(chart, "-")))
	}
	p.table(t)
	p.pods(usage)
	p.ranks(usage)
	return p.err
}

func (p *historyPrinter) pods(usage *v1alpha1.Usage) {
	if len(usage.PerPod) == 0 {
		return
	}
	p.line("")
	t := table{header: []string{"POD", "CPU MEAN", "MAX", "MEMORY MEAN", "MAX", "GPU", "THROTTLED"}}
	for _, pod := range usage.PerPod {
		text := func(name v1alpha1.MetricName, figure func(*v1alpha1.UsageMetric) int64) string {
			if m := v1alpha1.FindMetric(pod.Metrics, name); m != nil {
				return jobs.MetricText(name, figure(m))
			}
			return "-"
		}
		mean, most := func(m *v1alpha1.UsageMetric) int64 { return m.Mean }, func(m *v1alpha1.UsageMetric) int64 { return m.Max }
		t.rows = append(t.rows, plain(
			pod.Pod, text(v1alpha1.MetricCPU, mean), text(v1alpha1.MetricCPU, most), text(v1alpha1.MetricMemory, mean), text(v1alpha1.MetricMemory, most),
			text(v1alpha1.MetricGPU, mean), text(v1alpha1.MetricThrottled, mean),
		))
	}
	p.table(t.withoutEmptyColumns())
	if more := int(usage.Pods) - len(usage.PerPod); more > 0 {
		p.line("and %d more pods that differ less", more)
	}
}

func (p *historyPrinter) ranks(usage *v1alpha1.Usage) {
	if len(usage.PerRank) == 0 {
		return
	}
	p.line("")
	t := table{header: []string{"RANK", "CPU MEAN", "MEMORY MAX"}}
	for _, rank := range usage.PerRank {
		t.rows = append(t.rows, plain(strconv.Itoa(int(rank.Rank)), jobs.MetricText(v1alpha1.MetricCPU, rank.CPUMillicores), jobs.MetricText(v1alpha1.MetricMemory, rank.MemoryMiB)))
	}
	p.table(t)
}

// printHistory prints what a job used over time, also of a deleted job.
func (o *topOptions) printHistory(job jobs.Job) error {
	usage, curves := job.Status().Usage, job.Status().Curves
	if usage == nil && (curves == nil || o.output.structured()) {
		return exitf(ExitNotFound, "%s: %s", job, jobs.NoUsageText(job.Status(), o.Now()))
	}
	if o.output.structured() {
		return o.output.print(o.Out, usage)
	}
	p := historyPrinter{linePrinter: linePrinter{to: o.Out}, now: o.Now()}
	if usage == nil {
		p.line("%s: %s", job, jobs.NoUsageText(job.Status(), o.Now()))
	} else if err := p.print(job, usage); err != nil {
		return err
	}
	p.curves(curves)
	return p.err
}

// curves prints the figures that the program printed over time.
func (p *historyPrinter) curves(all *v1alpha1.TrainingCurves) {
	rows := jobs.CurveRows(all, chartWidth)
	if len(rows) == 0 {
		return
	}
	p.line("")
	t := table{header: []string{"FIGURE", "FIRST", "LEAST", "GREATEST", "LATEST", "AT", "CHART"}}
	for _, row := range rows {
		t.rows = append(t.rows, plain(row.Name, row.First, row.Least, row.Greatest, row.Latest, row.Reached, row.Chart))
	}
	p.table(t)
}

// validateHistory returns an error for flags that --history cannot be combined with.
func (o *topOptions) validateHistory(args []string, changed func(flag string) bool) error {
	if len(args) == 0 {
		return usagef("--history requires NAME")
	}
	for _, flag := range []string{"watch", "all-namespaces", "sort-by"} {
		if changed(flag) {
			return usagef("--history cannot be combined with --%s", flag)
		}
	}
	return nil
}
