package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"opendatahub.io/mpijob/api/v1alpha1"
)

// rowsPerPage is how many rows are listed first: a row has a few hundred bytes, so that most namespaces have one page.
const rowsPerPage = 5000

// WithREST lets the client list rows (see Selection.Rows), for which it reads tables of the API server, and returns it. Without it,
// whole objects are read.
func (c *Client) WithREST(api rest.Interface) *Client {
	c.rest = api
	return c
}

// listMetadata lists the jobs of a kind with their metadata only.
func (c *Client) listMetadata(ctx context.Context, kind schema.GroupVersionKind, s Selection) ([]Job, error) {
	var jobs []Job
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	err := eachPageOf(ctx, c.api, list, rowsPerPage, s.Namespace, s.Labels, func() {
		for i := range list.Items {
			jobs = append(jobs, FromObject(metadataOf(kind, &list.Items[i])))
		}
	})
	if err != nil {
		return nil, fmt.Errorf("list %ss: %w", kind.Kind, err)
	}
	return jobs, nil
}

// metadataOf returns an object that has only what identifies it, its labels and its time of creation.
func metadataOf(kind schema.GroupVersionKind, from *metav1.PartialObjectMetadata) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: make(map[string]any, 3)}
	object.SetGroupVersionKind(kind)
	object.SetNamespace(from.Namespace)
	object.SetName(from.Name)
	object.SetUID(from.UID)
	object.SetCreationTimestamp(from.CreationTimestamp)
	if len(from.Labels) > 0 {
		object.SetLabels(from.Labels)
	}
	return object
}

// table is a list as the API server prints it. It has the columns that the kind's CustomResourceDefinition defines.
type table struct {
	Kind    string          `json:"kind"`
	Meta    metav1.ListMeta `json:"metadata"`
	Columns []struct {
		Name string `json:"name"`
	} `json:"columnDefinitions"`
	Rows []struct {
		Cells  []any                         `json:"cells"`
		Object *metav1.PartialObjectMetadata `json:"object"`
	} `json:"rows"`
}

// reportColumns set a field of a report from the text in a column; api/v1alpha1 defines the columns. An empty text is not set.
var reportColumns = map[string]func(*v1alpha1.JobReport, string) error{
	"Name": func(r *v1alpha1.JobReport, text string) error { r.Name = text; return nil },
	"Job":  func(r *v1alpha1.JobReport, text string) error { r.Spec.JobRef.Name = text; return nil },
	"Kind": func(r *v1alpha1.JobReport, text string) error { r.Spec.JobRef.Kind = text; return nil },
	"UID":  func(r *v1alpha1.JobReport, text string) error { r.Spec.JobRef.UID = types.UID(text); return nil },
	"Phase": func(r *v1alpha1.JobReport, text string) error {
		r.Status.Phase = v1alpha1.Phase(text)
		return nil
	},
	"Reason": func(r *v1alpha1.JobReport, text string) error { r.Status.Reason = text; return nil },
	"Why":    func(r *v1alpha1.JobReport, text string) error { firstFinding(r).Code = text; return nil },
	"Severity": func(r *v1alpha1.JobReport, text string) error {
		firstFinding(r).Severity = v1alpha1.Severity(text)
		return nil
	},
	"Workers":  func(r *v1alpha1.JobReport, text string) error { r.Status.Workers.Summary = text; return nil },
	"Message":  func(r *v1alpha1.JobReport, text string) error { r.Status.Message = text; return nil },
	"Queue":    func(r *v1alpha1.JobReport, text string) error { schedulingOf(r).Queue = text; return nil },
	"Position": func(r *v1alpha1.JobReport, text string) error { return setPosition(text, &schedulingOf(r).Position) },
	"MPI":      func(r *v1alpha1.JobReport, text string) error { r.Status.MPI.Implementation = text; return nil },
	"Ranks": func(r *v1alpha1.JobReport, text string) (err error) {
		r.Status.MPI.Ranks, err = strconv.ParseInt(text, 10, 64)
		return err
	},
	"Started": func(r *v1alpha1.JobReport, text string) error { return setTime(text, &r.Status.StartTime) },
	"Running": func(r *v1alpha1.JobReport, text string) error { return setTime(text, &r.Status.RunningTime) },
	"Ended":   func(r *v1alpha1.JobReport, text string) error { return setTime(text, &r.Status.CompletionTime) },
}

