package diagnose_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/agentapi"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpitest"
)

// memoryUsed is the usage of a job of two workers. The memory of the second has points of a length, and that of the first is constant.
func memoryUsed(seconds, limit int64, points ...int64) func(*scene) {
	return func(s *scene) {
		const constant = 3000
		sums := series(len(points), func(i int) int64 { return constant + max(0, points[i]) })
		since := metav1.NewTime(mpitest.Now.Add(-time.Duration(int64(len(points))*seconds) * time.Second))
		s.evidence.Used = &v1alpha1.Usage{
			Since: since, PointsSince: since, Until: metav1.NewTime(mpitest.Now), PointSeconds: seconds, Pods: 2,
			Metrics: []v1alpha1.UsageMetric{{Metric: v1alpha1.MetricMemory, Limit: 2 * limit, Points: sums}},
			PerPod: []v1alpha1.PodUsage{
				{Pod: "pi-worker-0", Metrics: []v1alpha1.UsageMetric{{Metric: v1alpha1.MetricMemory, Max: constant, Limit: limit}}},
				{Pod: "pi-worker-1", Metrics: []v1alpha1.UsageMetric{{Metric: v1alpha1.MetricMemory, Max: slices.Max(append([]int64{0}, points...)), Limit: limit, Points: points}}},
			},
		}
	}
}

// series returns points of a function.
func series(count int, value func(i int) int64) (points []int64) {
	for i := range count {
		points = append(points, value(i))
	}
	return points
}

func TestMemoryGrowing(t *testing.T) {
	check(t, map[string]expect{
		"memory-growing":      {codes.MemoryGrowing, running(2).with(memoryUsed(40, 8192, leak...))},
		"memory-sums-growing": {codes.MemoryGrowing, running(2).with(memoryUsed(40, 8192, leak...), earlierAgents(8192, leak...))},
	})
}

// TestMemoryGrowingInPodLimit: where the pod template limits all containers together, that limit is to be increased.
func TestMemoryGrowingInPodLimit(t *testing.T) {
	for isOfPod, want := range map[bool]string{true: "spec.resources.limits.memory", false: "containers[0].resources.limits.memory"} {
		found := running(2).with(memoryUsed(40, 8192, leak...), func(s *scene) {
			limits := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("8Gi")}
			spec := &s.job.Workers.Template.Spec
			spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: limits}
			if isOfPod {
				spec.Containers[0].Resources, spec.Resources = corev1.ResourceRequirements{}, &corev1.ResourceRequirements{Limits: limits}
			}
		}).findings()
		if len(found) == 0 || found[0].Code != codes.MemoryGrowing || len(found[0].Remedies) < 2 {
			t.Errorf("found %+v", found)
			continue
		}
		remedy := found[0].Remedies[1]
		if changes := remedy.Changes; len(changes) != 1 || !strings.HasSuffix(changes[0].Field, want) || changes[0].Value != "12Gi" || !strings.HasPrefix(remedy.Text, "Write a checkpoint before that time. In") {
			t.Errorf("the remedy is %+v, want one for %s", remedy, want)
		}
		sound(t, found[0])
	}
}

// leak is the memory of a pod that uses up 8 GiB in 85 minutes.
var leak = series(90, func(i int) int64 { return 500 + 60*int64(i) })

// earlierAgents is the usage as agents of earlier versions report it: the sum of all pods has points, and no pod has any.
func earlierAgents(limit int64, points ...int64) func(*scene) {
	return func(s *scene) {
		s.evidence.Used.Metrics[0].Limit, s.evidence.Used.Metrics[0].Points = limit, points
		for _, pod := range s.evidence.Used.PerPod {
			pod.Metrics[0].Points = nil
		}
	}
}

