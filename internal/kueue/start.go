package kueue

import (
	"cmp"
	"slices"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"opendatahub.io/mpijob/internal/waiting"
)

// The reasons of evictions after which a Workload waits from then on, and not from its creation.
const (
	evictedByPodsReady      = "PodsReadyTimeout"
	evictedByAdmissionCheck = "AdmissionCheck"
)

// EstimateStarts estimates when the Workloads start that wait for the quota of a ClusterQueue, by their UID, from when those end that
// hold it. Workloads are those that hold quota of any ClusterQueue, and those that wait for this one; the others are left out. describe returns
// what is known about the job of a Workload. There are no estimates for a ClusterQueue in a cohort, since others borrow from it or lend to
// it, nor where fair sharing decides about the order.
func EstimateStarts(now time.Time, queue *ClusterQueue, workloads []*Workload, describe func(*Workload) waiting.Job) map[types.UID]waiting.Estimate {
	if queue.Spec.CohortName != "" || queue.Spec.AdmissionScope != nil {
		return nil
	}
	var running, line []*Workload
	for _, workload := range workloads {
		switch conditions := workload.Status.Conditions; {
		case apimeta.IsStatusConditionTrue(conditions, finished):
		case workload.Status.Admission != nil && apimeta.IsStatusConditionTrue(conditions, quotaReserved):
			if workload.Status.Admission.ClusterQueue == queue.Name {
				running = append(running, workload)
			}
		case workload.waitsNow(now, queue.Spec.QueueingStrategy == strictFIFO):
			line = append(line, workload)
		}
	}
	slices.SortFunc(running, func(a, b *Workload) int { return cmp.Compare(a.UID, b.UID) })
	slices.SortFunc(line, inTurn)
	excluded := make([]map[string]bool, len(line))
	waits := make([]waiting.Job, len(line))
	for i, workload := range line {
		excluded[i], waits[i] = workload.excludedFlavors(), workload.limited(describe(workload))
	}
	runs := make([]waiting.Job, len(running))
	for i, workload := range running {
		runs[i] = workload.limited(describe(workload))
	}
	estimates := map[types.UID]waiting.Estimate{}
	starts := waiting.Starts(now, waits, runs, func() waiting.Room { return newRoom(queue, running, line, excluded) })
	// Where quota is free, a job waits for something else, such as nodes of a topology, and those behind it for that, too.
	first := slices.IndexFunc(starts, func(e waiting.Estimate) bool { return !e.By.IsZero() && e.Basis == "" })
	for i, estimate := range starts {
		switch {
		case first >= 0 && i == first:
			estimate = waiting.Estimate{Reason: waiting.NotForQuota, Other: &waits[first]}
		case first >= 0 && i > first:
			estimate = waiting.Estimate{Reason: waiting.NoneAhead, Other: &waits[first]}
		}
		estimates[line[i].UID] = estimate
	}
	return estimates
}

// isConsidered reports whether Kueue has tried to admit a Workload.
func (w *Workload) isConsidered() bool {
	return apimeta.FindStatusCondition(w.Status.Conditions, quotaReserved) != nil
}

// waitsNow reports whether a Workload waits for quota. In a strict queue, one that is too large waits before the others. One that its queue
// does not admit at all is not in the line.
func (w *Workload) waitsNow(now time.Time, strict bool) bool {
	if requeue := w.Status.RequeueState; requeue != nil && requeue.RequeueAt != nil && requeue.RequeueAt.After(now) {
		return false
	}
	if w.Standing() != Active {
		return false
	}
	switch state := FromKueue(w.Spec.QueueName, w); state.Reason {
	case ReasonStopped, reasonInadmissible, reasonMisconfigured:
		return false
	case ReasonNeedsRequests:
		return strict || state.Message == noLongerFits
	default:
		return strict || !state.Never
	}
}

// inTurn compares the places of two Workloads in a queue, as Kueue sorts them
// (kueue/pkg/cache/queue/cluster_queue.go: queueOrderingFunc, and pkg/workload/workload.go: GetQueueOrderTimestamp).
func inTurn(a, b *Workload) int {
	return cmp.Or(-cmp.Compare(ptr.Deref(a.Spec.Priority, 0), ptr.Deref(b.Spec.Priority, 0)), a.waitsFrom().Compare(b.waitsFrom()), cmp.Compare(a.UID, b.UID))
}

// waitsFrom is the time by which Kueue sorts the Workloads of a priority.
func (w *Workload) waitsFrom() time.Time {
	out := apimeta.FindStatusCondition(w.Status.Conditions, evicted)
	if out != nil && out.Status == metav1.ConditionTrue && (out.Reason == evictedByPodsReady || out.Reason == evictedByAdmissionCheck) {
		return out.LastTransitionTime.Time
	}
	return w.CreationTimestamp.Time
}

// limited returns a job with the limits of its Workload. Kueue gives its quota to others as soon as it has ended, whether its pods stay or not.
func (w *Workload) limited(job waiting.Job) waiting.Job {
	job.Lingers = 0
	admitted := isAdmitted(w)
	switch reserved := apimeta.FindStatusCondition(w.Status.Conditions, quotaReserved); {
	case !job.Start.IsZero() || w.Status.Admission == nil:
	case admitted:
		job.Start = admittedAt(w)
	case reserved != nil:
		// It waits for admission checks, or its pods are being deleted.
		job.Start = reserved.LastTransitionTime.Time
	}
	if w.Spec.MaximumExecutionTimeSeconds == nil {
		return job
	}
	limit := time.Duration(*w.Spec.MaximumExecutionTimeSeconds-ptr.Deref(w.Status.AccumulatedPastExecutionTimeSeconds, 0)) * time.Second
	limit = max(limit, time.Second)
	var from time.Time
	if admitted {
		from = admittedAt(w)
	}
	own := job.Deadline
	if !from.IsZero() && !job.DeadlineFrom.IsZero() {
		own = job.DeadlineFrom.Add(job.Deadline).Sub(from)
	}
	if job.Deadline <= 0 || limit < own {
		job.Deadline, job.DeadlineFrom = limit, from
	}
	return job
}

// excludedFlavors are those that never accept the pods, according to Kueue's message.
func (w *Workload) excludedFlavors() map[string]bool {
	excluded := map[string]bool{}
	why := apimeta.FindStatusCondition(w.Status.Conditions, quotaReserved)
	if why == nil {
		return excluded
	}
	for _, mismatch := range mismatches {
		for _, m := range mismatch.said.FindAllStringSubmatch(why.Message, -1) {
			excluded[m[len(m)-1]] = true
		}
	}
	return excluded
}
