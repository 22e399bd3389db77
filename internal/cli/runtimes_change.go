package cli

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/util/retry"

	"opendatahub.io/mpijob/internal/jobs"
)

// ownRuntime has the arguments that name a runtime to change.
type ownRuntime struct {
	*Factory
	ofCluster bool
}

// find returns the runtime with a name: of the namespace, or with --cluster of the cluster. One that all namespaces share is never found
// in place of one of the namespace.
func (o *ownRuntime) find(ctx context.Context, name string) (jobs.Runtime, error) {
	c, namespace, err := o.jobsHere()
	if err != nil {
		return jobs.Runtime{}, err
	}
	kinds := jobs.RuntimeKinds()
	reference, isQualified := name, strings.Contains(name, "/")
	switch {
	case strings.HasPrefix(name, jobs.ShippedPrefix):
		return jobs.Runtime{}, usagef("%s comes with this program, and is not in the cluster; run %s runtimes create NAME --from %s to create a runtime from it", name, o.name, name)
	case isQualified && o.ofCluster:
		return jobs.Runtime{}, usagef("--cluster cannot be combined with %s, which names the kind; use the name alone", name)
	case isQualified:
	case o.ofCluster:
		reference = strings.ToLower(kinds[0].Kind) + "/" + name
	default:
		reference = strings.ToLower(kinds[1].Kind) + "/" + name
	}
	found, err := c.FindRuntime(ctx, namespace, reference)
	missing, is := errors.AsType[*jobs.NotFoundError](err)
	if !is {
		return found, err
	}
	missing.Name = name
	switch {
	case isQualified || !slices.Contains(missing.Names, name):
		return found, exitf(ExitNotFound, "%v; run %s runtimes list to list runtimes", missing, o.name)
	case o.ofCluster:
		return found, exitf(ExitNotFound, "the cluster has no runtime %q; the namespace %s has one: leave out --cluster", name, namespace)
	}
	return found, exitf(ExitNotFound, "the namespace %s has no runtime %q; the cluster has one, for all namespaces: --cluster means that one", namespace, name)
}

// runtimeText names a runtime as kubectl does.
func runtimeText(one jobs.Runtime) string { return strings.ToLower(one.Kind) + "/" + one.Name }

type runtimesUpdateOptions struct {
	ownRuntime
	settings runtimeFlags
}

func newRuntimesUpdate(f *Factory) *cobra.Command {
	o := &runtimesUpdateOptions{ownRuntime: ownRuntime{Factory: f}}
	c := &cobra.Command{
		Use:   "update NAME",
		Short: "Change the settings of an MPI runtime",
		Long: `Change an MPI runtime of this namespace or, with --cluster, of all namespaces: its image, slots and limits, the gang timeout,
the priority class, the labels that nodes must have, and the connections that are allowed. Settings that are not given stay.
New jobs get the new settings; jobs that run continue. A job above a limit is refused when it is created.

A runtime of the namespace requires the role mpijob-admin or admin there, and --cluster the right to update
ClusterTrainingRuntimes. The other fields, such as the size of the launcher, can be changed with kubectl.`,
		Example: `# Another image, and no limit of the number of nodes
{{name}} mine --image quay.io/me/train:2 --max-workers ''

# Only run on some nodes, and connect to a file server
{{name}} mpi-a100 --required-node-labels accelerator=a100 --allow-egress 192.0.2.7:2049`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: f.completeRuntimes,
		RunE:              func(c *cobra.Command, args []string) error { return o.run(c.Context(), args[0]) },
	}
	o.settings.add(f, c, "Image; replaces that of the workers in all containers that have it")
	c.Flags().BoolVar(&o.ofCluster, "cluster", false, "Change the runtime of all namespaces (ClusterTrainingRuntime)")
	return c
}

func (o *runtimesUpdateOptions) run(ctx context.Context, name string) error {
	if !o.settings.areSet() {
		return usagef("nothing is changed; use one or more of --%s", strings.Join(runtimeSettings, ", --"))
	}
	c, err := o.Jobs()
	if err != nil {
		return err
	}
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		found, err := o.find(ctx, name)
		if err != nil {
			return err
		}
		settings := found.Settings()
		if err := o.settings.apply(&settings); err != nil {
			return err
		}
		if err := c.ChangeRuntime(ctx, found, settings); err != nil {
			return err
		}
		say(o.Out, "%s updated", runtimeText(found))
		return nil
	})
}

func newRuntimesDelete(f *Factory) *cobra.Command {
	o := &ownRuntime{Factory: f}
	c := &cobra.Command{
		Use:     "delete NAME",
		Aliases: []string{"rm"},
		Short:   "Delete a runtime",
		Long: `Delete a runtime of this namespace or, with --cluster, of all namespaces. Its running jobs continue. Its waiting and suspended
jobs can no longer start, and new ones are refused. Kubeflow Trainer before v2.2 keeps a runtime until no job uses it.`,
		Example: `# Delete a runtime of the namespace
{{name}} horovod

# Delete a runtime of all namespaces
{{name}} mpi-mpich --cluster`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: f.completeRuntimes,
		RunE:              func(c *cobra.Command, args []string) error { return o.remove(c.Context(), args[0]) },
	}
	c.Flags().BoolVar(&o.ofCluster, "cluster", false, "Delete the runtime of all namespaces (ClusterTrainingRuntime)")
	return c
}

// remove deletes a runtime.
func (o *ownRuntime) remove(ctx context.Context, name string) error {
	found, err := o.find(ctx, name)
	if err != nil {
		return err
	}
	c, err := o.Jobs()
	if err != nil {
		return err
	}
	isKept, err := c.DeleteRuntime(ctx, found)
	if err != nil {
		return err
	}
	if isKept {
		say(o.Out, "%s is deleted when its finalizers allow it: %s", runtimeText(found), strings.Join(found.Object.GetFinalizers(), ", "))
		return nil
	}
	say(o.Out, "%s deleted", runtimeText(found))
	return nil
}
