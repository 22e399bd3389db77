package agentapi

import "time"

// Growth is how an amount grew.
type Growth struct {
	// Before and Used are the amount at the time From, after the first point, and at the end.
	Before, Used int64
	From         time.Duration
	PerHour      float64
	// Left is the time until the limit is reached.
	Left time.Duration
}

// GrowthOf reports whether points have grown steadily in their second half, so that a limit is reached before the job has run three
// times as long, and in half a day. Programs fill caches and load data at their start: a growth that slows down does not count, nor one
// of less than ten minutes, nor of a small part of the limit.
func GrowthOf(points []int64, pointSeconds, limit int64) (Growth, bool) {
	const (
		fewest   = 8
		shortest = 10 * time.Minute
		longest  = 12 * time.Hour
		// steady is the share of the variation that a straight line explains (R²).
		steady = 0.9
	)
	point := time.Duration(pointSeconds) * time.Second
	half := len(points) / 2
	line, ok := fitLine(points[half:])
	if !ok || line.count < fewest || time.Duration(len(points)-half)*point < shortest || limit <= 0 {
		return Growth{}, false
	}
	width := float64(len(points) - half - 1)
	quarter := half + (len(points)-half)/2
	first, firstOK := fitLine(points[half:quarter])
	last, lastOK := fitLine(points[quarter:])
	used := line.at(width)
	if line.r2 < steady || line.slope*width < muchOfLimit*float64(limit) || !firstOK || !lastOK || last.slope < 0.7*first.slope || used >= float64(limit) {
		return Growth{}, false
	}
	left := (float64(limit) - used) / line.slope * float64(point)
	if left > float64(longest) || left > 2*float64(len(points))*float64(point) {
		return Growth{}, false
	}
	return Growth{
		Before: int64(max(0, line.at(0))), Used: int64(used), From: time.Duration(half) * point,
		PerHour: line.slope * float64(time.Hour) / float64(point), Left: time.Duration(left),
	}, true
}

// GrowthOfMemory reports whether memory has grown as GrowthOf in the whole run, or in its last hour: the points of a run of days are too coarse
// for a growth that began an hour ago. In the last hour, memory counts only above all that the run has used before, by a small part of the
// limit: that of many programs goes up and down. Of two growths, it returns the one that reaches the limit first; From is relative to the start
// of the run's points. latest is nil if it is unknown. The launcher's agent finds the pod by it that reaches its limit first, and the operator
// judges that pod.
func GrowthOfMemory(run Window, latest *Window, limit int64) (Growth, bool) {
	found, grows := GrowthOf(run.Points, run.Step, limit)
	if latest == nil || len(latest.Points) < MaxLatestPoints {
		return found, grows
	}
	before := int64(NoPoint)
	for i, value := range run.Points {
		if run.Start+int64(i+1)*run.Step <= latest.Start {
			before = max(before, value)
		}
	}
	late, growsLate := GrowthOf(latest.Points, latest.Step, limit)
	if before == NoPoint || !growsLate || float64(late.Used-before) < muchOfLimit*float64(limit) || grows && found.Left <= late.Left {
		return found, grows
	}
	late.From += time.Duration(latest.Start-run.Start) * time.Second
	return late, true
}

// muchOfLimit is the share of a limit from which a growth counts.
const muchOfLimit = 0.05

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
