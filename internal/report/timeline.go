package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/mpi"
)

// Events of a timeline. Phases stand there by their own names, and findings by their codes.
const (
	EventCreated           = "Created"
	EventPodsStarting      = "PodsStarting"
	EventPodsPlaced        = "PodsPlaced"
	EventWorkersReady      = "WorkersReady"
	EventLauncherStarted   = "LauncherStarted"
	EventLauncherRestarted = "LauncherRestarted"
	EventPutBack           = "PutBack"
	EventResumed           = "Resumed"
	EventChanged           = "Changed"
	EventDeletionRequested = "DeletionRequested"
)

// timeline carries on what has happened. An entry is made when a thing is first seen to be so; it is not made again by
// an operator that starts anew, since it stands in the record.
func (m maker) timeline(status v1alpha1.JobReportStatus) []v1alpha1.TimelineEntry {
	t := timeline{entries: slices.Clone(m.before.Timeline), now: m.now}
	if status.CompletionTime != nil {
		// What was not seen to happen happened before the end.
		t.now = earlier(m.now, status.CompletionTime.Time)
	}
	if len(t.entries) == 0 {
		t.add(status.StartTime.Time, EventCreated, sentences(fmt.Sprintf("%s %s with %d workers.", m.job.Kind, m.job.Name, m.job.Workers.Count), by(m.job.Authors.Creator)))
	}
	if m.before.CompletionTime != nil {
		return t.entries
	}
	if change := m.job.Authors.Change; change.User != "" && change.Generation > m.before.ObservedGeneration {
		t.add(m.now, EventChanged, by(change.User))
	}
	suspended := v1alpha1.Phase(mpi.PhaseSuspended)
	if m.before.Phase == suspended && status.Phase != suspended {
		t.add(m.now, EventResumed, m.switchedBy())
	}
	if status.Phase != suspended {
		m.starting(&t)
	}
	m.putBack(&t, status.Scheduling)
	m.preempted(&t)
	m.losses(&t, status.Findings)
	for _, entry := range m.entered(status) {
		message := status.Message
		switch {
		case entry.phase != status.Phase:
			message = ""
		case entry.phase == suspended:
			message = sentences(m.switchedBy(), message)
		case m.outcome.Finish == nil:
			// What is wrong besides has entries of its own.
			message = m.outcome.Message
		}
		if tellsPhase[entry.phase] {
			t.add(entry.at, string(entry.phase), message)
		}
	}
	return t.entries
}

// switchedBy says who suspended or resumed the job last; nothing where that is not known, or where the job was created
// so. A job that is kept out of a queue, or waits there, has its own field switched by the queue; whoever stopped its
// Workload or made it active again is not known.
func (m maker) switchedBy() string {
	if m.seen.Queue != nil && !m.seen.Queue.Admitted {
		return ""
	}
	return by(m.job.Authors.Suspend.User)
}

// by says who did something; nothing where that is not known.
func by(user string) string {
	if user == "" {
		return ""
	}
	return "By " + user + "."
}

// byUser is the user of whom by said it.
func byUser(detail string) string { return strings.TrimSuffix(strings.TrimPrefix(detail, "By "), ".") }

func sentences(first, second string) string {
	return strings.TrimSpace(first + " " + second)
}

// IsTrouble tells of an entry whether somebody may have to act: all but the steps that a job takes when all is well.
func IsTrouble(entry v1alpha1.TimelineEntry) bool {
	switch entry.Event {
	case EventCreated, EventPodsStarting, EventPodsPlaced, EventWorkersReady, EventLauncherStarted, EventResumed, EventChanged, EventDeletionRequested, ReasonDeleted:
		return false
	}
	phase := v1alpha1.Phase(entry.Event)
	return !tellsPhase[phase] || phase == v1alpha1.Phase(mpi.PhaseFailed)
}

// tellsPhase are the phases that are entered on a timeline; Pending and Initializing are told by what happens in them.
var tellsPhase = map[v1alpha1.Phase]bool{
	"Queued": true, "GangScheduling": true,
	v1alpha1.Phase(mpi.PhaseRunning): true, v1alpha1.Phase(mpi.PhaseSuspended): true,
	v1alpha1.Phase(mpi.PhaseSucceeded): true, v1alpha1.Phase(mpi.PhaseFailed): true,
}

// starting enters how far the pods have come, each step once in each start of the job, at the time that they tell. Those
// on their way out may be of the start before.
func (m maker) starting(t *timeline) {
	pods := staying(m.allPods())
	if len(pods) == 0 {
		return
	}
	var made time.Time
	for _, pod := range staying(m.latestPods()) {
		made = earlier(pod.CreationTimestamp.Time, made)
	}
	t.once(made, EventPodsStarting, fmt.Sprintf("%d pods are there.", len(pods)))
	placed := 0
	for _, pod := range pods {
		if pod.Spec.NodeName != "" {
			placed++
		}
	}
	wanted := int(m.job.Workers.Count)
	if placed >= wanted && placed == len(pods) {
		t.once(m.latest(corev1.PodScheduled), EventPodsPlaced, fmt.Sprintf("All of %d pods have a machine.", placed))
	}
	if wanted > 0 && int(m.outcome.Workers.Ready) >= wanted {
		t.once(m.latest(corev1.PodReady), EventWorkersReady, fmt.Sprintf("All of %d workers are ready.", wanted))
	}
	if tries := staying(m.seen.LauncherPods); len(tries) > 0 {
		if latest := tries[len(tries)-1]; latest.Status.Phase != corev1.PodPending {
			t.once(started(latest), EventLauncherStarted, latest.Name)
		}
	}
	m.restarts(t)
}