func firstFinding(r *v1alpha1.JobReport) *v1alpha1.Finding {
	if len(r.Status.Findings) == 0 {
		r.Status.Findings = make([]v1alpha1.Finding, 1)
	}
	return &r.Status.Findings[0]
}

func schedulingOf(r *v1alpha1.JobReport) *v1alpha1.SchedulingStatus {
	if r.Status.Scheduling == nil {
		r.Status.Scheduling = &v1alpha1.SchedulingStatus{}
	}
	return r.Status.Scheduling
}

func setPosition(text string, into **int32) error {
	number, err := strconv.ParseInt(text, 10, 32)
	*into = new(int32(number))
	return err
}

func setTime(text string, into **metav1.Time) error {
	at, err := time.Parse(time.RFC3339, text)
	*into = &metav1.Time{Time: at}
	return err
}

// listReportRows lists reports with what is in the columns of their table. It returns false if the API server does not have all
// columns, because the CustomResourceDefinition is of an earlier version. Reports of all namespaces have no namespace, unless
// placed is set.
func (c *Client) listReportRows(ctx context.Context, namespace string, placed bool) ([]v1alpha1.JobReport, bool, error) {
	var reports []v1alpha1.JobReport
	for next := ""; ; {
		page, err := c.reportTable(ctx, namespace, next, placed && namespace == "")
		if err != nil {
			return nil, false, fmt.Errorf("list JobReports: %w", err)
		}
		more, known, err := reportsIn(page, namespace)
		if err != nil || !known {
			return nil, false, err
		}
		reports = append(reports, more...)
		if next = page.Meta.Continue; next == "" {
			return reports, true, nil
		}
	}
}

// reportTable reads a page of the table of reports, with their metadata if these are wanted.
func (c *Client) reportTable(ctx context.Context, namespace, next string, withMetadata bool) (table, error) {
	include := metav1.IncludeNone
	if withMetadata {
		include = metav1.IncludeMetadata
	}
	var page table
	body, err := c.rest.Get().AbsPath("/apis", v1alpha1.GroupVersion.Group, v1alpha1.GroupVersion.Version).
		NamespaceIfScoped(namespace, namespace != "").Resource("jobreports").
		SetHeader("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1,application/json").
		Param("limit", strconv.Itoa(rowsPerPage)).Param("continue", next).Param("includeObject", string(include)).
		Do(ctx).Raw()
	if err != nil {
		return page, err
	}
	if err := json.Unmarshal(body, &page); err != nil {
		return page, fmt.Errorf("read the table: %w", err)
	}
	return page, nil
}

// reportsIn returns the reports in a table; false if a column is missing.
func reportsIn(page table, namespace string) ([]v1alpha1.JobReport, bool, error) {
	set := make([]func(*v1alpha1.JobReport, string) error, len(page.Columns))
	names := make([]string, len(page.Columns))
	for i, column := range page.Columns {
		set[i], names[i] = reportColumns[column.Name], column.Name
	}
	for name := range reportColumns {
		if !slices.Contains(names, name) {
			return nil, false, nil
		}
	}
	nameAt := slices.Index(names, "Name")
	reports := make([]v1alpha1.JobReport, len(page.Rows))
	for i, row := range page.Rows {
		report := &reports[i]
		report.Namespace = namespace
		if row.Object != nil {
			report.Namespace = row.Object.Namespace
		}
		if len(row.Cells) != len(names) {
			return nil, false, fmt.Errorf("read the table of JobReports: a row has %d cells for %d columns", len(row.Cells), len(names))
		}
		for at, cell := range row.Cells {
			text, is := cell.(string)
			if !is || text == "" || set[at] == nil {
				continue
			}
			if err := set[at](report, text); err != nil {
				return nil, false, fmt.Errorf("read %s of JobReport %v: %w", names[at], row.Cells[nameAt], err)
			}
		}
	}
	return reports, true, nil
}
