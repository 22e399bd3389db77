package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/internal/jobs"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/migrate"
)

type migrateOptions struct {
	*Factory
	file, to, newName, runtime, trainer, connection string
	cpu, memory, gpuName                            string
	gpus                                            int64
	check, quiet                                    bool
	output                                          *output
}

func newMigrate(f *Factory) *cobra.Command {
	o := &migrateOptions{Factory: f}
	c := &cobra.Command{
		Use:   "migrate (-f FILE | NAME)",
		Short: "Convert jobs of other APIs and explain the changes",
		Long: `Convert jobs of other APIs, and explain the changes: what moves to another field, what works differently, what is dropped,
and what remains to be done.

  MPIJob of v2beta1                  becomes a TrainJob with an MPI runtime
  MPIJob of v1, v1alpha2, v1alpha1   becomes an MPIJob of v2beta1; with --to trainjob, a TrainJob
  SageMaker training job with MPI    becomes a TrainJob; with --to v2beta1, an MPIJob

The new job is printed to standard output, the explanation to standard error. Nothing is created. With --check, the cluster
validates the new job, and only the explanation is printed.

A SageMaker training job is the request of CreateTrainingJob or the response of DescribeTrainingJob, as JSON.`,
		Example: `# Convert an MPIJob to a TrainJob
{{name}} pi --name pi-2 > pi-2.yaml

# Validate the new job
{{name}} -f job.yaml --name pi-2 --check

# Convert MPIJobs of an earlier version
{{name}} -f old-jobs.yaml --to v2beta1 | kubectl create -f -

# Convert a SageMaker training job
aws sagemaker describe-training-job --training-job-name resnet | {{name}} -f -`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: f.completeJobs(1),
		RunE:              func(c *cobra.Command, args []string) error { return o.run(c.Context(), args) },
	}
	flags := c.Flags()
	flags.StringVarP(&o.file, "filename", "f", "", "File with jobs (- for standard input)")
	flags.StringVar(&o.to, "to", "", "Target: trainjob, or v2beta1 for an MPIJob")
	flags.StringVar(&o.newName, "name", "", "Name of the new job (default: the old name)")
	flags.StringVar(&o.runtime, "runtime", "", "Runtime of TrainJobs: NAME, or trainingruntime/NAME for one of the namespace (default: by MPI implementation)")
	flags.StringVar(&o.trainer, "trainer", "", "Version of Kubeflow Trainer, such as v2.1 or v2.2 (default: that of the cluster, or v2.2)")
	flags.StringVar(&o.connection, "connection", "", "Data connection for the bucket of a SageMaker job (default: the bucket's name)")
	flags.StringVar(&o.cpu, "cpu", "", "CPU cores of a SageMaker instance of unknown type")
	flags.StringVar(&o.memory, "memory", "", "Memory of a SageMaker instance of unknown type, such as 256Gi")
	flags.Int64Var(&o.gpus, "gpu", 0, "GPUs of a SageMaker instance of unknown type")
	flags.StringVar(&o.gpuName, "gpu-resource", "nvidia.com/gpu", "Name of the GPU resource in the cluster")
	flags.BoolVar(&o.check, "check", false, "Validate the new job in the cluster, and print only the explanation")
	flags.BoolVarP(&o.quiet, "quiet", "q", false, "Do not print the explanation")
	o.output = addOutput(c)
	_ = c.RegisterFlagCompletionFunc("to", cobra.FixedCompletions(migrate.Targets(), cobra.ShellCompDirectiveNoFileComp))
	_ = c.RegisterFlagCompletionFunc("trainer", cobra.FixedCompletions([]string{"v2.1", "v2.2", "v2.3"}, cobra.ShellCompDirectiveNoFileComp))
	_ = c.RegisterFlagCompletionFunc("runtime", f.completeObjects(trainjob.GroupVersion.WithKind(trainjob.ClusterRuntimeKind)))
	return c
}

func (o *migrateOptions) run(ctx context.Context, args []string) error {
	if err := o.validate(args); err != nil {
		return err
	}
	options, err := o.options()
	if err != nil {
		return err
	}
	old, err := o.read(ctx, args)
	if err != nil {
		return err
	}
	if len(old) > 1 && o.newName != "" {
		return usagef("--name requires one job, but there are %d", len(old))
	}
	c, namespace, err := o.jobsIfAsked(args)
	if err != nil {
		return err
	}
	if c != nil && o.trainer == "" {
		if options.Overrides, err = c.HasPodTemplateOverrides(ctx); err != nil {
			return err
		}
	}
	var objects []unstructured.Unstructured
	failed := false
	for _, one := range old {
		object, err := o.explainAndConvert(ctx, c, namespace, one, options)
		switch {
		case err != nil:
			return err
		case object == nil:
			failed = true
		default:
			objects = append(objects, *object)
		}
	}
	switch {
	case failed:
		return silently(ExitError)
	case o.check:
		return nil
	}
	return o.printConverted(objects)
}

