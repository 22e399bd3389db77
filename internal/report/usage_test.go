package report_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/report"
)

// used is what agents report of a job that has used so many millicores for a time.
func used(job mpi.Job, from, until time.Duration, cpu int64, change ...func(*agentapi.Usage)) *agentapi.Usage {
	since := mpitest.Now.Add(from).Unix()
	u := &agentapi.Usage{
		Start: since - since%10, Step: 10, Since: since, Until: mpitest.Now.Add(until).Unix(), PodCount: 2,
		Metrics: []agentapi.MetricUsage{
			{Metric: agentapi.MetricCPU, Mean: cpu, P95: cpu + 1, Max: cpu + 2, Limit: 4000, Points: []int64{cpu, agentapi.NoPoint, cpu}},
			{Metric: agentapi.MetricMemory, Mean: 100, P95: 200, Max: 300, Limit: 8192, Points: []int64{100, 200, 300}},
			{Metric: agentapi.MetricThrottled, Mean: 30, P95: 40, Max: 50, Points: []int64{30, 30, 30}},
		},
		Ranks: []agentapi.RankUse{{Rank: 0, CPU: cpu / 2, Memory: 90}},
	}
	for i := range 2 {
		u.Pods = append(u.Pods, agentapi.PodUsage{Host: job.WorkerName(i), Metrics: []agentapi.MetricUsage{{Metric: agentapi.MetricCPU, Mean: cpu / 2, P95: cpu / 2, Max: cpu / 2, Limit: 2000}}})
	}
	for _, c := range change {
		c(u)
	}
	return u
}

// withUsage adds the last message of the launcher's agent.
func withUsage(seen jobstate.Observed, u *agentapi.Usage) jobstate.Observed {
	data, err := json.Marshal(agentapi.Summary{Role: agentapi.RoleLauncher, ExitCode: new(int32(0)), Usage: u})
	if err != nil {
		panic(err)
	}
	seen.LauncherPods[0].Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "launcher", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: string(data)}}}}
	return seen
}

// TestUsage: the usage that was read last while the job ran stays; the launcher's last message completes it.
func TestUsage(t *testing.T) {
	h := &history{t: t, job: job(2)}
	running := pods(h.job, corev1.PodRunning, time.Second)
	h.pass(10*time.Second, running, jobstate.Evidence{})
	h.pass(75*time.Second, running, jobstate.Evidence{Usage: used(h.job, 5*time.Second, 65*time.Second, 1000)})
	mpitest.Golden(t, "usage-running", h.last.Status.Usage)
	before := h.last
	if h.pass(100*time.Second, running, jobstate.Evidence{}); report.Changed(before, *h.last) || h.last.Status.Usage == nil {
		t.Errorf("without another report, the usage is %+v", h.last.Status.Usage)
	}
	if h.pass(110*time.Second, running, jobstate.Evidence{Usage: used(h.job, 5*time.Second, 85*time.Second, 1100)}); report.Changed(before, *h.last) {
		t.Error("the report is written again after 20 s")
	}
	if h.pass(140*time.Second, running, jobstate.Evidence{Usage: used(h.job, 5*time.Second, 125*time.Second, 1200)}); !report.Changed(before, *h.last) {
		t.Error("the report is not written after a minute")
	}
	lost := h.last.DeepCopy()

	// The launcher's message has fewer points and no pods.
	short := used(h.job, 5*time.Second, 150*time.Second, 1300, func(u *agentapi.Usage) {
		u.Pods, u.Ranks = nil, nil
		u.Start, u.Step = u.Start-u.Start%40, 40
		for i := range u.Metrics {
			u.Metrics[i].Points = u.Metrics[i].Points[:1]
		}
	})
	finished := withUsage(ended(pods(h.job, corev1.PodRunning, time.Second), h.job, batchv1.JobComplete, 150*time.Second), short)
	h.pass(155*time.Second, finished, jobstate.Evidence{})
	mpitest.Golden(t, "usage-ended", h.last.Status.Usage)

	// A launcher that was killed leaves no message.
	h.last = lost
	killed := ended(jobstate.Observed{}, h.job, batchv1.JobFailed, 150*time.Second)
	if h.pass(155*time.Second, killed, jobstate.Evidence{}); h.last.Status.Usage == nil || h.last.Status.Usage.Metrics[0].Mean != 1200 {
		t.Errorf("after the launcher was killed: %+v", h.last.Status.Usage)
	}
}

