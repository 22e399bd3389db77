package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"opendatahub.io/mpijob/internal/jobs"
)

// changeOptions are those of a command that does the same with one job or many.
type changeOptions struct {
	*Factory
	// verb and past are the verb in texts, such as suspend and suspended.
	verb, past string
	selectFlags
	yes    bool
	dryRun jobs.DryRun
	// change changes a job and returns what to print after the job's name.
	change func(context.Context, *jobs.Client, jobs.Job) (string, error)
	// after runs after all jobs were changed; may be nil.
	after func(context.Context, *jobs.Client, []jobs.Job) error
}

func (o *changeOptions) command(c *cobra.Command) *cobra.Command {
	c.Args = cobra.ArbitraryArgs
	c.ValidArgsFunction = o.completeJobs(-1)
	c.RunE = func(c *cobra.Command, args []string) error { return o.run(c.Context(), args) }
	o.add(c)
	c.Flags().BoolVarP(&o.yes, "yes", "y", false, "Do not ask for confirmation")
	addDryRun(c, &o.dryRun)
	return c
}

// addDryRun adds the flag --dry-run.
func addDryRun(c *cobra.Command, into *jobs.DryRun) {
	c.Flags().StringVar((*string)(into), "dry-run", string(jobs.DryRunNone), "Change nothing: print only (client), or let the API server validate the request (server)")
	_ = c.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions(dryRuns, cobra.ShellCompDirectiveNoFileComp))
}

var dryRuns = []string{string(jobs.DryRunNone), string(jobs.DryRunClient), string(jobs.DryRunServer)}

func (o *changeOptions) run(ctx context.Context, args []string) error {
	if err := oneOf("--dry-run", string(o.dryRun), dryRuns...); err != nil {
		return err
	}
	selected, err := o.pick(ctx, o.Factory, args)
	if err != nil {
		return err
	}
	if len(selected) == 0 {
		say(o.ErrOut, "no jobs match; nothing was %s", o.past)
		return nil
	}
	if len(args) == 0 && o.dryRun == jobs.DryRunNone && !o.yes {
		if err := o.confirm(selected); err != nil {
			return err
		}
	}
	c, err := o.Jobs()
	if err != nil {
		return err
	}
	for _, job := range selected {
		text, err := o.change(ctx, c, job)
		if err != nil {
			return fmt.Errorf("%s %s: %w", o.verb, o.reference(job), err)
		}
		say(o.Out, "%s %s", o.reference(job), text)
	}
	if o.after != nil && o.dryRun == jobs.DryRunNone {
		return o.after(ctx, c, selected)
	}
	return nil
}

// oneOf checks the value of a flag.
func oneOf(flag, value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return usagef("%s: %s is not allowed; use %s", flag, value, strings.Join(allowed, ", "))
}

func dryRunMark(dryRun jobs.DryRun) string {
	if dryRun == jobs.DryRunNone {
		return ""
	}
	return " (" + string(dryRun) + " dry run)"
}

// confirm asks for confirmation. Without a terminal or an answer it fails.
func (o *changeOptions) confirm(selected []jobs.Job) error {
	const most = 20
	for i, job := range selected {
		if i == most {
			say(o.ErrOut, "  and %d more", len(selected)-most)
			break
		}
		say(o.ErrOut, "  %s", o.reference(job))
	}
	return o.ask(fmt.Sprintf("%s%s %s?", strings.ToUpper(o.verb[:1]), o.verb[1:], countText(selected)), "nothing was "+o.past)
}

