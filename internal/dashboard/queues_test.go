package dashboard

import "testing"

func TestWaitEstimate(t *testing.T) {
	for name, test := range map[string]struct {
		waits    []int64
		p50, p90 int64
	}{
		"none": {nil, 0, 0},
		"one":  {[]int64{7}, 7, 7},
		"ten":  {[]int64{10, 9, 8, 7, 6, 5, 4, 3, 2, 1}, 5, 9},
	} {
		var queue Queue
		queue.estimate(test.waits)
		if queue.WaitP50 != test.p50 || queue.WaitP90 != test.p90 || queue.Samples != len(test.waits) {
			t.Errorf("%s: %+v", name, queue)
		}
	}
}
