package diagnose

import (
	"fmt"
	"maps"
	"strconv"
	"time"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/curves"
	"opendatahub.io/mpijob/internal/diagnose/facts"
	"opendatahub.io/mpijob/internal/jobstate"
)

const (
	// leastRun is how long a job must have run, and leastDone which share of its work it must have done, until its pace is known.
	leastRun  = 5 * time.Minute
	leastDone = 0.02
	// worthLate is by which share of the deadline a job must be expected to be late.
	worthLate = 0.1
	// A job whose pace is unknown is warned when this share of its deadline is left, and not earlier than longestNotice.
	lastShare     = 0.1
	longestNotice = 30 * time.Minute
)

// deadlineNear warns that the deadline of a running job ends it before it is done, as far as its pace shows, or soon.
func deadlineNear(p *input) []Finding {
	from, ends, has := p.deadlineTimes()
	if !has {
		return nil
	}
	return p.limitNear(codes.DeadlineNear, from, ends, time.Duration(*p.Job.Lifecycle.Deadline)*time.Second, nil, "The deadline counts from "+facts.TimeText(from)+".")
}

// queueLimitNear warns of the same where the job's queue ends it. That a queue takes its quota back for other jobs cannot be foreseen.
func queueLimitNear(p *input) []Finding {
	queue := p.Seen.Queue
	if queue == nil || queue.EndsAt.IsZero() {
		return nil
	}
	// The earlier times in which it was admitted are no part of this run.
	return p.limitNear(codes.QueueEndsJob, queue.AdmittedAt, queue.EndsAt, queue.Limit, map[string]string{"queue": queue.Name},
		fmt.Sprintf("Workload %s: maximumExecutionTimeSeconds is %.0f, and it was admitted at %s.", queue.Object, queue.Limit.Seconds(), facts.TimeText(queue.AdmittedAt)))
}

// limitNear warns that a limit, which counts from a time, ends a running job before it is done, as far as its pace shows, or soon.
func (p *input) limitNear(code codes.Code, from, ends time.Time, limit time.Duration, figures map[string]string, evidence ...string) []Finding {
	if p.Outcome.Phase != v1alpha1.PhaseRunning {
		return nil
	}
	figures = maps.Clone(figures)
	if figures == nil {
		figures = map[string]string{}
	}
	figures["deadline"], figures["at"], figures["enough"] = fmt.Sprintf("%.0f seconds", limit.Seconds()), momentText(ends), fmt.Sprintf("%.0f", 2*limit.Seconds())
	done, at, isPaced := p.pace()
	switch {
	case isPaced && at.After(p.Seen.Now):
		if at.Sub(ends).Seconds() < worthLate*ends.Sub(from).Seconds() {
			return nil
		}
		// The text stays the same while the pace does.
		at = at.Truncate(roundedTo).Add(roundedTo)
		figures["pace"] = ", and the program needs until about " + momentText(at) + " at its pace"
		figures["enough"] = strconv.FormatInt(int64(at.Add(at.Sub(from)/4).Sub(from).Truncate(time.Minute).Seconds()), 10)
		evidence = append(evidence, "Log: "+done+".")
	case ends.Sub(p.Seen.Now) > min(longestNotice, time.Duration(lastShare*float64(ends.Sub(from)))):
		return nil
	}
	return []Finding{p.find(code, p.Pods[:min(1, len(p.Pods))], figures, evidence...)}
}

// deadlineTimes returns from when on the job's deadline counts, and when it ends the job.
func (p *input) deadlineTimes() (from, ends time.Time, has bool) {
	seconds := p.Job.Lifecycle.Deadline
	if seconds == nil {
		return from, ends, false
	}
	from = jobstate.DeadlineFrom(p.Job, p.Seen)
	return from, from.Add(time.Duration(*seconds) * time.Second), !from.IsZero()
}

// pace returns the progress that the program has printed, and when all of it is done if the rest takes as long. A program that went on
// from a checkpoint is taken for faster than it is.
func (p *input) pace() (done string, at time.Time, isKnown bool) {
	training := p.Evidence.Training
	share, done, isPrinted := curves.ShareDone(training)
	if !isPrinted || share < leastDone || len(p.Pods) == 0 {
		return "", at, false
	}
	main := p.Pods[0].MainStatus()
	if main == nil || main.State.Running == nil {
		return "", at, false
	}
	began := main.State.Running.StartedAt.Time
	if training.At.Sub(began) < leastRun {
		return "", at, false
	}
	return done, began.Add(time.Duration(float64(training.At.Sub(began)) / share)), true
}

// momentText returns a time of another day, too, to the minute.
func momentText(at time.Time) string {
	return at.UTC().Format("15:04 on 2 January 2006") + " UTC"
}
