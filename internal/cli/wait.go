package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/jobs"
)

type waitOptions struct {
	*Factory
	selectFlags
	until   string
	timeout time.Duration
	output  valueOutput
}

func newWait(f *Factory) *cobra.Command {
	o := &waitOptions{Factory: f}
	c := &cobra.Command{
		Use:   "wait (NAME... | -l SELECTOR | --phase PHASE | --all)",
		Short: "Wait until jobs end or reach a phase",
		Long: `Wait until jobs have succeeded, or until they reach another phase (--for), and show their progress.

Earlier phases count: a job that has succeeded has been Running. The exit code is 3 if a job failed, 4 after --timeout,
and 130 after Ctrl-C. The jobs continue in the last two cases.`,
		Example: `# Wait until the job has succeeded, then run another command
{{name}} pi && echo done

# Wait at most ten minutes until the job runs
{{name}} pi --for phase=Running --timeout 10m

# Wait until the job is deleted
{{name}} pi --for delete

# Wait until all jobs of a sweep have ended, and print their phases as JSON
{{name}} -l sweep=lr -o json`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: f.completeJobs(-1),
		RunE:              func(c *cobra.Command, args []string) error { return o.run(c.Context(), args) },
	}
	o.add(c)
	c.Flags().StringVar(&o.until, "for", "phase=Succeeded", "What to wait for: phase=PHASE[,PHASE...] or delete")
	c.Flags().DurationVar(&o.timeout, "timeout", 0, "Maximum time to wait, such as 30s or 4h (0 for no limit)")
	o.output.add(c)
	var words []string
	for _, name := range jobs.PhaseNames() {
		words = append(words, "phase="+name)
	}
	_ = c.RegisterFlagCompletionFunc("for", cobra.FixedCompletions(append(words, "delete"), cobra.ShellCompDirectiveNoFileComp))
	return c
}

func (o *waitOptions) run(ctx context.Context, args []string) error {
	if o.timeout < 0 {
		return usagef("--timeout: %s is not allowed; use 0 or more", o.timeout)
	}
	if err := o.output.validate(); err != nil {
		return err
	}
	phases, err := o.phases()
	if err != nil {
		return err
	}
	selected, err := o.selected(ctx, args)
	switch {
	case err != nil:
		return err
	case len(selected) == 0:
		return exitf(ExitNotFound, "no jobs match")
	case phases == nil:
		return o.deletion(ctx, selected)
	}
	return o.awaitAll(ctx, selected, phases)
}

// phases returns the phases to wait for; nil for the deletion.
func (o *waitOptions) phases() ([]v1alpha1.Phase, error) {
	if o.until == "delete" {
		return nil, nil
	}
	words, found := strings.CutPrefix(o.until, "phase=")
	if !found || words == "" {
		return nil, usagef("--for: %s is not allowed; use phase=PHASE or delete; phases: %s", o.until, strings.Join(jobs.PhaseNames(), ", "))
	}
	return jobs.ParsePhases(words)
}

// selected returns the jobs to wait for. Deleted jobs can be named: their reports contain how they ended.
func (o *waitOptions) selected(ctx context.Context, args []string) ([]jobs.Job, error) {
	if len(args) == 0 || o.set() {
		return o.pick(ctx, o.Factory, args)
	}
	var named []jobs.Job
	for _, arg := range args {
		job, err := o.Find(ctx, arg)
		if err != nil {
			return nil, err
		}
		named = append(named, job)
	}
	return named, nil
}

// waitResult is the result for a job in the output of -o json.
type waitResult struct {
	Job       string         `json:"job"`
	Namespace string         `json:"namespace"`
	Phase     v1alpha1.Phase `json:"phase"`
	Reason    string         `json:"reason,omitempty"`
	Message   string         `json:"message,omitempty"`
	// Reached is whether the job is or was in a phase that was waited for.
	Reached bool `json:"reached"`
}

// awaitAll waits for all jobs, and prints the result of each.
func (o *waitOptions) awaitAll(ctx context.Context, selected []jobs.Job, phases []v1alpha1.Phase) error {
	limited, cancel := withTimeout(ctx, o.timeout)
	defer cancel()
	var results []waitResult
	var errs []error
	for _, job := range selected {
		job, err := o.awaitPhase(ctx, limited, job, phases, o.timeout)
		if err != nil {
			return err
		}
		status := job.Status()
		results = append(results, waitResult{Job: job.String(), Namespace: job.Namespace, Phase: status.Phase, Reason: status.Reason, Message: status.Message, Reached: hasReached(job, phases)})
		if !o.output.structured() {
			errs = append(errs, o.ended(job, phases))
		} else if !hasReached(job, phases) {
			errs = append(errs, silently(map[bool]int{true: ExitJobFailed, false: ExitError}[job.Phase() == v1alpha1.PhaseFailed]))
		}
	}
	if o.output.structured() {
		if err := o.output.print(o.Out, map[string]any{"jobs": results}); err != nil {
			return err
		}
	}
	return o.worst(errs)
}

