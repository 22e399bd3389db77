package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"opendatahub.io/mpijob/internal/jobs"
)

// eventsPrinter prints events as the rows of a table, or as objects.
type eventsPrinter struct {
	to     io.Writer
	output *output
	now    func() time.Time
	// widths are those of the columns, once printTable has printed them.
	widths []int
}

// printTable prints a row for each event.
func (p *eventsPrinter) printTable(events []corev1.Event) error {
	t := table{header: []string{"AGE", "TYPE", "REASON", "OBJECT", "MESSAGE"}, wide: p.output.form == "wide", wraps: p.output.form != "wide"}
	for i := range events {
		t.rows = append(t.rows, p.row(&events[i]))
	}
	p.widths = t.widths()
	return t.write(p.to, "", true)
}

// printObjects prints the events as a list.
func (p *eventsPrinter) printObjects(events []corev1.Event) error {
	objects := make([]unstructured.Unstructured, len(events))
	for i := range events {
		object, err := eventObject(&events[i])
		if err != nil {
			return err
		}
		objects[i] = *object
	}
	return p.output.print(p.to, listOf(objects))
}

// printNew prints the row or the object of a new event.
func (p *eventsPrinter) printNew(e *corev1.Event) error {
	if !p.output.objects() {
		return writeRows(p.to, "", p.widths, [][]cell{p.row(e)})
	}
	object, err := eventObject(e)
	if err != nil {
		return err
	}
	return p.output.print(p.to, object)
}

// eventObject returns an event with its kind, which lists do not contain.
func eventObject(e *corev1.Event) (*unstructured.Unstructured, error) {
	e.APIVersion, e.Kind = "v1", "Event"
	return asUnstructured(e)
}

func (p *eventsPrinter) row(e *corev1.Event) []cell {
	times := ""
	if e.Count > 1 {
		times = fmt.Sprintf(" (%d times)", e.Count)
	}
	object := strings.ToLower(e.InvolvedObject.Kind) + "/" + e.InvolvedObject.Name
	row := plain(jobs.Since(jobs.LastSeen(e), p.now()), e.Type, e.Reason, object, e.Message+times)
	if e.Type == corev1.EventTypeWarning {
		row[1].colour = yellow
	}
	return row
}
