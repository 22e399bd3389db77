package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
)

// runtimeKinds are the kinds of runtimes: of the cluster, and of a namespace.
var runtimeKinds = []string{trainjob.ClusterRuntimeKind, trainjob.RuntimeKind}

func newRuntimes(f *Factory) *cobra.Command {
	c := &cobra.Command{
		Use:   "runtimes",
		Short: "List, show and test the runtimes that TrainJobs use",
		Long: `List, show and test the runtimes of Kubeflow Trainer that TrainJobs use: those of the cluster and those of the namespace.
A NAME may be either's; trainingruntime/NAME is that of the namespace.`,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newRuntimesList(f), newRuntimesShow(f), newRuntimesTest(f))
	return c
}

// runtimeFound is a runtime with how it is written.
type runtimeFound struct {
	trainjob.Runtime
	object *unstructured.Unstructured
}

// runtimes are those of the cluster and of the namespace, by name. A cluster without Trainer is an error that says so.
func (f *Factory) runtimes(ctx context.Context) ([]runtimeFound, error) {
	c, err := f.Client()
	if err != nil {
		return nil, err
	}
	namespace, err := f.Namespace()
	if err != nil {
		return nil, err
	}
	var all []runtimeFound
	for _, kind := range runtimeKinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(trainjob.GroupVersion.WithKind(kind + "List"))
		var options []client.ListOption
		if kind == trainjob.RuntimeKind {
			options = append(options, client.InNamespace(namespace))
		}
		if err := c.List(ctx, list, options...); err != nil {
			if f.unserved(err, trainjob.GroupVersion.WithKind(kind)) {
				return nil, exitf(ExitError, "this cluster has no Kubeflow Trainer, and so neither runtimes nor TrainJobs; MPIJobs need none")
			}
			return nil, fmt.Errorf("list %ss: %w", kind, err)
		}
		for i := range list.Items {
			one := runtimeFound{object: &list.Items[i]}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, &one.Runtime); err != nil {
				return nil, fmt.Errorf("read %s %s: %w", kind, list.Items[i].GetName(), err)
			}
			one.Kind = kind
			all = append(all, one)
		}
	}
	slices.SortStableFunc(all, func(a, b runtimeFound) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Kind, b.Kind))
	})
	return all, nil
}

// findRuntime is the runtime of a name, which may be trainingruntime/NAME or clustertrainingruntime/NAME.
func (f *Factory) findRuntime(ctx context.Context, arg string) (runtimeFound, error) {
	word, name, qualified := strings.Cut(arg, "/")
	if !qualified {
		word, name = "", arg
	}
	all, err := f.runtimes(ctx)
	if err != nil {
		return runtimeFound{}, err
	}
	var names []string
	var found []runtimeFound
	for _, one := range all {
		names = append(names, one.Name)
		if one.Name == name && (word == "" || strings.EqualFold(word, one.Kind) || strings.EqualFold(word, one.Kind+"s")) {
			found = append(found, one)
		}
	}
	switch len(found) {
	case 0:
		return runtimeFound{}, exitf(ExitNotFound, "there is no runtime %q%s; %s runtimes list shows those that are there", arg, meant(name, names), f.name)
	case 1:
		return found[0], nil
	}
	return runtimeFound{}, usagef("the cluster and the namespace both have a runtime %q: write clustertrainingruntime/%s or trainingruntime/%s", name, name, name)
}

func (f *Factory) completeRuntimes(most int) completion {
	return func(c *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return f.completeObjects(trainjob.GroupVersion.WithKind(trainjob.ClusterRuntimeKind), trainjob.GroupVersion.WithKind(trainjob.RuntimeKind))(c, args, word)
	}
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
		Short:   "List the MPI runtimes, with their limits",
		Example: `{{name}} list
{{name}} list -o wide`,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c.Context()) },
	}
	c.Flags().BoolVar(&o.all, "all", false, "Also list the runtimes of other frameworks than MPI")
	o.output = addOutput(c, "wide")
	return c
}

