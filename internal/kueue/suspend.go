package kueue

import (
	"fmt"
	"strconv"

	"opendatahub.io/mpijob/internal/mpi"
)

// suspendedByUser follows the count in mpi.AnnotationGangTimeouts of a Workload that the operator deactivated for the job's user.
const suspendedByUser = "suspended"

// suspensionOf suspends a job in its queue, and resumes it there, as its user requests by mpi.AnnotationSuspendInQueue. It reports
// whether the user decides about the job's turn.
func suspensionOf(job mpi.Job, rests rest, ours, isActive bool) (Turn, bool) {
	switch {
	case job.SuspendedInQueue && (isActive || ours && !rests.byUser):
		return Turn{Active: new(false), Timeouts: fmt.Sprintf("%d %s", rests.count, suspendedByUser)}, true
	case job.SuspendedInQueue:
		return Turn{}, true
	case ours && rests.byUser:
		return Turn{Active: new(true), Timeouts: strconv.Itoa(int(rests.count))}, true
	}
	return Turn{}, false
}
