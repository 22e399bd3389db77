package diagnose_test

import (
	"math/rand/v2"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/mpitest"
)

// memoryUsed is the usage of a job of two workers whose memory has points of a length.
func memoryUsed(seconds, limit int64, points ...int64) func(*scene) {
	return func(s *scene) {
		since := metav1.NewTime(mpitest.Now.Add(-time.Duration(int64(len(points))*seconds) * time.Second))
		s.evidence.Used = &v1alpha1.Usage{
			Since: since, PointsSince: since, Until: metav1.NewTime(mpitest.Now), PointSeconds: seconds, Pods: 2,
			Metrics: []v1alpha1.UsageMetric{{Metric: v1alpha1.MetricMemory, Limit: limit, Points: points}},
			PerPod: []v1alpha1.PodUsage{
				{Pod: "pi-worker-0", Metrics: []v1alpha1.UsageMetric{{Metric: v1alpha1.MetricMemory, Max: 100, Limit: 4096}}},
				{Pod: "pi-worker-1", Metrics: []v1alpha1.UsageMetric{{Metric: v1alpha1.MetricMemory, Max: 200, Limit: 4096}}},
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
		"memory-growing": {codes.MemoryGrowing, running(2).with(memoryUsed(40, 8192, series(90, func(i int) int64 { return 500 + 60*int64(i) })...))},
	})
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
	leak := memoryUsed(40, 8192, series(90, func(i int) int64 { return 500 + 60*int64(i) })...)
	for _, f := range failed(1, "no").with(leak).findings() {
		if f.Code == codes.MemoryGrowing {
			t.Errorf("a job that failed has the finding %+v", f)
		}
	}
}
