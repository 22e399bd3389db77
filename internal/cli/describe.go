package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
)

type describeOptions struct {
	*Factory
	lines  int
	output *output
}

func newDescribe(f *Factory) *cobra.Command {
	o := &describeOptions{Factory: f}
	c := &cobra.Command{
		Use:   "describe NAME...",
		Short: "Tell all that is known of a job: how it is, why, and what to do",
		Long: `Tell all that is known of a job: how it is, why, what to do, and then its pods, what has happened to it and what it asks
for. This also works when the job is deleted, as long as its record is kept.

With -o json or yaml the job's JobReport is printed.`,
		Example: `# Why does it not run?
{{name}} describe pi

# The record itself, for programs
{{name}} describe pi -o jsonpath='{.status.findings[0].code}'`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: f.completeJobs(-1),
		RunE:              func(c *cobra.Command, args []string) error { return o.run(c.Context(), args) },
	}
	c.Flags().IntVar(&o.lines, "lines", 20, "How many of the log's last lines to show of a job that failed")
	o.output = addOutput(c)
	return c
}

func (o *describeOptions) run(ctx context.Context, args []string) error {
	for i, arg := range args {
		job, err := o.Find(ctx, arg)
		if err != nil {
			return err
		}
		if o.output.objects() {
			err = o.record(job)
		} else {
			if i > 0 {
				say(o.Out, "\n")
			}
			err = o.tell(job)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// record prints the job's JobReport.
func (o *describeOptions) record(job Job) error {
	if job.Report == nil {
		return exitf(ExitNotFound, "%s has no JobReport yet: the operator writes one within seconds, if it runs; see %s doctor", job, o.name)
	}
	job.Report.APIVersion, job.Report.Kind = v1alpha1.GroupVersion.String(), "JobReport"
	object, err := asUnstructured(job.Report)
	if err != nil {
		return err
	}
	return o.output.print(o.Factory, object)
}

// tell writes the story of a job.
func (o *describeOptions) tell(job Job) error {
	s := &story{Factory: o.Factory, to: o.Out}
	s.line("%s in the namespace %s", o.paint(bold, job.Kind+" "+job.Name), job.Namespace)
	s.text("", o.paint(phaseColour(job.Phase()), headline(job, o.Now())))
	if job.Report != nil {
		status := job.Report.Status
		s.findings(status)
		if job.Phase() == mpi.PhaseFailed {
			s.tail(job, o.lines)
		}
		s.pods(status)
		s.timeline(status)
	}
	s.fields("RESOURCES", o.resources(job))
	return s.err
}

// resources are what the job asks for, and what it has had.
func (o *describeOptions) resources(job Job) [][2]string {
	status, asks := statusOf(job), askedBy(job)
	var queue, connections, created, startUp string
	if job.Object != nil {
		queue, connections = job.Object.GetLabels()[mpi.LabelQueue], job.Object.GetAnnotations()[mpi.AnnotationConnections]
		created = since(job.Object.GetCreationTimestamp(), o.Now()) + " ago" + by(job.Object.GetAnnotations()[mpi.AnnotationCreator])
	}
	if m := status.MPI; m.ConnectMilliseconds > 0 {
		startUp = fmt.Sprintf("%d ms until all workers were reached, %d ms until ranks ran", m.ConnectMilliseconds, m.InitMilliseconds)
	}
	return [][2]string{
		{"MPI", ranksText(status)},
		{"Image", asks.image},
		{"Command", asks.command},
		{"Each worker", asks.worker},
		{"Runtime", asks.runtime},
		{"Queue", queue},
		{"Connections", connections},
		{"Created", created},
		{"Training", progressOf(status.Training)},
		{"Held so far", consumption(status.Consumption)},
		{"Start-up", startUp},
	}
}

// ranksText says which MPI a job has, and where its ranks are; empty for one of another framework.
func ranksText(status v1alpha1.JobReportStatus) string {
	m, workers := status.MPI, int64(status.Workers.Wanted)
	if m.Implementation == "" {
		return ""
	}
	where := plural(workers, "worker")
	if m.Ranks > workers*int64(m.SlotsPerWorker) {
		where += " and the launcher"
	}
	return fmt.Sprintf("%s, %s: %d on each of %s", strings.TrimSpace(m.Implementation+" "+m.Version), plural(m.Ranks, "rank"), m.SlotsPerWorker, where)
}

func plural(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func by(user string) string {
	if user == "" {
		return ""
	}
	return " by " + user
}

// asked is what a job's user wrote of its pods, in words.
type asked struct{ image, command, worker, runtime string }

// askedBy reads it from a job of either kind; empty where the job is gone.
func askedBy(job Job) asked {
	if job.Object == nil {
		return asked{}
	}
	if job.Kind == trainjob.Kind {
		var from trainjob.TrainJob
		if runtime.DefaultUnstructuredConverter.FromUnstructured(job.Object.Object, &from) != nil {
			return asked{}
		}
		asks := asked{runtime: from.Spec.RuntimeRef.Name}
		if t := from.Spec.Trainer; t != nil {
			if t.Image != nil {
				asks.image = *t.Image
			}
			asks.command = quoted(append(slices.Clone(t.Command), t.Args...))
			if t.ResourcesPerNode != nil {
				asks.worker = resourceText(*t.ResourcesPerNode)
			}
		}
		return asks
	}
	var from kubeflow.MPIJob
	if runtime.DefaultUnstructuredConverter.FromUnstructured(job.Object.Object, &from) != nil {
		return asked{}
	}
	var asks asked
	if main := mainContainer(from.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeLauncher]); main != nil {
		asks.image, asks.command = main.Image, quoted(append(slices.Clone(main.Command), main.Args...))
	}
	if main := mainContainer(from.Spec.MPIReplicaSpecs[kubeflow.MPIReplicaTypeWorker]); main != nil {
		asks.image, asks.worker = cmp.Or(main.Image, asks.image), resourceText(main.Resources)
	}
	return asks
}

func mainContainer(role *kubeflow.ReplicaSpec) *corev1.Container {
	if role == nil || len(role.Template.Spec.Containers) == 0 {
		return nil
	}
	return &role.Template.Spec.Containers[0]
}

// resourceText says what a container asks for, and its limits where they differ.
func resourceText(r corev1.ResourceRequirements) string {
	names := map[corev1.ResourceName]bool{}
	for name := range r.Requests {
		names[name] = true
	}
	for name := range r.Limits {
		names[name] = true
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		request, asked := r.Requests[name]
		limit, limited := r.Limits[name]
		switch {
		case !asked, limited && request.Cmp(limit) == 0:
			parts = append(parts, fmt.Sprintf("%s %s", name, limit.String()))
		case limited:
			parts = append(parts, fmt.Sprintf("%s %s (at most %s)", name, request.String(), limit.String()))
		default:
			parts = append(parts, fmt.Sprintf("%s %s", name, request.String()))
		}
	}
	return strings.Join(parts, ", ")
}
