package cli

import (
	"bufio"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// changeOptions are those of a command that does the same with one job or many.
type changeOptions struct {
	*Factory
	// verb is what is done, such as suspend, and past how it is told, such as suspended.
	verb, past string
	selector   string
	all, yes   bool
	dryRun     string
	// task finds out what there is to do with a job.
	task func(context.Context, client.Client, Job) (task, error)
	// after follows when it is done; nil: nothing.
	after func(context.Context, []Job) error
}

// task is what there is to do with one job.
type task struct {
	// nothing says of the job why nothing has to be done; empty where something has.
	nothing string
	// do does it, or asks the API server whether it may be done.
	do func(ctx context.Context, dryRun bool) error
	// then says what follows of it; may be empty.
	then string
}

func (o *changeOptions) command(c *cobra.Command) *cobra.Command {
	c.Args = cobra.ArbitraryArgs
	c.ValidArgsFunction = o.completeJobs(-1)
	c.RunE = func(c *cobra.Command, args []string) error { return o.run(c.Context(), args) }
	flags := c.Flags()
	flags.StringVarP(&o.selector, "selector", "l", "", "All jobs with these labels, such as team=a")
	flags.BoolVar(&o.all, "all", false, "All jobs of the namespace")
	flags.BoolVarP(&o.yes, "yes", "y", false, "Do not ask before it is done to several jobs")
	flags.StringVar(&o.dryRun, "dry-run", "none", "client: only say what would be done; server: also ask the API server whether it may be")
	_ = c.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions([]string{"none", "client", "server"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

func (o *changeOptions) run(ctx context.Context, args []string) error {
	if err := oneOf("--dry-run", o.dryRun, "none", "client", "server"); err != nil {
		return err
	}
	jobs, err := o.pick(ctx, args)
	if err != nil {
		return err
	}
	if len(jobs) == 0 {
		say(o.ErrOut, "no such jobs: nothing was %s", o.past)
		return nil
	}
	if len(args) == 0 && o.dryRun == "none" && !o.yes {
		if err := o.ask(jobs); err != nil {
			return err
		}
	}
	c, err := o.Client()
	if err != nil {
		return err
	}
	for _, job := range jobs {
		if err := o.change(ctx, c, job); err != nil {
			return err
		}
	}
	if o.after != nil && o.dryRun == "none" {
		return o.after(ctx, jobs)
	}
	return nil
}

// change does it to one job, and says so.
func (o *changeOptions) change(ctx context.Context, c client.Client, job Job) error {
	next, err := o.task(ctx, c, job)
	switch {
	case err != nil:
		return fmt.Errorf("%s %s: %w", o.verb, job, err)
	case next.nothing != "":
		say(o.Out, "%s %s", job, next.nothing)
		return nil
	}
	if o.dryRun != "client" {
		if err := next.do(ctx, o.dryRun == "server"); err != nil {
			return fmt.Errorf("%s %s: %w", o.verb, job, err)
		}
	}
	say(o.Out, "%s %s%s%s", job, o.past, dryRunMark(o.dryRun), next.then)
	return nil
}

// oneOf checks a flag's value against those that it may have.
func oneOf(flag, value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return usagef("%s %s: must be one of %s", flag, value, strings.Join(allowed, ", "))
}

func dryRunMark(how string) string {
	if how == "none" {
		return ""
	}
	return " (dry run: " + how + ")"
}

// pick are the jobs that are named, or those that the flags pick. Only such that exist can be changed.
func (o *changeOptions) pick(ctx context.Context, args []string) ([]Job, error) {
	switch {
	case len(args) > 0 && (o.selector != "" || o.all), o.selector != "" && o.all:
		return nil, usagef("%s takes names of jobs, -l or --all: one of these", o.verb)
	case len(args) == 0 && o.selector == "" && !o.all:
		return nil, usagef("name the jobs to %s, or pick them with -l or --all", o.verb)
	case len(args) == 0:
		selection, err := o.selection(false, o.selector)
		if err != nil {
			return nil, err
		}
		selection.NoReports = true
		jobs, notes, err := o.Jobs(ctx, selection)
		for _, note := range notes {
			say(o.ErrOut, "note: %s", note)
		}
		return jobs, err
	}
	var jobs []Job
	for _, arg := range args {
		job, err := o.Find(ctx, arg)
		if err != nil {
			return nil, err
		}
		if job.Object == nil {
			return nil, exitf(ExitNotFound, "%s is deleted already; only its record is left: %s describe %s", job, o.name, job.Name)
		}
		jobs = append(jobs, job)
	}
	return jobs, nil
}

// ask asks whether the user means all these jobs. Where nobody can answer, --yes has to be given.
func (o *changeOptions) ask(jobs []Job) error {
	const most = 20
	for i, job := range jobs {
		if i == most {
			say(o.ErrOut, "  and %d more", len(jobs)-most)
			break
		}
		say(o.ErrOut, "  %s", job)
	}
	question := fmt.Sprintf("%s%s these %d jobs? [y/N] ", strings.ToUpper(o.verb[:1]), o.verb[1:], len(jobs))
	if len(jobs) == 1 {
		question = fmt.Sprintf("%s%s this job? [y/N] ", strings.ToUpper(o.verb[:1]), o.verb[1:])
	}
	fmt.Fprint(o.ErrOut, question)
	answer, err := bufio.NewReader(o.In).ReadString('\n')
	if err != nil && answer == "" {
		say(o.ErrOut, "")
		return usagef("nobody has answered; with --yes it is done without asking")
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return exitf(ExitError, "nothing was %s", o.past)
}

func newDelete(f *Factory) *cobra.Command {
	o := &changeOptions{Factory: f, verb: "delete", past: "deleted"}
	o.task = func(_ context.Context, c client.Client, job Job) (task, error) {
		return task{do: func(ctx context.Context, dryRun bool) error { return deleteJob(ctx, c, job, dryRun) }}, nil
	}
	var wait bool
	var timeout time.Duration
	c := o.command(&cobra.Command{
		Use:     "delete (NAME... | -l LABELS | --all)",
		Aliases: []string{"rm"},
		Short:   "Remove jobs with their pods; their records stay",
		Long: `Remove jobs with their pods. What is known of them stays in their records for as long as the cluster keeps these: describe
and list --gone still tell of them.`,
		Example: `{{name}} delete pi

# All jobs with a label, without being asked
{{name}} delete -l stage=test --yes`,
	})
	c.Flags().BoolVar(&wait, "wait", false, "Return when the jobs are gone, not at once")
	c.Flags().DurationVar(&timeout, "timeout", 0, "With --wait: give up after so long; 0 waits for as long as it takes")
	o.after = func(ctx context.Context, jobs []Job) error {
		if !wait {
			return nil
		}
		return o.awaitDeletion(ctx, jobs, timeout)
	}
	return c
}

// deleteJob deletes this very job, not a later one of its name.
func deleteJob(ctx context.Context, c client.Client, job Job, dryRun bool) error {
	options := []client.DeleteOption{client.Preconditions{UID: &job.UID}, client.PropagationPolicy(metav1.DeletePropagationBackground)}
	if dryRun {
		options = append(options, client.DryRunAll)
	}
	if err := c.Delete(ctx, job.Object, options...); err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return nil
}