// TestMemoryOfWhichPods: the pod that reaches its limit first is judged by its own limit, whatever the others use and may use.
func TestMemoryOfWhichPods(t *testing.T) {
	constant := series(90, func(int) int64 { return 4000 })
	for name, test := range map[string]struct {
		change func(*v1alpha1.Usage)
		want   string
	}{
		"one of eight": {func(u *v1alpha1.Usage) {
			u.Pods, u.Metrics[0].Limit = 8, 8*8192
			u.Metrics[0].Points = series(90, func(i int) int64 { return 7*4000 + leak[i] })
		}, "pi-worker-1"},
		"another pod has no limit": {func(u *v1alpha1.Usage) { u.Metrics[0].Limit, u.PerPod[0].Metrics[0].Limit = 0, 0 }, "pi-worker-1"},
		"the only pod": {func(u *v1alpha1.Usage) {
			u.Pods, u.PerPod, u.Metrics = 1, u.PerPod[1:], []v1alpha1.UsageMetric{{Metric: v1alpha1.MetricMemory, Limit: 8192, Points: leak}}
			u.PerPod[0].Metrics[0].Points = nil
		}, "pi-worker-1"},
		"only the sum grows": {func(u *v1alpha1.Usage) { u.Metrics[0].Points, u.PerPod[1].Metrics[0].Points = leak, constant }, ""},
		"a pod that is gone": {func(u *v1alpha1.Usage) { u.PerPod[1].Pod = "pi-worker-7" }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := running(2).with(memoryUsed(40, 8192, leak...))
			test.change(s.evidence.Used)
			got := ""
			for _, f := range s.findings() {
				if f.Code == codes.MemoryGrowing {
					got = f.Pod
				}
			}
			if got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// TestMemoryGrowth: only a steady growth that reaches the limit soon is reported.
func TestMemoryGrowth(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	noise := func() int64 { return random.Int64N(101) - 50 }
	tests := map[string]struct {
		seconds, limit int64
		points         []int64
		want           bool
	}{
		"a leak":                             {20, 8192, series(100, func(i int) int64 { return 1000 + 40*int64(i) }), true},
		"a leak with noise":                  {20, 8192, series(100, func(i int) int64 { return 1000 + 40*int64(i) + noise() }), true},
		"a leak with gaps":                   {20, 8192, series(100, func(i int) int64 { return map[bool]int64{true: -1, false: 1000 + 40*int64(i)}[i%5 == 0] }), true},
		"a leak after a constant start":      {20, 8192, series(100, func(i int) int64 { return 1000 + 80*max(0, int64(i)-50) }), true},
		"no limit":                           {20, 0, series(100, func(i int) int64 { return 1000 + 40*int64(i) }), false},
		"constant":                           {20, 8192, series(100, func(int) int64 { return 7000 }), false},
		"noise":                              {20, 8192, series(100, func(int) int64 { return 7000 + 10*noise() }), false},
		"data that is loaded at the start":   {20, 8192, series(100, func(i int) int64 { return min(7000, 200*int64(i)) }), false},
		"a growth that slows down":           {20, 8192, series(100, func(i int) int64 { return 8000 * int64(i) / (int64(i) + 20) }), false},
		"ups and downs":                      {20, 8192, series(100, func(i int) int64 { return 3000 + 400*int64(i%10) }), false},
		"a step":                             {20, 8192, series(100, func(i int) int64 { return map[bool]int64{true: 7000, false: 2000}[i > 70] }), false},
		"a short job":                        {10, 8192, series(30, func(i int) int64 { return 1000 + 200*int64(i) }), false},
		"too slow to matter":                 {320, 1 << 20, series(120, func(i int) int64 { return 1000 + 10*int64(i) }), false},
		"far from the limit":                 {20, 80000, series(100, func(i int) int64 { return 1000 + 100*int64(i) }), false},
		"less and less":                      {20, 8192, series(100, func(i int) int64 { return 8000 - 40*int64(i) }), false},
		"nothing measured":                   {20, 8192, series(100, func(int) int64 { return -1 }), false},
		"no points":                          {20, 8192, nil, false},
		"one point":                          {20, 8192, []int64{5}, false},
		"points without a length":            {0, 8192, series(100, func(i int) int64 { return 1000 + 40*int64(i) }), false},
		"more than the limit, which is none": {20, 100, series(100, func(i int) int64 { return 1000 + 40*int64(i) }), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			found := running(2).with(memoryUsed(test.seconds, test.limit, test.points...)).findings()
			if got := len(found) > 0 && found[0].Code == codes.MemoryGrowing; got != test.want {
				t.Errorf("%v, want %v: %+v", got, test.want, found)
			}
		})
	}
}

// TestMemoryGrowingWhileRunning: the warning is over when the job has ended.
func TestMemoryGrowingWhileRunning(t *testing.T) {
	for _, f := range failed(1, "no").with(memoryUsed(40, 8192, leak...)).findings() {
		if f.Code == codes.MemoryGrowing {
			t.Errorf("a job that failed has the finding %+v", f)
		}
	}
}

// TestMemoryGrowingLate: a growth that began an hour ago in a run of a day is seen in the points of the last hour. Memory that the run has used
// before is no growth.
func TestMemoryGrowingLate(t *testing.T) {
	day := func(before, level int64) func(*scene) {
		// 96 points of a quarter of an hour. In the last two hours, memory grows by 2 GiB an hour.
		return memoryUsed(900, 8192, series(96, func(i int) int64 { return map[bool]int64{true: level + 512*int64(i-88), false: before}[i >= 88] })...)
	}
	lastHour := func(pod string, level int64) func(*scene) {
		return func(s *scene) {
			s.evidence.LatestMemory = &jobstate.LatestMemory{Pod: pod, Window: agentapi.Window{
				Start: mpitest.Now.Add(-time.Hour).Unix(), Step: 60, Points: series(60, func(i int) int64 { return level + 2048 + 2048*int64(i)/60 }),
			}}
		}
	}
	onlyOne := func(s *scene) {
		u := s.evidence.Used
		u.Pods, u.PerPod, u.Metrics[0].Limit, u.Metrics[0].Points = 1, u.PerPod[1:], 8192, u.PerPod[1].Metrics[0].Points
		u.PerPod[0].Metrics[0].Points = nil
	}
	check(t, map[string]expect{"memory-growing-late": {codes.MemoryGrowing, running(2).with(day(2000, 2000), lastHour("pi-worker-1", 2000))}})
	for name, test := range map[string]struct {
		in   scene
		want bool
	}{
		"the only pod":                {running(2).with(day(2000, 2000), onlyOne, lastHour("", 2000)), true},
		"agents of earlier versions":  {running(2).with(day(2000, 2000)), false},
		"another pod":                 {running(2).with(day(2000, 2000), lastHour("pi-worker-0", 2000)), false},
		"as much as it used before":   {running(2).with(day(6500, 2000), lastHour("pi-worker-1", 2000)), false},
		"hardly more than before":     {running(2).with(day(5800, 2000), lastHour("pi-worker-1", 2000)), false},
		"before the launcher's start": {running(2).with(day(2000, 2000), lastHour("pi-worker-1", 2000), launchedAgain(20*time.Minute)), false},
	} {
		t.Run(name, func(t *testing.T) {
			found := test.in.findings()
			if got := len(found) > 0 && found[0].Code == codes.MemoryGrowing; got != test.want {
				t.Errorf("%v, want %v: %+v", got, test.want, found)
			}
		})
	}
}
