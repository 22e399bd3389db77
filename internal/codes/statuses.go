package codes

import "opendatahub.io/mpijob/api/v1alpha1"

// statuses are reasons of a job's status that are not findings. Messages that mpi-operator writes, too, are spelled as there.
var statuses = []Entry{
	{Code: ValidationError, Phase: v1alpha1.PhasePending, Status: "Invalid job ({errors}): {message}"},
	{Code: ErrResourceExists, Phase: v1alpha1.PhasePending, Status: "Resource {name} of Kind {kind} already exists and is not managed by MPIJob. Delete or rename it, or rename the job."},
	{Code: WaitingForEarlierJob, Phase: v1alpha1.PhasePending, Status: "Waiting for {pods} of {of|an earlier job with the same name} to be deleted: {name}{node}{more}."},
	{Code: WaitingForQuota, Phase: v1alpha1.PhasePending, Status: "Waiting for quota in namespace {namespace}: {figures}."},
	{Code: WaitingForPlaces, Phase: v1alpha1.PhaseGangScheduling, Status: "Waiting for capacity: {figures}.{message}"},
	{Code: PodsStarting, Phase: v1alpha1.PhaseInitializing, Status: "{running} of {workers} running{launcher}."},
	{Code: WaitingForWorkers, Phase: v1alpha1.PhaseInitializing, Status: "{running} of {workers} running, {ready} ready. The launcher starts when all are ready."},
	{Code: WorkerFailed, Phase: v1alpha1.PhaseFailed, Status: "{who} {exit}"},
	{Code: MPIJobEvicted, Phase: v1alpha1.PhaseFailed, Status: "{evicted}/{wanted} workers are evicted"},
	{Code: Queued, Phase: v1alpha1.PhaseQueued, Status: "Waiting in queue {queue}{position}.{message}"},
	{Code: Suspended, Phase: v1alpha1.PhaseSuspended, Status: "{message|Suspended. Pods are deleted until the job is resumed.}"},
	{Code: Running, Phase: v1alpha1.PhaseRunning, Status: "{launcher}{workers} running.{attempt}"},
	{Code: Succeeded, Phase: v1alpha1.PhaseSucceeded, Status: "MPIJob {namespace}/{job} successfully completed."},
	{Code: Failed, Phase: v1alpha1.PhaseFailed, Status: "MPIJob {namespace}/{job} has failed"},
}
