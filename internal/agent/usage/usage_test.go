package usage_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"opendatahub.io/mpijob/internal/agent/usage"
	"opendatahub.io/mpijob/internal/agentapi"
)

var begin = time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC)

func TestNewSample(t *testing.T) {
	t.Parallel()
	reading := func(second float64, cpu, throttled, periods float64, memory int64) usage.Reading {
		return usage.Reading{
			At: begin.Add(time.Duration(second * 1e9)),
			Counters: map[agentapi.Metric]usage.Counter{
				agentapi.MetricCPU:       {Count: cpu, PerSecond: true},
				agentapi.MetricThrottled: {Count: throttled, Of: periods},
			},
			Gauges: map[agentapi.Metric]int64{agentapi.MetricMemory: memory},
		}
	}
	tests := map[string]struct {
		before, after usage.Reading
		want          map[agentapi.Metric]float64
	}{
		"counters are compared, gauges are current": {
			reading(0, 5000, 100, 1000, 7), reading(10, 25000, 150, 1100, 8),
			map[agentapi.Metric]float64{agentapi.MetricCPU: 2000, agentapi.MetricThrottled: 0.5, agentapi.MetricMemory: 8},
		},
		"nothing is throttled if no period has passed": {
			reading(0, 0, 10, 20, 1), reading(5, 0, 10, 20, 1),
			map[agentapi.Metric]float64{agentapi.MetricCPU: 0, agentapi.MetricThrottled: 0, agentapi.MetricMemory: 1},
		},
		"a counter that went back is left out": {
			reading(0, 100, 10, 20, 1), reading(5, 50, 12, 30, 1),
			map[agentapi.Metric]float64{agentapi.MetricThrottled: 0.2, agentapi.MetricMemory: 1},
		},
		"a counter that is new is left out": {
			usage.Reading{At: begin},
			reading(5, 50, 12, 30, 1),
			map[agentapi.Metric]float64{agentapi.MetricMemory: 1},
		},
		"no time has passed": {reading(5, 1, 1, 1, 1), reading(5, 2, 2, 2, 2), nil},
		"time went back":     {reading(5, 1, 1, 1, 1), reading(4, 2, 2, 2, 2), nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sample, ok := usage.NewSample(test.before, test.after)
			if diff := cmp.Diff(test.want, sample.Values); ok != (test.want != nil) || diff != "" {
				t.Errorf("%v (-want +got)\n%s", ok, diff)
			}
		})
	}
}

// TestSeries: whatever the samples, the series has at most 120 points, which contain the sum of the samples, and the figures are those
// of the samples.
func TestSeries(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		var s usage.Series
		at := begin.Add(time.Duration(random.Int64N(1e11)))
		var values, lengths []float64
		sum, length := 0.0, 0.0
		for range 1 + random.IntN(3000) {
			from := at
			if random.IntN(20) == 0 {
				from = at.Add(time.Duration(random.Int64N(int64(10 * time.Minute)))) // nothing was measured meanwhile
			}
			at = from.Add(time.Duration(1 + random.Int64N(int64(20*time.Second))))
			value := math.Exp(12 * random.Float64())
			s.Add(usage.Sample{From: from, To: at, Values: map[agentapi.Metric]float64{agentapi.MetricCPU: value}}, map[agentapi.Metric]int64{agentapi.MetricCPU: 4000})
			seconds := at.Sub(from).Seconds()
			sum, length, values, lengths = sum+value*seconds, length+seconds, append(values, value), append(lengths, seconds)
		}
		u, ok := s.Usage()
		if !ok || len(u.Metrics) != 1 {
			t.Fatalf("seed %d: %+v", seed, u)
		}
		m := u.Metrics[0]
		if len(m.Points) > agentapi.MaxUsagePoints || len(m.Points) == 0 || m.Points[0] == agentapi.NoPoint || u.Start%u.Step != 0 {
			t.Errorf("seed %d: %d points of %d s from %d, the first %d", seed, len(m.Points), u.Step, u.Start, m.Points[0])
		}
		if end := u.Start + int64(len(m.Points))*u.Step; u.Until > end || u.Until <= end-u.Step-1 || u.Since < u.Start {
			t.Errorf("seed %d: from %d to %d in points from %d to %d", seed, u.Since, u.Until, u.Start, end)
		}
		kept, seconds := usage.Sums(&s, agentapi.MetricCPU)
		if math.Abs(kept-sum) > 1e-6*sum || math.Abs(seconds-length) > 1e-6*length {
			t.Errorf("seed %d: the points contain %g in %g s, want %g in %g s", seed, kept, seconds, sum, length)
		}
		if want := math.Round(sum / length); math.Abs(float64(m.Mean)-want) > 1 {
			t.Errorf("seed %d: mean %d, want %g", seed, m.Mean, want)
		}
		if want := math.Round(slices.Max(values)); float64(m.Max) != want {
			t.Errorf("seed %d: max %d, want %g", seed, m.Max, want)
		}
		if want := quantile(values, lengths, 0.95); float64(m.P95) < want-1 || float64(m.P95) > 1.05*want+1 {
			t.Errorf("seed %d: p95 %d, want %g", seed, m.P95, want)
		}
		if m.Limit != 4000 {
			t.Errorf("seed %d: limit %d", seed, m.Limit)
		}
	}
}

