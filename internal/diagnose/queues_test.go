package diagnose_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/kueue"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

// TestQueues has a row for each way in which a queue keeps a job out for good. That a user does is nothing wrong
// (gang.TestSuspendedInAQueue).
func TestQueues(t *testing.T) {
	in := func(reason, message string) scene {
		job := mpitest.Job(2)
		job.Queue, job.Lifecycle.Suspended = "team-a", true
		return scene{job: job, seen: jobstate.Observed{Now: mpitest.Now, Queue: &jobstate.QueueState{
			Backend: kueue.Kueue, Name: "team-a", Object: "mpijob-pi-1a2b3", Never: true, Reason: reason, Message: message,
		}}}
	}
	withRDMA := func(s scene) scene {
		s.job.RDMA = mpi.RDMA{Optional: true, Removed: []corev1.ResourceName{"rdma/hca"}}
		return s
	}
	neverFits := in(kueue.ReasonTimeout, "not all pods were scheduled in time")
	neverFits.seen.Queue.NeverFits, neverFits.seen.Queue.Never = "Only 2 of 3 pods fit on the cluster's 2 nodes.", false
	told := in(kueue.ReasonNoWorkload, "Kueue has created no Workload since 2026-11-21 10:00:00 UTC")
	told.evidence.Events = []jobstate.Event{
		{Kind: told.job.Kind, Name: "pi", Warning: true, Reason: "ErrWorkloadCompose", Message: "no pod sets", Count: 3},
		{Kind: told.job.Kind, Name: "pi", Reason: "MPIJobCreated", Message: "created"},
	}
	noPriority := in(kueue.ReasonNoPriority, "Kueue has created no Workload since 2026-11-21 10:00:00 UTC: WorkloadPriorityClass nosuch does not exist (those that exist: high, low)")
	noPriority.seen.Queue.Why = "WorkloadPriorityClass nosuch does not exist (those that exist: high, low)"
	check(t, map[string]expect{
		"queue-no-workload":    {codes.WorkloadMissing, told},
		"queue-no-priority":    {codes.QueuePriorityMissing, noPriority},
		"queue-never-fits":     {codes.GangNeverFits, neverFits},
		"queue-too-small":      {codes.QueueNeverFits, in("ExceedsMaxQuota", "insufficient quota for pods in flavor f, request > maximum capacity (5)")},
		"queue-needs-requests": {codes.QueueNeedsRequests, in(kueue.ReasonNeedsRequests, "Workload no longer fits after processing another workload")},
		"queue-lacks-gpus":     {codes.QueueLacksResource, in(kueue.ReasonLacksResource, "resource nvidia.com/gpu unavailable in ClusterQueue")},
		"queue-lacks-rdma":     {codes.QueueLacksResource, withRDMA(in(kueue.ReasonLacksResource, "resource rdma/hca unavailable in ClusterQueue"))},
		"queue-stopped":        {codes.QueueUnusable, in(kueue.ReasonStopped, "LocalQueue team-a is stopped")},
		"queue-lacks-nodes":    {codes.QueueLacksNodes, in("NoMatchingFlavor", "flavor default doesn't match node affinity")},
		"queue-missing":        {codes.QueueUnusable, in("Inadmissible", "LocalQueue team-a doesn't exist")},
		"queue-gave-up":        {codes.QueueGaveUp, in(kueue.ReasonDeactivated, "The workload is deactivated due to exceeding the maximum number of re-queuing retries")},
	})
}
