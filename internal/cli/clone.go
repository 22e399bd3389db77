package cli

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type cloneOptions struct {
	*Factory
	set                             []string
	image, command, queue           string
	workers, slots                  int32
	dryRun                          string
	output                          *output
	imageSet, commandSet, queueSet  bool
	workersSet, slotsSet, quietDiff bool
}

func newClone(f *Factory) *cobra.Command {
	o := &cloneOptions{Factory: f}
	c := &cobra.Command{
		Use:   "clone NAME [NEW]",
		Short: "Run a job again under a new name, with changes",
		Long: `Run a job again under a new name, with changes, and show them. A running job cannot be changed: this is how to try with
other settings. The first job stays, so that both can be compared.

Without NEW the name is that of the job with the next free number. A clone is not suspended, whether the job was or not.

--set takes workers, slots, image, command, cpu, memory, gpu, queue, runtime (of a TrainJob), deadline (in seconds), suspend,
env.NAME, label.NAME, or the path of any field; nothing behind the = takes a field out. For a TrainJob workers are all of
its nodes.`,
		Example: `# Again, with twice the workers and more memory
{{name}} clone train --workers 8 --set memory=64Gi

# Another image and a variable, under a name of its own
{{name}} clone train train-debug --image quay.io/me/train:debug --set env.NCCL_DEBUG=INFO

# Any field
{{name}} clone train --set spec.runPolicy.cleanPodPolicy=All

# Only see what would change
{{name}} clone train --set gpu=2 --dry-run=client`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: f.completeJobs(1),
		RunE: func(c *cobra.Command, args []string) error {
			changed := c.Flags().Changed
			o.imageSet, o.commandSet, o.queueSet, o.workersSet, o.slotsSet = changed("image"), changed("command"), changed("queue"), changed("workers"), changed("slots")
			return o.run(c.Context(), args)
		},
	}
	flags := c.Flags()
	flags.StringArrayVar(&o.set, "set", nil, "A change, as NAME=VALUE; may be repeated")
	flags.Int32VarP(&o.workers, "workers", "w", 0, "How many workers the new job has")
	flags.Int32Var(&o.slots, "slots", 0, "How many ranks each worker takes")
	flags.StringVar(&o.image, "image", "", "The image of launcher and workers")
	flags.StringVar(&o.command, "command", "", "What the launcher runs, mpirun included")
	flags.StringVar(&o.queue, "queue", "", "The queue to wait in")
	flags.StringVar(&o.dryRun, "dry-run", "none", "client: print what would be created; server: also ask the API server whether it would take it")
	flags.BoolVar(&o.quietDiff, "no-diff", false, "Do not show what changes")
	o.output = addOutput(c)
	_ = c.RegisterFlagCompletionFunc("queue", f.completeObjects(localQueues))
	_ = c.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions([]string{"none", "client", "server"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// changes are all of them, in the form of --set.
func (o *cloneOptions) changes() []string {
	var all []string
	for _, flag := range []struct {
		set         bool
		name, value string
	}{
		{o.workersSet, "workers", strconv.Itoa(int(o.workers))},
		{o.slotsSet, "slots", strconv.Itoa(int(o.slots))},
		{o.imageSet, "image", o.image},
		{o.commandSet, "command", o.command},
		{o.queueSet, "queue", o.queue},
	} {
		if flag.set {
			all = append(all, flag.name+"="+flag.value)
		}
	}
	return append(all, o.set...)
}

func (o *cloneOptions) run(ctx context.Context, args []string) error {
	if err := oneOf("--dry-run", o.dryRun, "none", "client", "server"); err != nil {
		return err
	}
	job, err := o.Find(ctx, args[0])
	if err != nil {
		return err
	}
	if job.Object == nil {
		return exitf(ExitNotFound, "%s is deleted; only its record is left, which does not say how it was written: %s describe %s", job, o.name, job.Name)
	}
	before := asWritten(job.Object)
	after := before.DeepCopy()
	notSuspended(after)
	for _, text := range o.changes() {
		if err := change(after, text); err != nil {
			return err
		}
	}
	if len(args) == 2 {
		after.SetName(args[1])
	} else if err := o.nextName(ctx, after); err != nil {
		return err
	}
	if !o.quietDiff {
		text, err := o.diff(job.String(), before, newJob(after).String(), after, o.ErrOut)
		if err != nil {
			return err
		}
		fmt.Fprint(o.ErrOut, text)
	}
	return o.make(ctx, after)
}

// notSuspended takes out that a job is suspended, and what was there for that alone.
func notSuspended(object *unstructured.Unstructured) {
	path := suspendField(object.GetKind())
	unstructured.RemoveNestedField(object.Object, path...)
	if parent, found, _ := unstructured.NestedMap(object.Object, path[:len(path)-1]...); found && len(parent) == 0 {
		unstructured.RemoveNestedField(object.Object, path[:len(path)-1]...)
	}
}

// make creates the clone, or says what it would be.
func (o *cloneOptions) make(ctx context.Context, object *unstructured.Unstructured) error {
	if o.dryRun != "client" {
		c, err := o.Client()
		if err != nil {
			return err
		}
		options := []client.CreateOption{client.FieldValidation("Strict")}
		if o.dryRun == "server" {
			options = append(options, client.DryRunAll)
		}
		if err := c.Create(ctx, object, options...); err != nil {
			if apierrors.IsAlreadyExists(err) {
				return exitf(ExitError, "there is a %s already: take another name", newJob(object))
			}
			return fmt.Errorf("create %s: %w", newJob(object), err)
		}
	}
	if o.output.objects() {
		return o.output.print(o.Factory, object)
	}
	say(o.Out, "%s created%s", newJob(object), dryRunMark(o.dryRun))
	return nil
}

var numbered = regexp.MustCompile(`^(.*)-([1-9][0-9]{0,5})$`)

// nextName gives a clone the job's name with the next number that neither a job has nor a record.
func (o *cloneOptions) nextName(ctx context.Context, object *unstructured.Unstructured) error {
	jobs, _, err := o.Jobs(ctx, Selection{Namespace: object.GetNamespace(), Gone: true})
	if err != nil {
		return err
	}
	var names []string
	for _, job := range jobs {
		names = append(names, job.Name)
	}
	object.SetName(nextOf(object.GetName(), names))
	return nil
}

// nextOf is a name with the number after the highest that a name of the same stem has.
func nextOf(name string, taken []string) string {
	stem := name
	if parts := numbered.FindStringSubmatch(name); parts != nil {
		stem = parts[1]
	}
	highest := 1
	for _, other := range taken {
		parts := numbered.FindStringSubmatch(other)
		if parts == nil || parts[1] != stem {
			continue
		}
		if n, err := strconv.Atoi(parts[2]); err == nil {
			highest = max(highest, n)
		}
	}
	return cmp.Or(strings.TrimSuffix(stem, "-"), name) + "-" + strconv.Itoa(highest+1)
}
