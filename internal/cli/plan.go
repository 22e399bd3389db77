package cli

import (
	"context"
	"errors"
	"fmt"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"opendatahub.io/mpijob/internal/jobs"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/plan"
	"opendatahub.io/mpijob/internal/preview"
)

// defaultAgent is the agent's image, where nobody names another.
const defaultAgent = "quay.io/opendatahub/mpijob-agent:latest"

type planOptions struct {
	*Factory
	file, runtimeFile string
	settings          plan.Settings
	output            *output
}

func newPlan(f *Factory) *cobra.Command {
	o := &planOptions{Factory: f}
	c := &cobra.Command{
		Use:   "plan -f FILE",
		Short: "Show the objects a job would create, without a cluster",
		Long: `Show the objects that the jobs of a file would create, and any errors, without a cluster.

For an MPIJob, these are the objects that the operator creates; -o yaml prints them, without the keys of the Secret. What
depends on the cluster (quotas, names of existing objects) is checked by create --dry-run=server. With --agent-delivery=auto,
the operator mounts the agent's image where nodes support it (image-volume), and copies the agent otherwise (init-container).

For a TrainJob, these are the objects that Kubeflow Trainer and JobSet create, as far as they are known. The runtime is read
from --runtime-file, otherwise from the cluster.`,
		Example: `# List the objects
{{name}} -f job.yaml

# Print the objects
{{name}} -f job.yaml -o yaml

# With the runtime of a TrainJob
{{name}} -f trainjob.yaml --runtime-file runtime.yaml`,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c.Context()) },
	}
	flags := c.Flags()
	flags.StringVarP(&o.file, "filename", "f", "", "File with jobs (- for standard input)")
	flags.StringVar(&o.runtimeFile, "runtime-file", "", "File with the runtimes of TrainJobs")
	flags.StringVar(&o.settings.AgentImage, "agent-image", defaultAgent, "Operator setting: image of the agent (empty to start ranks with the images' sshd)")
	flags.StringVar((*string)(&o.settings.Delivery), "agent-delivery", string(plan.InitContainer), "Operator setting: how the agent gets into pods (init-container, image-volume)")
	flags.StringVar(&o.settings.ClusterDomain, "cluster-domain", "", "Operator setting: cluster domain of host names")
	flags.BoolVar(&o.settings.NetworkPolicies, "network-policies", true, "Operator setting: create a NetworkPolicy for every job")
	o.output = addOutput(c)
	return c
}

func (o *planOptions) run(ctx context.Context) error {
	if o.file == "" {
		return usagef("-f is required; use -f FILE, or -f - for standard input")
	}
	if d := o.settings.Delivery; d != plan.InitContainer && d != plan.ImageVolume {
		return usagef("--agent-delivery: %q is not allowed; use %s or %s, since auto depends on the cluster", d, plan.InitContainer, plan.ImageVolume)
	}
	documents, err := o.readDocuments(o.file)
	if err != nil {
		return err
	}
	var runtimes []document
	if o.runtimeFile != "" {
		if runtimes, err = o.readDocuments(o.runtimeFile); err != nil {
			return err
		}
	}
	failed := false
	var all []preview.Preview
	for _, one := range documents {
		p, errs, err := o.preview(ctx, one, runtimes)
		if err != nil {
			return err
		}
		if len(errs) > 0 {
			failed = true
			printInvalid(o.ErrOut, one, "is not valid", errs)
			continue
		}
		for _, note := range p.Notes {
			say(o.ErrOut, "note: %s", note)
		}
		all = append(all, p)
	}
	if failed {
		return silently(ExitError)
	}
	return o.print(all)
}

// print prints what jobs create as tables, or the objects of all of them.
func (o *planOptions) print(all []preview.Preview) error {
	if !o.output.objects() {
		return printPreviews(o.Out, all)
	}
	var objects []unstructured.Unstructured
	for _, p := range all {
		known, err := p.Known()
		if err != nil {
			return err
		}
		objects = append(objects, known...)
	}
	if o.output.form == "yaml" {
		return printYAML(o.Out, objects)
	}
	return o.output.print(o.Out, listOf(objects))
}

// preview returns what the job of a document creates, or the errors in it.
func (o *planOptions) preview(ctx context.Context, from document, runtimes []document) (preview.Preview, field.ErrorList, error) {
	object := (&unstructured.Unstructured{Object: from.object}).DeepCopy()
	if object.GetNamespace() == "" {
		namespace, err := o.Namespace()
		if err != nil {
			return preview.Preview{}, nil, err
		}
		object.SetNamespace(namespace)
	}
	switch kind := object.GroupVersionKind(); kind {
	case kubeflow.SchemeGroupVersionKind:
		p, errs := preview.MPIJob(object, o.settings)
		return p, errs, nil
	case trainjob.GroupVersion.WithKind(trainjob.Kind):
		job, errs := preview.DecodeTrainJob(object)
		if len(errs) > 0 {
			return preview.Preview{}, errs, nil
		}
		used, err := o.runtimeOf(ctx, from, job, runtimes)
		if err != nil {
			return preview.Preview{}, nil, err
		}
		p, errs := preview.TrainJob(job, *used, o.settings)
		return p, errs, nil
	default:
		return preview.Preview{}, nil, exitf(ExitError, "%s: apiVersion %q, kind %q is not supported; use an MPIJob (%s) or a TrainJob (%s), or run %s migrate to convert it", from.where,
			object.GetAPIVersion(), object.GetKind(), kubeflow.SchemeGroupVersion, trainjob.GroupVersion, o.name)
	}
}

// runtimeOf returns the runtime of a TrainJob, from the file or the cluster.
func (o *planOptions) runtimeOf(ctx context.Context, from document, job trainjob.TrainJob, runtimes []document) (*trainjob.Runtime, error) {
	if o.runtimeFile != "" {
		objects := make([]map[string]any, len(runtimes))
		for i, one := range runtimes {
			objects[i] = one.object
		}
		found, err := preview.FindRuntime(job, objects)
		if err != nil {
			return nil, exitf(ExitError, "%s: %v", o.runtimeFile, err)
		}
		if found == nil {
			return nil, exitf(ExitNotFound, "%s does not contain runtime %q of %s", o.runtimeFile, job.Spec.RuntimeRef.Name, nameIn(from.object))
		}
		return found, nil
	}
	c, err := o.Jobs()
	if err != nil {
		return nil, err
	}
	found, err := c.RuntimeOf(ctx, job)
	if missing, is := errors.AsType[*jobs.NotFoundError](err); is {
		return nil, exitf(ExitNotFound, "%v; set --runtime-file to a file that contains it", missing)
	}
	if err != nil {
		return nil, fmt.Errorf("%w; without a cluster, use --runtime-file", err)
	}
	return found, nil
}
