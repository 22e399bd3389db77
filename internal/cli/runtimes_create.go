package cli

import (
	"cmp"
	"context"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"opendatahub.io/mpijob/internal/doctor"
	"opendatahub.io/mpijob/internal/jobs"
	"opendatahub.io/mpijob/internal/mpi"
)

type runtimesCreateOptions struct {
	*Factory
	from, implementation string
	ofCluster            bool
	new                  jobs.NewRuntime
	settings             runtimeFlags
	// user is the user of the pods, if --run-as-user is set.
	user   int64
	dryRun jobs.DryRun
	output *output
}

func newRuntimesCreate(f *Factory) *cobra.Command {
	o := &runtimesCreateOptions{Factory: f}
	c := &cobra.Command{
		Use:   "create NAME [--implementation MPI | --from RUNTIME]",
		Short: "Create an MPI runtime from a shipped or existing one",
		Long: `Create an MPI runtime with your image, in this namespace or, with --cluster, for all namespaces. It has the other
settings of a runtime that comes with this program (--implementation), which the cluster need not have, or of --from.

shipped/mpi-openmpi, mpi-openmpi5, mpi-mpich, mpi-intel, mpi-horovod and mpi-deepspeed come with this program. There is no
public image with Intel MPI: mpi-intel requires --image.

The agent, which starts ranks, has the image of the installed operator if you may read its Deployment; otherwise that of
this version. A runtime of the namespace requires the role mpijob-admin or admin there, and --cluster the right to create
ClusterTrainingRuntimes.`,
		Example: `# A runtime of the namespace with Open MPI and your image
{{name}} mine --image quay.io/me/train:1

# With MPICH, for all namespaces, with limits for each job
{{name}} mpi-mpich --implementation MPICH --cluster --max-workers 16 --max-gpus 8

# Only on nodes with a label, with a connection to a file server
{{name}} regional --required-node-labels topology.kubernetes.io/region=eu-west --allow-egress 192.0.2.7:2049

# For Horovod, as shipped
{{name}} horovod --from shipped/mpi-horovod

# A copy of a runtime of the cluster, with 8 ranks per node
{{name}} mpi-a100 --from mpi-openmpi --slots 8

# Print it without creating it
{{name}} mine --image quay.io/me/train:1 --dry-run=client -o yaml`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, args []string) error {
			o.new.Name = args[0]
			return o.run(c.Context())
		},
	}
	flags := c.Flags()
	flags.StringVar(&o.implementation, "implementation", "", "MPI of the image: OpenMPI (default), MPICH or Intel")
	flags.StringVar(&o.from, "from", "", "Runtime to start from: shipped/NAME, or one of the cluster or the namespace")
	flags.BoolVar(&o.ofCluster, "cluster", false, "Create a runtime for all namespaces (ClusterTrainingRuntime)")
	o.settings.add(f, c, "Image of the workers and the launcher (default: that of the runtime to start from)")
	flags.StringVar(&o.new.AgentImage, "agent-image", "", "Image of the agent that starts ranks")
	flags.Int64Var(&o.user, "run-as-user", 0, "User ID of the pods (default: 1000 with a shipped runtime, unless OpenShift assigns one)")
	addDryRun(c, &o.dryRun)
	o.output = addOutput(c)
	_ = c.RegisterFlagCompletionFunc("implementation", cobra.FixedCompletions(implementationNames(), cobra.ShellCompDirectiveNoFileComp))
	_ = c.RegisterFlagCompletionFunc("from", f.completeFrom)
	return c
}

func implementationNames() []string {
	names := make([]string, len(mpi.Implementations))
	for i, name := range mpi.Implementations {
		names[i] = string(name)
	}
	return names
}

// completeFrom completes the runtimes that another can be created from.
func (f *Factory) completeFrom(c *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	names, directive := f.completeObjects(jobs.RuntimeKinds()...)(c, args, word)
	all, err := jobs.ShippedRuntimes()
	if err != nil {
		return names, directive
	}
	for _, one := range all {
		names = append(names, jobs.ShippedPrefix+one.Name)
	}
	return names, directive
}

func (o *runtimesCreateOptions) run(ctx context.Context) error {
	if err := oneOf("--dry-run", string(o.dryRun), dryRuns...); err != nil {
		return err
	}
	if o.from != "" && o.implementation != "" {
		return usagef("--implementation selects a shipped runtime, and cannot be combined with --from")
	}
	if o.implementation != "" {
		if err := oneOf("--implementation", o.implementation, implementationNames()...); err != nil {
			return err
		}
	}
	c, namespace, err := o.jobsHere()
	if err != nil {
		return err
	}
	from, err := o.base(ctx)
	if err != nil {
		return err
	}
	if !o.ofCluster {
		o.new.Namespace = namespace
	}
	if err := o.complete(ctx, c, from); err != nil {
		return err
	}
	object, err := c.CreateRuntime(ctx, from, o.new, o.dryRun)
	if err != nil {
		return o.explain(err)
	}
	return o.print(object, from)
}

// base returns the runtime to start from.
func (o *runtimesCreateOptions) base(ctx context.Context) (jobs.Runtime, error) {
	if o.from != "" {
		return o.findRuntime(ctx, o.from)
	}
	return jobs.ShippedFor(mpi.Implementation(cmp.Or(o.implementation, string(mpi.OpenMPI))))
}

// complete sets what no flag sets: settings of the runtime to start from and, if it is shipped, what depends on the cluster.
func (o *runtimesCreateOptions) complete(ctx context.Context, c *jobs.Client, from jobs.Runtime) error {
	o.new.Settings = from.Settings()
	if err := o.settings.apply(&o.new.Settings); err != nil {
		return err
	}
	if o.settings.changed("run-as-user") {
		o.new.RunAsUser = &o.user
	}
	if !from.Shipped || o.dryRun == jobs.DryRunClient {
		return nil
	}
	if o.new.RunAsUser == nil {
		user, err := c.RuntimeUser()
		if err != nil {
			return err
		}
		o.new.RunAsUser = user
	}
	if o.new.AgentImage == "" {
		// Not every user may read the operator's Deployment; the image of this version fits most clusters.
		if api, err := o.Client(); err == nil {
			if operator, err := doctor.FindOperator(ctx, api); err == nil {
				o.new.AgentImage = operator.AgentImage
			}
		}
	}
	return nil
}

// explain adds to an error what else the user can do.
func (o *runtimesCreateOptions) explain(err error) error {
	switch {
	case !apierrors.IsForbidden(err):
		return err
	case o.ofCluster:
		return exitf(ExitError, "%s; without --cluster, it is created in the namespace", o.forbidden(err))
	}
	return err
}

func (o *runtimesCreateOptions) print(object *unstructured.Unstructured, from jobs.Runtime) error {
	if o.dryRun == jobs.DryRunClient {
		o.output.form = cmp.Or(o.output.form, "yaml")
	}
	if o.output.objects() {
		return o.output.print(o.Out, object)
	}
	reference := strings.ToLower(object.GetKind()) + "/" + object.GetName()
	source := from.Name
	if from.Shipped {
		source = jobs.ShippedPrefix + from.Name
	}
	say(o.Out, "%s created from %s%s", reference, source, dryRunMark(o.dryRun))
	if o.dryRun == jobs.DryRunNone {
		say(o.ErrOut, "To test it, run %s", o.hint("runtimes test", object.GetNamespace(), object.GetName()))
	}
	return nil
}
