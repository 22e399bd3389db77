package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/mpi"
)

type listOptions struct {
	*Factory
	everywhere, watch, gone, records, noHeaders bool
	selector, phase                             string
	output                                      *output
}

func newList(f *Factory) *cobra.Command {
	o := &listOptions{Factory: f}
	c := &cobra.Command{
		Use:     "list [NAME...]",
		Aliases: []string{"get", "ls"},
		Short:   "List jobs and how they are doing",
		Long: `List jobs of both kinds and how they are doing.

WHY is one word for what is wrong, or for what a job waits for; describe and explain say more. DURATION is how long a job
has run, or ran. With -o json or yaml the jobs themselves are printed, with --records their JobReports.`,
		Example: `# The jobs of this namespace
{{name}} list

# Those of every namespace that have failed, with why
{{name}} list -A --phase Failed -o wide

# Go on showing changes
{{name}} list --watch

# One job as YAML
{{name}} get pi -o yaml`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: f.completeJobs(-1),
		RunE:              func(c *cobra.Command, args []string) error { return o.run(c.Context(), args) },
	}
	flags := c.Flags()
	flags.BoolVarP(&o.everywhere, "all-namespaces", "A", false, "List the jobs of every namespace")
	flags.StringVarP(&o.selector, "selector", "l", "", "List jobs with these labels, such as team=a,stage!=test")
	flags.StringVar(&o.phase, "phase", "", "List jobs in these phases, such as Failed or Queued,Running")
	flags.BoolVarP(&o.watch, "watch", "w", false, "After listing, go on with a line for each change")
	flags.BoolVar(&o.gone, "gone", false, "Also list jobs that were deleted, as long as their records are kept")
	flags.BoolVar(&o.records, "records", false, "Print the jobs' JobReports rather than the jobs, with -o json, yaml and the like")
	flags.BoolVar(&o.noHeaders, "no-headers", false, "Leave the headings out")
	_ = c.RegisterFlagCompletionFunc("phase", cobra.FixedCompletions(phaseNames(), cobra.ShellCompDirectiveNoFileComp))
	o.output = addOutput(c, "wide")
	return c
}

func (o *listOptions) run(ctx context.Context, args []string) error {
	phases, err := parsePhases(o.phase)
	if err != nil {
		return err
	}
	jobs, err := o.jobs(ctx, args)
	if err != nil {
		return err
	}
	said := map[types.UID]string{}
	for _, job := range jobs {
		said[job.UID] = told(job)
	}
	jobs = slices.DeleteFunc(jobs, func(job Job) bool {
		return len(phases) > 0 && !slices.Contains(phases, job.Phase()) || len(args) == 0 && !o.gone && job.Object == nil
	})
	if o.output.objects() {
		return o.printObjects(jobs, len(args) == 1)
	}
	if len(jobs) == 0 && !o.watch {
		say(o.ErrOut, "%s", o.none())
		return nil
	}
	t := o.table(jobs)
	if err := t.write(o.Factory, o.Out, "", !o.noHeaders); err != nil || !o.watch {
		return err
	}
	return o.follow(ctx, args, phases, t.widths(), said)
}

// told is what of a job is worth a line when it changes; durations grow by themselves.
func told(job Job) string {
	status := statusOf(job)
	return strings.Join([]string{string(status.Phase), why(job), status.Workers.Summary}, " ")
}

// jobs are those that are named, or all that the flags pick.
func (o *listOptions) jobs(ctx context.Context, args []string) ([]Job, error) {
	if len(args) > 0 {
		if o.everywhere || o.selector != "" {
			return nil, usagef("names of jobs go with neither -A nor -l")
		}
		var jobs []Job
		for _, arg := range args {
			job, err := o.Find(ctx, arg)
			if err != nil {
				return nil, err
			}
			jobs = append(jobs, job)
		}
		return jobs, nil
	}
	selection, err := o.selection(o.everywhere, o.selector)
	if err != nil {
		return nil, err
	}
	selection.Gone = o.gone || o.watch // what is told of them is no news
	jobs, notes, err := o.Jobs(ctx, selection)
	for _, note := range notes {
		say(o.ErrOut, "note: %s", note)
	}
	return jobs, err
}

// selection is what -A and -l pick.
func (f *Factory) selection(everywhere bool, selector string) (Selection, error) {
	var s Selection
	if !everywhere {
		namespace, err := f.Namespace()
		if err != nil {
			return s, err
		}
		s.Namespace = namespace
	}
	if selector != "" {
		parsed, err := labels.Parse(selector)
		if err != nil {
			return s, usagef("-l %s: %v", selector, err)
		}
		s.Labels = parsed
	}
	return s, nil
}

// none says that there is nothing to list, and where.
func (o *listOptions) none() string {
	text := "no jobs"
	if o.selector != "" || o.phase != "" {
		text = "no such jobs"
	}
	if namespace, err := o.Namespace(); err == nil && !o.everywhere {
		text += " in the namespace " + namespace
	}
	return text
}

