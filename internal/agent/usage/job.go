package usage

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"time"

	"opendatahub.io/mpijob/internal/agentapi"
)

// podMetrics are those that are kept of each pod of a job.
var podMetrics = []agentapi.Metric{agentapi.MetricCPU, agentapi.MetricMemory, agentapi.MetricThrottled, agentapi.MetricNetwork, agentapi.MetricGPU, agentapi.MetricGPUMemory}

// withoutPoints are the metrics of which a job keeps no points.
var withoutPoints = []agentapi.Metric{agentapi.MetricMajorFaults, agentapi.MetricCPUPressure, agentapi.MetricMemoryPressure, agentapi.MetricIOPressure}

// Fit returns what hosts used as JSON of at most a number of bytes, for Job. If that of all does not fit, the first one is kept, of the others
// those that differ most from the rest, and the rest is added up as if it were one host; its PodCount is the number of hosts. Nil is returned
// if the first one alone does not fit.
func Fit(hosts []agentapi.HostUsage, bytes int) []byte {
	data, err := json.Marshal(hosts)
	if err != nil || len(data) <= bytes {
		return data
	}
	first, others := hosts[0], hosts[1:]
	for kept := len(others) * (bytes / 2) / len(data); len(others) > 0; kept /= 2 {
		single := slices.DeleteFunc(slices.Clone(others), func(h agentapi.HostUsage) bool { return h.Usage.PodCount > 0 })
		single = someOf(single, kept, func(h agentapi.HostUsage) []int64 { return figuresOf(h.Usage.Metrics) }, func(agentapi.HostUsage) bool { return false })
		rest := slices.DeleteFunc(slices.Clone(others), func(h agentapi.HostUsage) bool {
			return slices.ContainsFunc(single, func(s agentapi.HostUsage) bool { return s.Host == h.Host })
		})
		fitting := append([]agentapi.HostUsage{first}, single...)
		if sum, is := join(rest); is {
			sum.Pods = nil
			joinRuns(sum.Profile, rest)
			fitting = append(fitting, agentapi.HostUsage{Host: first.Host + "+", Usage: sum})
		}
		if data, err = json.Marshal(fitting); err != nil || len(data) <= bytes {
			return data
		}
		if kept == 0 {
			break
		}
	}
	if data, err = json.Marshal(hosts[:1]); err != nil || len(data) > bytes {
		return nil
	}
	return data
}

// count returns how many hosts an entry is: the sum of several has their number (Fit).
func count(h agentapi.HostUsage) int32 { return max(1, h.Usage.PodCount) }

// figuresOf returns the figures of a pod's metrics by which it is compared with others.
func figuresOf(metrics []agentapi.MetricUsage) (values []int64) {
	for _, metric := range podMetrics {
		m, _ := find(metrics, metric)
		recent := int64(0)
		if m.Recent != nil {
			recent = *m.Recent
		}
		values = append(values, m.Mean, m.Max, recent)
	}
	return values
}

// Job adds up what the hosts of a job used. The figures of a job with one host are those of its samples, others are those of the
// points of the sum. It returns false if there is no host.
func Job(hosts []agentapi.HostUsage) (agentapi.Usage, bool) {
	job, is := join(hosts)
	for i, m := range job.Metrics {
		if slices.Contains(withoutPoints, m.Metric) {
			job.Metrics[i].Points = nil
		}
	}
	return job, is
}

// join is Job with the points of all metrics.
func join(hosts []agentapi.HostUsage) (agentapi.Usage, bool) {
	hosts = slices.DeleteFunc(slices.Clone(hosts), func(h agentapi.HostUsage) bool { return !isWhole(h) })
	if len(hosts) == 0 {
		return agentapi.Usage{}, false
	}
	job := agentapi.Usage{Step: 1, Since: math.MaxInt64}
	for _, h := range hosts {
		job.Since, job.Until, job.Step = min(job.Since, h.Usage.Since), max(job.Until, h.Usage.Until), max(job.Step, h.Usage.Step)
		job.Ranks, job.PodCount = append(job.Ranks, h.Usage.Ranks...), job.PodCount+count(h)
	}
	first, last := span(hosts, job.Step)
	for last-first >= agentapi.MaxUsagePoints {
		job.Step *= 2
		first, last = span(hosts, job.Step)
	}
	job.Start, job.Profile = first*job.Step, jobProfile(hosts)
	for _, metric := range agentapi.Metrics() {
		if m, measured := sum(hosts, metric, job, first, last); measured {
			job.Metrics = append(job.Metrics, m)
		}
	}
	hosts = slices.DeleteFunc(hosts, func(h agentapi.HostUsage) bool { return h.Usage.PodCount > 0 })
	all := pods(hosts, job.Until)
	if i, points := nearestLimit(hosts, job, first, last); i >= 0 {
		own, _ := find(hosts[i].Usage.Metrics, agentapi.MetricMemory)
		memory := &all[i].Metrics[memoryOf(all[i])]
		memory.Points, memory.Latest = points, own.Latest
	}
	job.Pods, job.Ranks = podsOf(all, agentapi.MaxUsagePods), ranksOf(job.Ranks, agentapi.MaxUsageRanks)
	slices.SortStableFunc(job.Ranks, func(a, b agentapi.RankUse) int { return cmp.Compare(a.Rank, b.Rank) })
	return job, true
}

