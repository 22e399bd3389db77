package cli

import (
	"cmp"
	"errors"
	"io"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/jobs"
)

// listPrinter prints jobs as the rows of a table, or as objects.
type listPrinter struct {
	to     io.Writer
	output *output
	now    func() time.Time
	// namespaces adds the column NAMESPACE.
	namespaces bool
	// records prints JobReports where objects are printed.
	records bool
	// widths are those of the columns, once printTable has printed them.
	widths []int
}

// printTable prints a row for each job.
func (p *listPrinter) printTable(selected []jobs.Job, headers bool) error {
	t := table{header: []string{"NAME", "KIND", "PHASE", "REASON", "WORKERS", "DURATION", "AGE"}, wide: p.wide()}
	if p.namespaces {
		t.header = append([]string{"NAMESPACE"}, t.header...)
	}
	if p.wide() {
		t.header = append(t.header, "RANKS", "MPI", "QUEUE", "MESSAGE")
	}
	for _, job := range selected {
		t.rows = append(t.rows, p.row(job))
	}
	p.widths = t.widths()
	return t.write(p.to, "", headers)
}

// printObjects prints jobs or their reports as a list. If single, one is printed without a list.
func (p *listPrinter) printObjects(selected []jobs.Job, single bool) error {
	var objects []unstructured.Unstructured
	for _, job := range selected {
		object, err := p.object(job)
		if err != nil {
			return err
		}
		if object != nil {
			objects = append(objects, *object)
		}
	}
	if single && len(objects) == 1 {
		return p.output.print(p.to, &objects[0])
	}
	return p.output.print(p.to, listOf(objects))
}

// printChange prints the row of a changed job, or its object unless the job is deleted.
func (p *listPrinter) printChange(job jobs.Job) error {
	if !p.output.objects() {
		return writeRows(p.to, "", p.widths, [][]cell{p.row(job)})
	}
	object, err := p.object(job)
	if err != nil || object == nil {
		return err
	}
	return p.output.print(p.to, object)
}

// object returns a job or its report, and of a deleted job the fields in its report; nil if there are none.
func (p *listPrinter) object(job jobs.Job) (*unstructured.Unstructured, error) {
	switch {
	case p.records && job.Report != nil:
	case job.Object != nil:
		return job.Object, nil
	default:
		written, err := job.Written()
		if _, is := errors.AsType[*jobs.DeletedError](err); is {
			return nil, nil
		}
		return written, err
	}
	return asUnstructured(job.PrintableReport())
}

func (p *listPrinter) wide() bool { return p.output.form == "wide" }

func (p *listPrinter) row(job jobs.Job) []cell {
	status := job.Status()
	now := p.now()
	row := []cell{
		{text: job.Name},
		{text: job.Kind},
		{text: cmp.Or(string(status.Phase), "-"), colour: phaseColour(status.Phase)},
		{text: job.Reason()},
		{text: cmp.Or(status.Workers.Summary, "-")},
		{text: cmp.Or(jobs.RunDuration(status, now), "-")},
		{text: job.Age(now)},
	}
	if p.namespaces {
		row = append(plain(job.Namespace), row...)
	}
	if p.wide() {
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

func phaseColour(phase v1alpha1.Phase) colour {
	switch phase {
	case v1alpha1.PhaseSucceeded:
		return green
	case v1alpha1.PhaseFailed:
		return red
	case v1alpha1.PhaseRunning:
		return cyan
	case "":
		return dim
	}
	return yellow
}
