package usage

import (
	"maps"
	"math"
	"slices"
	"time"

	"opendatahub.io/mpijob/internal/agentapi"
)

// Period is the time between two samples, and the length of a point until the series is full.
const Period = 10 * time.Second

// Series keeps samples in at most agentapi.MaxUsagePoints points. When there are more, the length of points doubles. Points begin at
// multiples of their length, so that the series of different hosts can be added up.
type Series struct {
	// step is the length of a point in seconds, and first the number of the first point: that which begins at first × step.
	step, first int64
	points      []map[agentapi.Metric]*weighted
	metrics     map[agentapi.Metric]*distribution
	limits      map[agentapi.Metric]int64
	since, to   time.Time
	// recent are the samples of the last agentapi.RecentTime.
	recent []Sample
	// latest is the memory of the last hour, by the number of the point of agentapi.LatestStep.
	latest map[int64]*weighted
}

// weighted is a sum of values by the seconds for which each applied.
type weighted struct{ sum, seconds float64 }

func (w *weighted) add(value, seconds float64) {
	w.sum += value * seconds
	w.seconds += seconds
}

// Add adds a sample. Samples follow each other in time: one that begins before the end of the last one is left out.
func (s *Series) Add(sample Sample, limits map[agentapi.Metric]int64) {
	if !sample.To.After(sample.From) || sample.From.Before(s.to) {
		return
	}
	if s.metrics == nil {
		s.step, s.metrics, s.since = int64(Period/time.Second), map[agentapi.Metric]*distribution{}, sample.From
		s.latest = map[int64]*weighted{}
		s.first = floor(sample.From.Unix(), s.step)
	}
	s.to, s.limits = sample.To, maps.Clone(limits)
	from, to := seconds(sample.From), seconds(sample.To)
	for s.lastOf(to)-s.first >= agentapi.MaxUsagePoints {
		s.coarsen()
	}
	for from < to {
		number := floor(int64(math.Floor(from)), s.step)
		end := min(to, float64((number+1)*s.step))
		place := s.place(number)
		for metric, value := range sample.Values {
			if place[metric] == nil {
				place[metric] = &weighted{}
			}
			place[metric].add(value, end-from)
		}
		from = end
	}
	s.addLatest(sample)
	for metric, value := range sample.Values {
		if s.metrics[metric] == nil {
			s.metrics[metric] = &distribution{}
		}
		s.metrics[metric].add(value, sample.To.Sub(sample.From).Seconds())
	}
	s.recent = append(s.recent, sample)
	for !s.recent[0].To.After(s.to.Add(-agentapi.RecentTime)) {
		s.recent = s.recent[1:]
	}
}

// latestStep is agentapi.LatestStep in seconds.
const latestStep = int64(agentapi.LatestStep / time.Second)

// addLatest adds the memory of a sample to the last hour.
func (s *Series) addLatest(sample Sample) {
	value, measured := sample.Values[agentapi.MetricMemory]
	for from, to := seconds(sample.From), seconds(sample.To); measured && from < to; {
		number := floor(int64(math.Floor(from)), latestStep)
		end := min(to, float64((number+1)*latestStep))
		if s.latest[number] == nil {
			s.latest[number] = &weighted{}
		}
		s.latest[number].add(value, end-from)
		from = end
	}
	maps.DeleteFunc(s.latest, func(number int64, _ *weighted) bool { return number < s.firstOfLatest() })
}

// firstOfLatest returns the number of the first point of the last hour.
func (s *Series) firstOfLatest() int64 {
	return floor(int64(math.Ceil(seconds(s.to)))-1, latestStep) - agentapi.MaxLatestPoints + 1
}

// window returns the memory of the last hour; nil if there was less.
func (s *Series) window() *agentapi.Window {
	first := s.firstOfLatest()
	if s.since.Unix() > first*latestStep {
		return nil
	}
	w := &agentapi.Window{Start: first * latestStep, Step: latestStep}
	for number := first; number < first+agentapi.MaxLatestPoints; number++ {
		w.Points = append(w.Points, pointOf(s.latest[number]))
	}
	return w
}

