package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
)

type createOptions struct {
	*Factory
	wish
	file                    string
	dryRun                  string
	wait, logs, interactive bool
	timeout                 time.Duration
	output                  *output
}

func newCreate(f *Factory) *cobra.Command {
	o := &createOptions{Factory: f}
	c := &cobra.Command{
		Use:   "create (NAME --image IMAGE | NAME --runtime RUNTIME | -f FILE) [-- COMMAND...]",
		Short: "Run a job, from flags or from a file",
		Long: `Run a job. With --runtime it is a TrainJob that uses this runtime of Kubeflow Trainer, else an MPIJob.

The command is what each rank (process) runs: mpirun is put before it, with as many ranks as there are slots, unless the
command starts ranks by itself. A worker has a slot for each of its GPUs, or one; --slots says otherwise.

The cluster says at once what keeps the job from running, quotas with their figures included. --dry-run=server asks just
that; --dry-run=client prints what would be created and asks nothing.`,
		Example: `# 4 workers with a GPU each; then watch what they write
{{name}} create train --workers 4 --gpu 1 --image quay.io/me/train --command "python train.py" --logs

# With a runtime, which brings image and MPI along
{{name}} create train --runtime mpi-openmpi --workers 4 -- python train.py --epochs 3

# From a file, and return when it has ended
{{name}} create -f job.yaml --wait

# What would that be?
{{name}} create train --workers 4 --image quay.io/me/train --command train --dry-run=client -o yaml

# Be asked for what is missing
{{name}} create --interactive`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, args []string) error {
			if dash := c.ArgsLenAtDash(); dash >= 0 {
				o.argv, args = args[dash:], args[:dash]
			}
			if len(args) > 1 {
				return usagef("create takes one name, and has %s; what the job runs comes behind -- or in --command", strings.Join(args, ", "))
			}
			if len(args) == 1 {
				o.job = args[0]
			}
			o.changed = c.Flags().Changed
			return o.run(c.Context())
		},
	}
	flags := c.Flags()
	flags.StringVarP(&o.file, "filename", "f", "", "Create what stands in this file, MPIJobs and TrainJobs; - is standard input")
	flags.Int32VarP(&o.workers, "workers", "w", 1, "How many pods run ranks")
	flags.Int32VarP(&o.gpus, "gpu", "g", 0, "How many GPUs each worker has")
	flags.StringVar(&o.gpuName, "gpu-resource", "nvidia.com/gpu", "What a GPU is called in this cluster")
	flags.StringVar(&o.cpu, "cpu", "", "How many cores each worker asks for, such as 4 or 500m")
	flags.StringVar(&o.memory, "memory", "", "How much memory each worker has, such as 16Gi")
	flags.StringVar(&o.image, "image", "", "The image of launcher and workers; with --runtime it replaces the runtime's")
	flags.StringVar(&o.command, "command", "", "What each rank runs, such as \"python train.py\"; or write it behind --")
	flags.Int32Var(&o.slots, "slots", 0, "How many ranks each worker takes (default: as many as it has GPUs, or 1)")
	flags.StringVar(&o.implementation, "implementation", "", "The MPI in the image: OpenMPI (default), Intel or MPICH")
	flags.StringVar(&o.queue, "queue", "", "The queue (Kueue's LocalQueue) to wait in")
	flags.StringVar(&o.priority, "priority", "", "The PriorityClass of the pods; with --runtime the queue's WorkloadPriorityClass")
	flags.StringSliceVar(&o.connections, "connection", nil, "A data connection (Secret) whose keys every rank has as variables; may be repeated")
	flags.StringArrayVarP(&o.env, "env", "e", nil, "A variable for every rank, as NAME=VALUE; may be repeated")
	flags.StringArrayVar(&o.labels, "label", nil, "A label of the job, as NAME=VALUE; may be repeated")
	flags.StringVar(&o.runtime, "runtime", "", "Make a TrainJob with this runtime of Kubeflow Trainer")
	flags.Int64Var(&o.user, "run-as-user", 0, "Run the pods as the user of this number; the image's own otherwise")
	flags.Int32Var(&o.retries, "retries", 0, "How often to try the command again when it fails")
	flags.DurationVar(&o.deadline, "deadline", 0, "End the job after so long, such as 4h; 0: never")
	flags.BoolVar(&o.suspend, "suspend", false, "Create it suspended")
	flags.StringVar(&o.dryRun, "dry-run", "none", "client: print what would be created; server: also ask the API server whether it would take it")
	flags.BoolVar(&o.wait, "wait", false, "Return when the job has ended; Ctrl-C leaves it alone")
	flags.BoolVar(&o.logs, "logs", false, "Show what the job writes until it has ended; Ctrl-C leaves it alone")
	flags.DurationVar(&o.timeout, "timeout", 0, "With --wait: give up after so long; 0 waits for as long as it takes")
	flags.BoolVarP(&o.interactive, "interactive", "i", false, "Ask for what is missing")
	o.output = addOutput(c)
	for name, complete := range map[string]completion{
		"implementation": cobra.FixedCompletions([]string{"OpenMPI", "Intel", "MPICH"}, cobra.ShellCompDirectiveNoFileComp),
		"dry-run":        cobra.FixedCompletions([]string{"none", "client", "server"}, cobra.ShellCompDirectiveNoFileComp),
		"queue":          f.completeObjects(localQueues),
		"priority":       f.completeObjects(priorityClasses),
		"connection":     f.completeObjects(secrets),
		"runtime":        f.completeObjects(trainjob.GroupVersion.WithKind(trainjob.ClusterRuntimeKind), trainjob.GroupVersion.WithKind(trainjob.RuntimeKind)),
	} {
		_ = c.RegisterFlagCompletionFunc(name, complete)
	}
	return c
}

