package cli

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/jobs"
)

// completion returns the possible next words of a command line.
type completion = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

// completionTimeout limits the requests of a completion.
const completionTimeout = 3 * time.Second

// completeJobs completes the names of jobs, for at most a number of arguments (-1 for any number).
func (f *Factory) completeJobs(most int) completion {
	return func(command *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if most >= 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		namespace, err := f.Namespace()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(command.Context(), completionTimeout)
		defer cancel()
		c, err := f.Jobs()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		list, err := c.List(ctx, jobs.Selection{Namespace: namespace, WithoutReports: true, Rows: true})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		all := list.Jobs
		var names []string
		for i, job := range all {
			name := job.Name
			if i > 0 && all[i-1].Name == name || i+1 < len(all) && all[i+1].Name == name {
				name = job.String()
			}
			if !slices.Contains(args, name) {
				names = append(names, name)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeObjects completes the names of objects of the namespace, or of the cluster if the kind is cluster-scoped.
func (f *Factory) completeObjects(kinds ...schema.GroupVersionKind) completion {
	return func(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(c.Context(), completionTimeout)
		defer cancel()
		var names []string
		for _, kind := range kinds {
			names = append(names, f.names(ctx, kind)...)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// names returns the names of the objects of a kind; none if they cannot be listed.
func (f *Factory) names(ctx context.Context, kind schema.GroupVersionKind) []string {
	c, err := f.Client()
	if err != nil {
		return nil
	}
	var options []client.ListOption
	if mapping, err := c.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version); err != nil {
		return nil
	} else if mapping.Scope.Name() == "namespace" {
		namespace, err := f.Namespace()
		if err != nil {
			return nil
		}
		options = append(options, client.InNamespace(namespace))
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := c.List(ctx, list, options...); err != nil {
		return nil
	}
	var names []string
	for _, item := range list.Items {
		names = append(names, item.Name)
	}
	slices.SortFunc(names, strings.Compare)
	return names
}

// completeFlags completes the flags that every command has.
func (f *Factory) completeFlags(root *cobra.Command) {
	_ = root.RegisterFlagCompletionFunc("namespace", f.completeObjects(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}))
	_ = root.RegisterFlagCompletionFunc("context", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return f.contexts(), cobra.ShellCompDirectiveNoFileComp
	})
}

// contexts are those of the kubeconfig.
func (f *Factory) contexts() []string {
	config, err := f.flags.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(config.Contexts))
}