// pointOf returns the mean of a point; agentapi.NoPoint if nothing was measured.
func pointOf(w *weighted) int64 {
	if w == nil || w.seconds <= 0 {
		return agentapi.NoPoint
	}
	return round(w.sum / w.seconds)
}

// recently returns the mean of a metric in the last agentapi.RecentTime; nil if it was measured for less than half of it.
func (s *Series) recently(metric agentapi.Metric) *int64 {
	var all weighted
	for _, sample := range s.recent {
		if value, measured := sample.Values[metric]; measured {
			all.add(value, sample.To.Sub(sample.From).Seconds())
		}
	}
	if all.seconds < (agentapi.RecentTime / 2).Seconds() {
		return nil
	}
	return new(round(all.sum / all.seconds))
}

// lastOf returns the number of the point in which a time ends.
func (s *Series) lastOf(to float64) int64 { return floor(int64(math.Ceil(to))-1, s.step) }

// place returns a point, and makes those before it.
func (s *Series) place(number int64) map[agentapi.Metric]*weighted {
	for s.first+int64(len(s.points)) <= number {
		s.points = append(s.points, map[agentapi.Metric]*weighted{})
	}
	return s.points[number-s.first]
}

// coarsen doubles the length of the points.
func (s *Series) coarsen() {
	old, first := s.points, s.first
	s.step, s.first, s.points = 2*s.step, floor(s.first, 2), nil
	for i, point := range old {
		place := s.place(floor(first+int64(i), 2))
		for metric, w := range point {
			if place[metric] == nil {
				place[metric] = &weighted{}
			}
			place[metric].sum += w.sum
			place[metric].seconds += w.seconds
		}
	}
}

// Usage returns what was used so far; false if there is no sample.
func (s *Series) Usage() (agentapi.Usage, bool) {
	if len(s.metrics) == 0 {
		return agentapi.Usage{}, false
	}
	u := agentapi.Usage{Start: s.first * s.step, Step: s.step, Since: s.since.Unix(), Until: s.to.Unix()}
	for _, metric := range agentapi.Metrics() {
		all := s.metrics[metric]
		if all == nil {
			continue
		}
		m := agentapi.MetricUsage{Metric: metric, Mean: round(all.mean()), P95: round(all.quantile(0.95)), Max: round(all.most), Limit: s.limits[metric]}
		for _, point := range s.points {
			m.Points = append(m.Points, pointOf(point[metric]))
		}
		if metric == agentapi.MetricMemory {
			m.Latest = s.window()
		}
		if slices.Contains(agentapi.RecentMetrics(), metric) {
			m.Recent = s.recently(metric)
		}
		u.Metrics = append(u.Metrics, m)
	}
	return u, true
}

// seconds is a time in seconds since 1970.
func seconds(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }

// floor divides, and rounds down.
func floor(a, b int64) int64 {
	if a < 0 {
		return -((-a + b - 1) / b)
	}
	return a / b
}

func round(value float64) int64 {
	const most = 1 << 53
	if !(value < most) { // or NaN
		return most
	}
	return int64(math.Round(max(0, value)))
}

// distribution is how often values occurred, by the seconds for which each applied. Values that differ by less than 5 % are counted
// together.
type distribution struct {
	weighted
	most    float64
	buckets map[int]float64
}

// width is the ratio of the bounds of a bucket.
const width = 1.05

func (d *distribution) add(value, seconds float64) {
	if d.buckets == nil {
		d.buckets = map[int]float64{}
	}
	value = max(0, value)
	d.weighted.add(value, seconds)
	d.most = max(d.most, value)
	d.buckets[int(math.Floor(math.Log1p(value)/math.Log(width)))] += seconds
}

func (d *distribution) mean() float64 { return d.sum / d.seconds }

// quantile returns the value that is not exceeded for a share of the time, at most 5 % too high.
func (d *distribution) quantile(share float64) float64 {
	left := share * d.seconds
	for _, bucket := range slices.Sorted(maps.Keys(d.buckets)) {
		if left -= d.buckets[bucket]; left <= 1e-9*d.seconds {
			return min(d.most, math.Pow(width, float64(bucket+1))-1)
		}
	}
	return d.most
}
