package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/internal/jobs"
)

type updateOptions struct {
	cloneOptions
	replace, yes bool
	grace        grace
}

func newUpdate(f *Factory) *cobra.Command {
	o := &updateOptions{cloneOptions: cloneOptions{Factory: f}}
	c := &cobra.Command{
		Use:   "update NAME",
		Short: "Run a job again with changes, also in its place",
		Long: `Run a job again with changes, and show these. The pods of a job cannot be changed while it exists, so a new job is created:
under the original name with the next free number, as clone does, or with --replace under the name of the job.

--replace validates the new job first, then asks for confirmation, ends the old job, and creates the new one under its name.
The report of the old job stays. The changes are those of clone.`,
		Example: `# Run it again with more workers
{{name}} train --workers 8

# Replace it, and give its programs two minutes to write a checkpoint
{{name}} train --set memory=64Gi --replace --grace-period 2m

# Only show the changes
{{name}} train --image quay.io/me/train:2 --replace --dry-run=server`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: f.completeJobs(1),
	}
	o.addSet(c, "Change as NAME=VALUE, as in clone; repeatable")
	o.addNamed(c, f)
	flags := c.Flags()
	flags.BoolVar(&o.replace, "replace", false, "End the job and create the new one under its name")
	flags.BoolVarP(&o.yes, "yes", "y", false, "With --replace: do not ask for confirmation")
	flags.Var(&o.grace, "grace-period", "With --replace: time that programs have to end after SIGTERM, such as 30 or 2m (default: that of the pods)")
	o.add(c)
	addDryRun(c, &o.dryRun)
	flags.BoolVar(&o.without, "no-diff", false, "Do not show the changes")
	o.output = addOutput(c)
	o.addCopied(c, f)
	c.RunE = func(c *cobra.Command, args []string) error {
		o.read(c)
		return o.update(c.Context(), args[0])
	}
	return c
}

func (o *updateOptions) update(ctx context.Context, arg string) error {
	switch {
	case !o.replace && (o.yes || o.grace.period != nil):
		return usagef("--yes and --grace-period require --replace")
	case !o.replace:
		return o.run(ctx, []string{arg})
	}
	changes, err := o.changes()
	if err = errors.Join(oneOf("--dry-run", string(o.dryRun), dryRuns...), err); err != nil {
		return err
	}
	if len(changes) == 0 && len(o.copyFlags.set()) == 0 {
		return usagef("no changes; use --set or another flag, or clone to run the job again as it is")
	}
	return o.replaceJob(ctx, arg, changes)
}

// replaceJob ends a job and creates it again with changes, after confirmation.
func (o *updateOptions) replaceJob(ctx context.Context, arg string, changes []jobs.Change) error {
	old, err := o.Find(ctx, arg)
	if err != nil {
		return err
	}
	c, err := o.Jobs()
	if err != nil {
		return err
	}
	clone, err := o.cloneWithFlags(ctx, c, old, old.Name, changes)
	if err != nil {
		return err
	}
	o.printNote(clone)
	if !o.without {
		if err := o.printDiff(old.String()+" (now)", clone); err != nil {
			return err
		}
	}
	if o.dryRun == jobs.DryRunNone && !o.yes {
		if err := o.ask(fmt.Sprintf("End %s and create it again with these changes?", old), "nothing was changed"); err != nil {
			return err
		}
	}
	if err := c.Replace(ctx, old, clone.Job, o.grace.period, o.dryRun); err != nil {
		return o.saved(err)
	}
	if o.output.objects() {
		if err := o.output.print(o.Out, clone.Job); err != nil {
			return err
		}
	} else {
		say(o.Out, "%s replaced%s", old, dryRunMark(o.dryRun))
	}
	if o.dryRun != jobs.DryRunNone {
		return nil
	}
	return o.follow(ctx, o.Factory, jobs.FromObject(clone.Job))
}

// saved stores a job that could not be created after the old one was deleted in a file, and returns an error that names it.
func (o *updateOptions) saved(err error) error {
	failed, is := errors.AsType[*jobs.NotCreatedError](err)
	if !is {
		return err
	}
	text, yamlErr := yaml.Marshal(failed.Job.Object)
	file, fileErr := os.CreateTemp("", failed.Job.GetName()+"-*.yaml")
	if cause := errors.Join(yamlErr, fileErr); cause != nil {
		return err
	}
	_, writeErr := file.Write(text)
	if cause := errors.Join(writeErr, file.Close()); cause != nil {
		return err
	}
	return exitf(ExitError, "%s; the new job is in %s; run %s create -f %s", o.describeError(err), file.Name(), o.name, file.Name())
}