// TestPointsOfTheEnd: the launcher's last message is a little later than the line of the first worker's log at its end, and has fewer points. The
// points of the line stay, with the figures of the message; those of a report that is much older do not, unless there are no others.
func TestPointsOfTheEnd(t *testing.T) {
	const end = time.Hour
	points := func(count int, step int64) func(*agentapi.Usage) {
		return func(u *agentapi.Usage) {
			u.Start, u.Step = u.Start-u.Start%step, step
			for i := range u.Metrics {
				u.Metrics[i].Points = make([]int64, count)
			}
		}
	}
	for name, test := range map[string]struct {
		before       time.Duration
		points, want int
	}{
		"a moment later, with fewer points": {end - 3*time.Second, 30, 90}, "a moment later, without points": {end - 3*time.Second, 0, 90},
		"minutes later, with fewer points": {end - 20*time.Minute, 30, 30}, "minutes later, without points": {end - 20*time.Minute, 0, 90},
		"with more points": {end - 3*time.Second, 100, 100},
	} {
		t.Run(name, func(t *testing.T) {
			h := &history{t: t, job: job(2)}
			running := pods(h.job, corev1.PodRunning, time.Second)
			h.pass(10*time.Second, running, jobstate.Evidence{})
			h.pass(test.before, running, jobstate.Evidence{Usage: used(h.job, 5*time.Second, test.before, 1000, points(90, 40))})
			last := used(h.job, 5*time.Second, end, 1300, points(test.points, 160))
			h.pass(end+time.Second, withUsage(ended(pods(h.job, corev1.PodRunning, time.Second), h.job, batchv1.JobComplete, end), last), jobstate.Evidence{})
			u := h.last.Status.Usage
			if step := map[bool]int64{true: 40, false: 160}[test.want == 90]; u.PointSeconds != step || u.Metrics[0].Mean != 1300 || !u.Until.Equal(new(metav1.NewTime(mpitest.Now.Add(end)))) {
				t.Errorf("%+v", u)
			}
			for _, m := range u.Metrics {
				if len(m.Points) != test.want {
					t.Errorf("%s has %d points, want %d", m.Metric, len(m.Points), test.want)
				}
			}
		})
	}
}

// TestRecentUsageOfPods: what pods used recently, and the memory of the pod that reaches its limit first, are those of the latest report, also
// if it lists fewer pods. When the job has ended, its last message may list none, and points are of other lengths.
func TestRecentUsageOfPods(t *testing.T) {
	h := &history{t: t, job: job(2)}
	running := pods(h.job, corev1.PodRunning, time.Second)
	recent := func(pods int, share int64, points ...int64) func(*agentapi.Usage) {
		return func(u *agentapi.Usage) {
			u.Pods = u.Pods[:pods]
			for i := range u.Pods {
				u.Pods[i].Metrics = []agentapi.MetricUsage{
					{Metric: agentapi.MetricMemory, Max: 200, Limit: 4096, Points: points},
					{Metric: agentapi.MetricThrottled, Mean: 900, Max: 1000, Recent: new(share)},
				}
			}
		}
	}
	check := func(when, want string) {
		t.Helper()
		got := ""
		for _, pod := range h.last.Status.Usage.PerPod {
			got += fmt.Sprint(pod.Metrics[0].Points, *pod.Metrics[1].Recent, " ")
		}
		if got != want {
			t.Errorf("%s: %s, want %s", when, got, want)
		}
	}
	h.pass(10*time.Second, running, jobstate.Evidence{})
	h.pass(75*time.Second, running, jobstate.Evidence{Usage: used(h.job, 5*time.Second, 65*time.Second, 1000, recent(2, 500, 10, -1, 30))})
	check("of two pods, one has points", "[10 -1 30] 500 [] 500 ")
	h.pass(140*time.Second, running, jobstate.Evidence{Usage: used(h.job, 5*time.Second, 125*time.Second, 1000, recent(2, -7, make([]int64, 121)...))})
	check("nonsense", "[] 0 [] 0 ")
	h.pass(200*time.Second, running, jobstate.Evidence{Usage: used(h.job, 5*time.Second, 190*time.Second, 1000, recent(1, 3, 40, 50, 60))})
	check("a report that lists fewer pods", "[40 50 60] 3 ")
	h.pass(260*time.Second, running, jobstate.Evidence{Usage: used(h.job, 5*time.Second, 250*time.Second, 1000, recent(2, 3, 40, 50, 60))})
	last := used(h.job, 5*time.Second, 280*time.Second, 1000, recent(0, 0))
	h.pass(285*time.Second, withUsage(ended(pods(h.job, corev1.PodRunning, time.Second), h.job, batchv1.JobComplete, 280*time.Second), last), jobstate.Evidence{})
	check("the last message lists no pods", "[] 3 [] 3 ")
}

