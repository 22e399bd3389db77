package kueue

import (
	"fmt"
	"slices"
	"time"

	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/phrase"
)

// PriorityClassListKind is the kind of a list of the classes by which Kueue orders jobs, those of the cluster.
var PriorityClassListKind = LocalQueueKind.GroupVersion().WithKind("WorkloadPriorityClassList")

// Reasons of a job of which Kueue has created no Workload in time.
const (
	// ReasonNoWorkload is that of a job of which nothing else is known.
	ReasonNoWorkload = "NoWorkload"
	// ReasonNoPriority is that of a job whose WorkloadPriorityClass does not exist.
	ReasonNoPriority = "NoPriority"
)

// WorkloadTime is how long Kueue may take to create the Workload of a job. Usually it takes less than a second.
const WorkloadTime = time.Minute

// WithoutWorkload returns the state of a job of which Kueue has created no Workload since a time. The classes are the names of all
// WorkloadPriorityClasses; nil if they are unknown.
func WithoutWorkload(job mpi.Job, since time.Time, classes []string) jobstate.QueueState {
	state := jobstate.QueueState{Backend: Kueue, Name: job.Queue, Never: true, Reason: ReasonNoWorkload}
	state.Message = fmt.Sprintf("Kueue has created no Workload since %s", since.UTC().Format(time.DateTime+" MST"))
	if why := missingPriority(job, classes); why != "" {
		state.Reason, state.Why = ReasonNoPriority, why
		state.Message += ": " + why
	}
	return state
}

// PriorityWarning returns the warning about a new job in a queue whose WorkloadPriorityClass does not exist; "" if it does.
func PriorityWarning(job mpi.Job, classes []string) string {
	why := missingPriority(job, classes)
	if why == "" {
		return ""
	}
	return fmt.Sprintf("metadata.labels[%s]: %s. Kueue does not queue the job until it does", mpi.LabelQueuePriority, why)
}

// missingPriority returns a clause about the priority class of a job that does not exist; "" if it does, or if that is unknown.
func missingPriority(job mpi.Job, classes []string) string {
	if job.QueuePriority == "" || classes == nil || slices.Contains(classes, job.QueuePriority) {
		return ""
	}
	text := fmt.Sprintf("WorkloadPriorityClass %s does not exist", job.QueuePriority)
	if len(classes) == 0 {
		return text + " (the cluster has none)"
	}
	return text + " (" + phrase.Existing(classes) + ")"
}