func (o *createOptions) run(ctx context.Context) error {
	if err := o.validate(); err != nil {
		return err
	}
	namespace, err := o.Namespace()
	if err != nil {
		return err
	}
	objects, err := o.objects(ctx, namespace)
	if err != nil {
		return err
	}
	if len(objects) > 1 && (o.wait || o.logs) {
		return usagef("--wait and --logs are for one job, and %s has %d", o.file, len(objects))
	}
	for i, object := range objects {
		if objects[i], err = o.create(ctx, object); err != nil {
			return err
		}
	}
	if err := o.print(objects); err != nil || o.dryRun != "none" {
		return err
	}
	job := newJob(objects[0])
	if o.logs {
		if err := o.call(ctx, "logs", job.String(), "--namespace", job.Namespace, "--follow"); err != nil || ctx.Err() != nil {
			return cmp.Or(err, o.left(ctx, job))
		}
	}
	if o.wait || o.logs {
		return o.await(ctx, job, []mpi.Phase{mpi.PhaseSucceeded}, o.timeout)
	}
	if o.output.form == "" {
		say(o.ErrOut, "See how it is doing: %s describe %s; follow its logs: %s logs %s -f", o.Name(), job.Name, o.Name(), job.Name)
	}
	return nil
}

// left is the end of the program when the user has gone; nil when he has not.
func (o *createOptions) left(ctx context.Context, job Job) error {
	if ctx.Err() == nil {
		return nil
	}
	return o.detached(job)
}

func (o *createOptions) validate() error {
	if err := oneOf("--dry-run", o.dryRun, "none", "client", "server"); err != nil {
		return err
	}
	if o.file != "" {
		var others []string
		for _, flag := range wishFlags {
			if o.changed(flag) {
				others = append(others, "--"+flag)
			}
		}
		if o.job != "" || len(o.argv) > 0 || o.interactive || len(others) > 0 {
			return usagef("-f says all of the job: leave out %s", strings.Join(append(others, "the name, what is behind -- and --interactive"), ", "))
		}
		return nil
	}
	if o.interactive {
		return o.fill()
	}
	return o.complete()
}

// objects are what is to be created.
func (o *createOptions) objects(ctx context.Context, namespace string) ([]*unstructured.Unstructured, error) {
	if o.file != "" {
		return readJobs(o.file, o.In, namespace, o.flags.Namespace != nil && *o.flags.Namespace != "")
	}
	build := o.mpiJob
	if o.runtime != "" {
		build = o.trainJob
	}
	object, notes, err := build(ctx, o.Factory, namespace)
	if err != nil {
		return nil, err
	}
	for _, note := range notes {
		say(o.ErrOut, "note: %s", note)
	}
	return []*unstructured.Unstructured{object}, nil
}

// create makes one object, or asks whether it could be made.
func (o *createOptions) create(ctx context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if job := newJob(object); suspended(job) {
		o.noteOfQueue(job)
	}
	if o.dryRun == "client" {
		o.warnOffline(object)
		return object, checkOffline(object)
	}
	o.preview(ctx, object)
	c, err := o.Client()
	if err != nil {
		return nil, err
	}
	options := []client.CreateOption{client.FieldValidation("Strict")}
	if o.dryRun == "server" {
		options = append(options, client.DryRunAll)
	}
	if err := c.Create(ctx, object, options...); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, o.refused(object, err)
	}
	return object, nil
}

// noteOfQueue says of a job that is created suspended, in a queue, that the queue is not bound by that.
func (o *createOptions) noteOfQueue(job Job) {
	if queue := job.Object.GetLabels()[mpi.LabelQueue]; queue != "" {
		say(o.ErrOut, "note: the queue %s starts the job when it has room for it, though it is created suspended; once it is there, %s suspend %s -n %s keeps it out", queue, o.name, job.Name, job.Namespace)
	}
}

// refused says why the API server does not take a job: each reason in a line of its own.
func (o *createOptions) refused(object *unstructured.Unstructured, err error) error {
	name := strings.ToLower(object.GetKind()) + "/" + object.GetName()
	if apierrors.IsAlreadyExists(err) {
		return exitf(ExitError, "there is a %s already: take another name, or %s delete %s first", name, o.Name(), object.GetName())
	}
	if _, unknown, found := strings.Cut(err.Error(), "strict decoding error: "); found {
		return exitf(ExitError, "%s is not written right: %s", name, unknown)
	}
	status, is := errors.AsType[*apierrors.StatusError](err)
	if !is || status.Status().Details == nil || len(status.Status().Details.Causes) == 0 || !apierrors.IsInvalid(err) {
		return fmt.Errorf("create %s: %w", name, err)
	}
	var lines []string
	for _, cause := range status.Status().Details.Causes {
		lines = append(lines, fmt.Sprintf("  - %s: %s", cause.Field, oneLine(cause.Message)))
	}
	// The API server names them in any order.
	slices.Sort(lines)
	return &exitError{code: ExitError, err: fmt.Errorf("%s cannot run as it is written", name), more: slices.Compact(lines)}
}

// print says what was created, in the form that the user wants.
func (o *createOptions) print(objects []*unstructured.Unstructured) error {
	if o.dryRun == "client" {
		o.output.form = cmp.Or(o.output.form, "yaml")
	}
	if o.output.objects() {
		if len(objects) == 1 {
			return o.output.print(o.Factory, objects[0])
		}
		var all []unstructured.Unstructured
		for _, object := range objects {
			all = append(all, *object)
		}
		return o.output.print(o.Factory, listOf(all))
	}
	for _, object := range objects {
		say(o.Out, "%s created%s", newJob(object), dryRunMark(o.dryRun))
	}
	return nil
}
