package cli

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/jobs"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/startup"
)

type describeOptions struct {
	*Factory
	lines  int
	all    bool
	output *output
}

func newDescribe(f *Factory) *cobra.Command {
	o := &describeOptions{Factory: f}
	c := &cobra.Command{
		Use:   "describe NAME...",
		Short: "Show the state of jobs, its cause, and what to do",
		Long: `Show the state of jobs, its cause, what to do, their pods, timeline and resources. This also works for deleted jobs while
their reports are retained.

With -o json or yaml, the JobReports are printed. They contain the last lines of the logs (status.logs.data), but not the
address of complete logs in a bucket: anyone who has it can read them. Run logs to save complete logs.`,
		Example: `# Find out why a job does not run
{{name}} pi

# Print a field of the report
{{name}} pi -o jsonpath='{.status.findings[0].code}'`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: f.completeJobs(-1),
		RunE:              func(c *cobra.Command, args []string) error { return o.run(c.Context(), args) },
	}
	c.Flags().IntVar(&o.lines, "lines", 20, "Number of last log lines to show of a failed job")
	c.Flags().BoolVar(&o.all, "all", false, "Show all pods and events of a healthy job, and a chart of its start")
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
			err = o.printReport(job)
		} else {
			if i > 0 {
				say(o.Out, "\n")
			}
			err = o.printText(job)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// printReport prints the job's JobReport.
func (o *describeOptions) printReport(job jobs.Job) error {
	if job.Report == nil {
		return exitf(ExitNotFound, "%s has no JobReport yet; the operator writes one within seconds if it is running; run %s doctor", job, o.name)
	}
	object, err := asUnstructured(job.PrintableReport())
	if err != nil {
		return err
	}
	return o.output.print(o.Out, object)
}

// printText prints the report as text.
func (o *describeOptions) printText(job jobs.Job) error {
	s := newDescribePrinter(o.Factory, o.Out)
	s.line("%s in namespace %s", o.paint(bold, job.Kind+" "+job.Name), job.Namespace)
	s.cells("", cell{job.Headline(o.Now()), phaseColour(job.Phase())})
	s.estimate(job)
	if job.Report != nil {
		status := job.Report.Status
		s.findings(status)
		if job.Phase() == v1alpha1.PhaseFailed {
			s.tail(job, o.lines)
		}
		// A healthy job fits on one screen.
		mostPods, mostEvents := 0, 0
		if isHealthy(status) && !o.all {
			mostPods, mostEvents = 4, 4
		}
		s.pods(status, mostPods)
		s.timeline(status, mostEvents)
	}
	var drawn []string
	if o.all {
		drawn = s.drawStartup(job)
	}
	s.fields("RESOURCES", o.resources(job, len(drawn) > 0))
	s.lines("START-UP", drawn)
	return s.err
}

// estimate prints when a waiting job is expected to start, or a running one to end.
func (s *describePrinter) estimate(job jobs.Job) {
	if estimate := job.Estimate(); estimate != "" {
		s.text("", estimate)
	}
}

// resources returns what the job requests, and what it has used. isDrawn is whether its start is shown in full elsewhere.
func (o *describeOptions) resources(job jobs.Job, isDrawn bool) [][2]string {
	status, pods := job.Status(), job.PodSummary()
	var queue, connections, created, startUp, attempts, traceID string
	if written, err := job.Written(); err == nil {
		queue, connections = written.GetLabels()[mpi.LabelQueue], written.GetAnnotations()[mpi.AnnotationConnections]
	}
	if job.Object != nil {
		at := job.Object.GetCreationTimestamp()
		created = jobs.Since(at, o.Now()) + " ago" + job.CreatorText()
	}
	if start := status.StartTime; start != nil {
		created = cmp.Or(created, jobs.Since(*start, o.Now())+" ago"+job.CreatorText()) + ", " + start.UTC().Format(time.RFC1123)
	}
	if startUp = startup.Text(status.Startup); isDrawn {
		startUp, _, _ = strings.Cut(startUp, ":")
	} else if startUp == "" && status.MPI.ConnectMilliseconds > 0 {
		m := status.MPI
		startUp = fmt.Sprintf("%d ms to connect to all workers, %d ms to start ranks", m.ConnectMilliseconds, m.InitMilliseconds)
	}
	if status.Run != nil && status.Run.Attempts > 1 {
		attempts = strconv.Itoa(int(status.Run.Attempts))
	}
	if status.Trace != nil {
		traceID = status.Trace.ID
	}
	facts := [][2]string{
		{"MPI", jobs.RanksText(status)},
		{"Binding", status.MPI.Binding},
		{"Encryption", o.encryptionText(status.Encryption)},
		{"Image", pods.Image},
		{"Command", job.CommandText()},
		{"Per worker", jobs.ResourcesText(pods.Worker)},
		{"Runtime", pods.Runtime},
		{"Queue", queue},
		{"Connections", connections},
		{"Trace", traceID},
		{"Created", created},
		{"Attempts", attempts},
		{"Training", jobs.TrainingText(status.Training)},
		{"Figures", jobs.CurvesText(status.Curves)},
		{"Reserved", jobs.ReservedText(status.Consumption)},
		{"Used", jobs.UsageText(status.Usage)},
		{"Profile", jobs.ProfileText(status.Profile)},
		{"Start-up", startUp},
		{"All logs", status.LogsLink},
		{"Complete logs", job.CompleteLogsText()},
	}
	for _, link := range status.Links {
		facts = append(facts, [2]string{link.Title, link.URL})
	}
	return facts
}

// encryptionText describes how the traffic between the pods is encrypted. On most clusters nothing encrypts it, which --all shows.
func (o *describeOptions) encryptionText(encryption *v1alpha1.Encryption) string {
	switch {
	case encryption == nil, encryption.State == v1alpha1.NotEncrypted && len(encryption.By) == 0 && !o.all:
		return ""
	case encryption.State == v1alpha1.Encrypted:
		return strings.Join(encryption.By, " and ") + " between nodes"
	case encryption.State == v1alpha1.NotEncrypted:
		return "none: " + encryption.Message
	}
	return "unknown: " + encryption.Message
}
