package codes

import "opendatahub.io/mpijob/api/v1alpha1"

// events are the steps of a job on its timeline. Their texts are the details of entries.
var events = []Entry{
	{Code: Created, Phase: v1alpha1.PhasePending, Status: "{kind} {job} with {workers}. {by}"},
	{Code: PodsPlaced, Phase: v1alpha1.PhaseInitializing, Status: "{pods} scheduled."},
	{Code: WorkersReady, Phase: v1alpha1.PhaseInitializing, Status: "{workers} ready."},
	{Code: LauncherStarted, Phase: v1alpha1.PhaseInitializing, Status: "{pod}"},
	{Code: WorkersFound, Phase: v1alpha1.PhaseRunning, Status: "The launcher connected to {workers} in {time}."},
	{Code: MPIInitialized, Phase: v1alpha1.PhaseRunning, Status: "Ranks started on {workers}, in {time} on the slowest."},
	{Code: TrainingStarted, Phase: v1alpha1.PhaseRunning, Status: "First progress: {progress}."},
	{Code: LauncherRestarted, Phase: v1alpha1.PhaseInitializing, Status: "{attempt}. {cause}"},
	{Code: PutBack, Phase: v1alpha1.PhaseGangScheduling, Status: "{running} of {pods} pods scheduled in time. All are deleted, to release their capacity. {message}"},
	{Code: Resumed, Phase: v1alpha1.PhasePending, Status: "{by}"},
	{Code: Changed, Phase: v1alpha1.PhasePending, Status: "{by}"},
	{Code: DeletionRequested, Phase: v1alpha1.PhaseFailed, Status: "{by}"},
	{Code: JobDeleted, Phase: v1alpha1.PhaseFailed, Status: "The job was deleted{by} before it ended (phase {state})."},
}
