package report

import (
	"fmt"
	"slices"
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
	EventResumed           = "Resumed"
)

// timeline carries on what has happened. An entry is made when a thing is first seen to be so; it is not made again by
// an operator that starts anew, since it stands in the record.
func (m maker) timeline(status v1alpha1.JobReportStatus) []v1alpha1.TimelineEntry {
	t := timeline{entries: slices.Clone(m.before.Timeline), now: m.now}
	if len(t.entries) == 0 {
		t.add(status.StartTime.Time, EventCreated, fmt.Sprintf("%s %s with %d workers.", m.job.Kind, m.job.Name, m.job.Workers.Count))
	}
	if m.before.CompletionTime != nil {
		return t.entries
	}
	suspended := v1alpha1.Phase(mpi.PhaseSuspended)
	if m.before.Phase == suspended && status.Phase != suspended {
		t.add(m.now, EventResumed, "")
	}
	if status.Phase != suspended {
		m.starting(&t)
	}
	m.losses(&t, status.Findings)
	if m.before.RunningTime == nil && status.RunningTime != nil && status.Phase != v1alpha1.Phase(mpi.PhaseRunning) {
		// It ran and ended between two passes.
		t.add(status.RunningTime.Time, string(mpi.PhaseRunning), "")
	}
	if status.Phase != m.before.Phase && tellsPhase[status.Phase] {
		when := m.now
		if status.CompletionTime != nil {
			when = status.CompletionTime.Time
		}
		t.add(when, string(status.Phase), status.Message)
	}
	return t.entries
}

// tellsPhase are the phases that are entered on a timeline; Pending and Initializing are told by what happens in them.
var tellsPhase = map[v1alpha1.Phase]bool{
	"Queued": true, "GangScheduling": true,
	v1alpha1.Phase(mpi.PhaseRunning): true, v1alpha1.Phase(mpi.PhaseSuspended): true,
	v1alpha1.Phase(mpi.PhaseSucceeded): true, v1alpha1.Phase(mpi.PhaseFailed): true,
}

// starting enters how far the pods have come, each step once in each start of the job.
func (m maker) starting(t *timeline) {
	pods := m.allPods()
	if len(pods) == 0 {
		return
	}
	t.once(m.now, EventPodsStarting, fmt.Sprintf("%d pods are there.", len(pods)))
	placed := 0
	for _, pod := range pods {
		if pod.Spec.NodeName != "" {
			placed++
		}
	}
	wanted := int(m.job.Workers.Count)
	if placed >= wanted && placed == len(pods) {
		t.once(m.now, EventPodsPlaced, fmt.Sprintf("All of %d pods have a machine.", placed))
	}
	if wanted > 0 && int(m.outcome.Workers.Ready) >= wanted {
		t.once(m.now, EventWorkersReady, fmt.Sprintf("All of %d workers are ready.", wanted))
	}
	if n := len(m.seen.LauncherPods); n > 0 && m.seen.LauncherPods[n-1].Status.Phase != corev1.PodPending {
		t.once(m.ran(), EventLauncherStarted, m.seen.LauncherPods[n-1].Name)
	}
	m.restarts(t)
}

// restarts enters that the launcher was started again: as a new pod, or in the same one.
func (m maker) restarts(t *timeline) {
	tries := len(m.seen.LauncherPods) - 1
	for _, pod := range m.seen.LauncherPods {
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

// add enters an event, not before the one before it: clocks differ.
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
