package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/migrate"
)

// What jobs are migrated to.
const (
	toTrainJob = "trainjob"
	toV2beta1  = "v2beta1"
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
		Short: "Turn jobs of other APIs into ours, and say what changes",
		Long: `Turn jobs of other APIs into ours, and say what becomes of every part of them: what is the same at another place, what
works in another way, what has no place in the new job, and what is left to do.

  MPIJob of v2beta1                  becomes a TrainJob of one of our runtimes
  MPIJob of v1, v1alpha2, v1alpha1   becomes an MPIJob of v2beta1; with --to trainjob, a TrainJob
  training job of SageMaker, by MPI  becomes a TrainJob; with --to v2beta1, an MPIJob

The new job goes to standard output, the explanation to standard error. Nothing is created: with --check the cluster is
asked whether it would take the new job, and only the explanation is printed.

A training job of SageMaker is the request of CreateTrainingJob or the answer of DescribeTrainingJob, as JSON.`,
		Example: `# The job pi as a TrainJob
{{name}} migrate pi --name pi-2 > pi-2.yaml

# Would the cluster take it?
{{name}} migrate -f job.yaml --name pi-2 --check

# All jobs of an earlier version
{{name}} migrate -f old-jobs.yaml --to v2beta1 | kubectl create -f -

# A training job of SageMaker
aws sagemaker describe-training-job --training-job-name resnet | {{name}} migrate -f -`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: f.completeJobs(1),
		RunE:              func(c *cobra.Command, args []string) error { return o.run(c.Context(), args) },
	}
	flags := c.Flags()
	flags.StringVarP(&o.file, "filename", "f", "", "Read jobs from this file; - is standard input")
	flags.StringVar(&o.to, "to", "", "What to make: trainjob, or v2beta1 (an MPIJob)")
	flags.StringVar(&o.newName, "name", "", "The name of the new job; the old one's otherwise")
	flags.StringVar(&o.runtime, "runtime", "", "The runtime of TrainJobs: NAME, or trainingruntime/NAME for one of the namespace; otherwise ours for the job's MPI")
	flags.StringVar(&o.trainer, "trainer", "", "The version of Kubeflow Trainer that is to run TrainJobs: v2.1, or v2.2 and later (default: what the cluster has where it is asked, else v2.2)")
	flags.StringVar(&o.connection, "connection", "", "The data connection for the bucket of a SageMaker job; otherwise it has the bucket's name")
	flags.StringVar(&o.cpu, "cpu", "", "What an instance of SageMaker's has whose type is not known: cores")
	flags.StringVar(&o.memory, "memory", "", "The same: memory, such as 256Gi")
	flags.Int64Var(&o.gpus, "gpu", 0, "The same: GPUs")
	flags.StringVar(&o.gpuName, "gpu-resource", "nvidia.com/gpu", "What a GPU is called in this cluster")
	flags.BoolVar(&o.check, "check", false, "Ask the cluster whether it would take the new job, and print only the explanation")
	flags.BoolVarP(&o.quiet, "quiet", "q", false, "Leave the explanation out")
	o.output = addOutput(c)
	_ = c.RegisterFlagCompletionFunc("to", cobra.FixedCompletions([]string{toTrainJob, toV2beta1}, cobra.ShellCompDirectiveNoFileComp))
	_ = c.RegisterFlagCompletionFunc("trainer", cobra.FixedCompletions([]string{"v2.1", "v2.2", "v2.3"}, cobra.ShellCompDirectiveNoFileComp))
	_ = c.RegisterFlagCompletionFunc("runtime", f.completeObjects(trainjob.GroupVersion.WithKind(trainjob.ClusterRuntimeKind)))
	return c
}