// podsOf returns at most a number of pods: the one whose memory has points, and those that differ most from the others.
func podsOf(all []agentapi.PodUsage, most int) []agentapi.PodUsage {
	return someOf(all, most, func(p agentapi.PodUsage) []int64 { return figuresOf(p.Metrics) },
		func(p agentapi.PodUsage) bool { i := memoryOf(p); return i >= 0 && len(p.Metrics[i].Points) > 0 })
}

// ranksOf returns at most a number of ranks: those that differ most from the others.
func ranksOf(all []agentapi.RankUse, most int) []agentapi.RankUse {
	return someOf(all, most, func(r agentapi.RankUse) []int64 { return []int64{r.CPU, r.Memory} }, func(agentapi.RankUse) bool { return false })
}

// memoryOf returns the index of a pod's memory in its metrics; -1 if it was not measured.
func memoryOf(p agentapi.PodUsage) int {
	return slices.IndexFunc(p.Metrics, func(m agentapi.MetricUsage) bool { return m.Metric == agentapi.MetricMemory })
}

// isSilent reports whether a host reports no more by a time, in seconds since 1970: it has ended, or was lost. Hosts report every half minute,
// and the clocks of their nodes may differ by minutes.
func isSilent(h agentapi.HostUsage, until int64) bool { return until-h.Usage.Until > 5*60 }

// nearestLimit returns which of several hosts reaches its memory limit first, with the points of its memory; -1 if none has a limit. If
// none grows, it is the one that has used the largest part of its limit.
func nearestLimit(hosts []agentapi.HostUsage, job agentapi.Usage, first, last int64) (nearest int, points []int64) {
	nearest = -1
	if len(hosts) == 1 {
		return nearest, nil // its points are the job's
	}
	soonest, fullest := time.Duration(math.MaxInt64), 0.0
	for i, h := range hosts {
		m, measured := find(h.Usage.Metrics, agentapi.MetricMemory)
		if !measured || m.Limit <= 0 || isSilent(h, job.Until) {
			continue
		}
		own := pointsOf(h.Usage, m, job.Step, first, last)
		full := float64(m.Max) / float64(m.Limit)
		growth, grows := agentapi.GrowthOfMemory(agentapi.Window{Start: job.Start, Step: job.Step, Points: own}, m.Latest, m.Limit)
		if grows && growth.Left < soonest || soonest == math.MaxInt64 && (nearest < 0 || full > fullest) {
			nearest, points, fullest = i, own, full
			if grows {
				soonest = growth.Left
			}
		}
	}
	return nearest, points
}

// isWhole reports whether a host's usage can be added up. Any process of the job can write one.
func isWhole(h agentapi.HostUsage) bool {
	const longest, latest, longestName, mostRanks, mostHosts = 1 << 30, 1 << 40, 253, 4096, 1 << 16
	u := h.Usage
	return len(h.Host) <= longestName && u.PodCount >= 0 && u.PodCount <= mostHosts && isWholeProfile(u.Profile) && len(u.Ranks) <= mostRanks && u.Since >= 0 && u.Step > 0 && u.Step < longest && u.Start >= 0 && u.Start < latest && u.Start%u.Step == 0 && u.Until >= u.Since && u.Until < latest &&
		!slices.ContainsFunc(u.Metrics, func(m agentapi.MetricUsage) bool {
			return len(m.Points) > agentapi.MaxUsagePoints || m.Latest != nil && (len(m.Latest.Points) > agentapi.MaxLatestPoints || m.Latest.Step != latestStep)
		})
}

// span returns the numbers of the first and the last point of the sum.
func span(hosts []agentapi.HostUsage, step int64) (first, last int64) {
	first = math.MaxInt64
	for _, h := range hosts {
		points := int64(1)
		for _, m := range h.Usage.Metrics {
			points = max(points, int64(len(m.Points)))
		}
		first, last = min(first, h.Usage.Start/step), max(last, (h.Usage.Start+points*h.Usage.Step-1)/step)
	}
	return first, last
}

