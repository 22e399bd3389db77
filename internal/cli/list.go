package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/jobs"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
)

type listOptions struct {
	*Factory
	everywhere, watch, gone, records, noHeaders bool
	selector, phase, kind, runtime, sort, since string
	output                                      *output
}

func newList(f *Factory) *cobra.Command {
	o := &listOptions{Factory: f}
	c := &cobra.Command{
		Use:     "list [NAME...]",
		Aliases: []string{"get", "ls"},
		Short:   "List jobs and their state",
		Long: `List jobs of all kinds and their state.

REASON is one word for what is wrong, or for what a job waits for; run describe or explain for details. DURATION is how long
a job has run, or ran. With -o json or yaml, the jobs are printed, and with --records their JobReports. Of deleted
jobs, the fields in their reports are printed, with secrets masked.`,
		Example: `# The jobs of the namespace
{{name}}

# Failed jobs of all namespaces, with the reason
{{name}} -A --phase Failed -o wide

# TrainJobs of a runtime that ran in the last day, the longest first
{{name}} --kind trainjob --runtime mpi-openmpi --since 1d --sort-by duration

# Print a line for each change
{{name}} --watch

# One job as YAML
{{name}} pi -o yaml`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: f.completeJobs(-1),
		RunE:              func(c *cobra.Command, args []string) error { return o.run(c.Context(), args) },
	}
	flags := c.Flags()
	flags.BoolVarP(&o.everywhere, "all-namespaces", "A", false, "List the jobs of all namespaces")
	flags.StringVarP(&o.selector, "selector", "l", "", "Label selector of the jobs, such as team=a,stage!=test")
	flags.StringVar(&o.phase, "phase", "", "Only list jobs in these phases, such as Failed or Queued,Running")
	flags.StringVar(&o.kind, "kind", "", "Only list jobs of this kind (mpijob, trainjob)")
	flags.StringVar(&o.runtime, "runtime", "", "Only list TrainJobs of this runtime")
	flags.StringVar(&o.since, "since", "", "Only list jobs that waited or ran since a duration ago, such as 12h or 30d, or since a day, such as 2026-11-01")
	flags.StringVar(&o.sort, "sort-by", "", "Sort by "+strings.Join(jobs.ListSorts(), ", ")+" (default: namespace and name)")
	flags.BoolVarP(&o.watch, "watch", "w", false, "After listing, print a line for each change")
	flags.BoolVar(&o.gone, "gone", false, "Also list deleted jobs whose reports are retained")
	flags.BoolVar(&o.records, "records", false, "With -o json, yaml and similar: print the JobReports instead of the jobs")
	flags.BoolVar(&o.noHeaders, "no-headers", false, "Do not print headers")
	_ = c.RegisterFlagCompletionFunc("phase", cobra.FixedCompletions(jobs.PhaseNames(), cobra.ShellCompDirectiveNoFileComp))
	_ = c.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions([]string{"mpijob", "trainjob"}, cobra.ShellCompDirectiveNoFileComp))
	_ = c.RegisterFlagCompletionFunc("sort-by", cobra.FixedCompletions(jobs.ListSorts(), cobra.ShellCompDirectiveNoFileComp))
	_ = c.RegisterFlagCompletionFunc("runtime", f.completeObjects(trainjob.GroupVersion.WithKind(trainjob.ClusterRuntimeKind), trainjob.GroupVersion.WithKind(trainjob.RuntimeKind)))
	o.output = addOutput(c, "wide")
	return c
}

