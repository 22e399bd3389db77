package report

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/cost"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
)

// UsageSoFar returns what a running job used by what was observed of it now, and by its report so far: nil if that is unknown.
func UsageSoFar(job mpi.Job, seen jobstate.Observed, evidence jobstate.Evidence, previous *v1alpha1.JobReport) *v1alpha1.Usage {
	m := maker{job: job, seen: seen, evidence: evidence, now: second(seen.Now)}
	if previous != nil {
		m.before = previous.Status
	}
	return m.usage()
}

// LatestMemory returns what agents reported of the memory of a pod in the last hour; nil if they reported none, or it makes no sense.
func LatestMemory(job mpi.Job, seen jobstate.Observed, told *agentapi.Usage) *jobstate.LatestMemory {
	if told == nil {
		return nil
	}
	m := maker{job: job, seen: seen}
	if told.PodCount == 1 {
		return latestMemory(told.Metrics)
	}
	for _, pod := range told.Pods {
		latest := latestMemory(pod.Metrics)
		if latest == nil {
			continue
		}
		if latest.Pod = m.podOfHost(pod.Host); latest.Pod != "" {
			return latest
		}
	}
	return nil
}

func latestMemory(told []agentapi.MetricUsage) *jobstate.LatestMemory {
	for _, m := range told {
		if m.Metric != agentapi.MetricMemory || m.Latest == nil || m.Latest.Step != int64(agentapi.LatestStep/time.Second) || len(m.Latest.Points) > agentapi.MaxLatestPoints {
			continue
		}
		latest := jobstate.LatestMemory{Window: agentapi.Window{Start: m.Latest.Start, Step: m.Latest.Step}}
		for _, point := range m.Latest.Points {
			latest.Points = append(latest.Points, max(agentapi.NoPoint, min(point, maxFigure)))
		}
		return &latest
	}
	return nil
}

// usage returns what the job used: what its agents reported last, while it ran or when its launcher ended. What was reported before is
// kept, so that pods which ended without a report have one.
func (m maker) usage() *v1alpha1.Usage {
	best := m.before.Usage.DeepCopy()
	reported := func(of agentapi.Usage, isLast bool) {
		if next := m.readUsage(of); next != nil {
			best = laterUsage(best, next, isLast)
		}
	}
	if m.evidence.Usage != nil {
		reported(*m.evidence.Usage, false)
	}
	for summary := range m.launcherSummaries() {
		if summary.Usage != nil {
			reported(*summary.Usage, true)
		}
		break // earlier runs are over
	}
	return best
}

// laterUsage returns the later one of two usages. A launcher's last message has room for few points and pods: those of a report of
// the same run that ended shortly before are kept, with the message's figures. A running job's are not: with fewer pods than before, they are still later.
func laterUsage(before, next *v1alpha1.Usage, isLast bool) *v1alpha1.Usage {
	switch {
	case before == nil:
		return next
	case next.Until.Before(&before.Until):
		return before
	}
	next.Earlier = before.Earlier
	if !next.Since.Before(&before.Until) {
		next.Earlier = withRun(before.Earlier, before)
	}
	if next.Since.Sub(before.Since.Time).Abs() > sameRun || !isLast {
		return next
	}
	if len(next.PerPod) < len(before.PerPod) && before.Pods == next.Pods {
		next.PerPod = before.PerPod
	}
	if len(next.PerRank) < len(before.PerRank) {
		next.PerRank = before.PerRank
	}
	if short := agentapi.UsagePause(next.Until.Sub(next.Since.Time)); points(before) > points(next) && (points(next) == 0 || next.Until.Sub(before.Until.Time) <= short) {
		keepPoints(before, next)
	}
	// They may be of other lengths than the job's, and are of use while the job runs.
	for _, pod := range next.PerPod {
		for i := range pod.Metrics {
			pod.Metrics[i].Points = nil
		}
	}
	return next
}

