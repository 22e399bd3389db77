package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"opendatahub.io/mpijob/internal/jobs"
)

// selectFlags select one job or many, by name or by properties.
type selectFlags struct {
	selector, phase string
	all, everywhere bool
}

// add adds the flags to a command.
func (s *selectFlags) add(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVarP(&s.selector, "selector", "l", "", "Label selector of the jobs, such as team=a")
	flags.StringVar(&s.phase, "phase", "", "Select jobs in these phases, such as Failed or Queued,Running")
	flags.BoolVar(&s.all, "all", false, "Select all jobs in the namespace")
	flags.BoolVarP(&s.everywhere, "all-namespaces", "A", false, "Select the jobs of all namespaces")
	_ = c.RegisterFlagCompletionFunc("phase", cobra.FixedCompletions(jobs.PhaseNames(), cobra.ShellCompDirectiveNoFileComp))
}

// set reports whether a flag selects jobs.
func (s *selectFlags) set() bool { return s.selector != "" || s.phase != "" || s.all || s.everywhere }

// pick returns the jobs that are named, or selected by flags. Deleted jobs cannot be selected. The error names all jobs that
// were not found.
func (s *selectFlags) pick(ctx context.Context, f *Factory, args []string) ([]jobs.Job, error) {
	switch {
	case len(args) > 0 && s.set(), s.all && (s.selector != "" || s.phase != ""):
		return nil, usagef("NAME, -l or --phase, and --all cannot be combined")
	case len(args) == 0 && !s.set():
		return nil, usagef("no jobs selected; use NAME, -l, --phase, -A or --all")
	case len(args) == 0:
		return s.matching(ctx, f)
	}
	var selected []jobs.Job
	var errs []error
	for _, arg := range args {
		job, err := f.Find(ctx, arg)
		if err == nil && job.Object == nil {
			err = &jobs.DeletedError{Job: job}
		}
		switch {
		case err == nil:
			selected = append(selected, job)
		case exitCode(err) == ExitNotFound && !jobs.IsNotInstalled(err):
			errs = append(errs, err)
		default:
			return nil, err
		}
	}
	return selected, errors.Join(errs...)
}

// matching returns the jobs that the flags select.
func (s *selectFlags) matching(ctx context.Context, f *Factory) ([]jobs.Job, error) {
	phases, err := jobs.ParsePhases(s.phase)
	if err != nil {
		return nil, err
	}
	selection, err := f.selection(s.everywhere, s.selector)
	if err != nil {
		return nil, err
	}
	selected, err := f.List(ctx, selection)
	return slices.DeleteFunc(selected, func(job jobs.Job) bool { return len(phases) > 0 && !slices.Contains(phases, job.Phase()) }), err
}

// reference returns how a job is printed: with its namespace if jobs of several are selected.
func (s *selectFlags) reference(job jobs.Job) string {
	if s.everywhere {
		return job.String() + " in " + job.Namespace
	}
	return job.String()
}

// countText returns the number of jobs, such as "this job", or "these 3 jobs in 2 namespaces".
func countText(selected []jobs.Job) string {
	namespaces := map[string]bool{}
	for _, job := range selected {
		namespaces[job.Namespace] = true
	}
	switch {
	case len(selected) == 1:
		return "this job"
	case len(namespaces) == 1:
		return fmt.Sprintf("these %d jobs", len(selected))
	}
	return fmt.Sprintf("these %d jobs in %d namespaces", len(selected), len(namespaces))
}
