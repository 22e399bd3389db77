package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/internal/mpi"
)

// How a template is kept: a ConfigMap with the label, named after the template, with the job under the key.
const (
	templatePrefix = "mpijob-template-"
	templateKey    = "job.yaml"
	// templateSays is the annotation with what a template is for.
	templateSays = mpi.Group + "/description"
)

func newTemplates(f *Factory) *cobra.Command {
	c := &cobra.Command{
		Use:     "templates",
		Aliases: []string{"template"},
		Short:   "Keep jobs as templates, and run them with other values",
		Long: `Keep jobs as templates in a namespace, for whoever may read its ConfigMaps, and run them with other values.

A template is a job in which texts may have parameters: ${NAME}, or ${NAME:-default}. A value that is a parameter alone may
become a number.`,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newTemplatesSave(f), newTemplatesList(f), newTemplatesShow(f), newTemplatesApply(f), newTemplatesDelete(f))
	return c
}

// template is a job with parameters.
type template struct {
	name, says string
	job        *unstructured.Unstructured
	made       metav1.Time
	fault      error
}

// configName names the ConfigMap of a template.
func configName(name string) string { return templatePrefix + name }

// readTemplate is the template in a ConfigMap. One that somebody has broken has a fault.
func readTemplate(from corev1.ConfigMap) template {
	t := template{name: strings.TrimPrefix(from.Name, templatePrefix), says: from.Annotations[templateSays], made: from.CreationTimestamp}
	objects, err := decode([]byte(from.Data[templateKey]))
	if err == nil && len(objects) != 1 {
		err = fmt.Errorf("it has no job under the key %s", templateKey)
	}
	if err != nil {
		t.fault = fmt.Errorf("the template %s (ConfigMap %s) cannot be used: %w", t.name, from.Name, err)
		return t
	}
	t.job = &unstructured.Unstructured{Object: objects[0]}
	return t
}

// templates are those of the namespace, by name.
func (f *Factory) templates(ctx context.Context) ([]template, error) {
	c, err := f.Client()
	if err != nil {
		return nil, err
	}
	namespace, err := f.Namespace()
	if err != nil {
		return nil, err
	}
	var list corev1.ConfigMapList
	if err := c.List(ctx, &list, client.InNamespace(namespace), client.HasLabels{mpi.LabelTemplate}); err != nil {
		return nil, fmt.Errorf("list templates: %w", err)
	}
	var all []template
	for _, config := range list.Items {
		all = append(all, readTemplate(config))
	}
	slices.SortFunc(all, func(a, b template) int { return strings.Compare(a.name, b.name) })
	return all, nil
}

// findTemplate is the template of a name; where there is none the error suggests others.
func (f *Factory) findTemplate(ctx context.Context, name string) (template, error) {
	all, err := f.templates(ctx)
	if err != nil {
		return template{}, err
	}
	var names []string
	for _, t := range all {
		if t.name == name {
			return t, t.fault
		}
		names = append(names, t.name)
	}
	return template{}, exitf(ExitNotFound, "there is no template %q%s; %s templates list shows those that are there", name, meant(name, names), f.name)
}

