package kueue

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/internal/gang"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/phrase"
	"opendatahub.io/mpijob/internal/times"
)

// ReasonTimeout is the reason of a job that waits for its next attempt, because its pods were not all scheduled in time.
const ReasonTimeout = "GangTimeout"

// rest is how often a job was put out because its pods did not all find a node, and until when it rests; or that the operator keeps it
// out for its user (mpi.AnnotationSuspendInQueue).
type rest struct {
	count  int32
	until  time.Time
	byUser bool
}

// restOf reads mpi.AnnotationGangTimeouts. It is false for a Workload that is active, or that another user has deactivated.
func restOf(workload *Workload) (rest, bool) {
	count, until, rests := strings.Cut(workload.Annotations[mpi.AnnotationGangTimeouts], " ")
	n, err := strconv.ParseInt(count, 10, 32)
	if err != nil {
		return rest{}, false
	}
	r := rest{count: int32(n)}
	if !rests || workload.Spec.Active == nil || *workload.Spec.Active {
		return r, false
	}
	if until == suspendedByUser {
		r.byUser = true
		return r, true
	}
	r.until, err = time.Parse(time.RFC3339, until)
	return r, err == nil
}

// evictedAt is when the job was put out last.
func (r rest) evictedAt() time.Time { return r.until.Add(-gang.Rest(r.count)) }

// Turn is the change to make to a job's Workload.
type Turn struct {
	// Active is what spec.active is to become, and Timeouts what mpi.AnnotationGangTimeouts is; nil: nothing changes.
	Active   *bool
	Timeouts string
	// Says is the text of the event for the job; empty for none.
	Says string
	// GaveUp is set where the job was put out too often, Attempts is how often, and EvictedAt when it was last.
	GaveUp    bool
	Attempts  int32
	EvictedAt time.Time
	// Again is the time until this may change by itself, or 0 if it changes only with an object.
	Again time.Duration
}

// maxNeverFits is how long a job without a limit of its own keeps its quota while all nodes together cannot hold its pods: nodes may be
// registering, and drivers of devices starting.
const maxNeverFits = time.Minute

// TurnOf suspends a job in its queue, and resumes it there, as its user requests by mpi.AnnotationSuspendInQueue. For other jobs, it
// keeps the clock of a job that Kueue lets in and whose user bounds how long its pods may look for nodes
// (schedulingPolicy.scheduleTimeoutSeconds, mpi.AnnotationScheduleTimeout), or whose pods can never all have nodes. Kueue's own such
// clock, waitForPodsReady, is one for all jobs.
//
// A job is put out by its Workload's spec.active, which is Kueue's own word for that: a job that was merely suspended
// would be let go on by Kueue at once. The Workload keeps the count, so that nothing is lost with the operator.
//
// The clock ends when all pods run for the first time since the job was admitted: later ones replace others. Kueue reports that only if
// it watches over pods (waitForPodsReady). ran is when the job began to run last, as its report has it; zero if it never has.
func TurnOf(job mpi.Job, seen jobstate.Observed, workload *Workload, ran time.Time) Turn {
	if workload == nil || job.Recorded.Finish != nil {
		return Turn{}
	}
	now := seen.Now.UTC()
	rests, ours := restOf(workload)
	isActive := workload.Spec.Active == nil || *workload.Spec.Active
	if turn, decided := suspensionOf(job, rests, ours, isActive); decided {
		return turn
	}
	switch {
	case ours && rests.count > requeues(job):
		// Its pods go first: one that found a node later would hold it for nothing.
		gone := job.Lifecycle.Suspended && len(gang.PodsOf(job, seen)) == 0
		return Turn{GaveUp: gone, Attempts: rests.count, EvictedAt: rests.evictedAt()}
	case ours && now.Before(rests.until):
		return Turn{Again: rests.until.Sub(now)}
	case ours:
		return Turn{Active: new(true), Timeouts: strconv.Itoa(int(rests.count))}
	case !isActive, !isAdmitted(workload), startedOnce(workload), !ran.IsZero() && !ran.Before(admittedAt(workload)):
		return Turn{}
	}
	placed, wanted := gang.CountPlaced(job, seen), job.GangSize()
	neverFits := placed == 0 && seen.Gang != nil && seen.Gang.Never
	from, limit := admittedAt(workload), job.Gang.Timeout
	switch {
	case placed >= wanted:
		return Turn{}
	case !job.Gang.TimeoutSet && !neverFits && job.Lifecycle.Suspended:
		// From then on, the report contains that Kueue does not resume the job.
		return Turn{Again: max(from.Add(jobstate.ResumeTime).Sub(now), 0)}
	case !job.Gang.TimeoutSet && !neverFits:
		return Turn{}
	case !job.Gang.TimeoutSet:
		from, limit = times.Later(from, seen.Gang.NeverSince), maxNeverFits
	}
	if left := from.Add(limit).Sub(now); left > 0 {
		return Turn{Again: left}
	}
	count, most := rests.count+1, requeues(job)
	until := now.Truncate(time.Second).Add(gang.Rest(count))
	says := fmt.Sprintf("%d of %d pods scheduled within %d s (%s).", placed, wanted, limit/time.Second, job.Fields.GangTimeout)
	if neverFits {
		says = fmt.Sprintf("None of %d pods scheduled. %s", wanted, phrase.Sentence(seen.Gang.Message))
	}
	if count > most {
		says += fmt.Sprintf(" This happened %s, so the job fails.", often(count))
	} else {
		says += fmt.Sprintf(" The job releases its quota; next attempt at %s.", until.Format(time.TimeOnly+" MST"))
		if most < math.MaxInt32 {
			says += fmt.Sprintf(" It fails after this happens %s (%s: %d).", often(most+1), mpi.AnnotationRequeues, most)
		}
	}
	return Turn{Active: new(false), Timeouts: fmt.Sprintf("%d %s", count, until.Format(time.RFC3339)), Says: says}
}

// requeues is how often a job may be put out before it fails. One whose user sets no limit waits for other nodes without end.
func requeues(job mpi.Job) int32 {
	if !job.Gang.TimeoutSet {
		return math.MaxInt32
	}
	return job.Gang.Requeues
}

// startedOnce reports whether all pods have run since the job was admitted, if Kueue reports that.
func startedOnce(workload *Workload) bool {
	ready := apimeta.FindStatusCondition(workload.Status.Conditions, podsReady)
	return ready != nil && (ready.Status == metav1.ConditionTrue || ready.Reason != reasonWaitForStart)
}

// often says how many times.
func often(n int32) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