// quantile returns the value that is not exceeded for a share of the time.
func quantile(values, seconds []float64, share float64) float64 {
	order := make([]int, len(values))
	total := 0.0
	for i := range order {
		order[i] = i
		total += seconds[i]
	}
	slices.SortFunc(order, func(a, b int) int { return cmpFloat(values[a], values[b]) })
	left := share * total
	for _, i := range order {
		if left -= seconds[i]; left <= 1e-9*total {
			return values[i]
		}
	}
	return values[order[len(order)-1]]
}

func cmpFloat(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// TestRecent: what began lately, or is over, shows in the mean of the last ten minutes.
func TestRecent(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		// shares are how long each share of the time lasted, in minutes.
		shares [][2]int
		want   string
	}{
		"too short":             {[][2]int{{4, 500}}, "none"},
		"from the start":        {[][2]int{{6, 500}}, "500"},
		"began hours later":     {[][2]int{{300, 0}, {10, 500}}, "500"},
		"began a moment ago":    {[][2]int{{300, 0}, {5, 500}}, "250"},
		"over after many hours": {[][2]int{{300, 900}, {10, 0}}, "0"},
		"not measured lately":   {[][2]int{{300, 900}, {10, -1}}, "none"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s usage.Series
			at := begin
			for _, share := range test.shares {
				for range share[0] * 6 {
					sample := usage.Sample{From: at, To: at.Add(10 * time.Second), Values: map[agentapi.Metric]float64{agentapi.MetricCPU: 1}}
					if share[1] >= 0 {
						sample.Values[agentapi.MetricThrottled] = float64(share[1])
					}
					s.Add(sample, nil)
					at = sample.To
				}
			}
			u, _ := s.Usage()
			got := "none"
			if recent := u.Metrics[1].Recent; recent != nil {
				got = fmt.Sprint(*recent)
			}
			if got != test.want || u.Metrics[0].Recent != nil {
				t.Errorf("%s, want %s: %+v", got, test.want, u.Metrics)
			}
		})
	}
}

func TestSeriesLeavesOutSamplesThatGoBack(t *testing.T) {
	t.Parallel()
	var s usage.Series
	add := func(from, to int) {
		s.Add(usage.Sample{
			From: begin.Add(time.Duration(from) * time.Second), To: begin.Add(time.Duration(to) * time.Second),
			Values: map[agentapi.Metric]float64{agentapi.MetricMemory: float64(to)},
		}, nil)
	}
	if _, ok := s.Usage(); ok {
		t.Error("a series without samples has a usage")
	}
	add(0, 10)
	add(5, 20)
	add(20, 15)
	add(30, 40)
	u, _ := s.Usage()
	want := agentapi.Usage{
		Start: begin.Unix(), Step: 10, Since: begin.Unix(), Until: begin.Unix() + 40,
		Metrics: []agentapi.MetricUsage{{Metric: agentapi.MetricMemory, Mean: 25, P95: 40, Max: 40, Points: []int64{10, -1, -1, 40}}},
	}
	if diff := cmp.Diff(want, u); diff != "" {
		t.Error(diff)
	}
}