// worst returns the error of several jobs: that of a failed job if there is one. Messages of the others are printed.
func (f *Factory) worst(errs []error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	slices.SortStableFunc(errs, func(a, b error) int { return exitCode(b) - exitCode(a) })
	if len(errs) == 0 {
		return nil
	}
	for _, err := range errs[1:] {
		if known, is := errors.AsType[*exitError](err); is && known.err != nil {
			say(f.ErrOut, "%s %s", paintOn(f.ErrOut, red, "error:"), f.describeError(err))
		}
	}
	return errs[0]
}

// await waits until a job reaches one of some phases, shows its progress, and prints the result. A timeout of 0 is none.
func (f *Factory) await(ctx context.Context, job jobs.Job, phases []v1alpha1.Phase, timeout time.Duration) error {
	limited, cancel := withTimeout(ctx, timeout)
	defer cancel()
	job, err := f.awaitPhase(ctx, limited, job, phases, timeout)
	if err != nil {
		return err
	}
	return f.ended(job, phases)
}

// awaitPhase waits until a job reaches one of some phases or has ended, and shows its progress. The limited context ends after
// the timeout, the other one when the user interrupts.
func (f *Factory) awaitPhase(ctx, limited context.Context, job jobs.Job, phases []v1alpha1.Phase, timeout time.Duration) (jobs.Job, error) {
	c, err := f.Jobs()
	if err != nil {
		return job, err
	}
	p := f.newProgress()
	job, err = c.AwaitPhase(limited, job, phases, p.showJob)
	p.end()
	switch {
	case err == nil:
		return job, nil
	case ctx.Err() != nil:
		return job, f.detached(job)
	case limited.Err() != nil:
		return job, exitf(ExitTimeout, "%s is not %s after %s: %s; the job continues; run %s", job, either(phases), timeout, job.Progress(), f.hint("describe", job.Namespace, job.Name))
	}
	return job, err
}

// withTimeout is context.WithTimeout, but without a timeout if that is 0.
func withTimeout(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, timeout)
}

// ended prints the result of a job that was waited for.
func (f *Factory) ended(job jobs.Job, phases []v1alpha1.Phase) error {
	reached := hasReached(job, phases)
	if reached || job.Phase() == v1alpha1.PhaseSucceeded {
		say(f.Out, "%s: %s", job, f.paint(phaseColour(job.Phase()), job.Headline(f.Now())))
		if !reached {
			return exitf(ExitError, "%s ended without being %s", job, either(phases))
		}
		return nil
	}
	p := newDescribePrinter(f, f.ErrOut)
	p.line("%s: %s", job, paintOn(f.ErrOut, red, job.Headline(f.Now())))
	p.findings(job.Report.Status)
	p.line("")
	p.line("For details, run %s describe %s -n %s; for its output, %s logs %s -n %s.", f.name, job.Name, job.Namespace, f.name, job.Name, job.Namespace)
	return silently(ExitJobFailed)
}

// hasReached reports whether a job is or was in one of some phases.
func hasReached(job jobs.Job, phases []v1alpha1.Phase) bool {
	return slices.ContainsFunc(phases, func(phase v1alpha1.Phase) bool { return jobs.HasBeen(job.Status(), phase) })
}

func either(phases []v1alpha1.Phase) string {
	words := make([]string, len(phases))
	for i, phase := range phases {
		words[i] = string(phase)
	}
	return strings.Join(words, " or ")
}

// detached prints how to wait for a job again after Ctrl-C.
func (f *Factory) detached(job jobs.Job) error {
	say(f.ErrOut, "detached: %s continues; run %s wait %s -n %s to wait again", job, f.name, job.Name, job.Namespace)
	return silently(ExitDetached)
}

// deletion waits until jobs are deleted.
func (o *waitOptions) deletion(ctx context.Context, selected []jobs.Job) error {
	c, err := o.Jobs()
	if err != nil {
		return err
	}
	var existing []jobs.Job
	for _, job := range selected {
		if job.Object == nil {
			say(o.Out, "%s is deleted", job)
			continue
		}
		existing = append(existing, job)
	}
	return o.awaitDeletion(ctx, c, existing, o.timeout)
}

// awaitDeletion waits until jobs are deleted. A timeout of 0 is none.
func (f *Factory) awaitDeletion(ctx context.Context, c *jobs.Client, deleted []jobs.Job, timeout time.Duration) error {
	limited, cancel := withTimeout(ctx, timeout)
	defer cancel()
	for _, job := range deleted {
		err := c.AwaitDeletion(limited, job)
		switch {
		case ctx.Err() != nil:
			return f.detached(job)
		case errors.Is(err, context.DeadlineExceeded), limited.Err() != nil:
			return exitf(ExitTimeout, "%s still exists after %s%s", job, timeout, finalizersText(job))
		case err != nil:
			return err
		}
		say(f.Out, "%s is deleted", job)
	}
	return nil
}

// finalizersText names the finalizers that prevent the deletion of a job.
func finalizersText(job jobs.Job) string {
	if finalizers := job.Object.GetFinalizers(); len(finalizers) > 0 {
		return fmt.Sprintf("; it waits for the finalizers %s, which their controllers remove", strings.Join(finalizers, ", "))
	}
	return ""
}
