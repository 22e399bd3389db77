package cases

import (
	"slices"
	"testing"
)

func TestSizes(t *testing.T) {
	for _, jobs := range []int{30, 100, 300, 1000, 3000} {
		all := sizes(jobs)
		if len(all) != jobs || sum(all) != jobs*podsPerJob {
			t.Errorf("%d jobs: there are %d with %d workers, want %d workers", jobs, len(all), sum(all), jobs*podsPerJob)
		}
		if got := slices.Max(all); got != min(jobs, mostWorkers) {
			t.Errorf("%d jobs: the largest has %d workers, want %d", jobs, got, min(jobs, mostWorkers))
		}
		if got := slices.Min(all); got != 1 {
			t.Errorf("%d jobs: the smallest has %d workers, want 1", jobs, got)
		}
		sorted := slices.Sorted(slices.Values(all))
		if median := sorted[jobs/2]; median >= podsPerJob {
			t.Errorf("%d jobs: half of them have %d workers or more, want few large jobs and many small ones", jobs, median)
		}
		if !slices.Equal(all, sizes(jobs)) {
			t.Errorf("%d jobs: the sizes differ from one call to the next", jobs)
		}
		if slices.IsSortedFunc(all, func(a, b int) int { return b - a }) {
			t.Errorf("%d jobs: the largest come first", jobs)
		}
	}
}