func (f *Factory) completeTemplates(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(c.Context(), patience)
	defer cancel()
	all, err := f.templates(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, t := range all {
		names = append(names, t.name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

type templatesSaveOptions struct {
	*Factory
	file, from, says string
	set              []string
	replace          bool
}

func newTemplatesSave(f *Factory) *cobra.Command {
	o := &templatesSaveOptions{Factory: f}
	c := &cobra.Command{
		Use:   "save NAME (-f FILE | --from JOB)",
		Short: "Keep a job as a template",
		Example: `# A job that went well, with the image as a parameter
{{name}} save train --from train-7 --set 'image=${IMAGE}' --set 'workers=${WORKERS:-4}'

# A file that has parameters
{{name}} save train -f train.yaml --description "ResNet on A100s"`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return o.run(c.Context(), args[0]) },
	}
	flags := c.Flags()
	flags.StringVarP(&o.file, "filename", "f", "", "Read the job from this file; - is standard input")
	flags.StringVar(&o.from, "from", "", "Take this job, as its user has written it")
	flags.StringArrayVar(&o.set, "set", nil, "Change the job first, as clone does; may be repeated. A value may be a parameter, such as ${IMAGE}")
	flags.StringVar(&o.says, "description", "", "What the template is for")
	flags.BoolVar(&o.replace, "replace", false, "Replace a template of that name")
	_ = c.RegisterFlagCompletionFunc("from", f.completeJobs(-1))
	return c
}

func (o *templatesSaveOptions) run(ctx context.Context, name string) error {
	if (o.file == "") == (o.from == "") {
		return usagef("say -f FILE or --from JOB: one of both")
	}
	if problems := validation.IsDNS1123Subdomain(configName(name)); len(problems) > 0 {
		return usagef("%q is no name of a template: %s", name, strings.Join(problems, "; "))
	}
	object, err := o.read(ctx)
	if err != nil {
		return err
	}
	written := asWritten(object)
	if o.from != "" {
		// What looks like a parameter there is a shell's variable.
		written.Object = eachText(written.Object, func(text string) any { return escaped(text) }).(map[string]any)
	}
	unstructured.RemoveNestedField(written.Object, "metadata", "name")
	unstructured.RemoveNestedField(written.Object, "metadata", "namespace")
	notSuspended(written)
	for _, text := range o.set {
		if err := change(written, text); err != nil {
			return err
		}
	}
	if _, err := parameters(written.Object); err != nil {
		return exitf(ExitError, "%v", err)
	}
	text, err := yaml.Marshal(written.Object)
	if err != nil {
		return err
	}
	return o.save(ctx, name, string(text))
}

// read is the job to keep.
func (o *templatesSaveOptions) read(ctx context.Context) (*unstructured.Unstructured, error) {
	if o.from != "" {
		job, err := o.Find(ctx, o.from)
		if err != nil {
			return nil, err
		}
		if job.Object == nil {
			return nil, exitf(ExitNotFound, "%s is deleted; only its record is left, which does not say how it was written", job)
		}
		return job.Object, nil
	}
	documents, err := o.readDocuments(o.file)
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{Object: documents[0].object}
	if len(documents) != 1 || !slices.Contains(jobKinds, object.GroupVersionKind()) {
		return nil, exitf(ExitError, "%s must have one job, an MPIJob or a TrainJob; %s migrate converts others", documents[0].where, o.name)
	}
	return object, nil
}

func (o *templatesSaveOptions) save(ctx context.Context, name, text string) error {
	c, err := o.Client()
	if err != nil {
		return err
	}
	namespace, err := o.Namespace()
	if err != nil {
		return err
	}
	config := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: configName(name), Labels: map[string]string{mpi.LabelTemplate: "job"}},
		Data:       map[string]string{templateKey: text},
	}
	if o.says != "" {
		config.Annotations = map[string]string{templateSays: o.says}
	}
	err = c.Create(ctx, config)
	switch {
	case err == nil:
		say(o.Out, "template %s saved", name)
		return nil
	case !apierrors.IsAlreadyExists(err):
		return fmt.Errorf("save template %s: %w", name, err)
	case !o.replace:
		return exitf(ExitError, "there is a template %s already: --replace takes its place", name)
	}
	var old corev1.ConfigMap
	if err := c.Get(ctx, client.ObjectKeyFromObject(config), &old); err != nil {
		return fmt.Errorf("read template %s: %w", name, err)
	}
	if _, ours := old.Labels[mpi.LabelTemplate]; !ours {
		return exitf(ExitError, "the ConfigMap %s is no template; it was left as it is", old.Name)
	}
	old.Data, old.BinaryData = config.Data, nil
	if old.Annotations == nil {
		old.Annotations = map[string]string{}
	}
	if o.says != "" {
		old.Annotations[templateSays] = o.says
	}
	if err := c.Update(ctx, &old); err != nil {
		return fmt.Errorf("replace template %s: %w", name, err)
	}
	say(o.Out, "template %s replaced", name)
	return nil
}

func newTemplatesList(f *Factory) *cobra.Command {
	c := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the templates of this namespace, with their parameters",
		Example: `{{name}} list`,
		RunE: func(c *cobra.Command, _ []string) error {
			all, err := f.templates(c.Context())
			if err != nil {
				return err
			}
			if len(all) == 0 {
				say(f.ErrOut, "no templates; %s templates save keeps one", f.name)
				return nil
			}
			t := table{header: []string{"NAME", "KIND", "PARAMETERS", "AGE", "DESCRIPTION"}}
			for _, one := range all {
				if one.fault != nil {
					t.rows = append(t.rows, []cell{{text: one.name}, {text: "broken", colour: red}, {text: "-"}, {text: since(one.made, f.Now())}, {text: cmp.Or(one.says, "-")}})
					continue
				}
				found, _ := parameters(one.job.Object)
				t.rows = append(t.rows, plain(one.name, one.job.GetKind(), cmp.Or(parameterText(found), "-"), since(one.made, f.Now()), cmp.Or(one.says, "-")))
			}
			return t.write(f, f.Out, "", true)
		},
	}
	return c
}

