package diagnose

import (
	"fmt"
	"slices"
	"time"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose/facts"
	"opendatahub.io/mpijob/internal/mpi"
)

// memoryGrowing warns that the memory of a running job grows towards its limit.
func memoryGrowing(p *input) []Finding {
	usage := p.Evidence.Used
	if p.Outcome.Phase != v1alpha1.PhaseRunning || usage == nil {
		return nil
	}
	memory := v1alpha1.FindMetric(usage.Metrics, v1alpha1.MetricMemory)
	if memory == nil {
		return nil
	}
	found, grows := growthOf(memory.Points, usage.PointSeconds, memory.Limit)
	if !grows {
		return nil
	}
	const mib = 1 << 20
	// The text stays the same while the growth does.
	full := usage.Until.Add(found.left).Truncate(roundedTo).Add(roundedTo)
	pod := fullest(usage.PerPod, p.Pods)
	figures := map[string]string{
		"used": exactly(found.used * mib), "usedOf": exactly(memory.Limit * mib), "rate": exactly(int64(found.perHour) * mib), "at": momentText(full),
	}
	p.limitFigures(pod.Role, pod.Summary, figures)
	f := p.find(codes.MemoryGrowing, []facts.Pod{pod}, figures)
	f.Evidence = []string{fmt.Sprintf("Agents: the memory of %s grew from %s at %s to %s at %s.", podsText(usage.Pods),
		exactly(found.before*mib), facts.TimeText(usage.PointsSince.Add(found.from)), exactly(found.used*mib), facts.TimeText(usage.Until.Time))}
	return []Finding{f}
}

func podsText(count int32) string {
	if count == 1 {
		return "the pod"
	}
	return fmt.Sprintf("%d pods", count)
}

// roundedTo is the precision of the time at which a limit is reached.
const roundedTo = 10 * time.Minute

// growth is how an amount grew.
type growth struct {
	// before and used are the amount at the time from, after the first point, and at the end.
	before, used int64
	from         time.Duration
	perHour      float64
	// left is the time until the limit is reached.
	left time.Duration
}

// growthOf reports whether points have grown steadily in their second half, so that a limit is reached before the job has run three
// times as long, and in half a day. Programs fill caches and load data at their start: a growth that slows down does not count, nor one
// of less than ten minutes, nor of a small part of the limit.
func growthOf(points []int64, pointSeconds, limit int64) (growth, bool) {
	const (
		fewest   = 8
		shortest = 10 * time.Minute
		longest  = 12 * time.Hour
		// steady is the share of the variation that a straight line explains (R²), much is the least growth as a share of the limit.
		steady, much = 0.9, 0.05
	)
	point := time.Duration(pointSeconds) * time.Second
	half := len(points) / 2
	line, ok := fitLine(points[half:])
	if !ok || line.count < fewest || time.Duration(len(points)-half)*point < shortest || limit <= 0 {
		return growth{}, false
	}
	width := float64(len(points) - half - 1)
	quarter := half + (len(points)-half)/2
	first, firstOK := fitLine(points[half:quarter])
	last, lastOK := fitLine(points[quarter:])
	used := line.at(width)
	if line.r2 < steady || line.slope*width < much*float64(limit) || !firstOK || !lastOK || last.slope < 0.7*first.slope || used >= float64(limit) {
		return growth{}, false
	}
	left := time.Duration((float64(limit) - used) / line.slope * float64(point))
	if left > longest || left > 2*time.Duration(len(points))*point {
		return growth{}, false
	}
	return growth{
		before: int64(max(0, line.at(0))), used: int64(used), from: time.Duration(half) * point,
		perHour: line.slope * float64(time.Hour) / float64(point), left: left,
	}, true
}

// line is a straight line through points.
type line struct {
	slope, start, r2 float64
	// count is the number of points that were measured.
	count int
}

func (l line) at(x float64) float64 { return l.start + l.slope*x }

// fitLine returns the line with the least squares of the distances to points. Points that are negative were not measured.
func fitLine(points []int64) (line, bool) {
	var n, sumX, sumY, sumXX, sumXY, sumYY float64
	for i, value := range points {
		if value < 0 {
			continue
		}
		x, y := float64(i), float64(value)
		n, sumX, sumY, sumXX, sumXY, sumYY = n+1, sumX+x, sumY+y, sumXX+x*x, sumXY+x*y, sumYY+y*y
	}
	if n < 2 {
		return line{}, false
	}
	varX, varY, covariance := n*sumXX-sumX*sumX, n*sumYY-sumY*sumY, n*sumXY-sumX*sumY
	fit := line{slope: covariance / varX, count: int(n)}
	fit.start = (sumY - fit.slope*sumX) / n
	if varY > 0 {
		fit.r2 = covariance * covariance / (varX * varY)
	}
	return fit, true
}

// fullest returns the pod that has used most of its memory limit, or the first worker if that is unknown.
func fullest(used []v1alpha1.PodUsage, pods []facts.Pod) facts.Pod {
	name, most := "", 0.0
	for _, pod := range used {
		if m := v1alpha1.FindMetric(pod.Metrics, v1alpha1.MetricMemory); m != nil && m.Limit > 0 && float64(m.Max)/float64(m.Limit) > most {
			name, most = pod.Pod, float64(m.Max)/float64(m.Limit)
		}
	}
	for _, is := range []func(facts.Pod) bool{
		func(pod facts.Pod) bool { return pod.Name == name },
		func(pod facts.Pod) bool { return pod.Role == mpi.RoleWorker },
	} {
		if i := slices.IndexFunc(pods, is); i >= 0 {
			return pods[i]
		}
	}
	return pods[0]
}
