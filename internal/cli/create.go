package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"opendatahub.io/mpijob/internal/jobs"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/phrase"
)

type createOptions struct {
	*Factory
	jobFlags
	file        string
	dryRun      jobs.DryRun
	interactive bool
	quiet       bool
	followFlags
	output *output
}

func newCreate(f *Factory) *cobra.Command {
	o := &createOptions{Factory: f}
	c := &cobra.Command{
		Use:   "create (NAME --image IMAGE | NAME --runtime RUNTIME | -f FILE) [-- COMMAND...]",
		Short: "Create a job from flags or from a file",
		Long: `Create a job. With --runtime, this is a TrainJob that uses a runtime of Kubeflow Trainer, otherwise an MPIJob.

The image must contain the program and MPI: Open MPI, or with --implementation MPICH or Intel MPI. It needs no sshd and no
root. Most jobs need --workers, --gpu, --memory, and --volume for their data.

The command is what each rank (process) runs. It is started by mpirun, with as many ranks as there are slots, unless it
starts ranks itself. A worker has one slot per GPU, or one slot without GPUs; --slots overrides this.

The cluster validates the job, including quotas. --dry-run=server only validates it; --dry-run=client prints it without
contacting the cluster.`,
		Example: `# 4 workers with a GPU each; then show the output
{{name}} train --workers 4 --gpu 1 --image quay.io/me/train --command "python train.py" --logs

# With a runtime, which contains the image and MPI
{{name}} train --runtime mpi-openmpi --workers 4 -- python train.py --epochs 3

# With data and results on claims, and more shared memory
{{name}} train --workers 4 --image quay.io/me/train --volume data:/data:ro --output-dir results:/results --shm 8Gi --command "python train.py"

# On nodes with a label and a taint, in one zone
{{name}} train --workers 4 --gpu 8 --image quay.io/me/train --node-selector gpu=a100 --toleration nvidia.com/gpu --topology topology.kubernetes.io/zone -- python train.py

# From a file, and wait until the job ends
{{name}} -f job.yaml --wait

# Print the job without creating it
{{name}} train --workers 4 --image quay.io/me/train --command train --dry-run=client -o yaml

# Ask for missing values
{{name}} --interactive`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, args []string) error {
			if dash := c.ArgsLenAtDash(); dash >= 0 {
				o.spec.Command, args = args[dash:], args[:dash]
			}
			if len(args) > 1 {
				return usagef("create takes one name, but got %s; write the command after -- or in --command", strings.Join(args, ", "))
			}
			if len(args) == 1 {
				o.spec.Name = args[0]
			}
			o.changed = c.Flags().Changed
			return o.run(c.Context())
		},
	}
	flags := c.Flags()
	flags.StringVarP(&o.file, "filename", "f", "", "File with MPIJobs and TrainJobs to create (- for standard input)")
	o.jobFlags.add(c, f)
	addDryRun(c, &o.dryRun)
	o.followFlags.add(c)
	flags.BoolVarP(&o.quiet, "quiet", "q", false, "Do not print the command, the cost, the wait, quotas and hints")
	flags.BoolVarP(&o.interactive, "interactive", "i", false, "Ask for missing values")
	o.output = addOutput(c)
	return c
}

// flagNames returns the names of a command's flags.
func flagNames(c *cobra.Command) map[string]bool {
	names := map[string]bool{}
	c.Flags().VisitAll(func(flag *pflag.Flag) { names[flag.Name] = true })
	return names
}

func (o *createOptions) run(ctx context.Context) error {
	if err := o.validate(); err != nil {
		return err
	}
	namespace, err := o.Namespace()
	if err != nil {
		return err
	}
	c, err := o.Jobs()
	if err != nil {
		return err
	}
	objects, err := o.objects(ctx, c, namespace)
	if err != nil {
		return err
	}
	if len(objects) > 1 && (o.wait || o.logs) {
		return usagef("--wait and --logs require one job, but %s contains %d", o.file, len(objects))
	}
	for _, object := range objects {
		if err := o.create(ctx, c, object); err != nil {
			return err
		}
	}
	if err := o.print(objects); err != nil || o.dryRun != jobs.DryRunNone {
		return err
	}
	job := jobs.FromObject(objects[0])
	if !o.quiet && o.output.form == "" && !o.wait && !o.logs {
		say(o.ErrOut, "To see its state, run %s; to see its output, run %s -f", o.hint("describe", job.Namespace, job.Name), o.hint("logs", job.Namespace, job.Name))
	}
	return o.follow(ctx, o.Factory, job)
}

func (o *createOptions) validate() error {
	if err := oneOf("--dry-run", string(o.dryRun), dryRuns...); err != nil {
		return err
	}
	if o.file != "" {
		if set := o.set(); o.spec.Name != "" || len(o.spec.Command) > 0 || o.interactive || len(set) > 0 {
			return usagef("-f cannot be combined with %s", strings.Join(append(set, "NAME, a command, or --interactive"), ", "))
		}
		return nil
	}
	if o.interactive {
		if err := o.askMissing(o.Factory); err != nil {
			return err
		}
	}
	return o.complete()
}

// objects returns the jobs to create.
func (o *createOptions) objects(ctx context.Context, c *jobs.Client, namespace string) ([]*unstructured.Unstructured, error) {
	if o.file != "" {
		return readJobs(o.file, o.In, namespace, o.flags.Namespace != nil && *o.flags.Namespace != "")
	}
	o.spec.Namespace = namespace
	built, err := c.Build(ctx, o.spec)
	if err != nil {
		return nil, err
	}
	if built.Command != nil && !o.quiet {
		say(o.ErrOut, "note: command: %s", phrase.QuoteCommand(built.Command))
	}
	return []*unstructured.Unstructured{built.Job}, nil
}