// host is a host whose CPU usage and memory have points, from a second on.
func host(name string, start, step int64, limit int64, points ...int64) agentapi.HostUsage {
	var known []int64
	for _, p := range points {
		if p >= 0 {
			known = append(known, p)
		}
	}
	mean := int64(0)
	for _, p := range known {
		mean += p
	}
	mean /= int64(max(1, len(known)))
	most := slices.Max(append(known, 0))
	return agentapi.HostUsage{Host: name, Usage: agentapi.Usage{
		Start: start, Step: step, Since: start, Until: start + step*int64(len(points)),
		Metrics: []agentapi.MetricUsage{
			{Metric: agentapi.MetricCPU, Mean: mean, P95: most, Max: most, Limit: limit, Points: points},
			{Metric: agentapi.MetricThrottled, Mean: mean / 10, P95: most / 10, Max: most / 10, Points: points},
		},
	}}
}

func TestJob(t *testing.T) {
	t.Parallel()
	long := make([]int64, 120)
	for i := range long {
		long[i] = 1000
	}
	points := func(u agentapi.Usage, metric int) []int64 { return u.Metrics[metric].Points }
	tests := map[string]struct {
		hosts []agentapi.HostUsage
		check func(u agentapi.Usage) string
	}{
		"values are added up, shares are averaged": {
			[]agentapi.HostUsage{host("a", 1000, 10, 2000, 100, 200), host("b", 1000, 10, 2000, 300, 400)},
			func(u agentapi.Usage) string {
				return cmp.Diff([][]int64{{400, 600}, {200, 300}}, [][]int64{points(u, 0), points(u, 1)}) + fmt.Sprint(u.Metrics[0].Limit, u.Metrics[1].Limit, u.Metrics[0].Mean, u.Metrics[0].Max)
			},
		},
		"hosts that started at another time": {
			[]agentapi.HostUsage{host("a", 1000, 10, 2000, 100, 200), host("b", 1020, 10, 0, 300)},
			func(u agentapi.Usage) string {
				return fmt.Sprint(points(u, 0), u.Metrics[0].Limit, u.Start, u.Since, u.Until)
			},
		},
		"points of different lengths": {
			[]agentapi.HostUsage{host("a", 1000, 20, 2000, 100), host("b", 1000, 10, 2000, 300, 500)},
			func(u agentapi.Usage) string { return fmt.Sprint(points(u, 0), u.Step) },
		},
		"points that were not measured do not count": {
			[]agentapi.HostUsage{host("a", 1000, 10, 0, 100, -1, 300), host("b", 1000, 10, 0, 10, -1, -1)},
			func(u agentapi.Usage) string { return fmt.Sprint(points(u, 0)) },
		},
		"more points than a series has": {
			[]agentapi.HostUsage{host("a", 0, 10, 0, long...), host("b", 1200, 10, 0, long...)},
			func(u agentapi.Usage) string { return fmt.Sprint(len(points(u, 0)), u.Step, u.Metrics[0].Mean) },
		},
		"a host that was there for a part of a point": {
			[]agentapi.HostUsage{host("a", 960, 80, 0, 1000, 1000, 1000, 1000, 1000, 1000), host("b", 1020, 10, 0, 800)},
			func(u agentapi.Usage) string { return fmt.Sprint(points(u, 0), points(u, 1), u.Step) },
		},
		"a host that began within a point and goes on": {
			[]agentapi.HostUsage{host("a", 960, 80, 0, 1000, 1000), host("b", 1020, 10, 0, 800, 800)},
			func(u agentapi.Usage) string { return fmt.Sprint(points(u, 0)) },
		},
		"one host keeps its own figures": {
			[]agentapi.HostUsage{{Host: "a", Usage: agentapi.Usage{Start: 1000, Step: 10, Since: 1000, Until: 1010, Metrics: []agentapi.MetricUsage{{Metric: agentapi.MetricCPU, Mean: 1, P95: 2, Max: 3, Points: []int64{1}}}}}},
			func(u agentapi.Usage) string {
				return fmt.Sprint(u.Metrics[0].Mean, u.Metrics[0].P95, u.Metrics[0].Max)
			},
		},
		"a host with nonsense is left out": {
			[]agentapi.HostUsage{host("a", 1000, 10, 0, 100), {Host: "b", Usage: agentapi.Usage{Step: 0}}, {Host: "c", Usage: agentapi.Usage{Step: 7, Start: 1000}}, {Host: "d", Usage: agentapi.Usage{Step: 10, Start: 1 << 50}}},
			func(u agentapi.Usage) string { return fmt.Sprint(u.PodCount, points(u, 0)) },
		},
	}
	want := map[string]string{
		"values are added up, shares are averaged":     "4000 0 500 600",
		"hosts that started at another time":           "[100 200 300] 0 1000 1000 1030",
		"points of different lengths":                  "[500] 20",
		"points that were not measured do not count":   "[110 -1 300]",
		"more points than a series has":                "120 20 1000",
		"a host that was there for a part of a point":  "[1100 1000 1000 1000 1000 1000] [978 1000 1000 1000 1000 1000] 80",
		"a host that began within a point and goes on": "[1200 1000]",
		"one host keeps its own figures":               "1 2 3",
		"a host with nonsense is left out":             "1 [100]",
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u, ok := usage.Job(test.hosts)
			if got := test.check(u); !ok || got != want[name] {
				t.Errorf("%s, want %s", got, want[name])
			}
		})
	}
	if _, ok := usage.Job(nil); ok {
		t.Error("a job without hosts has a usage")
	}
}