// ask asks a question. It fails with a refusal unless the answer is yes.
func (f *Factory) ask(question, refusal string) error {
	fmt.Fprintf(f.ErrOut, "%s [y/N] ", question)
	answer, err := bufio.NewReader(f.In).ReadString('\n')
	if err != nil && answer == "" {
		say(f.ErrOut, "")
		return usagef("no answer; use --yes to skip the confirmation")
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return exitf(ExitError, "%s", refusal)
}

// grace is the value of --grace-period: seconds, as in kubectl, or a duration.
type grace struct{ period *time.Duration }

// String returns the duration; empty if none is set.
func (g *grace) String() string {
	if g.period == nil {
		return ""
	}
	return g.period.String()
}

// Set reads seconds or a duration.
func (g *grace) Set(text string) error {
	period, err := time.ParseDuration(text)
	if seconds, notSeconds := strconv.Atoi(text); notSeconds == nil {
		period, err = time.Duration(seconds)*time.Second, nil
	}
	if err != nil || period < 0 || period%time.Second != 0 {
		return fmt.Errorf("%s is not allowed; use seconds, or a duration such as 2m", text)
	}
	g.period = &period
	return nil
}

// Type returns the name of the type in help.
func (g *grace) Type() string { return "duration" }

// endOptions are those of commands that end jobs and can wait until they are gone.
type endOptions struct {
	changeOptions
	grace   grace
	wait    bool
	timeout time.Duration
}

func (o *endOptions) command(c *cobra.Command) *cobra.Command {
	c = o.changeOptions.command(c)
	c.Flags().Var(&o.grace, "grace-period", "Time that programs have to end after SIGTERM, such as 30 or 2m (default: that of the pods)")
	c.Flags().BoolVar(&o.wait, "wait", false, "Wait until the jobs are deleted")
	c.Flags().DurationVar(&o.timeout, "timeout", 0, "With --wait: maximum time to wait, such as 30s (0 for no limit)")
	o.after = func(ctx context.Context, c *jobs.Client, ended []jobs.Job) error {
		if !o.wait {
			return nil
		}
		return o.awaitDeletion(ctx, c, ended, o.timeout)
	}
	return c
}

func newDelete(f *Factory) *cobra.Command {
	o := &endOptions{changeOptions: changeOptions{Factory: f, verb: "delete", past: "deleted"}}
	o.change = func(ctx context.Context, c *jobs.Client, job jobs.Job) (string, error) {
		return o.past + dryRunMark(o.dryRun), c.DeleteWithGrace(ctx, job, o.grace.period, o.dryRun)
	}
	return o.command(&cobra.Command{
		Use:     "delete (NAME... | -l SELECTOR | --phase PHASE | --all)",
		Aliases: []string{"rm"},
		Short:   "Delete jobs and their pods",
		Long: `Delete jobs and their pods. The reports of deleted jobs stay until their retention period ends: describe and list
--gone still show them.`,
		Example: `# Delete a job
{{name}} pi

# Delete all jobs with a label without confirmation
{{name}} -l stage=test --yes

# Delete all failed jobs of the namespace
{{name}} --phase Failed

# Give the programs two minutes to write a checkpoint
{{name}} train --grace-period 2m`,
	})
}

func newCancel(f *Factory) *cobra.Command {
	o := &endOptions{changeOptions: changeOptions{Factory: f, verb: "cancel", past: "cancelled"}}
	o.change = func(ctx context.Context, c *jobs.Client, job jobs.Job) (string, error) {
		err := c.Cancel(ctx, job, o.grace.period, o.dryRun)
		if _, ended := errors.AsType[*jobs.EndedError](err); ended {
			return "has ended; it was not changed", nil
		}
		return o.past + dryRunMark(o.dryRun), err
	}
	return o.command(&cobra.Command{
		Use:   "cancel (NAME... | -l SELECTOR | --phase PHASE | --all)",
		Short: "End jobs that run or wait",
		Long: `End jobs that run or wait: their programs receive SIGTERM and have the grace period to write a checkpoint. Then the jobs
are deleted, also from their queues. Their reports stay, and name you as the user who ended them.

Jobs that have ended are not changed; use delete for these. To run a job later, use suspend instead.`,
		Example: `# End a job
{{name}} train

# Give the programs two minutes to write a checkpoint, and wait until they have ended
{{name}} train --grace-period 2m --wait

# End all jobs that wait in a queue
{{name}} --phase Queued`,
	})
}
