package cli

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"opendatahub.io/mpijob/internal/jobs"
)

func newTemplates(f *Factory) *cobra.Command {
	c := &cobra.Command{
		Use:     "templates",
		Aliases: []string{"template"},
		Short:   "Manage job templates with parameters",
		Long: `Manage job templates: save jobs as templates in a namespace, and run them with other values. Everyone who may read the
ConfigMaps of the namespace can use them.

A template is a job whose texts may contain parameters: ${NAME}, or ${NAME:-default}. A text that is only a parameter
becomes a number or a boolean if its field is one.`,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newTemplatesSave(f), newTemplatesList(f), newTemplatesShow(f), newTemplatesApply(f), newTemplatesDelete(f))
	return c
}

// templates returns the templates of the user's namespace.
func (f *Factory) templates(ctx context.Context) ([]jobs.Template, error) {
	c, namespace, err := f.jobsHere()
	if err != nil {
		return nil, err
	}
	return c.Templates(ctx, namespace)
}

func (f *Factory) completeTemplates(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(c.Context(), completionTimeout)
	defer cancel()
	all, err := f.templates(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, t := range all {
		names = append(names, t.Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

type templatesSaveOptions struct {
	*Factory
	changeFlags
	file, from, description string
	replace                 bool
}

func newTemplatesSave(f *Factory) *cobra.Command {
	o := &templatesSaveOptions{Factory: f}
	c := &cobra.Command{
		Use:   "save NAME (-f FILE | --from JOB)",
		Short: "Save a job as a template",
		Example: `# Save an existing job, with the image as a parameter
{{name}} train --from train-7 --set 'image=${IMAGE}' --set 'workers=${WORKERS:-4}'

# Save a file that contains parameters
{{name}} train -f train.yaml --description "ResNet on A100s"`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return o.run(c.Context(), args[0]) },
	}
	flags := c.Flags()
	flags.StringVarP(&o.file, "filename", "f", "", "File that contains the job (- for standard input)")
	flags.StringVar(&o.from, "from", "", "Job to save")
	o.addSet(c, "Change as NAME=VALUE, as in clone; the value may contain parameters such as ${IMAGE}; repeatable")
	flags.StringVar(&o.description, "description", "", "Description of the template")
	flags.BoolVar(&o.replace, "replace", false, "Replace an existing template")
	_ = c.RegisterFlagCompletionFunc("from", f.completeJobs(-1))
	return c
}

func (o *templatesSaveOptions) run(ctx context.Context, name string) error {
	if (o.file == "") == (o.from == "") {
		return usagef("set either -f FILE or --from JOB")
	}
	changes, err := o.changes()
	if err != nil {
		return err
	}
	job, err := o.read(ctx)
	if err != nil {
		return err
	}
	// In a job that ran, texts such as ${HOME} are shell variables.
	template, err := jobs.NewTemplate(name, o.description, job, o.from != "", changes...)
	if err != nil {
		return err
	}
	c, namespace, err := o.jobsHere()
	if err != nil {
		return err
	}
	replaced, err := c.SaveTemplate(ctx, namespace, template, o.replace)
	if _, exists := errors.AsType[*jobs.ExistsError](err); exists {
		return exitf(ExitError, "%v; use --replace to replace it", err)
	}
	if err != nil {
		return err
	}
	say(o.Out, "template %s %s", name, map[bool]string{true: "replaced", false: "saved"}[replaced])
	return nil
}

// read returns the job to save.
func (o *templatesSaveOptions) read(ctx context.Context) (*unstructured.Unstructured, error) {
	if o.from != "" {
		job, err := o.Find(ctx, o.from)
		if err != nil {
			return nil, err
		}
		if job.Object == nil {
			return nil, &jobs.DeletedError{Job: job}
		}
		return job.Object, nil
	}
	documents, err := o.readDocuments(o.file)
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{Object: documents[0].object}
	if len(documents) != 1 || !jobs.IsJob(object.GroupVersionKind()) {
		return nil, exitf(ExitError, "%s must contain one MPIJob or TrainJob; run %s migrate to convert other jobs", documents[0].where, o.name)
	}
	return object, nil
}

func newTemplatesList(f *Factory) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List templates and their parameters",
		Example: `# List the templates of the namespace
{{name}}`,
		RunE: func(c *cobra.Command, _ []string) error {
			all, err := f.templates(c.Context())
			if err != nil {
				return err
			}
			if len(all) == 0 {
				say(f.ErrOut, "no templates; run %s templates save to save one", f.name)
				return nil
			}
			t := table{header: []string{"NAME", "KIND", "PARAMETERS", "AGE", "DESCRIPTION"}, wraps: true}
			for _, one := range all {
				age, description := jobs.Since(one.Created, f.Now()), cmp.Or(one.Description, "-")
				if one.Err != nil {
					t.rows = append(t.rows, []cell{{text: one.Name}, {text: "Invalid", colour: red}, {text: "-"}, {text: age}, {text: description}})
					continue
				}
				t.rows = append(t.rows, plain(one.Name, one.Job.GetKind(), cmp.Or(parametersText(one.Parameters), "-"), age, description))
			}
			return t.write(f.Out, "", true)
		},
	}
}

// parametersText returns parameters with the starts of their defaults: the names of all have to fit.
func parametersText(parameters jobs.Parameters) string {
	short := jobs.Parameters{}
	for name, value := range parameters {
		if value != nil {
			value = new(shortened(*value, 12))
		}
		short[name] = value
	}
	return short.String()
}

func newTemplatesShow(f *Factory) *cobra.Command {
	return &cobra.Command{
		Use:   "show NAME",
		Short: "Print a template as YAML",
		Example: `# Save a template to a file
{{name}} train > train.yaml`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: f.completeTemplates,
		RunE: func(c *cobra.Command, args []string) error {
			jobsClient, namespace, err := f.jobsHere()
			if err != nil {
				return err
			}
			one, err := jobsClient.Template(c.Context(), namespace, args[0])
			if err != nil {
				return err
			}
			return printYAML(f.Out, []unstructured.Unstructured{*one.Job})
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
		Short:   "Create a job from a template",
		Long: `Create a job from a template. Without NAME, the name is the template's name with the next free number. Every parameter
without a default requires a value.`,
		Example: `# Set a parameter
{{name}} train -p IMAGE=quay.io/me/train:8

# Set a name and a field as well
{{name}} train train-big -p IMAGE=quay.io/me/train:8 -p WORKERS=16 --set memory=64Gi

# Only print the job
{{name}} train -p IMAGE=x --dry-run=client -o yaml`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: f.completeTemplates,
		RunE:              func(c *cobra.Command, args []string) error { return o.run(c.Context(), args) },
	}
	flags := c.Flags()
	flags.StringArrayVarP(&o.values, "param", "p", nil, "Value of a parameter, as NAME=VALUE; repeatable")
	o.addSet(c, "Change as NAME=VALUE, as in clone; repeatable")
	o.add(c)
	addDryRun(c, &o.dryRun)
	o.output = addOutput(c)
	return c
}

func (o *templatesApplyOptions) run(ctx context.Context, args []string) error {
	if err := oneOf("--dry-run", string(o.dryRun), dryRuns...); err != nil {
		return err
	}
	changes, err := o.changes()
	if err != nil {
		return err
	}
	values := map[string]string{}
	for _, text := range o.values {
		name, value, found := strings.Cut(text, "=")
		if !found || name == "" {
			return usagef("-p: %s must be NAME=VALUE", text)
		}
		values[name] = value
	}
	c, namespace, err := o.jobsHere()
	if err != nil {
		return err
	}
	template, err := c.Template(ctx, namespace, args[0])
	if err != nil {
		return err
	}
	name := ""
	if len(args) == 2 {
		name = args[1]
	}
	job, err := c.JobFromTemplate(ctx, namespace, name, template, values, changes...)
	if err != nil {
		return parameterError(template, err)
	}
	return o.create(ctx, c, job)
}

// parameterError returns an error about parameters with the flags that set them.
func parameterError(template jobs.Template, err error) error {
	invalid, is := errors.AsType[*jobs.InvalidError](err)
	if !is || slices.ContainsFunc(invalid.Fields, func(field jobs.FieldError) bool { return field.Field == "set" }) {
		return err
	}
	var texts []string
	for _, field := range invalid.Fields {
		text := field.Text("parameter " + field.Field)
		if _, known := template.Parameters[field.Field]; known {
			text += "; use -p " + field.Field + "=VALUE"
		}
		texts = append(texts, text)
	}
	return usagef("template %s: %s", template.Name, strings.Join(texts, "; "))
}

func newTemplatesDelete(f *Factory) *cobra.Command {
	return &cobra.Command{
		Use:     "delete NAME",
		Aliases: []string{"rm"},
		Short:   "Delete a template",
		Long:    `Delete a template. Jobs that were created from it stay.`,
		Example: `# Delete a template
{{name}} train`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: f.completeTemplates,
		RunE: func(c *cobra.Command, args []string) error {
			jobsClient, namespace, err := f.jobsHere()
			if err != nil {
				return err
			}
			if err := jobsClient.DeleteTemplate(c.Context(), namespace, args[0]); err != nil {
				return err
			}
			say(f.Out, "template %s deleted", args[0])
			return nil
		},
	}
}