// withMemory is a host whose memory has points of 10 s, from a second on.
func withMemory(name string, start, limit int64, points ...int64) agentapi.HostUsage {
	h := host(name, start, 10, 0, points...)
	h.Usage.Metrics[1] = agentapi.MetricUsage{Metric: agentapi.MetricMemory, Max: slices.Max(points), Limit: limit, Points: points}
	return h
}

// series returns 120 points that begin with an amount and grow.
func series(begin, growth int64) (points []int64) {
	for i := range int64(120) {
		points = append(points, begin+growth*i)
	}
	return points
}

// TestNearestLimit: of several pods, the one whose memory reaches its limit first has points, whatever the others use.
func TestNearestLimit(t *testing.T) {
	t.Parallel()
	flat := func(i int) agentapi.HostUsage { return withMemory(fmt.Sprint("flat-", i), 0, 8192, series(7000, 0)...) }
	seven := []agentapi.HostUsage{flat(0), flat(1), flat(2), flat(3), flat(4), flat(5), flat(6)}
	unlimited := withMemory("unlimited", 0, 0, series(4000, 50)...)
	ended := withMemory("ended", 0, 8192, series(1000, 50)[:60]...)
	silent := withMemory("late", 600, 8192, series(7000, 0)[:60]...)
	for name, test := range map[string]struct {
		hosts []agentapi.HostUsage
		want  string
	}{
		"one of eight leaks":           {append(slices.Clone(seven), withMemory("leaks", 0, 8192, series(1000, 30)...)), "leaks"},
		"the one that is full first":   {[]agentapi.HostUsage{withMemory("later", 0, 16384, series(4000, 40)...), withMemory("sooner", 0, 8192, series(1000, 40)...)}, "sooner"},
		"a pod without a limit":        {[]agentapi.HostUsage{unlimited, flat(0), withMemory("leaks", 0, 8192, series(1000, 30)...)}, "leaks"},
		"no pod grows":                 {[]agentapi.HostUsage{withMemory("half", 0, 8192, series(4096, 0)...), flat(0)}, "flat-0"},
		"no pod has a limit":           {[]agentapi.HostUsage{unlimited, withMemory("other", 0, 0, series(4000, 0)...)}, ""},
		"a pod that reports no more":   {[]agentapi.HostUsage{ended, silent}, "late"},
		"the only pod":                 {[]agentapi.HostUsage{withMemory("leaks", 0, 8192, series(1000, 30)...)}, ""},
		"a pod that started later":     {[]agentapi.HostUsage{flat(0), withMemory("leaks", 300, 8192, series(1000, 30)[:90]...)}, "leaks"},
		"a host without figures of it": {[]agentapi.HostUsage{host("a", 0, 10, 0, 1), flat(0)}, "flat-0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u, _ := usage.Job(test.hosts)
			got := ""
			for _, pod := range u.Pods {
				for _, m := range pod.Metrics {
					if len(m.Points) == 0 {
						continue
					}
					if got += pod.Host; m.Metric != agentapi.MetricMemory || len(m.Points) != len(u.Metrics[0].Points) {
						t.Errorf("%d points of %s, those of the job are %d", len(m.Points), m.Metric, len(u.Metrics[0].Points))
					}
				}
			}
			if got != test.want {
				t.Errorf("the memory of %q has points, want %q", got, test.want)
			}
		})
	}
}