func newTemplatesShow(f *Factory) *cobra.Command {
	return &cobra.Command{
		Use:               "show NAME",
		Short:             "Print a template as it is kept",
		Example:           `{{name}} show train > train.yaml`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: f.completeTemplates,
		RunE: func(c *cobra.Command, args []string) error {
			one, err := f.findTemplate(c.Context(), args[0])
			if err != nil {
				return err
			}
			return printYAML(f.Out, []unstructured.Unstructured{*one.job})
		},
	}
}

type templatesApplyOptions struct {
	cloneOptions
	values []string
}

func newTemplatesApply(f *Factory) *cobra.Command {
	o := &templatesApplyOptions{cloneOptions: cloneOptions{Factory: f}}
	c := &cobra.Command{
		Use:     "apply TEMPLATE [NAME]",
		Aliases: []string{"run"},
		Short:   "Run a job from a template",
		Long: `Run a job from a template, under NAME or the template's own name with the next free number. Every parameter without a default
needs a value.`,
		Example: `{{name}} apply train -p IMAGE=quay.io/me/train:8
{{name}} apply train train-big -p IMAGE=quay.io/me/train:8 -p WORKERS=16 --set memory=64Gi
{{name}} apply train -p IMAGE=x --dry-run=client -o yaml`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: f.completeTemplates,
		RunE:              func(c *cobra.Command, args []string) error { return o.run(c.Context(), args) },
	}
	flags := c.Flags()
	flags.StringArrayVarP(&o.values, "param", "p", nil, "The value of a parameter, as NAME=VALUE; may be repeated")
	flags.StringArrayVar(&o.set, "set", nil, "A change, as clone has them; may be repeated")
	flags.StringVar(&o.dryRun, "dry-run", "none", "client: print what would be created; server: also ask the API server whether it would take it")
	o.output = addOutput(c)
	_ = c.RegisterFlagCompletionFunc("dry-run", cobra.FixedCompletions([]string{"none", "client", "server"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

func (o *templatesApplyOptions) run(ctx context.Context, args []string) error {
	if err := oneOf("--dry-run", o.dryRun, "none", "client", "server"); err != nil {
		return err
	}
	values := map[string]string{}
	for _, text := range o.values {
		name, value, found := strings.Cut(text, "=")
		if !found || name == "" {
			return usagef("-p %s: must be NAME=VALUE", text)
		}
		values[name] = value
	}
	one, err := o.findTemplate(ctx, args[0])
	if err != nil {
		return err
	}
	filled, err := fill(one.job.Object, values)
	if err != nil {
		return usagef("template %s: %v", one.name, err)
	}
	object := &unstructured.Unstructured{Object: filled}
	for _, text := range o.set {
		if err := change(object, text); err != nil {
			return err
		}
	}
	namespace, err := o.Namespace()
	if err != nil {
		return err
	}
	object.SetNamespace(namespace)
	if object.SetName(one.name); len(args) == 2 {
		object.SetName(args[1])
	} else if err := o.nextName(ctx, object); err != nil {
		return err
	}
	return o.make(ctx, object)
}

func newTemplatesDelete(f *Factory) *cobra.Command {
	return &cobra.Command{
		Use:               "delete NAME",
		Aliases:           []string{"rm"},
		Short:             "Remove a template; jobs that were made from it stay",
		Example:           `{{name}} delete train`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: f.completeTemplates,
		RunE: func(c *cobra.Command, args []string) error {
			ctx := c.Context()
			one, err := f.findTemplate(ctx, args[0])
			if err != nil && one.fault == nil {
				return err
			}
			writer, err := f.Client()
			if err != nil {
				return err
			}
			namespace, err := f.Namespace()
			if err != nil {
				return err
			}
			var config corev1.ConfigMap
			if err := writer.Get(ctx, types.NamespacedName{Namespace: namespace, Name: configName(one.name)}, &config); err != nil {
				return fmt.Errorf("read template %s: %w", one.name, err)
			}
			if err := writer.Delete(ctx, &config, client.Preconditions{UID: &config.UID}); err != nil {
				return fmt.Errorf("delete template %s: %w", one.name, err)
			}
			say(f.Out, "template %s deleted", one.name)
			return nil
		},
	}
}

// parameterText lists parameters with their defaults.
func parameterText(all map[string]*string) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if value := all[name]; value != nil {
			name += "=" + *value
		}
		words = append(words, name)
	}
	return strings.Join(words, ",")
}