func (o *runtimesListOptions) run(ctx context.Context) error {
	all, err := o.runtimes(ctx)
	if err != nil {
		return err
	}
	if !o.all {
		all = slices.DeleteFunc(all, func(one runtimeFound) bool { return !one.IsMPI() })
	}
	if o.output.objects() {
		var objects []unstructured.Unstructured
		for _, one := range all {
			objects = append(objects, *one.object)
		}
		return o.output.print(o.Factory, listOf(objects))
	}
	if len(all) == 0 {
		say(o.ErrOut, "no runtimes of MPI")
		return nil
	}
	t := table{header: []string{"NAME", "OF", "MPI", "MAX-WORKERS", "MAX-GPUS", "NODES", "IMAGE"}}
	if o.output.form == "wide" {
		t.header = append(t.header, "SLOTS", "LAUNCHER", "WRONG")
	}
	for _, one := range all {
		wrong := cell{text: "-"}
		if errs := trainjob.CheckRuntime(one.Runtime); len(errs) > 0 {
			wrong = cell{text: shortened(errs[0].Error(), 80), colour: red}
		}
		row := plain(one.Name, one.of(), one.implementation(), one.note(mpi.AnnotationMaxWorkers), one.note(mpi.AnnotationMaxGPUs), one.note(mpi.AnnotationNodeLabels), cmp.Or(one.image(), "-"))
		if o.output.form == "wide" {
			row = append(append(row, plain(one.slots(), one.launcher())...), wrong)
		} else if wrong.text != "-" {
			row[0].colour = red
		}
		t.rows = append(t.rows, row)
	}
	return t.write(o.Factory, o.Out, "", true)
}

// of says whose a runtime is.
func (r runtimeFound) of() string {
	if r.Kind == trainjob.RuntimeKind {
		return "namespace"
	}
	return "cluster"
}

func (r runtimeFound) implementation() string {
	switch name := r.Annotations[mpi.AnnotationImplementation]; {
	case !r.IsMPI():
		return "-"
	case name == "":
		return string(mpi.OpenMPI) + " (Trainer's own)"
	default:
		return name
	}
}

// note is an annotation of the runtime's.
func (r runtimeFound) note(name string) string { return cmp.Or(r.Annotations[name], "-") }

// image is that of the workers.
func (r runtimeFound) image() string {
	for _, job := range r.Spec.Template.Spec.ReplicatedJobs {
		for _, c := range job.Template.Spec.Template.Spec.Containers {
			if c.Name == trainjob.Container {
				return c.Image
			}
		}
	}
	return ""
}

func (r runtimeFound) slots() string {
	if !r.IsMPI() {
		return "-"
	}
	return strconv.Itoa(int(ptr.Deref(r.Spec.MLPolicy.MPI.NumProcPerNode, 1)))
}

func (r runtimeFound) launcher() string {
	switch {
	case !r.IsMPI():
		return "-"
	case r.Spec.MLPolicy.MPI.RunLauncherAsNode:
		return "runs ranks"
	}
	return "runs none"
}

type runtimesShowOptions struct {
	*Factory
	output *output
}

func newRuntimesShow(f *Factory) *cobra.Command {
	o := &runtimesShowOptions{Factory: f}
	c := &cobra.Command{
		Use:               "show NAME",
		Aliases:           []string{"describe"},
		Short:             "Show a runtime: its limits, what its pods are, and what is wrong with it",
		Example:           `{{name}} show mpi-openmpi`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: f.completeRuntimes(1),
		RunE:              func(c *cobra.Command, args []string) error { return o.run(c.Context(), args[0]) },
	}
	o.output = addOutput(c)
	return c
}

func (o *runtimesShowOptions) run(ctx context.Context, name string) error {
	one, err := o.findRuntime(ctx, name)
	if err != nil {
		return err
	}
	if o.output.objects() {
		return o.output.print(o.Factory, one.object)
	}
	s := &story{Factory: o.Factory, to: o.Out}
	named := func(name, value string) {
		if value != "" {
			s.line("  %-14s %s", name, oneLine(value))
		}
	}
	s.line("%s, a %s (of the %s)", o.paint(bold, one.Name), one.Kind, one.of())
	named("MPI", one.implementation())
	if !one.IsMPI() {
		s.line("It is no MPI runtime: it has no spec.mlPolicy.mpi.")
		return s.err
	}
	named("ranks", fmt.Sprintf("%s on each node, unless a job says otherwise; with 1 here, one for each GPU", one.slots()))
	named("launcher", one.launcher()+map[bool]string{true: ": it is the first of the nodes that a job asks for", false: ": it comes on top of the nodes that a job asks for"}[one.Spec.MLPolicy.MPI.RunLauncherAsNode])
	named("keys", one.Spec.MLPolicy.MPI.SSHAuthMountPath)
	s.heading("Limits")
	named("nodes", cmp.Or(one.Annotations[mpi.AnnotationMaxWorkers], "any number"))
	named("GPUs", cmp.Or(one.Annotations[mpi.AnnotationMaxGPUs], "any number")+" on a node")
	named("nodes have", cmp.Or(one.Annotations[mpi.AnnotationNodeLabels], "any labels"))
	named("connects to", cmp.Or(one.Annotations[mpi.AnnotationAllowEgress], "its own job, DNS and HTTPS"))
	s.heading("Pods")
	for _, job := range one.Spec.Template.Spec.ReplicatedJobs {
		for _, c := range job.Template.Spec.Template.Spec.Containers {
			named(job.Name, fmt.Sprintf("%s (%s)", c.Image, sizeText(mpi.Requests(job.Template.Spec.Template.Spec))))
		}
	}
	if errs := trainjob.CheckRuntime(one.Runtime); len(errs) > 0 {
		s.heading("Wrong")
		for _, err := range errs {
			s.text("  ", err.Error())
		}
	}
	s.line("")
	s.line("Test it: %s runtimes test %s", o.name, one.Name)
	return s.err
}

