package jobstate

import (
	"fmt"
	"time"

	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/phrase"
	"opendatahub.io/mpijob/internal/waiting"
)

// QueueState is the state of a job in a queue that admits whole jobs.
type QueueState struct {
	// Backend is whose queue it is, such as kueue; Name is the queue that the user named. Object is the name of what the
	// queue keeps of the job, such as its Workload; empty where there is nothing yet.
	Backend, Name, Object string
	// Admitted is set while the job is admitted, and AdmittedAt is since when.
	Admitted   bool
	AdmittedAt time.Time
	// EndsAt is when the queue ends the admitted job because it was admitted for Limit in all; zero: it does not.
	EndsAt time.Time
	Limit  time.Duration
	// Never is set if waiting does not help: the job or the queue must be changed.
	Never bool
	// Stopped is set, besides Never, where a user keeps the job out of the queue until one lets it wait there again.
	Stopped bool
	// Reason and Message are the queue's own, about why the job is not admitted; empty if there are none.
	Reason, Message string
	// Why is a clause that explains why the job is never admitted; empty if only Message does.
	Why string
	// Position is the job's place among the jobs that wait in the queue, and Total its place among all that wait for
	// the same quota, 1 for the next one; 0 if unknown.
	Position, Total int32
	// Start is when the job is expected to start, from the ends of the jobs that hold the quota; zero if that is not estimated.
	Start waiting.Estimate
	// Evicted is why the queue evicted the job after its admission; empty if it did not. EvictedAt is the time of the last eviction, by
	// the queue or by the operator, and Requeues the number of times that the job was put back into the queue.
	Evicted   string
	EvictedAt time.Time
	Requeues  int32
	// NeverFits is a sentence about why no nodes can ever hold all of the job's pods, while it waits for its next attempt because
	// of that; else empty.
	NeverFits string
}

// ResumeTime is how long a queue usually takes at most to resume a job that it has admitted.
const ResumeTime = time.Minute

// text describes what a job waits for that its queue has not resumed.
func (q QueueState) text(now time.Time) string {
	switch {
	case q.Admitted && now.Sub(q.AdmittedAt) >= ResumeTime && !q.AdmittedAt.IsZero():
		return fmt.Sprintf("Admitted by queue %s at %s, but Kueue has not resumed the job since. A policy may refuse that: for example, a limit of the "+
			"namespace may have been lowered. Run kubectl odh mpijob doctor, and see the log of Kueue.", q.Name, clock(q.AdmittedAt))
	case q.Admitted:
		return fmt.Sprintf("Admitted by queue %s. Waiting for Kueue to resume the job.", q.Name)
	}
	values := map[string]string{"queue": q.Name}
	switch {
	case q.Position > 0 && q.Total > 0:
		values["position"] = fmt.Sprintf(": position %d, about %d among all queues that share its quota", q.Position, q.Total)
	case q.Position > 0:
		values["position"] = fmt.Sprintf(": position %d", q.Position)
	}
	if q.Message != "" {
		values["message"] = " " + phrase.Sentence(q.Message)
	}
	if q.NeverFits != "" {
		values["message"] += " " + phrase.Sentence(q.NeverFits)
	}
	if q.Evicted != "" {
		values["message"] += " Evicted after admission: " + phrase.Sentence(q.Evicted)
	}
	return codes.Status(codes.Queued, values)
}

// SuspendedOnRequest begins the message of a job that is suspended in its queue by mpi.AnnotationSuspendInQueue, and not because its
// Workload was deactivated in another way.
const SuspendedOnRequest = "Suspended: a user requested it"

// stopped explains how to queue a job again that a user has stopped.
func (q QueueState) stopped(job mpi.Job) string {
	why := fmt.Sprintf("Suspended: a user deactivated Workload %s", q.Object)
	if job.SuspendedInQueue {
		// Kueue may have admitted the job a moment before its Workload was deactivated.
		why = SuspendedOnRequest
	}
	return fmt.Sprintf("%s. To wait in queue %s again, run kubectl odh mpijob resume %s.", why, q.Name, job.Name)
}

// Turn is a job's place among those that wait for the same.
type Turn struct {
	// Position is 1 for the next job; 0 if it is unknown.
	Position int32
	// Start is when the job is expected to start; zero if nothing is estimated.
	Start waiting.Estimate
}

// Wait is how long jobs waited that compare with one: in the same queue, of about as many pods.
type Wait struct {
	// Samples is how many such jobs were admitted, of FewestPods to MostPods pods.
	Samples, FewestPods, MostPods int32
	// Known is set if they are enough for an estimate: half of them waited P50 at most, and nine in ten P90.
	Known    bool
	P50, P90 time.Duration
}