// TestUsageOfAnotherRun: a later run of the launcher replaces the usage of an earlier one.
func TestUsageOfAnotherRun(t *testing.T) {
	h := &history{t: t, job: job(2)}
	running := pods(h.job, corev1.PodRunning, time.Second)
	h.pass(10*time.Second, running, jobstate.Evidence{})
	h.pass(75*time.Second, running, jobstate.Evidence{Usage: used(h.job, 5*time.Second, 65*time.Second, 1000)})
	h.pass(500*time.Second, running, jobstate.Evidence{Usage: used(h.job, 400*time.Second, 460*time.Second, 7, func(u *agentapi.Usage) { u.Pods = nil })})
	if u := h.last.Status.Usage; u.Metrics[0].Mean != 7 || len(u.PerPod) > 0 {
		t.Errorf("%+v", u)
	}
}

// TestHostileUsage: programs of a job can write what its agents report. Nonsense is left out, and the rest is bounded.
func TestHostileUsage(t *testing.T) {
	many := make([]int64, 100_000)
	for name, test := range map[string]struct {
		change func(*agentapi.Usage)
		// want is how the usage looks; "" if it is left out.
		want string
	}{
		"in order":                 {func(*agentapi.Usage) {}, "3 2 1"},
		"no step":                  {func(u *agentapi.Usage) { u.Step = 0 }, ""},
		"a step of years":          {func(u *agentapi.Usage) { u.Step = 1 << 40 }, ""},
		"points before the start":  {func(u *agentapi.Usage) { u.Start -= 1000 }, ""},
		"before the job":           {func(u *agentapi.Usage) { u.Since, u.Start = 0, 0 }, ""},
		"in the future":            {func(u *agentapi.Usage) { u.Until += 1 << 40 }, ""},
		"the end before the start": {func(u *agentapi.Usage) { u.Until = u.Since - 1 }, ""},
		"no metrics":               {func(u *agentapi.Usage) { u.Metrics = nil }, ""},
		"too many points":          {func(u *agentapi.Usage) { u.Metrics[0].Points = many }, "2 2 1"},
		"an unknown metric":        {func(u *agentapi.Usage) { u.Metrics[0].Metric = agentapi.Metric(strings.Repeat("x", 1<<20)) }, "2 2 1"},
		"a metric twice":           {func(u *agentapi.Usage) { u.Metrics = append(u.Metrics, u.Metrics...) }, "3 2 1"},
		"another job's pod":        {func(u *agentapi.Usage) { u.Pods[0].Host = "other-worker-0" }, "3 1 1"},
		"a host without a name":    {func(u *agentapi.Usage) { u.Pods[0].Host = "" }, "3 1 1"},
		"too many pods": {func(u *agentapi.Usage) {
			for range 1000 {
				u.Pods = append(u.Pods, u.Pods[0])
			}
		}, "3 32 1"},
		"too many ranks":   {func(u *agentapi.Usage) { u.Ranks = make([]agentapi.RankUse, 100_000) }, "3 2 32"},
		"a negative rank":  {func(u *agentapi.Usage) { u.Ranks[0].Rank = -5 }, "3 2 0"},
		"negative figures": {func(u *agentapi.Usage) { u.Metrics[0].Mean, u.Metrics[0].Points[0] = -1<<63, -1<<63 }, "3 2 1"},
		"huge figures":     {func(u *agentapi.Usage) { u.Metrics[0].Mean, u.Metrics[0].Points[0] = 1<<63-1, 1<<63-1 }, "3 2 1"},
		"negative pods":    {func(u *agentapi.Usage) { u.PodCount = -7 }, "3 2 1"},
	} {
		t.Run(name, func(t *testing.T) {
			h := &history{t: t, job: job(2)}
			running := pods(h.job, corev1.PodRunning, time.Second)
			h.pass(10*time.Second, running, jobstate.Evidence{})
			h.pass(75*time.Second, running, jobstate.Evidence{Usage: used(h.job, 5*time.Second, 65*time.Second, 1000, test.change)})
			u, got := h.last.Status.Usage, ""
			if u != nil {
				got = fmt.Sprint(len(u.Metrics), len(u.PerPod), len(u.PerRank))
				for _, m := range u.Metrics {
					for _, value := range append(m.Points, m.Mean, m.P95, m.Max, m.Limit) {
						if value < -1 || value > 1e12 {
							t.Errorf("%s has the figure %d", m.Metric, value)
						}
					}
				}
			}
			if got != test.want || u != nil && u.Pods < 0 {
				t.Errorf("%s, want %s: %+v", got, test.want, u)
			}
		})
	}
}