type runtimesTestOptions struct {
	*Factory
	image, cpu, memory, gpu, queue string
	timeout                        time.Duration
	keep                           bool
}

func newRuntimesTest(f *Factory) *cobra.Command {
	o := &runtimesTestOptions{Factory: f}
	c := &cobra.Command{
		Use:   "test NAME",
		Short: "Run a small job with a runtime, and say of each step whether it went well",
		Long: `Run a small job with a runtime, a launcher and two workers, in this namespace, and say of each step whether it went well:
the image, the keys, the connections, the start of ranks, and where they ran. The exit code is 3 if one did not.

The operator runs the test, and removes its job; the test itself is removed when it has passed, unless --keep is given.
Ctrl-C leaves it alone.`,
		Example: `{{name}} test mpi-openmpi

# A runtime for GPUs, without any
{{name}} test mpi-horovod --cpu 500m --memory 512Mi

# With another image
{{name}} test mpi-openmpi --image quay.io/me/solver:2`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: f.completeRuntimes(1),
		RunE:              func(c *cobra.Command, args []string) error { return o.run(c.Context(), args[0]) },
	}
	flags := c.Flags()
	flags.StringVar(&o.image, "image", "", "Use this image instead of the runtime's")
	flags.StringVar(&o.cpu, "cpu", "", "Give each pod so many cores, and nothing else of what the runtime says")
	flags.StringVar(&o.memory, "memory", "", "Give each pod so much memory, and nothing else of what the runtime says")
	flags.StringVar(&o.gpu, "gpu", "", "Give each pod so many GPUs (nvidia.com/gpu), and nothing else of what the runtime says")
	flags.StringVar(&o.queue, "queue", "", "The queue (Kueue's LocalQueue) for the test to wait in")
	flags.DurationVar(&o.timeout, "timeout", 5*time.Minute, "How long the test may take before it has failed")
	flags.BoolVar(&o.keep, "keep", false, "Keep the test (a RuntimeTest) when it has passed")
	_ = c.RegisterFlagCompletionFunc("queue", f.completeObjects(localQueues))
	return c
}

func (o *runtimesTestOptions) run(ctx context.Context, arg string) error {
	test, err := o.test()
	if err != nil {
		return err
	}
	one, err := o.findRuntime(ctx, arg)
	if err != nil {
		return err
	}
	if test.Namespace, err = o.Namespace(); err != nil {
		return err
	}
	test.GenerateName = one.Name + "-"
	if len(test.GenerateName) > 40 {
		test.GenerateName = test.GenerateName[:39] + "-"
	}
	test.Spec.RuntimeRef = v1alpha1.RuntimeReference{Name: one.Name, Kind: one.Kind}
	c, err := o.Client()
	if err != nil {
		return err
	}
	if err := c.Create(ctx, test); err != nil {
		if isNoSuchAPI(err) {
			return exitf(ExitError, "this cluster has no RuntimeTests: the operator is not installed, or an earlier version is; %s doctor says more", o.name)
		}
		return fmt.Errorf("create a test of %s: %w", one.Name, err)
	}
	say(o.ErrOut, "runtimetest/%s tests %s with 3 pods in the namespace %s", test.Name, one.Name, test.Namespace)
	return o.follow(ctx, c, test)
}

