package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"opendatahub.io/mpijob/internal/jobs"
)

func newSuspend(f *Factory) *cobra.Command {
	o := &changeOptions{Factory: f, verb: "suspend", past: "suspended"}
	o.change = func(ctx context.Context, c *jobs.Client, job jobs.Job) (string, error) {
		report, err := c.Suspend(ctx, job, o.dryRun)
		return o.suspendText(job, report), err
	}
	return o.command(&cobra.Command{
		Use:   "suspend (NAME... | -l SELECTOR | --phase PHASE | --all)",
		Short: "Suspend jobs so that they can be resumed",
		Long: `Suspend jobs: their pods are deleted, the jobs stay. A program that writes checkpoints continues from the last one when
the job is resumed.

A job in a queue of Kueue gets an annotation, because Kueue resumes jobs that only their own field suspends. The operator
keeps it out of the queue until you resume it.`,
		Example: `# Suspend a job
{{name}} pi

# Suspend all jobs of a team without confirmation
{{name}} -l team=a --yes`,
	})
}

func newResume(f *Factory) *cobra.Command {
	o := &changeOptions{Factory: f, verb: "resume", past: "resumed"}
	o.change = func(ctx context.Context, c *jobs.Client, job jobs.Job) (string, error) {
		report, err := c.Resume(ctx, job, o.dryRun)
		return o.suspendText(job, report), err
	}
	return o.command(&cobra.Command{
		Use:   "resume (NAME... | -l SELECTOR | --phase PHASE | --all)",
		Short: "Resume suspended jobs",
		Long:  `Resume suspended jobs. A job in a queue starts when the queue admits it.`,
		Example: `# Resume a job
{{name}} pi

# Resume all jobs of a team without confirmation
{{name}} -l team=a --yes`,
	})
}

// suspendText prints a note about the job's queue, and returns why nothing was done, or what follows.
func (o *changeOptions) suspendText(job jobs.Job, report jobs.SuspendReport) string {
	isResume := o.verb == "resume"
	switch {
	case report.Note == jobs.NoKueue:
		o.noteQueue(job, report, "the cluster does not have Kueue's Workloads; the job's own field is used")
	case report.Note == jobs.WorkloadsForbidden && isResume:
		o.noteQueue(job, report, o.describeError(report.Err)+"; the queue starts the job when it has capacity, unless its Workload is deactivated")
	case report.Note == jobs.NoWorkload && isResume:
		o.noteQueue(job, report, "Kueue has not created a Workload for it yet; the queue starts the job when it has capacity")
	}
	switch report.Result {
	case jobs.AlreadySuspended:
		return "is already suspended"
	case jobs.NotSuspended:
		return "is not suspended"
	case jobs.AlreadyEnded:
		if isResume {
			return fmt.Sprintf("has ended; run it again with %s clone %s", o.name, job.Name)
		}
		return "has ended and cannot be suspended"
	case jobs.WaitsInQueue:
		text := fmt.Sprintf("is not suspended; it waits in queue %s", report.Queue)
		if report.QueueMessage != "" {
			text += ": " + report.QueueMessage
		}
		return text
	case jobs.QueueGaveUp:
		return fmt.Sprintf("cannot be %s: its queue has deactivated it; run %s explain %s", o.past, o.name, job.Name)
	}
	text := o.past + dryRunMark(o.dryRun)
	if report.Result == jobs.Resumed && report.InQueue {
		text += "; it waits in queue " + report.Queue
	}
	return text
}

func (o *changeOptions) noteQueue(job jobs.Job, report jobs.SuspendReport, text string) {
	say(o.ErrOut, "note: %s is in queue %s: %s", job, report.Queue, text)
}