// TestSizeOfUsage: the usage of a job of 64 workers takes a small part of its report, and all pods of a job of 2,000 are still listed.
func TestSizeOfUsage(t *testing.T) {
	for workers, most := range map[int32]int{64: 18 << 10, 2000: 18 << 10} {
		h := &history{t: t, job: job(workers)}
		running := pods(h.job, corev1.PodRunning, time.Second)
		h.pass(10*time.Second, running, jobstate.Evidence{})
		large := used(h.job, 5*time.Second, 65*time.Second, 1000, func(u *agentapi.Usage) {
			points := make([]int64, agentapi.MaxUsagePoints)
			for i := range points {
				points[i] = 31000
			}
			u.Metrics, u.Pods, u.Ranks = nil, nil, nil
			for _, metric := range agentapi.Metrics() {
				m := agentapi.MetricUsage{Metric: metric, Mean: 31000, P95: 31000, Max: 31000, Limit: 32000}
				if !strings.Contains(string(metric), "Pressure") && metric != agentapi.MetricMajorFaults {
					m.Points = points
				}
				u.Metrics = append(u.Metrics, m)
			}
			for i := range agentapi.MaxUsagePods {
				u.Pods = append(u.Pods, agentapi.PodUsage{Host: h.job.WorkerName(i), Metrics: []agentapi.MetricUsage{
					{Metric: agentapi.MetricCPU, Mean: 31000, P95: 31000, Max: 31000, Limit: 32000},
					{Metric: agentapi.MetricMemory, Mean: 31000, P95: 31000, Max: 31000, Limit: 32000},
					{Metric: agentapi.MetricThrottled, Mean: 100, P95: 100, Max: 100, Recent: new(int64(100))},
					{Metric: agentapi.MetricNetwork, Mean: 31000, P95: 31000, Max: 31000},
				}})
				u.Pods[0].Metrics[1].Points = points
				u.Ranks = append(u.Ranks, agentapi.RankUse{Rank: int32(i), CPU: 3900, Memory: 4000})
			}
		})
		h.pass(75*time.Second, running, jobstate.Evidence{Usage: large})
		u := h.last.Status.Usage
		data, err := json.Marshal(u)
		if err != nil || len(data) > most || len(u.PerPod) != agentapi.MaxUsagePods {
			t.Errorf("%d workers: %d bytes, %d pods, %v", workers, len(data), len(u.PerPod), err)
		}
		t.Logf("%d workers: %d bytes", workers, len(data))
		if h.last.Status.PodsOmitted > 0 {
			t.Errorf("%d workers: %d pods are not listed", workers, h.last.Status.PodsOmitted)
		}
	}
}

// TestHostNames: TrainJobs' pods have a suffix that their host names do not have.
func TestHostNames(t *testing.T) {
	h := &history{t: t, job: job(2)}
	running := pods(h.job, corev1.PodRunning, time.Second)
	running.Workers[0].Pod.Name, running.Workers[1].Pod.Name = "pi-node-0-1-abcde", "pi-node-0-10-fghij"
	h.pass(10*time.Second, running, jobstate.Evidence{})
	h.pass(75*time.Second, running, jobstate.Evidence{Usage: used(h.job, 5*time.Second, 65*time.Second, 1000, func(u *agentapi.Usage) {
		u.Pods[0].Host, u.Pods[1].Host = "pi-node-0-1", "pi-node-0-10"
	})})
	var names []string
	for _, pod := range h.last.Status.Usage.PerPod {
		names = append(names, pod.Pod)
	}
	if got := strings.Join(names, " "); got != "pi-node-0-1-abcde pi-node-0-10-fghij" {
		t.Error(got)
	}
}