// test is the test as the flags describe it.
func (o *runtimesTestOptions) test() (*v1alpha1.RuntimeTest, error) {
	seconds := int64(o.timeout / time.Second)
	if seconds < 10 || seconds > 3600 {
		return nil, usagef("--timeout %s: must be between 10s and 1h", o.timeout)
	}
	test := &v1alpha1.RuntimeTest{Spec: v1alpha1.RuntimeTestSpec{Image: o.image, TimeoutSeconds: int32(seconds)}}
	if o.queue != "" {
		test.Labels = map[string]string{mpi.LabelQueue: o.queue}
	}
	limits := corev1.ResourceList{}
	for _, size := range []struct {
		flag, value string
		name        corev1.ResourceName
	}{{"cpu", o.cpu, corev1.ResourceCPU}, {"memory", o.memory, corev1.ResourceMemory}, {"gpu", o.gpu, "nvidia.com/gpu"}} {
		if size.value == "" {
			continue
		}
		quantity, err := resource.ParseQuantity(size.value)
		if err != nil || quantity.Sign() < 0 {
			return nil, usagef("--%s %s: must be a quantity, such as 2, 500m or 1Gi", size.flag, size.value)
		}
		limits[size.name] = quantity
	}
	if len(limits) > 0 {
		test.Spec.ResourcesPerNode = &corev1.ResourceRequirements{Limits: limits}
	}
	return test, nil
}

// follow prints each step as it ends, until the test is over.
func (o *runtimesTestOptions) follow(ctx context.Context, c client.Client, test *v1alpha1.RuntimeTest) error {
	const every, beyond = 500 * time.Millisecond, time.Minute
	limited, cancel := context.WithTimeout(ctx, o.timeout+beyond)
	defer cancel()
	said := map[v1alpha1.CheckName]bool{}
	waits := ""
	for {
		err := c.Get(limited, client.ObjectKeyFromObject(test), test)
		switch {
		case ctx.Err() != nil:
			say(o.ErrOut, "detached: the test goes on; see it with kubectl get runtimetest %s -n %s", test.Name, test.Namespace)
			return silently(ExitDetached)
		case limited.Err() != nil:
			return exitf(ExitTimeout, "runtimetest/%s has no result after %s: %s; does the operator run? %s doctor says more", test.Name, o.timeout+beyond, cmp.Or(test.Status.Message, "nothing was said of it"), o.name)
		case err != nil && !passing(err):
			return fmt.Errorf("read runtimetest/%s: %w", test.Name, err)
		}
		for _, check := range test.Status.Checks {
			if check.Result == v1alpha1.CheckPending || said[check.Name] || check.Result == v1alpha1.CheckUnknown && test.Status.CompletionTime == nil {
				continue
			}
			said[check.Name] = true
			o.step(check)
		}
		if test.Status.CompletionTime != nil {
			return o.end(ctx, c, test)
		}
		if text := test.Status.Message; text != waits && text != "" {
			waits = text
			say(o.ErrOut, "%s", o.paintOn(o.ErrOut, dim, oneLine(text)))
		}
		select {
		case <-limited.Done():
		case <-time.After(every):
		}
	}
}

var stepColours = map[v1alpha1.CheckResult]colour{v1alpha1.CheckPass: green, v1alpha1.CheckFail: red, v1alpha1.CheckUnknown: yellow}

// step prints how one step went.
func (o *runtimesTestOptions) step(check v1alpha1.RuntimeCheck) {
	took := ""
	if check.Milliseconds > 0 {
		took = " (" + milliseconds(check.Milliseconds) + ")"
	}
	say(o.Out, "%s  %-13s  %s%s", o.paint(stepColours[check.Result], fmt.Sprintf("%-7s", check.Result)), check.Name, oneLine(check.Message), took)
	for _, remedy := range check.Remedies {
		say(o.Out, "%-24s- %s", "", oneLine(remedy.Text))
		if remedy.Action != "" {
			say(o.Out, "%-26s%s", "", oneLine(remedy.Action))
		}
	}
}

// end says how the test ended, and removes one that has passed.
func (o *runtimesTestOptions) end(ctx context.Context, c client.Client, test *v1alpha1.RuntimeTest) error {
	failed := test.Status.Phase != v1alpha1.TestPassed
	colour := green
	if failed {
		colour = red
	}
	say(o.Out, "%s: %s", o.paint(colour, string(test.Status.Phase)), oneLine(test.Status.Message))
	if failed {
		if test.Status.JobRef != nil {
			say(o.ErrOut, "More of it: %s describe trainjob/%s -n %s", o.name, test.Status.JobRef.Name, test.Namespace)
		}
		return silently(ExitJobFailed)
	}
	if o.keep {
		return nil
	}
	if err := c.Delete(ctx, test, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil && !apierrors.IsNotFound(err) && !errors.Is(err, context.Canceled) {
		say(o.ErrOut, "note: runtimetest/%s stays, since it could not be removed: %s", test.Name, o.words(err))
	}
	return nil
}