// explainAndConvert prints what changes in a job and returns the new one, after its check if the user asked for it; nil
// if the job cannot be converted.
func (o *migrateOptions) explainAndConvert(ctx context.Context, c *jobs.Client, namespace string, one document, options migrate.Options) (*unstructured.Unstructured, error) {
	converted, err := o.convert(ctx, c, namespace, one, options)
	if err != nil {
		return nil, err
	}
	if !o.quiet {
		printSteps(o.ErrOut, one, converted.Steps)
	}
	if len(converted.Errors) > 0 {
		printInvalid(o.ErrOut, one, "cannot be converted", converted.Errors)
		return nil, nil
	}
	object := &unstructured.Unstructured{Object: converted.Object()}
	if o.check {
		return object, o.checkCreate(ctx, c, namespace, object.DeepCopy())
	}
	return object, nil
}

// validate checks the flags that can be checked without a job.
func (o *migrateOptions) validate(args []string) error {
	if (o.file == "") == (len(args) == 0) {
		return usagef("set either NAME or -f FILE")
	}
	if o.to == "" {
		return nil
	}
	return oneOf("--to", strings.ToLower(o.to), migrate.Targets()...)
}

// printConverted prints the new jobs.
func (o *migrateOptions) printConverted(objects []unstructured.Unstructured) error {
	switch {
	case o.output.form == "", o.output.form == "yaml":
		return printYAML(o.Out, objects)
	case len(objects) == 1:
		return o.output.print(o.Out, &objects[0])
	}
	return o.output.print(o.Out, listOf(objects))
}

// jobsIfAsked returns the library and the user's namespace if the cluster is asked anyway; nil otherwise.
func (o *migrateOptions) jobsIfAsked(args []string) (*jobs.Client, string, error) {
	if !o.check && len(args) == 0 {
		return nil, "", nil
	}
	return o.jobsHere()
}

// options returns the options of the conversion.
func (o *migrateOptions) options() (migrate.Options, error) {
	options := migrate.Options{Name: o.newName, Connection: o.connection}
	var known bool
	if options.Runtime, known = migrate.ParseRuntime(o.runtime); !known {
		return options, usagef("--runtime: %s is not allowed; use NAME, clustertrainingruntime/NAME or trainingruntime/NAME", o.runtime)
	}
	if options.Overrides, known = migrate.ParseTrainer(o.trainer); !known {
		return options, usagef("--trainer: %s is not a version; use a value such as v2.1 or v2.3", o.trainer)
	}
	if options.Instance, known = migrate.ParseInstance(o.cpu, o.memory, o.gpus, o.gpuName); !known {
		return options, usagef("set the size of an instance with --cpu and --memory, such as --cpu 96 --memory 1152Gi, and --gpu")
	}
	return options, nil
}

// read returns the old jobs.
func (o *migrateOptions) read(ctx context.Context, args []string) ([]document, error) {
	if o.file != "" {
		return o.readDocuments(o.file)
	}
	job, err := o.Find(ctx, args[0])
	if err != nil {
		return nil, err
	}
	if job.Object == nil {
		return nil, &jobs.DeletedError{Job: job}
	}
	return []document{{where: job.String(), object: job.Object.Object}}, nil
}

// convert converts a job; with --check, it is checked against the limits of its runtime.
func (o *migrateOptions) convert(ctx context.Context, c *jobs.Client, namespace string, old document, options migrate.Options) (migrate.Conversion, error) {
	to := migrate.Target(strings.ToLower(o.to))
	converted, err := migrate.Convert(old.object, to, options)
	if err != nil {
		return converted, exitf(ExitError, "%s: %v", old.where, err)
	}
	if o.check {
		return c.Migrate(ctx, namespace, old.object, to, options)
	}
	return converted, nil
}

// checkCreate asks the cluster whether a job could be created.
func (o *migrateOptions) checkCreate(ctx context.Context, c *jobs.Client, namespace string, job *unstructured.Unstructured) error {
	if job.GetNamespace() == "" {
		job.SetNamespace(namespace)
	}
	err := c.Create(ctx, job, jobs.DryRunServer)
	if exists, is := errors.AsType[*jobs.ExistsError](err); is {
		return exitf(ExitError, "%v; use another --name", exists.Error())
	}
	if err != nil {
		return err
	}
	say(o.Out, "%s is valid", jobs.FromObject(job))
	return nil
}

// printSteps prints what happened to the fields of a job.
func printSteps(to io.Writer, old document, steps []migrate.Result) {
	p := &linePrinter{to: to}
	for _, step := range steps {
		p.line("%s", paintOn(to, bold, fmt.Sprintf("%s -> %s", nameIn(old.object), nameIn(step.Object))))
		for line := range strings.SplitSeq(migrate.Explain(step.Changes), "\n") {
			if text, isItem := strings.CutPrefix(line, migrate.Item); isItem {
				p.text(migrate.Item, text)
			} else {
				p.line("%s", line)
			}
		}
	}
}

// printYAML prints objects as documents of one file.
func printYAML(to io.Writer, objects []unstructured.Unstructured) error {
	for i := range objects {
		if i > 0 {
			fmt.Fprintln(to, "---")
		}
		text, err := yaml.Marshal(objects[i].Object)
		if err != nil {
			return err
		}
		if _, err := to.Write(text); err != nil {
			return err
		}
	}
	return nil
}
