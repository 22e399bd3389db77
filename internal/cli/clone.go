package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"opendatahub.io/mpijob/internal/jobs"
	"opendatahub.io/mpijob/internal/kueue"
)

type cloneOptions struct {
	*Factory
	changeFlags
	copyFlags
	followFlags
	dryRun  jobs.DryRun
	output  *output
	without bool
}

// changeFlags are the changes of a job.
type changeFlags struct {
	set   []string
	env   []string
	flags map[string]string
}

// namedChanges are the flags that change a job, as --set does under the same name.
var namedChanges = []string{"workers", "slots", "image", "command", "queue"}

// addSet adds the flag --set.
func (o *changeFlags) addSet(c *cobra.Command, usage string) {
	c.Flags().StringArrayVar(&o.set, "set", nil, usage)
}

// addNamed adds a flag for each of namedChanges, and one for variables.
func (o *changeFlags) addNamed(c *cobra.Command, f *Factory) {
	flags := c.Flags()
	flags.Int32P("workers", "w", 0, "Number of workers")
	flags.Int32("slots", 0, "Ranks per worker")
	flags.String("image", "", "Image of launcher and workers")
	flags.String("command", "", "Command of the launcher, including mpirun")
	flags.String("queue", "", "Queue of the job")
	flags.StringArrayVarP(&o.env, "env", "e", nil, "Environment variable as NAME=VALUE, as --set env.NAME=VALUE; repeatable")
	_ = c.RegisterFlagCompletionFunc("queue", f.completeObjects(kueue.LocalQueueKind))
}

// read reads the values of the flags.
func (o *changeFlags) read(c *cobra.Command) {
	o.flags = map[string]string{}
	for _, name := range namedChanges {
		if flag := c.Flags().Lookup(name); flag != nil && flag.Changed {
			o.flags[name] = flag.Value.String()
		}
	}
}

func newClone(f *Factory) *cobra.Command {
	o := &cloneOptions{Factory: f}
	c := &cobra.Command{
		Use:   "clone NAME [NEW]",
		Short: "Run a job again under a new name, with changes",
		Long: `Run a job again under a new name, and show the changes. A running job cannot be changed; clone it to try other
settings. The original job stays, so that both can be compared.

Without NEW, the name is the original name with the next free number. A clone is never suspended.

A deleted job can be cloned while its report is retained. Secrets in its fields are masked there: --env or --set must set
each of them again.

The flags of create change the copy. Lists and labels are added to those of the original. --command is the command of the
launcher, with mpirun. If the original starts as many ranks as its workers have slots, so does the copy.

--set accepts workers, slots, image, command, cpu, memory, gpu, queue, runtime (TrainJobs), deadline (seconds), suspend,
env.NAME, label.NAME, or the path of any field. An empty value removes the field. The workers of a TrainJob are all of its
nodes.`,
		Example: `# Twice the workers and more memory
{{name}} train --workers 8 --set memory=64Gi

# Another image and a variable, under a given name
{{name}} train train-debug --image quay.io/me/train:debug --set env.NCCL_DEBUG=INFO

# Any field
{{name}} train --set spec.runPolicy.cleanPodPolicy=All

# Run a deleted job again, with the secret that is masked in its report
{{name}} train --env HF_TOKEN=$HF_TOKEN

# Show the output of the new job until it ends
{{name}} train --set memory=64Gi --logs

# Only show the changes
{{name}} train --set gpu=2 --dry-run=client`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: f.completeJobs(1),
	}
	o.addSet(c, "Change as NAME=VALUE; repeatable")
	o.addNamed(c, f)
	o.add(c)
	addDryRun(c, &o.dryRun)
	c.Flags().BoolVar(&o.without, "no-diff", false, "Do not show the changes")
	o.output = addOutput(c)
	o.addCopied(c, f)
	c.RunE = func(c *cobra.Command, args []string) error {
		o.read(c)
		return o.run(c.Context(), args)
	}
	return c
}

// changes returns the changes of all flags. --set is applied last.
func (o *changeFlags) changes() ([]jobs.Change, error) {
	var changes []jobs.Change
	for _, name := range namedChanges {
		if value, set := o.flags[name]; set {
			changes = append(changes, jobs.Change{Field: name, Value: value})
		}
	}
	for _, text := range o.env {
		name, value, found := strings.Cut(text, "=")
		if !found || name == "" {
			return nil, usagef("--env: %s is not allowed; use NAME=VALUE", text)
		}
		changes = append(changes, jobs.Change{Field: "env." + name, Value: value})
	}
	for _, text := range o.set {
		change, err := jobs.ParseChange(text)
		if err != nil {
			return nil, err
		}
		changes = append(changes, change)
	}
	return changes, nil
}

func (o *cloneOptions) run(ctx context.Context, args []string) error {
	if err := oneOf("--dry-run", string(o.dryRun), dryRuns...); err != nil {
		return err
	}
	changes, err := o.changes()
	if err != nil {
		return err
	}
	job, err := o.Find(ctx, args[0])
	if err != nil {
		return err
	}
	c, err := o.Jobs()
	if err != nil {
		return err
	}
	name := ""
	if len(args) == 2 {
		name = args[1]
	}
	clone, err := o.cloneWithFlags(ctx, c, job, name, changes)
	if err != nil {
		return err
	}
	if note := c.RuntimeNote(ctx, job); note != "" && job.Object == nil {
		say(o.ErrOut, "note: %s", note)
	}
	o.printNote(clone)
	if !o.without {
		if err := o.printDiff(job.String(), clone); err != nil {
			return err
		}
	}
	return o.create(ctx, c, clone.Job)
}

// cloneWithFlags returns a copy of a job with the changes of all flags.
func (o *cloneOptions) cloneWithFlags(ctx context.Context, c *jobs.Client, job jobs.Job, name string, changes []jobs.Change) (jobs.Clone, error) {
	edit, err := o.edit(changes)
	switch {
	case err != nil:
		return jobs.Clone{}, err
	case edit == nil:
		return c.Clone(ctx, job, name, changes...)
	}
	return c.CloneEdited(ctx, job, name, edit, changes...)
}

// printNote prints what the clone keeps although it may no longer fit.
func (o *cloneOptions) printNote(clone jobs.Clone) {
	if clone.Note != "" {
		say(o.ErrOut, "note: %s", clone.Note)
	}
}

func (o *cloneOptions) printDiff(before string, clone jobs.Clone) error {
	text, err := jobs.Diff(before, clone.Original, jobs.FromObject(clone.Job).String(), clone.Job)
	if err != nil {
		return err
	}
	_, err = o.ErrOut.Write([]byte(o.colourDiff(text, o.ErrOut)))
	return err
}

// create creates a job, prints it, and follows it if requested.
func (o *cloneOptions) create(ctx context.Context, c *jobs.Client, object *unstructured.Unstructured) error {
	if err := c.Create(ctx, object, o.dryRun); err != nil {
		return err
	}
	if o.output.objects() {
		if err := o.output.print(o.Out, object); err != nil {
			return err
		}
	} else {
		say(o.Out, "%s created%s", jobs.FromObject(object), dryRunMark(o.dryRun))
	}
	if o.dryRun != jobs.DryRunNone {
		return nil
	}
	return o.follow(ctx, o.Factory, jobs.FromObject(object))
}
