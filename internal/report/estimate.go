package report

import (
	"fmt"
	"time"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/phrase"
	"opendatahub.io/mpijob/internal/waiting"
)

// startEstimate returns when a waiting job is expected to start: by the jobs before it or, where these are unknown, by how long others
// waited. It is nil if nothing is known about either. Past waits say nothing about a job whose start the jobs before it do not bound: it
// would start before one of them.
func (m maker) startEstimate(waits v1alpha1.SchedulingStatus) *v1alpha1.StartEstimate {
	var estimate waiting.Estimate
	wait := m.evidence.Wait
	switch gang := m.seen.Gang; {
	case m.seen.QuotaTurn != nil:
		estimate = m.seen.QuotaTurn.Start
	case gang != nil && gang.Position > 0 && m.seen.Queue == nil:
		// That of a new job in the operator's queue is zero for a moment.
		estimate = gang.Start
	case m.seen.Queue != nil && !m.seen.Queue.Start.By.IsZero():
		estimate = m.seen.Queue.Start
	case wait.Known && waits.Since != nil:
		estimate = waiting.ByPastWaits(m.now, waits.Since.Time, wait.P50, wait.P90)
	case m.seen.Queue != nil && !m.seen.Queue.Start.IsZero():
		estimate = m.seen.Queue.Start
	case wait.MostPods > 0:
		estimate = waiting.Estimate{Reason: waiting.FewSamples}
	}
	if estimate.IsZero() {
		return nil
	}
	status := &v1alpha1.StartEstimate{Basis: string(estimate.Basis), Reason: string(estimate.Reason)}
	if !estimate.From.IsZero() {
		status.From = at(estimate.From)
	}
	if !estimate.By.IsZero() {
		status.By = at(estimate.By)
	}
	status.Message = phrase.Limit(m.estimateText(estimate), maxEstimateMessage)
	return status
}

// maxEstimateMessage is the longest text of an estimate.
const maxEstimateMessage = 512

// estimateText describes an estimate.
func (m maker) estimateText(estimate waiting.Estimate) string {
	if estimate.By.IsZero() {
		return "No estimate of the start: " + m.noEstimate(estimate) + "."
	}
	return fmt.Sprintf("Expected start: %s UTC, %s.", period(estimate.From, estimate.By), basisText(estimate.Basis, m.evidence.Wait))
}

func basisText(basis waiting.Basis, wait jobstate.Wait) string {
	switch basis {
	case waiting.Deadlines:
		return "by the deadlines of the jobs before it"
	case waiting.Durations:
		return "by the usual durations of the jobs before it"
	case waiting.DeadlinesAndDurations:
		return "by the deadlines and usual durations of the jobs before it"
	case waiting.PastWaits:
		return fmt.Sprintf("by the waits of the last %s of %d to %d pods", phrase.Count(wait.Samples, "job"), wait.FewestPods, wait.MostPods)
	}
	return "there is room for it"
}

// noEstimate describes why there is no estimate.
func (m maker) noEstimate(estimate waiting.Estimate) string {
	wait := m.evidence.Wait
	switch estimate.Reason {
	case waiting.NoDeadline:
		return fmt.Sprintf("%s before it has no deadline (activeDeadlineSeconds), and fewer than %d similar jobs have succeeded", m.otherJob(estimate.Other), waiting.MinSamples)
	case waiting.Overdue:
		return m.otherJob(estimate.Other) + " before it runs longer than similar jobs did, and has no deadline (activeDeadlineSeconds)"
	case waiting.PodsStay:
		return "the pods of " + m.otherJob(estimate.Other) + " before it stay when it ends (cleanPodPolicy: None)"
	case waiting.NotReleased:
		return "other pods than those of the jobs before it use the capacity"
	case waiting.NoneAhead:
		return "there is none for " + m.otherJob(estimate.Other) + " before it"
	case waiting.Autoscaled:
		return "the autoscaler may add nodes at any time"
	case waiting.NotForQuota:
		return "quota is free for it, so that it waits for something else, such as nodes"
	case waiting.FewSamples:
		return fmt.Sprintf("only %s of %d to %d pods waited here before, %d are needed%s", phrase.Count(wait.Samples, "job"), wait.FewestPods, wait.MostPods, waiting.MinSamples, m.notByDeadlines())
	case waiting.WaitedLonger:
		return fmt.Sprintf("it has waited longer than nine in ten of the last %s of %d to %d pods%s", phrase.Count(wait.Samples, "job"), wait.FewestPods, wait.MostPods, m.notByDeadlines())
	}
	return "the reason is unknown"
}

// notByDeadlines explains why the deadlines of running jobs do not bound the start of a job in a queue; empty for any other.
func (m maker) notByDeadlines() string {
	switch queue := m.seen.Queue; {
	case queue == nil:
		return ""
	case queue.Start.IsZero():
		return "; deadlines of running jobs are not used, because the quota is shared with other queues (a cohort), or is unknown"
	default:
		return "; by deadlines, there is no estimate: " + m.noEstimate(queue.Start)
	}
}

// otherJob names another job to the users of this one: by its name only within the namespace.
func (m maker) otherJob(other *waiting.Job) string {
	if other != nil && other.Namespace == m.job.Namespace {
		return "the job " + other.Name
	}
	return "a job of another namespace"
}

// period formats the time in which a job is expected to start.
func period(from, by time.Time) string {
	const minutes = "2006-01-02 15:04"
	from, by = from.UTC(), by.UTC()
	switch {
	case from.IsZero():
		return "before " + by.Format(minutes)
	case from.Equal(by):
		return by.Format(minutes)
	case from.Format(time.DateOnly) == by.Format(time.DateOnly):
		return from.Format(minutes) + " to " + by.Format("15:04")
	}
	return from.Format(minutes) + " to " + by.Format(minutes)
}
