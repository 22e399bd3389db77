package jobstate

import (
	"fmt"
	"strings"
	"time"

	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/phrase"
	"opendatahub.io/mpijob/internal/waiting"
)

// GangState is the state of a job in the back end that places its pods together.
type GangState struct {
	// Backend is what places the job, such as podgroup or embedded. Scheduler is the name of the scheduler that its pods
	// go to; empty: their own.
	Backend, Scheduler string
	// Hold is set while no pods may be made: the job waits for its turn, or for its next try. Evict is set while those that
	// are there have to go.
	Hold, Evict bool
	// Starting is set while pods that were created together have not all been bound yet, which is no wait.
	Starting bool
	// Free is set if the pods were created although they never fit together.
	Free bool
	// Turn is set while the pods exist so that others make room for them. The back end ends the turn.
	Turn bool
	// WorkersFirst is set if no node can hold a worker: a launcher would only hold a node. It is created when a worker has one.
	WorkersFirst bool
	// GaveUp is set where the job was put back too often, and none of its pods is left.
	GaveUp bool
	// Nodes are the nodes that pods are pinned to, by the name of the pod; that of the launcher's Job stands for its pod.
	Nodes map[string]string

	// Refused is set if the API server refuses the job's pods: the job then has no place in the queue.
	Refused *Refusal

	// Placed is how many pods have a node, of Wanted.
	Placed, Wanted int32
	// PodsFit is how many of the pods would fit now, and NodesFit on how many of the NodesTotal nodes; nil if unknown.
	PodsFit, NodesFit, NodesTotal *int32
	// Position is the job's place among the waiting jobs, 1 for the next one; 0 if unknown. Scope names these jobs.
	Position int32
	Scope    string
	// Start is when the job is expected to start; zero if nothing is estimated.
	Start waiting.Estimate

	// Since is when the job began to wait for its pods' places.
	Since time.Time
	// Attempts is how often it was put back, EvictedAt when that was last, and NextTry when it is tried again; zero where it
	// never was.
	Attempts           int32
	EvictedAt, NextTry time.Time
	// Again is the time until the state changes by itself, or 0 if it changes only with an object.
	Again time.Duration

	// Reason is one word for why the job has no places, and Message a sentence; empty where the back end says none.
	Reason, Message string
	// Never is set where waiting does not help: no node or quota of this cluster can ever take the job.
	Never bool
	// NeverSince is since when Never is set without a break, as far as this operator has seen.
	NeverSince time.Time
}

// Waits reports whether not all of the pods have a place.
func (g *GangState) Waits() bool {
	return g != nil && (g.Hold || g.Evict || g.Placed < g.Wanted && !g.Starting)
}

// Fits describes the available capacity, such as "9 pods requested, 5 fit on 2 of 2 nodes".
func (g GangState) Fits() string {
	text := phrase.Count(g.Wanted, "pod") + " requested"
	if g.Placed > 0 {
		text += fmt.Sprintf(", %d scheduled", g.Placed)
	}
	if g.PodsFit == nil || g.NodesFit == nil || g.NodesTotal == nil {
		return text
	}
	more := ""
	if g.Placed > 0 {
		more = " more"
	}
	return text + fmt.Sprintf(", %d%s fit on %d of %s", *g.PodsFit, more, *g.NodesFit, phrase.Count(*g.NodesTotal, "node"))
}

// text describes what the job waits for. It contains times, not ages, so that it does not change while nothing happens.
func (g GangState) text() string {
	figures, message := g.Fits(), ""
	if g.Position > 0 {
		figures += fmt.Sprintf("; position %d", g.Position)
		if g.Scope != "" {
			figures += " " + g.Scope
		}
	}
	if g.Message != "" {
		message += " " + phrase.Sentence(strings.ToUpper(g.Message[:1])+g.Message[1:])
	}
	if g.Attempts > 0 {
		message += fmt.Sprintf(" Requeued %s, last at %s", phrase.Times(g.Attempts), clock(g.EvictedAt))
		if g.Hold {
			message += ", next attempt at " + clock(g.NextTry)
		}
		message += "."
	}
	return codes.Status(codes.WaitingForPlaces, map[string]string{"figures": figures, "message": message})
}

func clock(t time.Time) string { return t.UTC().Format(time.TimeOnly + " MST") }

// IsOfGang reports whether a scheduler's message only means that other pods of the same gang do not fit
// (k8s.io/kubernetes/pkg/scheduler/framework/plugins/gangscheduling).
func IsOfGang(message string) bool { return strings.Contains(message, "minCount (") }

// failure is the reason of a job that was put back too often: that a longer time would not have helped, or that the time was over.
func (g GangState) failure() codes.Code {
	switch {
	case g.Never && g.Reason == codes.GangImpossible:
		return codes.GangImpossible
	case g.Never:
		return codes.GangNeverFits
	}
	return codes.GangTimeout
}

// gaveUp describes why the job has failed.
func (g GangState) gaveUp() string {
	text := fmt.Sprintf("Timeout at %s: %s could not be scheduled together", clock(g.EvictedAt), phrase.Count(g.Wanted, "pod"))
	if before := g.Attempts - 1; before > 0 {
		text += fmt.Sprintf(", requeued %s before", phrase.Times(before))
	}
	text += "."
	if g.Message != "" {
		text += " " + phrase.Sentence(g.Message)
	}
	return text
}