func (o *migrateOptions) run(ctx context.Context, args []string) error {
	if (o.file == "") == (len(args) == 0) {
		return usagef("migrate takes the name of a job, or -f FILE: one of both")
	}
	if o.to != "" {
		if err := oneOf("--to", strings.ToLower(o.to), toTrainJob, toV2beta1); err != nil {
			return err
		}
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
		return usagef("--name is for one job, and there are %d", len(old))
	}
	if o.asksCluster(args) {
		if options.Overrides, err = o.overrides(ctx); err != nil {
			return err
		}
	}
	var objects []unstructured.Unstructured
	failed := false
	for _, one := range old {
		object, err := o.convert(ctx, one, options)
		switch {
		case errors.Is(err, errTold):
			failed = true
		case err != nil:
			return err
		default:
			objects = append(objects, unstructured.Unstructured{Object: object})
		}
	}
	if failed {
		return silently(ExitError)
	}
	if o.check {
		return nil
	}
	if o.output.form == "" || o.output.form == "yaml" {
		return printYAML(o.Out, objects)
	}
	if len(objects) == 1 {
		return o.output.print(o.Factory, &objects[0])
	}
	return o.output.print(o.Factory, listOf(objects))
}

// errTold is that of a job that cannot be converted, when that was said already.
var errTold = errors.New("said already")

func (o *migrateOptions) options() (migrate.Options, error) {
	options := migrate.Options{Name: o.newName, Connection: o.connection}
	kind, name, qualified := strings.Cut(o.runtime, "/")
	switch {
	case !qualified:
		options.Runtime.Name = kind
	case strings.EqualFold(kind, trainjob.RuntimeKind), strings.EqualFold(kind, trainjob.ClusterRuntimeKind):
		options.Runtime.Name = name
		if strings.EqualFold(kind, trainjob.RuntimeKind) {
			options.Runtime.Kind = trainjob.RuntimeKind
		}
	default:
		return options, usagef("--runtime %s: must be NAME, clustertrainingruntime/NAME or trainingruntime/NAME", o.runtime)
	}
	switch version := strings.TrimPrefix(o.trainer, "v"); {
	case version == "2.1" || strings.HasPrefix(version, "2.1."):
		options.Overrides = true
	case version != "" && !strings.HasPrefix(version, "2."):
		return options, usagef("--trainer %s: must be a version such as v2.1 or v2.3", o.trainer)
	}
	if o.cpu == "" && o.memory == "" && o.gpus == 0 {
		return options, nil
	}
	cpu, errCPU := resource.ParseQuantity(o.cpu)
	memory, errMemory := resource.ParseQuantity(o.memory)
	if errCPU != nil || errMemory != nil || cpu.Value() < 1 || memory.Value() < 1<<30 || o.gpus < 0 {
		return options, usagef("say how large an instance is by --cpu and --memory, such as --cpu 96 --memory 1152Gi, and --gpu where it has any")
	}
	options.Instance = &migrate.Instance{CPUs: cpu.Value(), MemoryGiB: memory.Value() >> 30, Devices: o.gpus, Device: o.gpuName}
	return options, nil
}

// asksCluster tells whether the cluster may be asked what it has: where it is asked something anyway.
func (o *migrateOptions) asksCluster(args []string) bool {
	return o.trainer == "" && (o.check || len(args) > 0)
}

// read are the old jobs.
func (o *migrateOptions) read(ctx context.Context, args []string) ([]document, error) {
	if o.file != "" {
		return o.readDocuments(o.file)
	}
	job, err := o.Find(ctx, args[0])
	if err != nil {
		return nil, err
	}
	if job.Object == nil {
		return nil, exitf(ExitNotFound, "%s is deleted; only its record is left, which does not say how it was written", job)
	}
	return []document{{where: job.String(), object: job.Object.Object}}, nil
}

// convert turns one job into another, and says what changes.
func (o *migrateOptions) convert(ctx context.Context, old document, options migrate.Options) (map[string]any, error) {
	of, err := migrate.Recognize(old.object)
	if err != nil {
		return nil, exitf(ExitError, "%s: %v", old.where, err)
	}
	to := strings.ToLower(o.to)
	if to == "" {
		to = toTrainJob
		if of == migrate.OfOldMPIJob {
			to = toV2beta1
		}
	}
	if of == migrate.OfMPIJob && to == toV2beta1 {
		return nil, exitf(ExitError, "%s: it is an MPIJob of v2beta1 already", old.where)
	}
	if options.Used, err = o.used(ctx, old.object, options); err != nil {
		return nil, err
	}
	var result migrate.Result
	var errs field.ErrorList
	switch of {
	case migrate.OfSageMaker:
		result, errs = migrate.FromSageMaker(old.object, to == toV2beta1, options)
	case migrate.OfOldMPIJob:
		result, errs = migrate.ToV2beta1(old.object, options)
		if len(errs) == 0 && to == toTrainJob {
			o.explain(old, result)
			result, errs = migrate.ToTrainJob(result.Object, options)
		}
	case migrate.OfMPIJob:
		result, errs = migrate.ToTrainJob(old.object, options)
	}
	if len(errs) > 0 {
		say(o.ErrOut, "%s %s: %s cannot be converted:", o.paintOn(o.ErrOut, red, "error:"), old.where, nameIn(old.object))
		for _, err := range errs {
			say(o.ErrOut, "  - %s", oneLine(err.Error()))
		}
		return nil, errTold
	}
	o.explain(old, result)
	if o.check {
		return result.Object, o.ask(ctx, result.Object)
	}
	return result.Object, nil
}

