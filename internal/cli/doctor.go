package cli

import (
	"context"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"opendatahub.io/mpijob/internal/doctor"
)

type doctorOptions struct {
	*Factory
	output valueOutput
}

func newDoctor(f *Factory) *cobra.Command {
	o := &doctorOptions{Factory: f}
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Check whether the cluster and namespace can run jobs",
		Long: `Check whether the cluster can run jobs, and whether you are allowed to run them in the namespace. Each line is ok, warn
(works with restrictions), fail (jobs do not run until this is fixed), or "-" (not installed, or you are not allowed to read
it). Nothing is changed. The exit code is 1 if a check fails.`,
		Example: `# Check the cluster and the current namespace
{{name}}

# Check another namespace
{{name}} -n team-a

# Print the checks as JSON
{{name}} -o json`,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(c *cobra.Command, _ []string) error { return o.run(c.Context()) },
	}
	o.output.add(c)
	return c
}

func (o *doctorOptions) run(ctx context.Context) error {
	if err := o.output.validate(); err != nil {
		return err
	}
	cluster, err := o.cluster()
	if err != nil {
		return err
	}
	results, err := cluster.Check(ctx)
	if err != nil {
		return err
	}
	for i := range results {
		if err := results[i].Err; err != nil {
			results[i].Found = "unknown: " + oneLine(o.describeError(err))
		}
	}
	if o.output.structured() {
		err = o.output.print(o.Out, map[string]any{"namespace": cluster.Namespace, "checks": results})
	} else {
		err = printChecks(o.Out, cluster.Namespace, results)
	}
	if err == nil && slices.ContainsFunc(results, func(r doctor.Result) bool { return r.Verdict == doctor.Fail }) {
		return silently(ExitError)
	}
	return err
}

// cluster returns the user's cluster and namespace.
func (o *doctorOptions) cluster() (doctor.Cluster, error) {
	config, err := o.RESTConfig()
	if err != nil {
		return doctor.Cluster{}, err
	}
	namespace, err := o.Namespace()
	if err != nil {
		return doctor.Cluster{}, err
	}
	clients, err := o.Clientset()
	if err != nil {
		return doctor.Cluster{}, err
	}
	// The API server's warnings are about the job that a check tries to create.
	config.WarningHandler = rest.NoWarnings{}
	api, _, err := newClient(config)
	return doctor.Cluster{API: api, Discovery: clients.Discovery(), Address: config.Host, Namespace: namespace, Now: o.Now()}, err
}
