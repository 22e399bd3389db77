package diagnose_test

import (
	"testing"

	"opendatahub.io/mpijob/internal/gang"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

// TestQueues has a row for each way in which a queue keeps a job out for good. That a user does is nothing wrong
// (gang.TestSuspendedInAQueue).
func TestQueues(t *testing.T) {
	in := func(reason, message string) scene {
		job := mpitest.Job(2)
		job.Queue, job.Lifecycle.Suspended = "team-a", true
		return scene{job: job, seen: mpi.Observed{Now: mpitest.Now, Queue: &mpi.QueueState{
			Backend: gang.Kueue, Name: "team-a", Object: "mpijob-pi-1a2b3", Never: true, Reason: reason, Message: message,
		}}}
	}
	check(t, map[string]expect{
		"queue-too-small": {mpi.CodeQueueNeverFits, in("ExceedsMaxQuota", "insufficient quota for pods in flavor f, request > maximum capacity (5)")},
		"queue-missing":   {mpi.CodeQueueMissing, in("Inadmissible", "LocalQueue team-a doesn't exist")},
		"queue-gave-up":   {mpi.CodeDeactivated, in(gang.ReasonDeactivated, "The workload is deactivated due to exceeding the maximum number of re-queuing retries")},
	})
}