func (o *migrateOptions) explain(old document, result migrate.Result) {
	if o.quiet {
		return
	}
	say(o.ErrOut, "%s", o.paintOn(o.ErrOut, bold, fmt.Sprintf("%s -> %s", nameIn(old.object), nameIn(result.Object))))
	fmt.Fprintln(o.ErrOut, migrate.Explain(result.Changes))
}

// nameIn names an object, whatever it is.
func nameIn(object map[string]any) string {
	u := unstructured.Unstructured{Object: object}
	kind := strings.ToLower(u.GetKind())
	if name, is := object["TrainingJobName"].(string); is {
		return "training job " + oneLine(name)
	}
	return fmt.Sprintf("%s/%s (%s)", kind, cmp.Or(oneLine(u.GetName()), "?"), oneLine(u.GetAPIVersion()))
}

// used is the runtime that the new TrainJob will have, where the cluster may be asked and has it.
func (o *migrateOptions) used(ctx context.Context, old map[string]any, options migrate.Options) (*trainjob.Runtime, error) {
	if !o.check || strings.EqualFold(o.to, toV2beta1) {
		return nil, nil
	}
	options.Used = nil
	result, errs := migrate.ToTrainJob(old, options)
	if len(errs) > 0 {
		return nil, nil
	}
	namespace, err := o.Namespace()
	if err != nil {
		return nil, err
	}
	c, err := o.Client()
	if err != nil {
		return nil, err
	}
	var job trainjob.TrainJob
	job.Namespace = namespace
	job.Spec.RuntimeRef.Name, _, _ = unstructured.NestedString(result.Object, "spec", "runtimeRef", "name")
	job.Spec.RuntimeRef.Kind, _, _ = unstructured.NestedString(result.Object, "spec", "runtimeRef", "kind")
	return trainjob.LoadRuntime(ctx, c, job)
}

// ask asks the cluster whether it would take a job.
func (o *migrateOptions) ask(ctx context.Context, object map[string]any) error {
	c, err := o.Client()
	if err != nil {
		return err
	}
	asked := &unstructured.Unstructured{Object: object}
	asked = asked.DeepCopy()
	if asked.GetNamespace() == "" {
		namespace, err := o.Namespace()
		if err != nil {
			return err
		}
		asked.SetNamespace(namespace)
	}
	if err := c.Create(ctx, asked, client.DryRunAll, client.FieldValidation("Strict")); err != nil {
		if apierrors.IsAlreadyExists(err) {
			return exitf(ExitError, "there is a %s already: say another name by --name", newJob(asked))
		}
		return fmt.Errorf("the cluster would not take %s: %w", newJob(asked), err)
	}
	say(o.Out, "the cluster would take %s", newJob(asked))
	return nil
}

// overrides tells whether the cluster's TrainJobs have podTemplateOverrides (Trainer v2.1), and not runtimePatches.
func (o *migrateOptions) overrides(ctx context.Context) (bool, error) {
	clients, err := o.Clientset()
	if err != nil {
		return false, err
	}
	paths, err := clients.Discovery().OpenAPIV3().Paths()
	if err != nil {
		return false, err
	}
	api, served := paths["apis/"+trainjob.GroupVersion.String()]
	if !served || ctx.Err() != nil {
		return false, ctx.Err()
	}
	text, err := api.Schema("application/json")
	if err != nil {
		return false, err
	}
	return !strings.Contains(string(text), `"runtimePatches"`), nil
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
