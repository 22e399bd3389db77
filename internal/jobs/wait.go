package jobs

import (
	"context"
	"slices"
	"time"

	"opendatahub.io/mpijob/api/v1alpha1"
)

// AwaitPhase returns the job when it is or was in one of some phases, or has ended. Meanwhile show is called every second
// and after each change. If it fails, it returns the job as seen last.
func (c *Client) AwaitPhase(ctx context.Context, job Job, phases []v1alpha1.Phase, show func(Job)) (Job, error) {
	changes := make(chan *v1alpha1.JobReport)
	failed := make(chan error, 1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		failed <- c.WatchJob(ctx, job, func(report *v1alpha1.JobReport) (bool, error) {
			select {
			case changes <- report:
			case <-ctx.Done():
			}
			return false, nil
		})
	}()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for !reached(job, phases) {
		show(job)
		select {
		case job.Report = <-changes:
		case err := <-failed:
			return job, err
		case <-tick.C:
		}
	}
	return job, nil
}

func reached(job Job, phases []v1alpha1.Phase) bool {
	if job.Report == nil {
		return false
	}
	status := job.Report.Status
	return status.CompletionTime != nil || slices.ContainsFunc(phases, func(phase v1alpha1.Phase) bool { return HasBeen(status, phase) })
}

// AwaitEnd returns when a job has ended or is deleted. It calls seen, unless it is nil, with each state of the report. If the
// report cannot be read, the job's own conditions decide whether it has ended.
func (c *Client) AwaitEnd(ctx context.Context, job Job, seen func(*v1alpha1.JobReport)) {
	const interval = 5 * time.Second
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer cancel()
		err := c.WatchJob(ctx, job, func(report *v1alpha1.JobReport) (bool, error) {
			if seen != nil {
				seen(report)
			}
			return report.Status.CompletionTime != nil, nil
		})
		if err != nil {
			<-ctx.Done() // the loop below detects the end later
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(interval):
		}
		object, err := c.get(ctx, job.gvk(), job.Namespace, job.Name)
		switch {
		case err != nil:
		case object == nil, object.GetUID() != job.UID:
			return
		case FromObject(object).Ended() && !c.reportIsPending(ctx, job):
			return
		}
	}
}

// reportIsPending reports whether the job's report can be read and does not have the job's end yet.
func (c *Client) reportIsPending(ctx context.Context, job Job) bool {
	reports, err := c.reportsOf(ctx, job.Namespace, Kinds(), job.Name)
	return err == nil && slices.ContainsFunc(reports, func(r v1alpha1.JobReport) bool { return r.Spec.JobRef.UID == job.UID && r.Status.CompletionTime == nil })
}