// TestPointsOfAPodStayWithThoseOfTheJob: in a large job, and in a line with fewer points, the pod that leaks is listed, with points as long as the job's.
func TestPointsOfAPodStayWithThoseOfTheJob(t *testing.T) {
	t.Parallel()
	hosts := largeJob()
	for i := range hosts {
		hosts[i].Usage.Metrics[1] = agentapi.MetricUsage{Metric: agentapi.MetricMemory, Mean: 4000, Max: 4000, Limit: 8192, Points: series(4000, 0)}
	}
	hosts[60].Usage.Metrics[1].Points = series(2000, 30)
	u, _ := usage.Job(hosts)
	for _, most := range []int{usage.LineSize, 8000} {
		small := usage.Within(u, most)
		i := slices.IndexFunc(small.Pods, func(p agentapi.PodUsage) bool { return p.Host == hosts[60].Host })
		if i < 0 {
			t.Fatalf("%d bytes: the pod is not among %d", most, len(small.Pods))
		}
		points := small.Pods[i].Metrics[1].Points
		if len(points) != len(small.Metrics[0].Points) || len(points) < 60 {
			t.Errorf("%d bytes: %d points, those of the job are %d", most, len(points), len(small.Metrics[0].Points))
		}
		if growth, grows := agentapi.GrowthOf(points, small.Step, 8192); !grows || growth.PerHour < 330 || growth.PerHour > 345 {
			t.Errorf("%d bytes: %v, %+v", most, grows, growth)
		}
	}
}

// TestLeakOfTheLastHours: a leak that begins late in a long run is seen before the limit is reached, and memory that goes up and down, or stays,
// is none at any time. Of several hosts, only the one that leaks has the points of the last hour; the launcher's last message has none.
func TestLeakOfTheLastHours(t *testing.T) {
	t.Parallel()
	const day, limit = 24 * 60, 8192 // in minutes and MiB
	for name, test := range map[string]struct {
		memory func(minute int) float64
		want   bool
	}{
		"flat for 22 hours, then a leak":     {func(minute int) float64 { return 2000 + 2000*max(0, float64(minute)-22*60)/60 }, true},
		"flat":                               {func(minute int) float64 { return 7000 + float64(minute%2) }, false},
		"up and down, by hours":              {func(minute int) float64 { return 2000 + 5000*float64(minute%180)/180 }, false},
		"up and down, by a quarter of a day": {func(minute int) float64 { return 1000 + 5000*float64(minute%360)/360 }, false},
		"up and down, by minutes":            {func(minute int) float64 { return 6000 + 100*float64(minute%17) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var host, steady usage.Series
			found := -1
			begin := time.Date(2026, 1, 2, 10, 0, 5, 0, time.UTC)
			for minute := range day {
				from := begin.Add(time.Duration(minute) * time.Minute)
				for series, memory := range map[*usage.Series]float64{&host: test.memory(minute), &steady: 5000} {
					series.Add(usage.Sample{From: from, To: from.Add(time.Minute), Values: map[agentapi.Metric]float64{agentapi.MetricMemory: memory}}, map[agentapi.Metric]int64{agentapi.MetricMemory: limit})
				}
				if minute < 13*60 || minute%5 > 0 || found >= 0 {
					continue // what is unknown yet may look like a leak
				}
				a, _ := host.Usage()
				b, _ := steady.Usage()
				job, _ := usage.Job([]agentapi.HostUsage{{Host: "a", Usage: b}, {Host: "b", Usage: a}})
				for _, pod := range job.Pods {
					m := pod.Metrics[0]
					if (m.Latest != nil) != (len(m.Points) > 0) {
						t.Fatalf("pod %s has the points %v, and of the last hour %v", pod.Host, m.Points, m.Latest)
					}
					if _, grows := agentapi.GrowthOfMemory(agentapi.Window{Start: job.Start, Step: job.Step, Points: m.Points}, m.Latest, m.Limit); grows {
						if found = minute; pod.Host != "b" {
							t.Errorf("pod %s leaks", pod.Host)
						}
					}
				}
				for _, pod := range usage.WithoutLatest(job).Pods {
					if pod.Metrics[0].Latest != nil {
						t.Error("the last message has the points of the last hour")
					}
				}
			}
			if (found >= 0) != test.want || test.want && (found < 22*60+30 || found > 23*60+30) {
				t.Errorf("a leak is seen after %d minutes, want one: %v", found, test.want)
			}
		})
	}
}

