package cli

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/jobs"
	"opendatahub.io/mpijob/internal/kueue"
)

func newRuntimes(f *Factory) *cobra.Command {
	c := &cobra.Command{
		Use:   "runtimes",
		Short: "List, create, change and test runtimes of TrainJobs",
		Long: `List, show, create, change, delete and test the runtimes of Kubeflow Trainer that TrainJobs use, those of the cluster and of
the namespace. NAME refers to either; trainingruntime/NAME is a runtime of the namespace. update and delete use one of the
namespace, or with --cluster one of the cluster. shipped/NAME is a runtime that comes with this program, from which others
can be created: it need not be in the cluster.`,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newRuntimesList(f), newRuntimesShow(f), newRuntimesCreate(f), newRuntimesUpdate(f), newRuntimesDelete(f), newRuntimesTest(f))
	return c
}

// findRuntime returns the runtime that an argument refers to.
func (f *Factory) findRuntime(ctx context.Context, reference string) (jobs.Runtime, error) {
	c, namespace, err := f.jobsHere()
	if err != nil {
		return jobs.Runtime{}, err
	}
	found, err := c.FindRuntime(ctx, namespace, reference)
	missing, is := errors.AsType[*jobs.NotFoundError](err)
	switch {
	case is && strings.HasPrefix(reference, jobs.ShippedPrefix):
		return found, exitf(ExitNotFound, "%v; shipped are %s", missing, strings.Join(missing.Names, ", "))
	case is:
		return found, exitf(ExitNotFound, "%v; run %s runtimes list to list runtimes", missing, f.name)
	}
	return found, err
}

// completeRuntimes completes the only argument of a command, a runtime.
func (f *Factory) completeRuntimes(c *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return f.completeObjects(jobs.RuntimeKinds()...)(c, args, word)
}

type runtimesListOptions struct {
	*Factory
	all    bool
	output *output
}

func newRuntimesList(f *Factory) *cobra.Command {
	o := &runtimesListOptions{Factory: f}
	c := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List MPI runtimes and their limits",
		Example: `# List the MPI runtimes of the cluster and the namespace
{{name}}

# With slots, launcher and errors
{{name}} -o wide`,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c.Context()) },
	}
	c.Flags().BoolVar(&o.all, "all", false, "Also list runtimes of other frameworks")
	o.output = addOutput(c, "wide")
	return c
}

func (o *runtimesListOptions) run(ctx context.Context) error {
	c, namespace, err := o.jobsHere()
	if err != nil {
		return err
	}
	list, err := c.Runtimes(ctx, namespace)
	if err != nil {
		return err
	}
	if len(list.Omitted) > 0 {
		return list.Omitted[0].Err
	}
	runtimes := list.Runtimes
	if !o.all {
		runtimes = slices.DeleteFunc(runtimes, func(one jobs.Runtime) bool { return !one.MPI && !one.Unreadable })
	}
	if o.output.objects() {
		var objects []unstructured.Unstructured
		for _, one := range runtimes {
			objects = append(objects, *one.Object)
		}
		return o.output.print(o.Out, listOf(objects))
	}
	if len(runtimes) == 0 {
		say(o.ErrOut, "no MPI runtimes; to create one, run %s runtimes create NAME", o.name)
		return nil
	}
	return printRuntimes(o.Out, runtimes, o.output.form == "wide")
}

type runtimesShowOptions struct {
	*Factory
	output *output
}

func newRuntimesShow(f *Factory) *cobra.Command {
	o := &runtimesShowOptions{Factory: f}
	c := &cobra.Command{
		Use:     "show NAME",
		Aliases: []string{"describe"},
		Short:   "Show the limits, pods and errors of a runtime",
		Example: `# Show a runtime
{{name}} mpi-openmpi

# Show a runtime that comes with this program
{{name}} shipped/mpi-mpich`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: f.completeRuntimes,
		RunE:              func(c *cobra.Command, args []string) error { return o.run(c.Context(), args[0]) },
	}
	o.output = addOutput(c)
	return c
}

func (o *runtimesShowOptions) run(ctx context.Context, reference string) error {
	one, err := o.findRuntime(ctx, reference)
	if err != nil {
		return err
	}
	if o.output.objects() {
		return o.output.print(o.Out, one.Object)
	}
	return printRuntime(o.Out, one, o.name)
}

type runtimesTestOptions struct {
	*Factory
	spec   jobs.RuntimeTestSpec
	keep   bool
	output *output
}

