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
)

// completion is a function that says what may follow on the command line.
type completion = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

// patience is how long a completion may ask the cluster: whoever presses Tab waits.
const patience = 3 * time.Second

// completeJobs offers the names of jobs, for so many arguments at most; -1 for any number.
func (f *Factory) completeJobs(most int) completion {
	return func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if most >= 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		namespace, err := f.Namespace()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(c.Context(), patience)
		defer cancel()
		jobs, _, err := f.Jobs(ctx, Selection{Namespace: namespace, NoReports: true})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		for i, job := range jobs {
			name := job.Name
			if i > 0 && jobs[i-1].Name == name || i+1 < len(jobs) && jobs[i+1].Name == name {
				name = job.String()
			}
			if !slices.Contains(args, name) {
				names = append(names, name)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeObjects offers the names of objects: of the namespace, or of the cluster where the kind has none.
func (f *Factory) completeObjects(kinds ...schema.GroupVersionKind) completion {
	return func(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(c.Context(), patience)
		defer cancel()
		var names []string
		for _, kind := range kinds {
			names = append(names, f.names(ctx, kind)...)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// names are those of the objects of a kind; none where they cannot be listed.
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