// TestUnusedGPUs: GPUs that were never used are reported, and the recent use of a pod that no longer reports is unknown.
func TestUnusedGPUs(t *testing.T) {
	t.Parallel()
	idle := func(name string, until int64) agentapi.HostUsage {
		return agentapi.HostUsage{Host: name, Usage: agentapi.Usage{Start: 0, Step: 10, Since: 0, Until: until, Metrics: []agentapi.MetricUsage{
			{Metric: agentapi.MetricGPU, Limit: 2000, Recent: new(int64(0)), Points: make([]int64, 100)},
		}}}
	}
	u, _ := usage.Job([]agentapi.HostUsage{idle("a", 1000), idle("b", 900), idle("c", 100)})
	if len(u.Metrics) != 1 || u.Metrics[0].Limit != 6000 || u.Metrics[0].Recent != nil {
		t.Errorf("the job used %+v", u.Metrics)
	}
	for i, known := range []bool{true, true, false} {
		if pod := u.Pods[i]; len(pod.Metrics) != 1 || (pod.Metrics[0].Recent != nil) != known {
			t.Errorf("pod %s used %+v", pod.Host, pod.Metrics)
		}
	}
}

// largeJob is a job of 64 hosts with 8 ranks each and all metrics; one host uses no CPU, and one rank more memory than the others.
func largeJob() []agentapi.HostUsage {
	random := rand.New(rand.NewPCG(1, 2))
	var hosts []agentapi.HostUsage
	for i := range 64 {
		u := agentapi.Usage{Start: 1_767_347_840, Step: 320, Since: 1_767_347_843, Until: 1_767_347_840 + 120*320}
		for _, metric := range agentapi.Metrics() {
			m := agentapi.MetricUsage{Metric: metric, Mean: 30000 + random.Int64N(100), P95: 31234, Max: 32000, Limit: 32000}
			if i == 40 && metric == agentapi.MetricCPU {
				m.Mean = 3
			}
			for range 120 {
				m.Points = append(m.Points, random.Int64N(32000))
			}
			u.Metrics = append(u.Metrics, m)
		}
		for rank := range 8 {
			u.Ranks = append(u.Ranks, agentapi.RankUse{Rank: int32(8*i + rank), CPU: 3900 + random.Int64N(100), Memory: 4000})
		}
		hosts = append(hosts, agentapi.HostUsage{Host: fmt.Sprintf("resnet-training-worker-%d", i), Usage: u})
	}
	hosts[50].Usage.Ranks[3].Memory = 9000
	return hosts
}

// TestSizes: a job's usage fits where it is reported, and what differs from the rest is kept.
func TestSizes(t *testing.T) {
	t.Parallel()
	u, _ := usage.Job(largeJob())
	for _, most := range []int{usage.LineSize, 3500, 1500} {
		small := usage.Within(u, most)
		if small == nil {
			t.Fatalf("nothing fits into %d bytes", most)
		}
		data, err := json.Marshal(small)
		if err != nil || len(data) > most {
			t.Errorf("%d bytes, want at most %d: %v", len(data), most, err)
		}
		t.Logf("at most %d bytes: %d, with %d points, %d pods and %d ranks", most, len(data), len(small.Metrics[0].Points), len(small.Pods), len(small.Ranks))
		if len(small.Pods) > 0 && !slices.ContainsFunc(small.Pods, func(p agentapi.PodUsage) bool { return p.Host == "resnet-training-worker-40" }) {
			t.Errorf("the pod that does nothing is not among %d pods", len(small.Pods))
		}
		if len(small.Ranks) > 0 && !slices.ContainsFunc(small.Ranks, func(r agentapi.RankUse) bool { return r.Rank == 403 }) {
			t.Errorf("the rank with the most memory is not among %d ranks", len(small.Ranks))
		}
		for i, m := range small.Metrics {
			if m.Mean != u.Metrics[i].Mean || m.Max != u.Metrics[i].Max || small.PodCount != 64 {
				t.Errorf("%s: the figures changed", m.Metric)
			}
		}
	}
	if small := usage.Within(u, 100); small != nil {
		t.Errorf("100 bytes contain %+v", small)
	}
}

