package report

import (
	"fmt"
	"slices"
	"time"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/phrase"
)

// waitsFor contains the phases in which a job waits for others.
var waitsFor = map[v1alpha1.Phase]bool{v1alpha1.PhaseQueued: true, v1alpha1.PhaseGangScheduling: true}

// waits adds to what the job waits for since when it does, and how long others did.
func (m maker) waits(status *v1alpha1.JobReportStatus) {
	waits := status.Scheduling
	if waits == nil || !waitsFor[status.Phase] && status.Reason != codes.WaitingForQuota {
		return
	}
	text := ""
	if i := slices.IndexFunc(status.PhaseTimes, func(t v1alpha1.PhaseTime) bool { return t.Phase == status.Phase }); i >= 0 && waits.Since == nil {
		waits.Since = status.PhaseTimes[i].Since.DeepCopy()
	}
	if waits.Since != nil {
		waits.WaitedSeconds = max(0, int64(m.now.Sub(waits.Since.Time)/time.Second))
		text = fmt.Sprintf("Waiting since %s UTC.", waits.Since.UTC().Format(time.DateTime))
	}
	if !m.never() && !m.isAdmitted() {
		wait := m.evidence.Wait
		waits.Samples = wait.Samples
		if wait.Known {
			waits.WaitP50, waits.WaitP90 = new(int64(wait.P50/time.Second)), new(int64(wait.P90/time.Second))
		}
		text = sentences(text, othersWaited(wait, waits.Queue != ""))
		waits.Estimate = m.startEstimate(*waits)
	}
	// What the back end says may be long, and is what can be cut.
	waits.Message = sentences(phrase.Limit(waits.Message, maxQueueMessage-len(text)-1), text)
}

// never reports whether waiting does not help.
func (m maker) never() bool {
	return m.seen.Queue != nil && (m.seen.Queue.Never || m.seen.Queue.NeverFits != "") || m.seen.Gang != nil && m.seen.Gang.Never
}

// isAdmitted reports whether the job's queue has admitted it.
func (m maker) isAdmitted() bool { return m.seen.Queue != nil && m.seen.Queue.Admitted }

// othersWaited describes how long comparable jobs waited.
func othersWaited(wait jobstate.Wait, inQueue bool) string {
	where := "namespace"
	if inQueue {
		where = "queue"
	}
	if !wait.Known {
		return ""
	}
	return fmt.Sprintf("Wait of jobs of %d to %d pods in this %s: median %s, 90th percentile %s (last %d).",
		wait.FewestPods, wait.MostPods, where, lasting(wait.P50), lasting(wait.P90), wait.Samples)
}

// lasting formats a duration with the precision that matters to waiting users.
func lasting(took time.Duration) string {
	switch took = took.Round(time.Second); {
	case took < time.Minute:
		return fmt.Sprintf("%d s", took/time.Second)
	case took < time.Hour:
		return fmt.Sprintf("%d min", (took+time.Minute/2)/time.Minute)
	case took < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", took/time.Hour, took%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%d days", (took+12*time.Hour)/(24*time.Hour))
}

// waited is how long the job waited until it was let in for the first time; nil where it never was, or had nothing to
// wait for. What it waits after it was put out again depends on others than those that wait at first. A job that waits for quota has
// not begun to wait for places.
func (m maker) waited(status v1alpha1.JobReportStatus) *v1alpha1.Waited {
	if m.before.Waited != nil {
		return m.before.Waited
	}
	waited := v1alpha1.Waited{Pods: m.job.Pods(), Until: *at(m.now)}
	var phase v1alpha1.Phase
	switch queue, gang := m.seen.Queue, m.seen.Gang; {
	case m.outcome.Suspended() || m.outcome.Reason == codes.ValidationError:
		return nil
	case queue != nil && queue.Admitted:
		waited.Backend, waited.Queue, phase = queue.Backend, queue.Name, v1alpha1.PhaseQueued
	case queue == nil && gang != nil && !gang.Waits() && len(m.seen.Shortages) == 0:
		waited.Backend, waited.Queue, phase = gang.Backend, m.job.Gang.Queue, v1alpha1.PhaseGangScheduling
	default:
		return nil
	}
	for _, t := range status.PhaseTimes {
		if t.Phase == phase {
			waited.Seconds = t.Seconds
		}
	}
	return &waited
}
