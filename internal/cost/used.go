package cost

import (
	"time"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/times"
)

// Used is what the pods of a job used, as their agents measured it, multiplied by hours. What is unknown is nil.
type Used struct{ CoreHours, GiBHours, GPUHours *float64 }

// UsedBetween returns what a job used in a period, of which a zero time is no limit; false if nothing was measured in it.
func UsedBetween(usage *v1alpha1.Usage, since, until time.Time) (total Used, measured bool) {
	if usage == nil {
		return Used{}, false
	}
	for _, run := range usage.Earlier {
		from, to := times.Later(run.Since.Time, since), times.Earlier(run.Until.Time, until)
		if !to.After(from) {
			continue
		}
		hours := to.Sub(from).Seconds() / run.Until.Sub(run.Since.Time).Seconds() / 3600
		part := Used{CoreHours: new(float64(run.CPUCoreSeconds) * hours), GiBHours: new(float64(run.MemoryGiBSeconds) * hours)}
		if run.GPUSeconds != nil {
			part.GPUHours = new(float64(*run.GPUSeconds) * hours)
		}
		total, measured = total.plus(part), true
	}
	from, to := times.Later(usage.Since.Time, since), times.Earlier(usage.Until.Time, until)
	if !to.After(from) {
		return total, measured
	}
	used := func(metric v1alpha1.MetricName, unit float64) *float64 {
		m := v1alpha1.FindMetric(usage.Metrics, metric)
		if m == nil {
			return nil
		}
		return new(usedHours(*usage, *m, from, to) / unit)
	}
	return total.plus(Used{CoreHours: used(v1alpha1.MetricCPU, 1000), GiBHours: used(v1alpha1.MetricMemory, 1024), GPUHours: used(v1alpha1.MetricGPU, 1000)}), true
}

func (u Used) plus(other Used) Used {
	return Used{CoreHours: PlusKnown(u.CoreHours, other.CoreHours), GiBHours: PlusKnown(u.GiBHours, other.GiBHours), GPUHours: PlusKnown(u.GPUHours, other.GPUHours)}
}

// PlusKnown adds figures, of which nil is unknown and does not count.
func PlusKnown(a, b *float64) *float64 {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return new(*a + *b)
}

// usedHours returns a metric multiplied by the hours of a part of the time in which it was measured: by its points, or by its mean if it
// has none, and after the last one.
func usedHours(usage v1alpha1.Usage, m v1alpha1.UsageMetric, from, until time.Time) (hours float64) {
	if len(m.Points) == 0 || usage.PointSeconds <= 0 {
		return float64(m.Mean) * until.Sub(from).Hours()
	}
	step := time.Duration(usage.PointSeconds) * time.Second
	for i, value := range m.Points {
		begin := usage.PointsSince.Add(time.Duration(i) * step)
		overlap := times.Earlier(until, begin.Add(step)).Sub(times.Later(from, begin))
		if value >= 0 && overlap > 0 {
			hours += float64(value) * overlap.Hours()
		}
	}
	if rest := until.Sub(times.Later(from, usage.PointsSince.Add(time.Duration(len(m.Points))*step))); rest > 0 {
		hours += float64(m.Mean) * rest.Hours()
	}
	return hours
}