// TestFit: of more hosts than a message holds, none is lost: those that differ are kept, and the rest is added up, at each of several levels.
func TestFit(t *testing.T) {
	t.Parallel()
	const message = 128 << 10
	var all []agentapi.HostUsage
	for i := range 10 {
		for j, h := range largeJob() {
			h.Host = fmt.Sprintf("worker-%d", 64*i+j)
			h.Usage.Profile = &agentapi.Profile{
				Launch: "run", Began: 1000, Other: []string{"before"},
				Ranks: []agentapi.RankProfile{{Rank: int32(64*i + j), Elapsed: 100, Communication: 40}}, Calls: []agentapi.CallProfile{{Call: "Barrier", Count: 2, Time: 3}},
			}
			if i > 0 && j == 40 {
				h.Usage.Metrics[0].Mean = 30000
			}
			all = append(all, h)
		}
	}
	fit := func(hosts []agentapi.HostUsage) (fitting []agentapi.HostUsage) {
		data := usage.Fit(hosts, message)
		if err := json.Unmarshal(data, &fitting); err != nil || len(data) > message {
			t.Errorf("%d bytes: %v", len(data), err)
		}
		return fitting
	}
	tree := fit(all[:320])
	tree = fit(append([]agentapi.HostUsage{all[320]}, append(tree, all[321:]...)...))
	if tree[0].Host != all[320].Host || len(tree) < 4 {
		t.Errorf("%d hosts are left, the first is %s", len(tree), tree[0].Host)
	}
	got, _ := usage.Job(tree)
	want, _ := usage.Job(all)
	if got.PodCount != 640 || !slices.ContainsFunc(got.Pods, func(p agentapi.PodUsage) bool { return p.Host == "worker-40" }) {
		t.Errorf("of %d pods are %d, without the one that does nothing", got.PodCount, len(got.Pods))
	}
	for i, m := range want.Metrics {
		if near := float64(m.Mean) / 1000; math.Abs(float64(got.Metrics[i].Mean-m.Mean)) > near || got.Metrics[i].Limit != m.Limit || len(got.Metrics[i].Points) != len(m.Points) {
			t.Errorf("%s is %d of %d, want %d of %d", m.Metric, got.Metrics[i].Mean, got.Metrics[i].Limit, m.Mean, m.Limit)
		}
	}
	got.Profile.Ranks, want.Profile.Ranks = nil, nil
	if diff := cmp.Diff(want.Profile, got.Profile); diff != "" {
		t.Errorf("the profile (-want +got)\n%s", diff)
	}
	if usage.Fit(all, 100) != nil {
		t.Error("100 bytes hold a host")
	}
}

func BenchmarkJob(b *testing.B) {
	hosts := largeJob()
	for b.Loop() {
		usage.Job(hosts)
	}
}

// TestHostileHosts: any process of a job can write what hosts used. Whatever it is, the sum is bounded.
func TestHostileHosts(t *testing.T) {
	t.Parallel()
	odd := []int64{0, 1, -1, 7, 10, 320, 1 << 30, 1 << 40, 1 << 62, -1 << 63, 1<<63 - 1}
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 3))
		pick := func() int64 { return odd[random.IntN(len(odd))] }
		var hosts []agentapi.HostUsage
		for range random.IntN(5) {
			u := agentapi.Usage{Start: pick(), Step: pick(), Since: pick(), Until: pick(), PodCount: int32(pick())}
			for range random.IntN(4) {
				m := agentapi.MetricUsage{Metric: append(agentapi.Metrics(), "", "Other")[random.IntN(13)], Mean: pick(), P95: pick(), Max: pick(), Limit: pick()}
				for range random.IntN(130) {
					m.Points = append(m.Points, pick())
				}
				u.Metrics = append(u.Metrics, m)
			}
			for range random.IntN(3) {
				u.Ranks = append(u.Ranks, agentapi.RankUse{Rank: int32(pick()), CPU: pick(), Memory: pick()})
			}
			hosts = append(hosts, agentapi.HostUsage{Host: fmt.Sprint(pick()), Usage: u})
		}
		if len(hosts) > 0 {
			if data := usage.Fit(hosts, 1000); len(data) > 1000 {
				t.Errorf("seed %d: %d bytes", seed, len(data))
			}
		}
		u, ok := usage.Job(hosts)
		if !ok {
			continue
		}
		for _, m := range u.Metrics {
			if len(m.Points) > agentapi.MaxUsagePoints {
				t.Errorf("seed %d: %d points", seed, len(m.Points))
			}
		}
		if small := usage.Within(u, 2000); small != nil {
			if data, err := json.Marshal(small); err != nil || len(data) > 2000 {
				t.Errorf("seed %d: %d bytes, %v", seed, len(data), err)
			}
		}
	}
}
