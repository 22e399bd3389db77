package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"opendatahub.io/mpijob/internal/jobs"
)

type usageOptions struct {
	*Factory
	everywhere      bool
	since, by, sort string
	output          valueOutput
	noHeaders       bool
}

func newUsage(f *Factory) *cobra.Command {
	o := &usageOptions{Factory: f}
	c := &cobra.Command{
		Use:   "usage",
		Short: "Show the resource usage and cost of jobs",
		Long: `Show the resource usage of jobs: the hours of GPUs, cores and GiB of memory that their pods held, used or not. Deleted jobs
are included while their reports are retained.

--since selects jobs that ran in a period; each counts in full. If prices are configured (ConfigMap mpijob-prices, in the
namespace or in mpijob-system), the cost is shown, too. The prices of a namespace override those of the cluster.`,
		Example: `# The jobs of the namespace in the last 30 days
{{name}} --since 30d

# All namespaces, highest cost first
{{name}} -A --sort cost

# The users of a namespace
{{name}} --by user --since 30d

# For a spreadsheet
{{name}} -A --by job -o csv > usage.csv`,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c.Context()) },
	}
	flags := c.Flags()
	flags.BoolVarP(&o.everywhere, "all-namespaces", "A", false, "Include the jobs of all namespaces")
	flags.StringVar(&o.since, "since", "", "Only include jobs that ran since a duration ago, such as 12h or 30d, or since a day, such as 2026-11-01 (default: all)")
	flags.StringVar(&o.by, "by", "", "Sum up by job, namespace or user (default: job; with -A: namespace)")
	flags.StringVar(&o.sort, "sort", "", "Sort by "+strings.Join(jobs.UsageSorts(), ", ")+" (default: gpu, then cores)")
	o.output.add(c, "wide", "csv")
	flags.BoolVar(&o.noHeaders, "no-headers", false, "Do not print headers and the total")
	for name, words := range map[string][]string{"sort": jobs.UsageSorts(), "by": usageGroups} {
		_ = c.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	}
	return c
}

func (o *usageOptions) run(ctx context.Context) error {
	if err := o.validate(); err != nil {
		return err
	}
	since, err := jobs.ParseSince(o.since, o.Now())
	if err != nil {
		return err
	}
	selection, err := o.selection(o.everywhere, "")
	if err != nil {
		return err
	}
	c, err := o.Jobs()
	if err != nil {
		return err
	}
	usage, err := c.Usage(ctx, jobs.UsageQuery{Namespaces: []string{selection.Namespace}, Since: since, PerNamespace: o.by == "namespace", PerUser: o.by == "user", Sort: o.sort})
	if err != nil {
		return err
	}
	o.noteOmitted(usage.Omitted)
	if len(usage.Lines) == 0 && !o.output.structured() {
		say(o.ErrOut, "no jobs with a report%s", map[bool]string{true: " in this period", false: ""}[o.since != ""])
		return nil
	}
	for _, name := range usage.Unpriced {
		say(o.ErrOut, "note: the cost does not include %s, which has no price", name)
	}
	switch {
	case o.output.structured():
		return o.output.print(o.Out, map[string]any{"usage": usage.Lines})
	case o.output.form == "csv":
		return printUsageCSV(o.Out, usage.Lines, !o.noHeaders)
	}
	return printUsage(o.Out, usage.Lines, usageColumns{
		namespaces: o.everywhere && o.by != "user" || o.by == "namespace", jobs: o.by == "job", users: o.by == "user", wide: o.output.form == "wide",
	}, !o.noHeaders)
}

func (o *usageOptions) validate() error {
	if o.by == "" {
		if o.by = "job"; o.everywhere {
			o.by = "namespace"
		}
	}
	if err := oneOf("--by", o.by, usageGroups...); err != nil {
		return err
	}
	if o.sort != "" {
		if err := oneOf("--sort", o.sort, jobs.UsageSorts()...); err != nil {
			return err
		}
	}
	return o.output.validate()
}

// usageGroups are the values of --by.
var usageGroups = []string{"job", "namespace", "user"}