func (o *listOptions) run(ctx context.Context, args []string) error {
	phases, err := jobs.ParsePhases(o.phase)
	if err != nil {
		return err
	}
	if o.sort != "" && !slices.Contains(jobs.ListSorts(), o.sort) {
		return usagef("--sort-by: %s is not allowed; use %s", o.sort, strings.Join(jobs.ListSorts(), ", "))
	}
	selected, selection, err := o.pick(ctx, args)
	if err != nil {
		return err
	}
	jobs.Sort(selected, o.sort, o.Now())
	printed := map[types.UID]string{}
	for _, job := range selected {
		printed[job.UID] = stateOf(job)
	}
	selected = slices.DeleteFunc(selected, func(job jobs.Job) bool {
		return len(phases) > 0 && !slices.Contains(phases, job.Phase()) || len(args) == 0 && !o.gone && job.Object == nil
	})
	p := &listPrinter{to: o.Out, output: o.output, now: o.Now, namespaces: o.everywhere, records: o.records}
	switch {
	case o.output.objects() && o.watch:
		for _, job := range selected {
			if err := p.printChange(job); err != nil {
				return err
			}
		}
	case o.output.objects():
		return p.printObjects(selected, len(args) == 1)
	case len(selected) == 0 && !o.watch:
		say(o.ErrOut, "%s", o.none())
		return nil
	default:
		if err := p.printTable(selected, !o.noHeaders); err != nil || !o.watch {
			return err
		}
	}
	return o.follow(ctx, args, selection, phases, p, printed)
}

// stateOf returns the part of a job's row that is worth a new line when it changes, which durations are not.
func stateOf(job jobs.Job) string {
	status := job.Status()
	return strings.Join([]string{string(status.Phase), job.Reason(), status.Workers.Summary}, " ")
}

// pick returns the jobs that are named, or selected by flags.
func (o *listOptions) pick(ctx context.Context, args []string) ([]jobs.Job, jobs.Selection, error) {
	selection, err := o.selection(o.everywhere, o.selector)
	if err != nil {
		return nil, selection, err
	}
	if len(args) > 0 {
		if o.everywhere || o.selector != "" || o.kind != "" || o.runtime != "" || o.since != "" {
			return nil, selection, usagef("NAME cannot be combined with -A, -l, --kind, --runtime or --since")
		}
		var named []jobs.Job
		for _, arg := range args {
			job, err := o.Find(ctx, arg)
			if err != nil {
				return nil, selection, err
			}
			named = append(named, job)
		}
		return named, selection, nil
	}
	if o.kind != "" {
		kind, known := jobs.ParseKind(o.kind)
		if !known {
			return nil, selection, usagef("--kind: %s is not allowed; use mpijob or trainjob", o.kind)
		}
		selection.Kinds = []schema.GroupVersionKind{kind}
	}
	selection.Runtime = o.runtime
	if selection.Since, err = jobs.ParseSince(o.since, o.Now()); err != nil {
		return nil, selection, err
	}
	selection.Rows = !o.output.objects()
	selection.Deleted = o.gone || o.watch // a watch starts with the reports of deleted jobs, which are not changes
	selected, err := o.List(ctx, selection)
	return selected, selection, err
}

// none returns the message about an empty list.
func (o *listOptions) none() string {
	text := "no jobs"
	if o.selector != "" || o.phase != "" || o.kind != "" || o.runtime != "" || o.since != "" {
		text = "no matching jobs"
	}
	if namespace, err := o.Namespace(); err == nil && !o.everywhere {
		text += " in namespace " + namespace
	}
	return text
}

// follow prints each change of a selected job's state.
func (o *listOptions) follow(ctx context.Context, args []string, selection jobs.Selection, phases []v1alpha1.Phase, p *listPrinter, printed map[types.UID]string) error {
	c, err := o.Jobs()
	if err != nil {
		return err
	}
	return c.WatchReports(ctx, selection.Namespace, func(report *v1alpha1.JobReport) (bool, error) {
		job := jobs.FromReport(report)
		named := len(args) == 0 || slices.Contains(args, job.Name) || slices.Contains(args, job.String())
		if !named || len(phases) > 0 && !slices.Contains(phases, job.Phase()) || printed[job.UID] == stateOf(job) {
			return false, nil
		}
		// What reports do not contain is read from the job.
		if existing, err := c.Find(ctx, job.Namespace, job.String()); err == nil && existing.UID == job.UID {
			job.Object = existing.Object
		}
		if !selection.Matches(job) {
			return false, nil
		}
		printed[job.UID] = stateOf(job)
		return false, p.printChange(job)
	})
}