func newRuntimesTest(f *Factory) *cobra.Command {
	o := &runtimesTestOptions{Factory: f}
	c := &cobra.Command{
		Use:   "test NAME",
		Short: "Test a runtime with a small job",
		Long: `Test a runtime with a small job, a launcher and two workers, in this namespace, and show the result of each step: image,
keys, connections, start of ranks, where they ran, and the latency and bandwidth of MPI messages between them. Messages are
measured with every image that has a shared library of MPI, and skipped otherwise. The exit code is 3 if a step failed.

The operator runs the test and deletes its job. The test itself is deleted when it has passed, unless --keep is set. Ctrl-C
does not stop it.`,
		Example: `# Test a runtime
{{name}} mpi-openmpi

# Test a runtime for GPUs without GPUs
{{name}} mpi-horovod --cpu 500m --memory 512Mi

# Test a runtime with one GPU of AMD in each pod
{{name}} mpi-openmpi --gpu 1 --gpu-resource amd.com/gpu

# Test a runtime with another image
{{name}} mpi-openmpi --image quay.io/me/solver:2

# Print the latency in nanoseconds
{{name}} mpi-openmpi -o jsonpath={.status.communication.latencyNanoseconds}`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: f.completeRuntimes,
		RunE:              func(c *cobra.Command, args []string) error { return o.run(c.Context(), args[0]) },
	}
	flags := c.Flags()
	flags.StringVar(&o.spec.Image, "image", "", "Image (default: the runtime's image)")
	flags.StringVar(&o.spec.CPU, "cpu", "", "CPU cores per pod; replaces all resources of the runtime")
	flags.StringVar(&o.spec.Memory, "memory", "", "Memory per pod; replaces all resources of the runtime")
	flags.StringVar(&o.spec.GPU, "gpu", "", "GPUs per pod; replaces all resources of the runtime")
	flags.StringVar(&o.spec.GPUResource, "gpu-resource", "nvidia.com/gpu", usage("gpu-resource"))
	flags.StringVar(&o.spec.Queue, "queue", "", "Queue of the test, a LocalQueue of Kueue")
	flags.DurationVar(&o.spec.Timeout, "timeout", 5*time.Minute, "Maximum duration of the test")
	flags.BoolVar(&o.keep, "keep", false, "Keep the RuntimeTest when it has passed")
	_ = c.RegisterFlagCompletionFunc("queue", f.completeObjects(kueue.LocalQueueKind))
	o.output = addOutput(c)
	return c
}

func (o *runtimesTestOptions) run(ctx context.Context, reference string) error {
	c, namespace, err := o.jobsHere()
	if err != nil {
		return err
	}
	// Bad flags are reported before the cluster is asked for the runtime.
	o.spec.Namespace, o.spec.Name = namespace, reference
	if err := o.spec.Validate(); err != nil {
		return err
	}
	one, err := o.findRuntime(ctx, reference)
	if err != nil {
		return err
	}
	o.spec.Kind, o.spec.Name = one.Kind, one.Name
	test, err := c.StartRuntimeTest(ctx, o.spec)
	if missing, is := errors.AsType[*jobs.NoOperatorError](err); is {
		return exitf(ExitError, "%w; run %s doctor", missing, o.name)
	}
	if err != nil {
		return err
	}
	say(o.ErrOut, "runtimetest/%s tests %s with a small job in namespace %s", test.Name, one.Name, test.Namespace)
	return o.follow(ctx, c, test)
}

// follow prints each step as it ends, until the test is over.
func (o *runtimesTestOptions) follow(ctx context.Context, c *jobs.Client, test *v1alpha1.RuntimeTest) error {
	out := o.Out
	if o.output.objects() {
		out = o.ErrOut
	}
	printer := testPrinter{out: out, errOut: o.ErrOut, printed: map[v1alpha1.CheckName]bool{}}
	last, err := c.AwaitRuntimeTest(ctx, test, printer.print)
	switch {
	case err == nil:
		if !o.output.objects() {
			printTestResult(out, *last)
		} else if err := o.printObject(last); err != nil {
			return err
		}
		return o.end(ctx, c, last)
	case ctx.Err() != nil:
		say(o.ErrOut, "detached: the test continues; run kubectl get runtimetest %s -n %s to see it", test.Name, test.Namespace)
		return silently(ExitDetached)
	case errors.Is(err, context.DeadlineExceeded):
		return exitf(ExitTimeout, "runtimetest/%s has no result after %s: %s; run %s doctor to check the operator", test.Name, jobs.RuntimeTestPatience(test), cmp.Or(last.Status.Message, "no message"), o.name)
	}
	return err
}

// printObject prints a test in the form that the user asked for.
func (o *runtimesTestOptions) printObject(test *v1alpha1.RuntimeTest) error {
	object := test.DeepCopy()
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("RuntimeTest"))
	return o.output.print(o.Out, object)
}

// end deletes a test that has passed, and returns the exit code of one that has not.
func (o *runtimesTestOptions) end(ctx context.Context, c *jobs.Client, test *v1alpha1.RuntimeTest) error {
	if test.Status.Phase != v1alpha1.TestPassed {
		if test.Status.JobRef != nil {
			say(o.ErrOut, "For details, run %s describe trainjob/%s -n %s", o.name, test.Status.JobRef.Name, test.Namespace)
		}
		return silently(ExitJobFailed)
	}
	if o.keep {
		return nil
	}
	if err := c.DeleteRuntimeTest(ctx, test); err != nil && !errors.Is(err, context.Canceled) {
		say(o.ErrOut, "note: runtimetest/%s could not be deleted: %s", test.Name, o.describeError(err))
	}
	return nil
}