// printObjects prints the jobs, or their records, as they are in the cluster.
func (o *listOptions) printObjects(jobs []Job, single bool) error {
	var objects []unstructured.Unstructured
	for _, job := range jobs {
		object := job.Object
		if o.records && job.Report != nil {
			job.Report.APIVersion, job.Report.Kind = v1alpha1.GroupVersion.String(), "JobReport"
			record, err := asUnstructured(job.Report)
			if err != nil {
				return err
			}
			object = record
		}
		if object != nil {
			objects = append(objects, *object)
		}
	}
	if single && len(objects) == 1 {
		return o.output.print(o.Factory, &objects[0])
	}
	return o.output.print(o.Factory, listOf(objects))
}

func (o *listOptions) table(jobs []Job) table {
	t := table{header: []string{"NAME", "KIND", "PHASE", "WHY", "WORKERS", "DURATION", "AGE"}}
	if o.everywhere {
		t.header = append([]string{"NAMESPACE"}, t.header...)
	}
	if o.output.form == "wide" {
		t.header = append(t.header, "RANKS", "MPI", "QUEUE", "MESSAGE")
	}
	for _, job := range jobs {
		t.rows = append(t.rows, o.row(job))
	}
	return t
}

func (o *listOptions) row(job Job) []cell {
	status := statusOf(job)
	now := o.Now()
	row := []cell{
		{text: job.Name},
		{text: job.Kind},
		{text: cmp.Or(string(status.Phase), "-"), colour: phaseColour(mpi.Phase(status.Phase))},
		{text: why(job)},
		{text: cmp.Or(status.Workers.Summary, "-")},
		{text: cmp.Or(ranFor(status, now), "-")},
		{text: age(job, now)},
	}
	if o.everywhere {
		row = append(plain(job.Namespace), row...)
	}
	if o.output.form == "wide" {
		queue := "-"
		if status.Scheduling != nil && status.Scheduling.Queue != "" {
			queue = status.Scheduling.Queue
		}
		ranks := "-"
		if status.MPI.Ranks > 0 {
			ranks = strconv.FormatInt(status.MPI.Ranks, 10)
		}
		row = append(row, plain(ranks, cmp.Or(status.MPI.Implementation, "-"), queue, cmp.Or(shortened(status.Message, 120), "-"))...)
	}
	return row
}

// follow prints a line for each record that says something else than what was said of its job.
func (o *listOptions) follow(ctx context.Context, args []string, phases []mpi.Phase, widths []int, said map[types.UID]string) error {
	selection, err := o.selection(o.everywhere, o.selector)
	if err != nil {
		return err
	}
	return o.watchReports(ctx, selection.Namespace, nil, func(report *v1alpha1.JobReport) (bool, error) {
		job := goneJob(report)
		named := len(args) == 0 || slices.Contains(args, job.Name) || slices.Contains(args, job.String())
		if !named || len(phases) > 0 && !slices.Contains(phases, job.Phase()) {
			return false, nil
		}
		if said[job.UID] == told(job) {
			return false, nil
		}
		said[job.UID] = told(job)
		return false, writeRows(o.Factory, o.Out, "", widths, [][]cell{o.row(job)})
	})
}

// statusOf is what a job's record says; empty where there is none.
func statusOf(job Job) v1alpha1.JobReportStatus {
	if job.Report == nil {
		return v1alpha1.JobReportStatus{}
	}
	return job.Report.Status
}

// why is one word for what is wrong with a job, or what it waits for; "-" for one that is well.
func why(job Job) string {
	if job.Report == nil {
		return "NoRecord"
	}
	status := job.Report.Status
	switch mpi.Phase(status.Phase) {
	case mpi.PhaseRunning, mpi.PhaseSucceeded:
		if len(status.Findings) > 0 && status.Findings[0].Severity != v1alpha1.SeverityInfo {
			return status.Findings[0].Code
		}
		return "-"
	}
	if len(status.Findings) > 0 && status.Findings[0].Code != string(mpi.CodeUnknown) {
		return status.Findings[0].Code
	}
	if s := status.Scheduling; s != nil && s.Position != nil {
		return fmt.Sprintf("Position%d", *s.Position)
	}
	return cmp.Or(status.Reason, "-")
}

// ranFor is how long a job has run or ran; empty for one that has not.
func ranFor(status v1alpha1.JobReportStatus, now time.Time) string {
	if status.RunningTime == nil {
		return ""
	}
	until := now
	if status.CompletionTime != nil {
		until = status.CompletionTime.Time
	}
	return duration.HumanDuration(max(0, until.Sub(status.RunningTime.Time)))
}

// age is how long ago a job was made.
func age(job Job, now time.Time) string {
	switch {
	case job.Object != nil:
		return since(job.Object.GetCreationTimestamp(), now)
	case job.Report != nil && job.Report.Status.StartTime != nil:
		return since(*job.Report.Status.StartTime, now)
	}
	return "-"
}

func since(then metav1.Time, now time.Time) string {
	return duration.HumanDuration(max(0, now.Sub(then.Time)))
}

// shortened is a text of at most so many letters.
func shortened(text string, most int) string {
	letters := []rune(oneLine(text))
	if len(letters) <= most {
		return string(letters)
	}
	return string(letters[:most-1]) + "…"
}

func phaseColour(phase mpi.Phase) colour {
	switch phase {
	case mpi.PhaseSucceeded:
		return green
	case mpi.PhaseFailed:
		return red
	case mpi.PhaseRunning:
		return cyan
	case "":
		return dim
	}
	return yellow
}