// sum adds up a metric of all hosts; false if none measured it, or if it was always 0, unless it is always kept.
func sum(hosts []agentapi.HostUsage, metric agentapi.Metric, job agentapi.Usage, first, last int64) (agentapi.MetricUsage, bool) {
	total := agentapi.MetricUsage{Metric: metric}
	sums, shares := make([]float64, last-first+1), make([]float64, last-first+1)
	measured, limited := 0, 0
	for _, h := range hosts {
		m, is := find(h.Usage.Metrics, metric)
		if !is {
			continue
		}
		measured++
		if m.Limit > 0 {
			limited++
			total.Limit += m.Limit
		}
		total.Mean, total.P95, total.Max = m.Mean, m.P95, max(total.Max, m.Max)
		if len(hosts) == 1 {
			total.Latest = m.Latest
		}
		for i, value := range coarse(h.Usage, m, job.Step, first, last) {
			if value.seconds > 0 {
				share := presence(h, job, (first+int64(i))*job.Step) * weight(h, metric)
				sums[i] += share * value.sum / value.seconds
				shares[i] += share
			}
		}
	}
	if limited < measured || metric.IsShare() {
		total.Limit = 0
	}
	if measured == 0 || total.Max == 0 && !isAlwaysKept(metric) {
		return total, false
	}
	points, known := sumPoints(sums, shares, metric.IsShare())
	if measured > 1 {
		total.Mean, total.P95, total.Max = figures(known)
	}
	total.Points = points
	return total, true
}

// weight returns for how many hosts an entry counts in a mean of shares. Other metrics are sums already.
func weight(h agentapi.HostUsage, metric agentapi.Metric) float64 {
	if metric.IsShare() {
		return float64(count(h))
	}
	return 1
}

// isAlwaysKept reports whether a metric is reported also if it was always 0.
func isAlwaysKept(metric agentapi.Metric) bool {
	return slices.Contains([]agentapi.Metric{agentapi.MetricCPU, agentapi.MetricMemory, agentapi.MetricGPU}, metric)
}

// presence returns in which part of a point of the job a host was measured: it may have begun or ended within the point. begin is when the
// point begins.
func presence(h agentapi.HostUsage, job agentapi.Usage, begin int64) float64 {
	from, to, until := max(begin, job.Since), min(begin+job.Step, job.Until), h.Usage.Until
	if !isSilent(h, job.Until) {
		until = job.Until // it reports again soon
	}
	if from >= to {
		return 1
	}
	return float64(max(0, min(to, until)-max(from, h.Usage.Since))) / float64(to-from)
}

// sumPoints returns the points of sums, or of the means by the shares that were added up, and those that are known.
func sumPoints(sums, shares []float64, means bool) (points, known []int64) {
	for i, sum := range sums {
		value := int64(agentapi.NoPoint)
		if shares[i] > 0 {
			if means {
				sum /= shares[i]
			}
			value = round(sum)
			known = append(known, value)
		}
		points = append(points, value)
	}
	return points, known
}

// coarse returns a metric's points in those of another length.
func coarse(u agentapi.Usage, m agentapi.MetricUsage, step, first, last int64) []weighted {
	points := make([]weighted, last-first+1)
	for i, value := range m.Points {
		if at := (u.Start+int64(i)*u.Step)/step - first; value >= 0 && at >= 0 && at < int64(len(points)) {
			points[at].add(float64(value), 1)
		}
	}
	return points
}

// pointsOf returns a metric's points in those of another length, as they are reported.
func pointsOf(u agentapi.Usage, m agentapi.MetricUsage, step, first, last int64) (points []int64) {
	for _, w := range coarse(u, m, step, first, last) {
		points = append(points, pointOf(&w))
	}
	return points
}

// figures returns the mean, the 95th percentile and the maximum of points.
func figures(points []int64) (mean, p95, most int64) {
	if len(points) == 0 {
		return 0, 0, 0
	}
	sorted, total := slices.Sorted(slices.Values(points)), 0.0
	for _, value := range sorted {
		total += float64(value)
	}
	nearest := int(math.Ceil(0.95*float64(len(sorted)))) - 1
	return round(total / float64(len(sorted))), sorted[nearest], sorted[len(sorted)-1]
}

// pods returns the figures of each host, without points. What hosts used recently that report no more by a time is unknown.
func pods(hosts []agentapi.HostUsage, until int64) []agentapi.PodUsage {
	var all []agentapi.PodUsage
	for _, h := range hosts {
		pod := agentapi.PodUsage{Host: h.Host}
		for _, metric := range podMetrics {
			m, is := find(h.Usage.Metrics, metric)
			if is && (m.Max > 0 || isAlwaysKept(metric)) {
				m.Points, m.Latest = nil, nil
				if isSilent(h, until) {
					m.Recent = nil
				}
				pod.Metrics = append(pod.Metrics, m)
			}
		}
		all = append(all, pod)
	}
	return all
}

