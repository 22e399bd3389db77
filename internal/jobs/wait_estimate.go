package jobs

import (
	"cmp"
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/kueue"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/phrase"
)

// WaitEstimate is how long a job may wait before its pods start.
type WaitEstimate struct {
	// Queue is the job's queue; empty if it waits for nodes only.
	Queue string
	// Waiting is the number of jobs of the namespace that wait there now. Running is the number of those that the queue has
	// admitted and that have not ended; 0 without a queue.
	Waiting, Running int
	// Samples is the number of comparable jobs, of FewestPods to MostPods pods, that were admitted there. If Known, half of
	// them waited no longer than P50, and nine in ten no longer than P90.
	Samples, FewestPods, MostPods int32
	Known                         bool
	P50, P90                      time.Duration
}

// String returns the estimate as one line; empty if there is nothing that users should know.
func (w WaitEstimate) String() string {
	where := "in this namespace"
	if w.Queue != "" {
		where = "in queue " + w.Queue
	}
	waiting, running := "no job waits", ""
	switch {
	case w.Waiting == 1:
		waiting = "1 job waits"
	case w.Waiting > 1:
		waiting = fmt.Sprintf("%d jobs wait", w.Waiting)
	}
	switch {
	case w.Running == 1:
		running = ", 1 runs"
	case w.Running > 1:
		running = fmt.Sprintf(", %d run", w.Running)
	}
	now := ""
	if w.Waiting+w.Running > 0 {
		now = waiting + running + " " + where
	}
	if !w.Known || now == "" && w.P90 < time.Second {
		return now
	}
	past := fmt.Sprintf("half of the last %s of %d to %d pods waited at most %s, nine in ten %s", phrase.Count(w.Samples, "job"), w.FewestPods, w.MostPods,
		duration.HumanDuration(w.P50), duration.HumanDuration(w.P90))
	if now == "" {
		return past + " " + where
	}
	return now + "; " + past
}

// Past is what the reports of a namespace contain about its jobs.
type Past struct{ reports []v1alpha1.JobReport }

// Past reads at most 500 reports of a namespace, and none if the user may not read them.
func (c *Client) Past(ctx context.Context, namespace string) (Past, error) {
	var reports v1alpha1.JobReportList
	if err := c.api.List(ctx, &reports, client.InNamespace(namespace), client.Limit(500)); err != nil {
		if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
			return Past{}, nil
		}
		return Past{}, fmt.Errorf("list reports: %w", err)
	}
	return Past{reports: reports.Items}, nil
}

// EstimateWait estimates how long a job that does not exist yet will wait. It returns the zero value if its size is unknown.
func (p Past) EstimateWait(job *unstructured.Unstructured) WaitEstimate {
	size, known := SizeOf(job)
	if !known {
		return WaitEstimate{}
	}
	return estimateWait(p.reports, job.GetLabels()[mpi.LabelQueue], size.Pods())
}

// estimateWait estimates the wait of a job of so many pods in a queue, or in none.
func estimateWait(reports []v1alpha1.JobReport, queue string, pods int32) WaitEstimate {
	estimate := WaitEstimate{Queue: queue}
	var waits kueue.Waits
	var line kueue.Line
	var latest time.Time
	for _, report := range reports {
		status := report.Status
		if waited := status.Waited; waited != nil && waited.Queue == queue {
			at := kueue.Line{Backend: waited.Backend, Queue: queue}
			waits.Add(at, cmp.Or(report.Spec.JobRef.UID, report.UID), waited.Pods, time.Duration(waited.Seconds)*time.Second, waited.Until.Time)
			if waited.Until.After(latest) {
				line, latest = at, waited.Until.Time
			}
		}
		estimate.count(status)
	}
	of := waits.Of(line, pods)
	estimate.Samples, estimate.FewestPods, estimate.MostPods = of.Samples, of.FewestPods, of.MostPods
	estimate.Known, estimate.P50, estimate.P90 = of.Known, of.P50, of.P90
	return estimate
}

// count adds a job to those that wait or run in the queue.
func (w *WaitEstimate) count(status v1alpha1.JobReportStatus) {
	if status.CompletionTime != nil {
		return
	}
	// The queue of a job that does not wait in it is that which has admitted it.
	admittedBy := ""
	if status.Waited != nil {
		admittedBy = status.Waited.Queue
	}
	switch status.Phase {
	case v1alpha1.PhaseSucceeded, v1alpha1.PhaseFailed, v1alpha1.PhaseSuspended:
	case v1alpha1.PhaseQueued, v1alpha1.PhaseGangScheduling:
		if status.Scheduling != nil && status.Scheduling.Queue == w.Queue {
			w.Waiting++
		}
	default:
		switch {
		case admittedBy != w.Queue:
		case status.Reason == codes.WaitingForQuota:
			w.Waiting++
		case w.Queue != "":
			w.Running++
		}
	}
}
