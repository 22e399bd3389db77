package cli

import (
	"context"

	"github.com/spf13/cobra"

	"opendatahub.io/mpijob/internal/jobs"
)

type compareOptions struct {
	*Factory
	all    bool
	output valueOutput
}

func newCompare(f *Factory) *cobra.Command {
	o := &compareOptions{Factory: f}
	c := &cobra.Command{
		Use:   "compare A B",
		Short: "Compare the fields, runs and usage of two jobs",
		Long: `Compare two jobs: the fields, phases, times, usage and findings in which they differ. Deleted jobs are compared by their
reports, in which secrets are masked: whether masked values differ is unknown.`,
		Example: `# Find out why the second attempt was faster
{{name}} train train-2

# Compare an MPIJob with the TrainJob that was made from it
{{name}} mpijob/pi trainjob/pi-2

# Print all values as JSON
{{name}} train train-2 --all -o json`,
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: f.completeJobs(2),
		RunE:              func(c *cobra.Command, args []string) error { return o.run(c.Context(), args) },
	}
	c.Flags().BoolVar(&o.all, "all", false, "Also show what is equal")
	o.output.add(c, "wide")
	return c
}

func (o *compareOptions) run(ctx context.Context, args []string) error {
	if err := o.output.validate(); err != nil {
		return err
	}
	var pair [2]jobs.Job
	for i, arg := range args {
		job, err := o.Find(ctx, arg)
		if err != nil {
			return err
		}
		pair[i] = job
	}
	c, err := o.Jobs()
	if err != nil {
		return err
	}
	prices, err := c.Prices(ctx, pair[0].Namespace)
	if err != nil {
		return err
	}
	compared := jobs.Compare(pair[0], pair[1], prices, o.Now())
	if !o.all {
		compared = compared.Differences()
	}
	if o.output.structured() {
		return o.output.print(o.Out, map[string]any{"a": pair[0].String(), "b": pair[1].String(), "comparison": compared})
	}
	if compared.Note != "" {
		say(o.ErrOut, "note: %s", compared.Note)
	}
	return printComparison(o.Out, pair, compared, o.all, o.output.form == "wide")
}