// someOf returns at most a number of entries, in their order: first of all the ones that are wanted, then those that differ most from the
// others in one of their values.
func someOf[T any](all []T, most int, values func(T) []int64, isWanted func(T) bool) []T {
	if len(all) <= most {
		return all
	}
	var of [][]int64
	for _, entry := range all {
		of = append(of, values(entry))
	}
	differs := make([]float64, len(all))
	for column := range of[0] {
		var sorted []int64
		for _, row := range of {
			sorted = append(sorted, row[column])
		}
		slices.Sort(sorted)
		median := float64(sorted[len(sorted)/2])
		for i, row := range of {
			differs[i] = max(differs[i], math.Abs(float64(row[column])-median)/max(1, median))
		}
	}
	for i, entry := range all {
		if isWanted(entry) {
			differs[i] = math.Inf(1)
		}
	}
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(differs[b], differs[a]) })
	var kept []T
	for _, i := range slices.Sorted(slices.Values(order[:most])) {
		kept = append(kept, all[i])
	}
	return kept
}

func find(metrics []agentapi.MetricUsage, metric agentapi.Metric) (agentapi.MetricUsage, bool) {
	i := slices.IndexFunc(metrics, func(m agentapi.MetricUsage) bool { return m.Metric == metric })
	if i < 0 {
		return agentapi.MetricUsage{}, false
	}
	return metrics[i], true
}

// LineSize is the most bytes of a job's usage in a log: container runtimes split lines of 16 KiB.
const LineSize = 15 << 10

// Within returns a job's usage with so few points, pods, ranks and calls that it takes at most a number of bytes as JSON; nil if there is no
// room for its figures.
func Within(u agentapi.Usage, bytes int) *agentapi.Usage {
	if u.Step <= 0 {
		return nil
	}
	const allCalls, someCalls, noProfile = agentapi.MaxJobCalls, 4, 0
	for _, most := range []struct{ points, entries, calls int }{
		{agentapi.MaxUsagePoints, agentapi.MaxUsagePods, allCalls},
		{agentapi.MaxUsagePoints, 16, allCalls},
		{agentapi.MaxUsagePoints, 8, allCalls},
		{60, 8, allCalls},
		{60, 4, allCalls},
		{60, 0, allCalls},
		{30, 0, allCalls},
		{15, 0, someCalls},
		{0, 0, someCalls},
		{0, 0, noProfile},
	} {
		shorter := withPoints(u, most.points)
		if shorter.Profile = nil; u.Profile != nil && most.calls > 0 {
			profile := *u.Profile
			profile.Ranks, profile.Calls = profileRanks(profile.Ranks, profile.Late, most.entries), profile.Calls[:min(len(profile.Calls), most.calls)]
			shorter.Profile = &profile
		}
		shorter.Pods, shorter.Ranks = podsOf(shorter.Pods, most.entries), ranksOf(u.Ranks, most.entries)
		if data, err := json.Marshal(shorter); err == nil && len(data) <= bytes {
			return &shorter
		}
	}
	return nil
}

// WithoutLatest returns a job's usage without the points of the last hour, which are of use while the job runs.
func WithoutLatest(u agentapi.Usage) agentapi.Usage {
	without := func(metrics []agentapi.MetricUsage) []agentapi.MetricUsage {
		metrics = slices.Clone(metrics)
		for i := range metrics {
			metrics[i].Latest = nil
		}
		return metrics
	}
	u.Metrics, u.Pods = without(u.Metrics), slices.Clone(u.Pods)
	for i, pod := range u.Pods {
		u.Pods[i].Metrics = without(pod.Metrics)
	}
	return u
}

// withPoints returns a usage with at most a number of points.
func withPoints(u agentapi.Usage, most int) agentapi.Usage {
	hosts, step := []agentapi.HostUsage{{Usage: u}}, u.Step
	first, last := span(hosts, step)
	for most > 0 && last-first >= int64(most) {
		step *= 2
		first, last = span(hosts, step)
	}
	shorten := func(metrics []agentapi.MetricUsage) []agentapi.MetricUsage {
		metrics = slices.Clone(metrics)
		for i, m := range metrics {
			metrics[i].Points = nil
			if most > 0 && len(m.Points) > 0 {
				metrics[i].Points = pointsOf(u, m, step, first, last)
			}
			if most < agentapi.MaxLatestPoints {
				metrics[i].Latest = nil
			}
		}
		return metrics
	}
	u.Metrics, u.Pods = shorten(u.Metrics), slices.Clone(u.Pods)
	for i, pod := range u.Pods {
		u.Pods[i].Metrics = shorten(pod.Metrics)
	}
	u.Start, u.Step = first*step, step
	return u
}