// staying are the pods that are not on their way out.
func staying(pods []*corev1.Pod) []*corev1.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil })
}

// putBack enters that not all pods found a place in time.
func (m maker) putBack(t *timeline, waits *v1alpha1.SchedulingStatus) {
	if waits == nil || waits.EvictedAt == nil || m.before.Scheduling != nil && m.before.Scheduling.Attempts >= waits.Attempts {
		return
	}
	detail := fmt.Sprintf("%d of %d pods had a place. All are removed, so that others can have the places.", waits.Placed, waits.Wanted)
	if waits.Attempts <= m.job.Gang.Requeues {
		detail = sentences(detail, fmt.Sprintf("The job is tried again at %s (%d of %d times).", waits.NextTry.UTC().Format(time.TimeOnly+" MST"), waits.Attempts, m.job.Gang.Requeues))
	}
	t.add(waits.EvictedAt.Time, EventPutBack, detail)
}

// preempted enters that the back end itself has the pods stopped, to make room for another job (gang.ReasonPreempted).
func (m maker) preempted(t *timeline) {
	const event = string(mpi.CodePreempted)
	if gang := m.seen.Gang; gang == nil || !gang.Evict || gang.Reason != event {
		return
	}
	if last := t.last(event); last == nil || last.Detail != cut(m.seen.Gang.Message, maxDetail) {
		t.add(m.now, event, m.seen.Gang.Message)
	}
}

// latest is when a condition came to hold for the last of the workers; zero where none tells.
func (m maker) latest(kind corev1.PodConditionType) (when time.Time) {
	for _, worker := range m.seen.Workers {
		for _, c := range worker.Pod.Status.Conditions {
			if c.Type == kind && c.Status == corev1.ConditionTrue {
				when = later(when, c.LastTransitionTime.Time)
			}
		}
	}
	return when
}

// restarts enters that the launcher was started again: as a new pod, or in the same one.
func (m maker) restarts(t *timeline) {
	pods := staying(m.seen.LauncherPods)
	tries := len(pods) - 1
	for _, pod := range pods {
		for _, c := range pod.Status.ContainerStatuses {
			tries += int(c.RestartCount)
		}
	}
	if tries <= 0 {
		return
	}
	detail := fmt.Sprintf("Start %d.", tries+1)
	if last := t.last(EventLauncherRestarted); last == nil || last.Detail != detail {
		t.add(m.now, EventLauncherRestarted, detail)
	}
}

// losses enters each trouble when it becomes the first of the findings, and each loss of a pod.
func (m maker) losses(t *timeline, findings []v1alpha1.Finding) {
	for i, finding := range findings {
		known := slices.ContainsFunc(m.before.Findings, func(old v1alpha1.Finding) bool {
			return old.Code == finding.Code && old.Summary == finding.Summary
		})
		if known || i > 0 && !takesPods[mpi.Code(finding.Code)] {
			continue
		}
		if last := t.last(finding.Code); last == nil || last.Detail != cut(finding.Summary, maxDetail) {
			t.add(m.now, finding.Code, finding.Summary)
		}
	}
}

// timeline is a list of entries that is kept short.
type timeline struct {
	entries []v1alpha1.TimelineEntry
	now     time.Time
}

// add enters an event, not before the one before it: clocks differ. One whose time is not known happened now.
func (t *timeline) add(when time.Time, event, detail string) {
	when = earlier(t.now, when)
	if n := len(t.entries); n > 0 {
		when = later(when, t.entries[n-1].Time.Time)
	}
	if n := len(t.entries); n >= maxTimeline {
		// How it began and what happened last are worth more than what is between.
		t.entries = slices.Delete(t.entries, maxTimeline/4, maxTimeline/4+1)
	}
	t.entries = append(t.entries, v1alpha1.TimelineEntry{Time: *at(when), Event: cut(event, maxCode), Detail: cut(detail, maxDetail)})
}

// once enters an event unless it stands there since the job was last started or resumed.
func (t *timeline) once(when time.Time, event, detail string) {
	for _, entry := range slices.Backward(t.entries) {
		if entry.Event == event {
			return
		}
		if entry.Event == EventResumed {
			break
		}
	}
	t.add(when, event, detail)
}

func (t *timeline) last(event string) *v1alpha1.TimelineEntry {
	for i, entry := range slices.Backward(t.entries) {
		if entry.Event == event {
			return &t.entries[i]
		}
	}
	return nil
}