// withRun adds the run of a usage to earlier ones. If there are too many, the oldest ones are added up.
func withRun(earlier []v1alpha1.EarlierUsage, of *v1alpha1.Usage) []v1alpha1.EarlierUsage {
	const most = 16
	only := *of
	only.Earlier = nil
	used, measured := cost.UsedBetween(&only, time.Time{}, time.Time{})
	if !measured {
		return earlier
	}
	seconds := func(hours *float64) int64 {
		if hours == nil {
			return 0
		}
		return plus(0, *hours*3600)
	}
	run := v1alpha1.EarlierUsage{Since: of.Since, Until: of.Until, CPUCoreSeconds: seconds(used.CoreHours), MemoryGiBSeconds: seconds(used.GiBHours)}
	if used.GPUHours != nil {
		run.GPUSeconds = new(seconds(used.GPUHours))
	}
	earlier = append(slices.Clone(earlier), run)
	if len(earlier) <= most {
		return earlier
	}
	sum, second := earlier[0], earlier[1]
	sum.Until = second.Until
	sum.CPUCoreSeconds, sum.MemoryGiBSeconds = plus(sum.CPUCoreSeconds, float64(second.CPUCoreSeconds)), plus(sum.MemoryGiBSeconds, float64(second.MemoryGiBSeconds))
	if sum.GPUSeconds = second.GPUSeconds; earlier[0].GPUSeconds != nil && second.GPUSeconds != nil {
		sum.GPUSeconds = new(plus(*earlier[0].GPUSeconds, float64(*second.GPUSeconds)))
	} else if second.GPUSeconds == nil {
		sum.GPUSeconds = earlier[0].GPUSeconds
	}
	earlier[1] = sum
	return earlier[1:]
}

// keepPoints takes the points of an earlier usage of the same run over into a later one that has fewer.
func keepPoints(before, next *v1alpha1.Usage) {
	next.PointsSince, next.PointSeconds = before.PointsSince, before.PointSeconds
	for i, metric := range next.Metrics {
		next.Metrics[i].Points = nil
		if known := v1alpha1.FindMetric(before.Metrics, metric.Metric); known != nil {
			next.Metrics[i].Points = known.Points
		}
	}
}

// sameRun is by how much the beginnings of two reports of the same run may differ: the first worker may have been lost meanwhile.
const sameRun = time.Minute

// points is how many points the metrics have.
func points(u *v1alpha1.Usage) (count int) {
	for _, metric := range u.Metrics {
		count += len(metric.Points)
	}
	return count
}

// readUsage returns what agents reported as the API keeps it; nil if it makes no sense. Programs of the job can write what agents
// report: it is bounded, names no other pods than the job's, and does not begin before the job or end in the future.
func (m maker) readUsage(told agentapi.Usage) *v1alpha1.Usage {
	const tolerance = 5 * time.Minute // between the clocks of nodes
	since, until := time.Unix(told.Since, 0), time.Unix(told.Until, 0)
	earliest := m.began().Add(-tolerance)
	if m.before.StartTime != nil {
		earliest = m.before.StartTime.Add(-tolerance)
	}
	const longestPoint = 1 << 24
	if told.Step <= 0 || told.Step > longestPoint || since.Before(earliest) || until.Before(since) || until.After(m.now.Add(tolerance)) {
		return nil
	}
	u := &v1alpha1.Usage{
		Since: *at(since), Until: *at(until), PointsSince: metav1.NewTime(time.Unix(told.Start, 0).UTC()), PointSeconds: told.Step,
		Pods: max(0, min(told.PodCount, m.job.Workers.Count+1)), Metrics: usageMetrics(told.Metrics, agentapi.MaxUsagePoints),
	}
	if told.Start > told.Since || told.Start < told.Since-told.Step || len(u.Metrics) == 0 {
		return nil
	}
	if !m.mayHaveGPUs() {
		u.Metrics = withoutGPUs(u.Metrics)
	}
	hasPoints := false
	for _, pod := range told.Pods {
		name := m.podOfHost(pod.Host)
		if name == "" || len(u.PerPod) == agentapi.MaxUsagePods {
			continue
		}
		used := v1alpha1.PodUsage{Pod: name, Metrics: usageMetrics(pod.Metrics, 0)}
		memory, points := v1alpha1.FindMetric(used.Metrics, v1alpha1.MetricMemory), memoryPoints(pod.Metrics)
		if memory != nil && len(points) > 0 && !hasPoints {
			memory.Points, hasPoints = points, true
		}
		if !m.mayHaveGPUs() {
			used.Metrics = withoutGPUs(used.Metrics)
		}
		u.PerPod = append(u.PerPod, used)
	}
	for _, rank := range told.Ranks[:min(len(told.Ranks), agentapi.MaxUsageRanks)] {
		if rank.Rank >= 0 {
			u.PerRank = append(u.PerRank, v1alpha1.RankUsage{Rank: rank.Rank, CPUMillicores: figure(rank.CPU), MemoryMiB: figure(rank.Memory)})
		}
	}
	return u
}

