package dashboard

import (
	"fmt"
	"testing"

	"opendatahub.io/mpijob/api/v1alpha1"
)

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

// TestWaitingJobsAreBounded: a page shows the first jobs of a long queue.
func TestWaitingJobsAreBounded(t *testing.T) {
	t.Parallel()
	var rows []*Row
	for i := range maxWaiting + 20 {
		rows = append(rows, &Row{ID: fmt.Sprint(i), Namespace: "team", Queue: "gpus", Phase: string(v1alpha1.PhaseQueued), Position: new(int32(maxWaiting + 20 - i))}) //nolint:gosec // a small number
	}
	queues := []Queue{{Namespace: "team", Name: "gpus"}, {Namespace: "team", Name: "empty"}}
	addWaiting(queues, rows)
	if n, first := len(queues[0].Waiting), *queues[0].Waiting[0].Position; n != maxWaiting || first != 1 || queues[0].WaitingOmitted != 20 {
		t.Errorf("%d jobs from position %d are shown, %d are not", n, first, queues[0].WaitingOmitted)
	}
	if queues[1].Waiting == nil || queues[1].WaitingOmitted != 0 {
		t.Errorf("the empty queue is %+v", queues[1])
	}
}