// create creates one job, or validates it.
func (o *createOptions) create(ctx context.Context, c *jobs.Client, object *unstructured.Unstructured) error {
	job := jobs.FromObject(object)
	isHeld, _ := mpi.ParseSuspendInQueue(object.GetAnnotations())
	if queue := object.GetLabels()[mpi.LabelQueue]; queue != "" && job.Suspended() && !isHeld && !o.quiet {
		say(o.ErrOut, "note: queue %s starts the job when it has capacity, although the job is created suspended; run %s suspend %s -n %s to prevent that", queue, o.name, job.Name, job.Namespace)
	}
	if o.dryRun == jobs.DryRunClient {
		warnings, err := jobs.Check(object)
		for _, warning := range warnings {
			say(o.ErrOut, "%s %s", paintOn(o.ErrOut, yellow, "warning:"), warning)
		}
		return err
	}
	var quotas []string
	if !o.quiet {
		quotas = o.printEstimates(ctx, c, object)
	}
	if err := c.Create(ctx, object, o.dryRun); err != nil {
		return cmp.Or(ctx.Err(), err)
	}
	for _, line := range quotas {
		say(o.ErrOut, "%s", line)
	}
	return nil
}

// estimateTimeout bounds how much estimates can delay a job.
const estimateTimeout = 2 * time.Second

// printEstimates prints whether a job's queue is missing, what an hour of it costs, how long it may wait, and what earlier jobs advise.
// It returns lines about quotas, which are true after the job was created.
func (o *createOptions) printEstimates(ctx context.Context, c *jobs.Client, object *unstructured.Unstructured) (quotas []string) {
	ctx, cancel := context.WithTimeout(ctx, estimateTimeout)
	defer cancel()
	var queue, cost, wait string
	var advice []string
	var reading sync.WaitGroup
	reading.Go(func() { queue = queueLine(c.FindMissingQueue(ctx, object)) })
	reading.Go(func() { cost = costLine(c.HourlyCost(ctx, object)) })
	reading.Go(func() { quotas = quotaLines(c.QuotaUse(ctx, object)) })
	// What others waited is for people who decide whether to send the job; scripts send it anyway.
	if o.output.form == "" {
		reading.Go(func() { wait, advice = adviceOn(ctx, c, object) })
	}
	reading.Wait()
	for _, line := range []string{queue, cost, wait} {
		if line != "" {
			say(o.ErrOut, "%s", line)
		}
	}
	for _, line := range advice {
		say(o.ErrOut, "%s", line)
	}
	return quotas
}

// adviceOn returns what the earlier jobs of the namespace suggest for a new one: how long it may wait, and what it should ask for. Users who may
// not read reports get no advice.
func adviceOn(ctx context.Context, c *jobs.Client, object *unstructured.Unstructured) (wait string, advice []string) {
	var user string
	var asking sync.WaitGroup
	asking.Go(func() { user = c.Self(ctx) })
	past, err := c.Past(ctx, object.GetNamespace())
	asking.Wait()
	if _, known := jobs.SizeOf(object); known {
		wait = waitLine(past.EstimateWait(object), err)
	}
	if err != nil {
		return wait, nil
	}
	return wait, past.History().Advise(object, user)
}

func queueLine(missing *jobs.MissingQueue, err error) string {
	switch {
	case err != nil:
		return fmt.Sprintf("note: the queue was not checked: %v", err)
	case missing == nil:
		return ""
	}
	return "warning: " + missing.String()
}

func costLine(hourly *jobs.HourlyCost, err error) string {
	switch {
	case err != nil:
		return fmt.Sprintf("note: the cost is unknown: %v", err)
	case hourly == nil:
		return ""
	}
	text := "Cost: about " + hourly.Amount + " per hour"
	if len(hourly.Unpriced) > 0 {
		text += ", without " + strings.Join(hourly.Unpriced, ", ") + " (no price configured)"
	}
	return text
}

func waitLine(wait jobs.WaitEstimate, err error) string {
	if err != nil {
		return fmt.Sprintf("note: the wait is unknown: %v", err)
	}
	if text := wait.String(); text != "" {
		return "Wait: " + text
	}
	return ""
}

func quotaLines(uses []jobs.QuotaUse, err error) (lines []string) {
	if err != nil {
		return []string{fmt.Sprintf("note: the use of quotas is unknown: %v", err)}
	}
	for _, use := range uses {
		lines = append(lines, fmt.Sprintf("Quota: %s will be in use", use))
	}
	return lines
}

// print prints the created jobs.
func (o *createOptions) print(objects []*unstructured.Unstructured) error {
	if o.dryRun == jobs.DryRunClient {
		o.output.form = cmp.Or(o.output.form, "yaml")
	}
	if o.output.objects() {
		if len(objects) == 1 {
			return o.output.print(o.Out, objects[0])
		}
		var all []unstructured.Unstructured
		for _, object := range objects {
			all = append(all, *object)
		}
		return o.output.print(o.Out, listOf(all))
	}
	for _, object := range objects {
		say(o.Out, "%s created%s", jobs.FromObject(object), dryRunMark(o.dryRun))
	}
	return nil
}
