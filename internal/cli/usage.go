package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"opendatahub.io/mpijob/internal/jobs"
	"opendatahub.io/mpijob/internal/phrase"
)

type usageOptions struct {
	*Factory
	everywhere             bool
	since, until, by, sort string
	output                 valueOutput
	noHeaders              bool
}

func newUsage(f *Factory) *cobra.Command {
	o := &usageOptions{Factory: f}
	c := &cobra.Command{
		Use:   "usage",
		Short: "Show the resource usage and cost of jobs",
		Long: `Show the resource usage of jobs: the hours of GPUs, cores and GiB of memory that their pods reserved, used or not, and
those that the agents in the pods measured, if they did. Deleted jobs are included while their reports are retained, and
after that in sums, for users who may list ConfigMaps in mpijob-system.

--since and --until limit the period. Of a job that ran beyond it, only the part within the period counts, so that the usage
of consecutive periods adds up. The use of a running job is recorded at least once an hour.

If prices are configured (ConfigMap mpijob-prices, in the namespace or in mpijob-system), the cost is shown, too. The prices
of a namespace override those of the cluster.`,
		Example: `# The jobs of the namespace in the last 30 days
{{name}} --since 30d

# November
{{name}} --since 2026-11-01 --until 2026-12-01

# The teams of all namespaces, by the label team of their jobs
{{name}} -A --by label=team

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
	flags.StringVar(&o.since, "since", "", "Begin of the period: a duration ago, such as 12h or 30d, a day, such as 2026-11-01, or a time, such as 2026-11-01T08:00:00Z (default: all)")
	flags.StringVar(&o.until, "until", "", "End of the period, which it does not include, like --since (default: now)")
	flags.StringVar(&o.by, "by", "", "Sum up by job, namespace (or project), user, queue or label=KEY (default: job; with -A: namespace)")
	flags.StringVar(&o.sort, "sort", "", "Sort by "+strings.Join(jobs.UsageSorts(), ", ")+" (default: gpu, then cores)")
	o.output.add(c, "wide", "csv")
	flags.BoolVar(&o.noHeaders, "no-headers", false, "Do not print headers and the total")
	for name, words := range map[string][]string{"sort": jobs.UsageSorts(), "by": jobs.UsageGroups()} {
		_ = c.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	}
	return c
}

func (o *usageOptions) run(ctx context.Context) error {
	by, label, err := o.validate()
	if err != nil {
		return err
	}
	since, until, err := jobs.ParsePeriod(o.since, o.until, o.Now())
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
	usage, err := c.Usage(ctx, jobs.UsageQuery{Namespaces: []string{selection.Namespace}, Since: since, Until: until, By: by, Label: label, Sort: o.sort})
	if err != nil {
		return err
	}
	o.noteOmitted(usage.Omitted)
	if until := usage.IncompleteUntil; !until.IsZero() {
		say(o.ErrOut, "note: the sums are incomplete up to %s: reports of jobs that ended by then were deleted. Administrators who may list ConfigMaps in mpijob-system see their sums", until.UTC().Format("2006-01-02 15:04:05 MST"))
	}
	if usage.Deleted > 0 {
		say(o.ErrOut, "note: the sums include %s whose reports were deleted, by UTC day, with the labels that the operator keeps (--usage-labels), and without prices of nodes", phrase.Count(usage.Deleted, "job"))
	}
	if len(usage.Lines) == 0 && !o.output.structured() {
		say(o.ErrOut, "no jobs with a report%s", map[bool]string{true: " in this period", false: ""}[o.since != "" || o.until != ""])
		return nil
	}
	if usage.Estimated > 0 {
		say(o.ErrOut, "note: the part in this period is estimated for %s with a report of an earlier version", phrase.Count(usage.Estimated, "job"))
	}
	if all, measured := usage.Measured(); by != jobs.GroupJob && measured > 0 && measured < all {
		say(o.ErrOut, "note: the used hours are those of %d of %s; nothing was measured of the others", measured, phrase.Count(all, "job"))
	}
	for _, name := range usage.Unpriced {
		say(o.ErrOut, "note: the cost does not include %s, which has no price", name)
	}
	switch {
	case o.output.structured():
		output := map[string]any{"usage": usage.Lines}
		if !usage.IncompleteUntil.IsZero() {
			output["incompleteUntil"] = usage.IncompleteUntil.UTC().Format(time.RFC3339)
		}
		return o.output.print(o.Out, output)
	case o.output.form == "csv":
		return printUsageCSV(o.Out, usage.Lines, !o.noHeaders)
	}
	return printUsage(o.Out, usage.Lines, usageColumns{
		by: by, label: label, namespaces: o.everywhere && by == jobs.GroupJob || by == jobs.GroupNamespace || by == jobs.GroupQueue, wide: o.output.form == "wide",
	}, !o.noHeaders)
}

// validate checks the flags, and returns what to sum up by and the key of the label.
func (o *usageOptions) validate() (by, label string, err error) {
	if o.by == "" {
		if o.by = jobs.GroupJob; o.everywhere {
			o.by = jobs.GroupNamespace
		}
	}
	if by, label, err = jobs.ParseUsageGroup(o.by); err != nil {
		return "", "", err
	}
	if o.sort != "" {
		if err := oneOf("--sort", o.sort, jobs.UsageSorts()...); err != nil {
			return "", "", err
		}
	}
	return by, label, o.output.validate()
}