// mayHaveGPUs reports whether a pod of the job may have GPUs of its own.
func (m maker) mayHaveGPUs() bool {
	return mpi.MayHaveGPUs(m.job.Launcher.Template.Spec) || mpi.MayHaveGPUs(m.job.Workers.Template.Spec)
}

// withoutGPUs drops the metrics of GPUs.
func withoutGPUs(metrics []v1alpha1.UsageMetric) []v1alpha1.UsageMetric {
	return slices.DeleteFunc(metrics, func(m v1alpha1.UsageMetric) bool {
		return m.Metric == v1alpha1.MetricGPU || m.Metric == v1alpha1.MetricGPUMemory
	})
}

// memoryPoints returns the points of the memory in metrics, if there are not too many.
func memoryPoints(told []agentapi.MetricUsage) []int64 {
	if memory := v1alpha1.FindMetric(usageMetrics(told, agentapi.MaxUsagePoints), v1alpha1.MetricMemory); memory != nil {
		return memory.Points
	}
	return nil
}

// usageMetrics returns the metrics that are known, each once, with at most a number of points.
func usageMetrics(told []agentapi.MetricUsage, most int) []v1alpha1.UsageMetric {
	var all []v1alpha1.UsageMetric
	for _, name := range agentapi.Metrics() {
		i := slices.IndexFunc(told, func(m agentapi.MetricUsage) bool { return m.Metric == name })
		if i < 0 || most > 0 && len(told[i].Points) > most {
			continue
		}
		m := told[i]
		metric := v1alpha1.UsageMetric{Metric: v1alpha1.MetricName(name), Mean: figure(m.Mean), P95: figure(m.P95), Max: figure(m.Max), Limit: figure(m.Limit)}
		if m.Recent != nil {
			metric.Recent = new(figure(*m.Recent))
		}
		for _, point := range m.Points[:min(len(m.Points), most)] {
			metric.Points = append(metric.Points, max(agentapi.NoPoint, min(point, maxFigure)))
		}
		all = append(all, metric)
	}
	return all
}

// maxFigure is the largest figure of a usage, with 12 digits: more than any job uses, and few enough for the size of reports.
const maxFigure = 999_999_999_999

func figure(value int64) int64 { return max(0, min(value, maxFigure)) }

// podOfHost returns the name of the job's pod with a host name; "" if there is none. The host name of a pod is its name, or its name
// without a random suffix.
func (m maker) podOfHost(host string) string {
	for _, pod := range m.seen.AllPods() {
		if suffix, is := strings.CutPrefix(pod.Name, host); is && host != "" && (suffix == "" || strings.HasPrefix(suffix, "-") && !strings.Contains(suffix[1:], "-")) {
			return pod.Name
		}
	}
	for _, pod := range m.before.Pods {
		if pod.Name == host {
			return pod.Name
		}
	}
	return ""
}

// usageRefresh is how often the record of a running job is written for its usage alone.
const usageRefresh = time.Minute

// usedMore reports whether a usage is to be written: it is new, or has grown for long enough. The usage of a job that has run for long
// is written less often.
func usedMore(old, now *v1alpha1.Usage) bool {
	switch {
	case now == nil:
		return false
	case old == nil || !old.Since.Equal(&now.Since):
		return true
	}
	grown, running := now.Until.Sub(old.Until.Time), now.Until.Sub(now.Since.Time)
	return grown >= max(usageRefresh, running/20)-usageRefresh/2
}
