package mpi

import (
	"fmt"
	"time"
)

// LabelQueue names, on a job, the queue that it waits in: a LocalQueue of Kueue's in the job's namespace.
const LabelQueue = "kueue.x-k8s.io/queue-name"

// QueueState is what a queue that lets whole jobs in says of one.
type QueueState struct {
	// Backend is whose queue it is, such as kueue; Name is the queue that the user named. Object is the name of what the
	// queue keeps of the job, such as its Workload; empty where there is nothing yet.
	Backend, Name, Object string
	// Admitted is set while the job is let in.
	Admitted bool
	// Never is set where waiting does not help: somebody has to change the job or the queue.
	Never bool
	// Stopped is set, besides Never, where a user keeps the job out of the queue until one lets it wait there again.
	Stopped bool
	// Reason is the queue's one word for why the job is not let in, and Message its sentence; empty where it says none.
	Reason, Message string
	// Position is the job's place among those that wait in the queue, and Total its place among all that wait for the
	// same quota, 1 for the next one; 0 where that is not known.
	Position, Total int32
	// Evicted is why the job was put out again after it had been let in, empty where it was not; EvictedAt is when, and
	// Requeues is how often it was.
	Evicted   string
	EvictedAt time.Time
	Requeues  int32
}

// text says what a job that is not let in waits for.
func (q QueueState) text() string {
	text := fmt.Sprintf("Waiting in the queue %s", q.Name)
	switch {
	case q.Position > 0 && q.Total > 0:
		text += fmt.Sprintf(": number %d in it, and about number %d among all that wait for the same quota", q.Position, q.Total)
	case q.Position > 0:
		text += fmt.Sprintf(": number %d in it", q.Position)
	}
	text += "."
	if q.Message != "" {
		text += " " + sentence(q.Message)
	}
	if q.Evicted != "" {
		text += " It had been let in, and was put out again: " + sentence(q.Evicted)
	}
	return text
}

// stopped says how a job is let wait again that a user keeps out.
func (q QueueState) stopped(job string) string {
	return fmt.Sprintf("The job is suspended: a user keeps it out of the queue %s (spec.active of its Workload %s is false). "+
		"Its pods are removed. kubectl odh mpijob resume %s lets it wait there again.", q.Name, q.Object, job)
}

// Wait is how long jobs waited that compare with one: in the same queue, of about as many pods.
type Wait struct {
	// Samples is how many such jobs were let in, of FewestPods to MostPods pods.
	Samples, FewestPods, MostPods int32
	// Known is set where they are enough to tell something: half of them waited P50 at most, and nine in ten P90.
	Known    bool
	P50, P90 time.Duration
}
