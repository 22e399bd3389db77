package dashboard

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"opendatahub.io/mpijob/internal/jobs"
)

// List is a page of the list of jobs.
type List struct {
	Rows []Row `json:"rows"`
	// Total is the number of jobs that match, Visible the number of jobs that the user may see.
	Total   int `json:"total"`
	Visible int `json:"visible"`
	// Facets are the number of visible jobs for each value of a field: phase, kind, framework, namespace, queue and user.
	Facets map[string]map[string]int `json:"facets"`
	// Cursor is where the stream of changes continues after this list.
	Cursor string `json:"cursor"`
	// Stale is why the list may be out of date; empty if it is not.
	Stale string `json:"stale,omitempty"`
	// NoReports is set if the user may see jobs but not their reports, so that phases are incomplete.
	NoReports bool `json:"noReports,omitempty"`
}

// maxPageSize is the maximum number of rows of a page.
const maxPageSize = 500

// query selects rows, sorts them and cuts out a page.
type query struct {
	text                                         string
	namespaces, kinds, frameworks, phases, queue []string
	users, ids                                   []string
	deleted                                      bool
	sort                                         string
	descending                                   bool
	page, size                                   int
}

// sorts are the fields that rows can be sorted by.
var sorts = map[string]func(a, b *Row) int{
	"name":      func(a, b *Row) int { return strings.Compare(a.Name, b.Name) },
	"namespace": func(a, b *Row) int { return strings.Compare(a.Namespace, b.Namespace) },
	"kind":      func(a, b *Row) int { return strings.Compare(a.Framework+a.Kind, b.Framework+b.Kind) },
	"phase":     func(a, b *Row) int { return cmp.Compare(phaseOrder(a.Phase), phaseOrder(b.Phase)) },
	"workers":   func(a, b *Row) int { return cmp.Compare(a.Workers, b.Workers) },
	"gpus":      func(a, b *Row) int { return cmp.Compare(a.GPUs, b.GPUs) },
	"queue": func(a, b *Row) int {
		return cmp.Or(strings.Compare(a.Queue, b.Queue), cmp.Compare(position(a), position(b)))
	},
	"created": func(a, b *Row) int { return a.Created.Compare(b.Created) },
	"user":    func(a, b *Row) int { return strings.Compare(a.User, b.User) },
}

func position(row *Row) int32 {
	if row.Position == nil {
		return 1 << 30
	}
	return *row.Position
}

func phaseOrder(phase string) int { return slices.Index(jobs.PhaseNames(), phase) }

// durationOf returns how long a job has run at a moment; 0 if it never ran.
func durationOf(row *Row, now time.Time) time.Duration {
	switch {
	case row.Running == nil:
		return 0
	case row.Ended != nil:
		return row.Ended.Sub(*row.Running)
	}
	return now.Sub(*row.Running)
}

// parseQuery reads a query from the parameters of a URL. It returns jobs.InvalidError with all errors.
func parseQuery(values url.Values) (query, error) {
	q := query{
		text: strings.ToLower(strings.TrimSpace(values.Get("q"))), namespaces: list(values, "namespace"), kinds: list(values, "kind"),
		frameworks: list(values, "framework"), phases: list(values, "phase"), queue: list(values, "queue"), users: list(values, "user"), ids: list(values, "id"),
		deleted: values.Get("deleted") == "true", sort: cmp.Or(values.Get("sort"), "-created"), page: 1, size: 20,
	}
	var errs []jobs.FieldError
	q.sort, q.descending = strings.CutPrefix(q.sort, "-")
	if _, known := sorts[q.sort]; !known && q.sort != "duration" {
		errs = append(errs, jobs.FieldError{Field: "sort", Value: q.sort, Reason: "is not a column; use name, namespace, kind, phase, workers, gpus, queue, created, duration or user, with - for descending"})
	}
	for _, number := range []struct {
		name string
		to   *int
		most int
	}{{"page", &q.page, 1 << 20}, {"size", &q.size, maxPageSize}} {
		if text := values.Get(number.name); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil || n < 1 || n > number.most {
				errs = append(errs, jobs.FieldError{Field: number.name, Value: text, Reason: "is not allowed; use 1 to " + strconv.Itoa(number.most)})
				continue
			}
			*number.to = n
		}
	}
	for _, phase := range q.phases {
		if phaseOrder(phase) < 0 {
			errs = append(errs, jobs.FieldError{Field: "phase", Value: phase, Reason: "is not a phase; use " + strings.Join(jobs.PhaseNames(), ", ")})
		}
	}
	if len(errs) > 0 {
		return q, jobs.Invalid(errs...)
	}
	return q, nil
}

// list returns the values of a parameter, which may be repeated and contain commas.
func list(values url.Values, name string) []string {
	var all []string
	for _, value := range values[name] {
		for part := range strings.SplitSeq(value, ",") {
			if part = strings.TrimSpace(part); part != "" {
				all = append(all, part)
			}
		}
	}
	return all
}

func (q query) matches(row *Row) bool {
	return (q.deleted || !row.Deleted) && among(q.ids, row.ID) && among(q.namespaces, row.Namespace) && among(q.kinds, row.Kind) && among(q.frameworks, row.Framework) &&
		among(q.phases, row.Phase) && among(q.queue, row.Queue) && among(q.users, row.User) &&
		(q.text == "" || strings.Contains(strings.ToLower(row.Name), q.text) || strings.Contains(strings.ToLower(row.Namespace), q.text) || strings.Contains(strings.ToLower(row.Reason), q.text))
}

func among(wanted []string, value string) bool {
	return len(wanted) == 0 || slices.Contains(wanted, value)
}

// run returns a page of the rows that match, and counts. It sorts the given slice.
func (q query) run(all []*Row, now time.Time) List {
	result := List{Rows: []Row{}, Facets: map[string]map[string]int{}}
	count := func(field, value string) {
		if value == "" {
			return
		}
		if result.Facets[field] == nil {
			result.Facets[field] = map[string]int{}
		}
		result.Facets[field][value]++
	}
	var matching []*Row
	for _, row := range all {
		if row.Deleted && !q.deleted {
			continue
		}
		result.Visible++
		for field, value := range map[string]string{"phase": row.Phase, "kind": row.Kind, "framework": row.Framework, "namespace": row.Namespace, "queue": row.Queue, "user": row.User} {
			count(field, value)
		}
		if q.matches(row) {
			matching = append(matching, row)
		}
	}
	compare := sorts[q.sort]
	if q.sort == "duration" {
		compare = func(a, b *Row) int { return cmp.Compare(durationOf(a, now), durationOf(b, now)) }
	}
	slices.SortFunc(matching, func(a, b *Row) int {
		order := compare(a, b)
		if q.descending {
			order = -order
		}
		return cmp.Or(order, strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name), strings.Compare(a.ID, b.ID))
	})
	result.Total = len(matching)
	first := min((q.page-1)*q.size, len(matching))
	for _, row := range matching[first:min(first+q.size, len(matching))] {
		result.Rows = append(result.Rows, *row)
	}
	return result
}