// TestGPUsOfOthers: GPUs that agents see in pods which request none are not those of the job.
func TestGPUsOfOthers(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*corev1.PodSpec)
		want   bool
	}{
		"requested": {func(*corev1.PodSpec) {}, true},
		"none":      {func(pod *corev1.PodSpec) { delete(pod.Containers[0].Resources.Limits, "nvidia.com/gpu") }, false},
		"a claim": {func(pod *corev1.PodSpec) {
			delete(pod.Containers[0].Resources.Limits, "nvidia.com/gpu")
			pod.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu"}}
		}, true},
	} {
		h := &history{t: t, job: job(2, func(j *mpi.Job) { test.change(&j.Workers.Template.Spec) })}
		h.pass(75*time.Second, pods(h.job, corev1.PodRunning, time.Second), jobstate.Evidence{Usage: used(h.job, 5*time.Second, 65*time.Second, 1000, func(u *agentapi.Usage) {
			seen := agentapi.MetricUsage{Metric: agentapi.MetricGPU, Mean: 8000, P95: 8000, Max: 8000, Limit: 8000}
			u.Metrics, u.Pods[0].Metrics = append(u.Metrics, seen), append(u.Pods[0].Metrics, seen)
		})})
		got := h.last.Status.Usage
		if got == nil || len(got.PerPod) != 2 {
			t.Fatalf("%s: the usage is %+v", name, got)
		}
		if ofJob, ofPod := v1alpha1.FindMetric(got.Metrics, v1alpha1.MetricGPU), v1alpha1.FindMetric(got.PerPod[0].Metrics, v1alpha1.MetricGPU); (ofJob != nil) != test.want || (ofPod != nil) != test.want {
			t.Errorf("%s: the GPUs are %v and %v", name, ofJob, ofPod)
		}
	}
}

// TestUsageOfEarlierRuns: what a job used before its launcher was started again stays, in a bounded number of runs.
func TestUsageOfEarlierRuns(t *testing.T) {
	h := &history{t: t, job: job(2)}
	running := pods(h.job, corev1.PodRunning, time.Second)
	withGPUs := func(u *agentapi.Usage) {
		u.Metrics = append(u.Metrics, agentapi.MetricUsage{Metric: agentapi.MetricGPU, Mean: 500, P95: 500, Max: 500})
		for i := range u.Metrics {
			u.Metrics[i].Points = nil
		}
	}
	pass := func(run int, until time.Duration) {
		begin := time.Duration(run)*time.Hour + 5*time.Second
		h.pass(begin+until, running, jobstate.Evidence{Usage: used(h.job, begin, begin+until, 2000, withGPUs)})
	}
	pass(0, 100*time.Second)
	pass(0, 30*time.Minute)
	if earlier := h.last.Status.Usage.Earlier; len(earlier) > 0 {
		t.Errorf("the only run is also an earlier one: %+v", earlier)
	}
	for run := 1; run <= 20; run++ {
		pass(run, 100*time.Second)
		pass(run, 30*time.Minute)
	}
	earlier, cores, gpus := h.last.Status.Usage.Earlier, int64(0), int64(0)
	for i, run := range earlier {
		cores, gpus = cores+run.CPUCoreSeconds, gpus+*run.GPUSeconds
		if i > 0 && run.Since.Before(&earlier[i-1].Until) {
			t.Errorf("the runs are not in order: %+v", earlier)
		}
	}
	if len(earlier) != 16 || cores != 20*2*1800 || gpus != 20*900 {
		t.Errorf("%d runs used %d core seconds and %d GPU seconds: %+v", len(earlier), cores, gpus, earlier)
	}
	// An old message of an earlier run, and a report of the same run that begins later, change nothing.
	pass(3, 30*time.Minute)
	h.pass(21*time.Hour, running, jobstate.Evidence{Usage: used(h.job, 20*time.Hour+10*time.Minute, 20*time.Hour+40*time.Minute, 2000)})
	if got := h.last.Status.Usage.Earlier; len(got) != 16 || got[15].CPUCoreSeconds != earlier[15].CPUCoreSeconds {
		t.Errorf("after a report of the same run, the earlier ones are %+v", got)
	}
}
