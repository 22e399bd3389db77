package controller

import (
	"strings"
	"testing"

	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/kueue"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

// TestQueueBeforeWorkloadsAreRead: a job in a queue of which nothing is known yet waits there, unless Kueue is not installed.
func TestQueueBeforeWorkloadsAreRead(t *testing.T) {
	closed := make(chan struct{})
	close(closed)
	suspended := mpitest.Job(2, func(j *mpi.Job) { j.Queue, j.Lifecycle.Suspended = "team-a", true })
	tests := map[string]struct {
		queues queues
		want   string
	}{
		"Kueue is not installed":                 {queues: queues{filled: make(chan struct{})}, want: "Suspended. The job names queue team-a, but Kueue, which would resume it, was not found on the cluster."},
		"Kueue is installed, and cannot be read": {queues: queues{known: true, filled: make(chan struct{}), overdue: closed}, want: "Waiting in queue team-a. The operator has not read Kueue's Workloads yet."},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, state, err := test.queues.observe(t.Context(), suspended, mpitest.Now)
			if err != nil {
				t.Fatal(err)
			}
			if out := jobstate.Judge(suspended, jobstate.Observed{Now: mpitest.Now, Queue: state}); !strings.HasPrefix(out.Message, test.want) {
				t.Errorf("it is %s: %s\nwant %s", out.Phase, out.Message, test.want)
			}
			if state != nil && state.Backend != kueue.Kueue {
				t.Errorf("the back end is %s", state.Backend)
			}
		})
	}
}
