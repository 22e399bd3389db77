package report

import (
	"fmt"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/phrase"
	"opendatahub.io/mpijob/internal/podspec"
	"opendatahub.io/mpijob/internal/podstatus"
)

// scheduling is how many of the job's pods have a place, as long as not all have; nil otherwise. Nodes count only where
// all of the cluster's are known; labels and taints are not looked at.
func (m maker) scheduling() *v1alpha1.SchedulingStatus {
	if m.outcome.Phase == v1alpha1.PhaseQueued {
		return m.queued()
	}
	if m.outcome.Finish != nil || m.outcome.Phase == v1alpha1.PhaseRunning || m.outcome.Phase == v1alpha1.PhaseSuspended || m.outcome.Reason == codes.ValidationError {
		return nil
	}
	if m.outcome.Reason == codes.WaitingForQuota {
		return m.waitsForQuota()
	}
	if m.seen.Gang != nil {
		return m.gang(*m.seen.Gang)
	}
	waits := v1alpha1.SchedulingStatus{ObservedAt: at(m.now)}
	waits.Placed, waits.Wanted = m.placed()
	if waits.Placed >= waits.Wanted {
		return nil
	}
	waits.Message = fmt.Sprintf("%d of %d pods scheduled.", waits.Placed, waits.Wanted)
	if n := len(m.evidence.Nodes); n > 0 && m.evidence.NodesLeft == 0 {
		fit := m.nodesThatFit()
		waits.NodesFit = &fit
		waits.Message += fmt.Sprintf(" %d of %d nodes have free capacity for a worker.", fit, n)
	}
	return &waits
}

// placed returns how many of the job's pods have a node, and how many are to have one. A launcher that is held back until workers are
// ready waits for none.
func (m maker) placed() (placed, wanted int32) {
	wanted = m.job.Workers.Count
	if m.seen.Launcher != nil || !m.job.Launcher.AfterWorkers && !m.job.Launcher.None {
		wanted++
	}
	for _, pod := range m.seen.CurrentPods(m.job.Workers.Count) {
		if pod.Spec.NodeName != "" && !podstatus.HasEnded(pod) {
			placed++
		}
	}
	return placed, wanted
}

// waitsForQuota is the job's place among those that wait for the quotas of its namespace. It waits for places only afterwards, but keeps
// how often it was put back.
func (m maker) waitsForQuota() *v1alpha1.SchedulingStatus {
	waits := v1alpha1.SchedulingStatus{Message: phrase.Limit(m.outcome.Message, maxQueueMessage), ObservedAt: at(m.now)}
	waits.Placed, waits.Wanted = m.placed()
	if turn := m.seen.QuotaTurn; turn != nil && turn.Position > 0 {
		waits.Position, waits.PositionScope = new(turn.Position), "among jobs waiting for quota in this namespace (approximate)"
	}
	if gang := m.seen.Gang; gang != nil && gang.Attempts > 0 {
		waits.Attempts, waits.EvictedAt, waits.NextTry = gang.Attempts, at(gang.EvictedAt), at(gang.NextTry)
	}
	return &waits
}

// gang is how far the places of a job's pods have come that are placed together; nil once they have them.
func (m maker) gang(gang jobstate.GangState) *v1alpha1.SchedulingStatus {
	if !gang.Waits() {
		return nil
	}
	waits := v1alpha1.SchedulingStatus{
		Backend: gang.Backend, Queue: m.job.Gang.Queue, Placed: gang.Placed, Wanted: gang.Wanted,
		PodsFit: gang.PodsFit, NodesFit: gang.NodesFit, NodesTotal: gang.NodesTotal,
		Attempts: gang.Attempts, Message: phrase.Limit(m.outcome.Message, maxQueueMessage), ObservedAt: at(m.now),
	}
	if !gang.Since.IsZero() {
		waits.Since = at(gang.Since)
	}
	if gang.Position > 0 {
		waits.Position, waits.PositionScope = new(gang.Position), gang.Scope
	}
	if gang.Attempts > 0 {
		waits.EvictedAt, waits.NextTry = at(gang.EvictedAt), at(gang.NextTry)
	}
	return &waits
}

// queued is the job's place in its queue.
func (m maker) queued() *v1alpha1.SchedulingStatus {
	queue := m.seen.Queue
	waits := v1alpha1.SchedulingStatus{
		Backend: queue.Backend, Queue: queue.Name, Wanted: m.job.Workers.Count, Message: phrase.Limit(m.outcome.Message, maxQueueMessage), ObservedAt: at(m.now),
	}
	if !m.job.Launcher.None {
		waits.Wanted++
	}
	if queue.Position > 0 {
		waits.Position, waits.PositionScope = new(queue.Position), "queue "+queue.Name+", approximate"
	}
	return &waits
}

// nodesThatFit is how many nodes have free what a worker asks for.
func (m maker) nodesThatFit() (count int32) {
	asked := podspec.Requests(m.job.Workers.Template.Spec)
	for _, node := range m.evidence.Nodes {
		fits := node.Ready && !node.Unschedulable
		for name, quantity := range asked {
			free := node.Free[name]
			fits = fits && free.Cmp(quantity) >= 0
		}
		if fits {
			count++
		}
	}
	return count
}
