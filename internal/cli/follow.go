package cli

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/jobs"
)

// followFlags are those of commands that create a job and can wait for its end.
type followFlags struct {
	wait, logs bool
	timeout    time.Duration
}

func (o *followFlags) add(c *cobra.Command) {
	flags := c.Flags()
	flags.BoolVar(&o.wait, "wait", false, "Wait until the job ends; Ctrl-C does not stop the job")
	flags.BoolVar(&o.logs, "logs", false, "Show the job's output until it ends; Ctrl-C does not stop the job")
	flags.DurationVar(&o.timeout, "timeout", 0, "With --wait or --logs: maximum time to wait, such as 4h (0 for no limit)")
}

// follow shows the output of a new job and waits for its end, as the flags request.
func (o *followFlags) follow(ctx context.Context, f *Factory, job jobs.Job) error {
	switch {
	case o.logs:
		// The end of the output is the end of the job; logs prints its result.
		limited, cancel := withTimeout(ctx, o.timeout)
		defer cancel()
		err := f.call(limited, "logs", job.String(), "--namespace", job.Namespace, "--follow")
		if limited.Err() != nil && ctx.Err() == nil {
			return exitf(ExitTimeout, "%s has not ended after %s", job, o.timeout)
		}
		return err
	case o.wait:
		return f.await(ctx, job, []v1alpha1.Phase{v1alpha1.PhaseSucceeded}, o.timeout)
	}
	return nil
}

func newAttach(f *Factory) *cobra.Command {
	var tail int64
	c := &cobra.Command{
		Use:   "attach NAME",
		Short: "Show the output of a running job until it ends",
		Long: `Show the output of a job until it ends, then its result. Use it after Ctrl-C, or from another terminal. The output starts
with the last lines of each pod. The exit code is 3 if the job failed. Ctrl-C does not stop the job.

If the job has not started yet, attach waits for it. Use logs for the output so far, and for filters.`,
		Example: `# Continue to watch a job
{{name}} train

# Start with the last 100 lines of each pod
{{name}} train --tail 100`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: f.completeJobs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if tail < 0 {
				return usagef("--tail: %d is not allowed; use 0 or more", tail)
			}
			job, err := f.Find(c.Context(), args[0])
			if err != nil {
				return err
			}
			if job.Object == nil {
				return &jobs.DeletedError{Job: job}
			}
			return f.call(c.Context(), "logs", job.String(), "--namespace", job.Namespace, "--follow", "--tail", strconv.FormatInt(tail, 10))
		},
	}
	c.Flags().Int64Var(&tail, "tail", 10, "Number of last lines of each pod to start with")
	return c
}
