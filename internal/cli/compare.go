package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/cost"
)

type compareOptions struct {
	*Factory
	all bool
}

func newCompare(f *Factory) *cobra.Command {
	o := &compareOptions{Factory: f}
	c := &cobra.Command{
		Use:   "compare A B",
		Short: "Show two jobs side by side: what differs, and how each did",
		Long: `Show two jobs side by side: the fields in which they differ, how each did, how long it took, what it used, and what was
wrong with it. Jobs that were deleted can be compared by their records, which do not have their fields.`,
		Example: `# What made the second attempt faster?
{{name}} compare train train-2

# A TrainJob and the MPIJob that it was migrated from
{{name}} compare mpijob/pi trainjob/pi-2`,
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: f.completeJobs(2),
		RunE:              func(c *cobra.Command, args []string) error { return o.run(c.Context(), args) },
	}
	c.Flags().BoolVar(&o.all, "all", false, "Also show fields that are the same")
	return c
}

func (o *compareOptions) run(ctx context.Context, args []string) error {
	var jobs [2]Job
	for i, arg := range args {
		job, err := o.Find(ctx, arg)
		if err != nil {
			return err
		}
		jobs[i] = job
	}
	a, b := jobs[0], jobs[1]
	prices, priced, err := o.prices(ctx, a.Namespace)
	if err != nil {
		return err
	}
	var rates *cost.Prices
	if priced {
		rates = &prices
	}
	t := &comparison{table: table{header: []string{"", a.String(), b.String()}}}
	fields, note := fieldRows(a, b)
	if note == "" {
		t.part("FIELDS", fields, o.all)
	} else {
		say(o.ErrOut, "note: %s", note)
	}
	t.part("HOW IT DID", runRows(a, b, o.Now()), true)
	t.part("USED", useRows(a, b, rates), true)
	t.part("FINDINGS", findingRows(a, b), true)
	return t.print(o.Factory)
}

// comparison is a table of two jobs, in parts.
type comparison struct {
	table
	titles []string
	// ends are how many rows there are up to the end of each part.
	ends []int
}

// part adds rows under a title: those that say anything and, unless all are wanted, differ.
func (t *comparison) part(title string, rows [][3]string, all bool) {
	rows = slices.DeleteFunc(rows, func(row [3]string) bool { return row[1] == "" && row[2] == "" || row[1] == row[2] && !all })
	for _, row := range rows {
		cells := plain(row[0], cmp.Or(row[1], "-"), cmp.Or(row[2], "-"))
		if row[1] != row[2] {
			cells[1].colour, cells[2].colour = yellow, yellow
		}
		t.rows = append(t.rows, cells)
	}
	if len(rows) == 0 {
		title += ": " + map[bool]string{true: "none", false: "no difference"}[all]
	}
	t.titles, t.ends = append(t.titles, title), append(t.ends, len(t.rows))
}

func (t *comparison) print(f *Factory) error {
	const indent = "  "
	widths := t.widths()
	if err := writeRows(f, f.Out, indent, widths, [][]cell{plain(t.header...)}); err != nil {
		return err
	}
	from := 0
	for i, title := range t.titles {
		say(f.Out, "%s", f.paint(bold, title))
		if err := writeRows(f, f.Out, indent, widths, t.rows[from:t.ends[i]]); err != nil {
			return err
		}
		from = t.ends[i]
	}
	return nil
}

// fieldRows are the fields of both jobs as users write them. The note says why they cannot be compared.
func fieldRows(a, b Job) (rows [][3]string, note string) {
	switch {
	case a.Object == nil && b.Object == nil:
		return nil, "both jobs are deleted; their records do not say how they were written"
	case a.Object == nil || b.Object == nil:
		gone := a
		if b.Object == nil {
			gone = b
		}
		return nil, fmt.Sprintf("%s is deleted; its record does not say how it was written", gone)
	case a.Kind != b.Kind:
		return nil, "the jobs are of different kinds: their fields do not compare"
	}
	fieldsA, fieldsB := map[string]string{}, map[string]string{}
	flatten(asWritten(a.Object).Object, "", fieldsA)
	flatten(asWritten(b.Object).Object, "", fieldsB)
	all := maps.Clone(fieldsA)
	maps.Copy(all, fieldsB)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		switch name {
		case "metadata.name", "metadata.namespace", "apiVersion", "kind":
			continue
		}
		rows = append(rows, [3]string{name, shortened(fieldsA[name], 60), shortened(fieldsB[name], 60)})
	}
	return rows, ""
}

// flatten writes every value of an object under its path. Lists of plain values are one value; an entry with a name is
// found by that.
func flatten(value any, at string, into map[string]string) {
	switch v := value.(type) {
	case map[string]any:
		for name, entry := range v {
			flatten(entry, step(at, name), into)
		}
	case []any:
		flattenList(v, at, into)
	case nil:
	default:
		into[at] = fmt.Sprint(v)
	}
}

// step is the path of a field in what is at another.
func step(at, name string) string {
	switch {
	case strings.Contains(name, "."):
		return at + "[" + name + "]"
	case at == "":
		return name
	}
	return at + "." + name
}

func flattenList(list []any, at string, into map[string]string) {
	var words []string
	for i, entry := range list {
		one, is := entry.(map[string]any)
		if !is {
			words = append(words, fmt.Sprint(entry))
			continue
		}
		key := strconv.Itoa(i)
		if name, is := one["name"].(string); is && len(one) > 1 {
			key, one = name, maps.Clone(one)
			delete(one, "name")
		}
		flatten(one, at+"["+key+"]", into)
	}
	if len(words) > 0 {
		into[at] = strings.Join(words, " ")
	}
}

func runRows(a, b Job, now time.Time) [][3]string {
	rows := [][3]string{}
	add := func(name string, of func(v1alpha1.JobReportStatus) string) {
		rows = append(rows, [3]string{name, of(statusOf(a)), of(statusOf(b))})
	}
	add("phase", func(s v1alpha1.JobReportStatus) string { return string(s.Phase) })
	add("because", func(s v1alpha1.JobReportStatus) string { return s.Reason })
	add("MPI", func(s v1alpha1.JobReportStatus) string {
		return strings.TrimSpace(s.MPI.Implementation + " " + s.MPI.Version)
	})
	add("ranks", func(s v1alpha1.JobReportStatus) string { return number(s.MPI.Ranks) })
	add("workers", func(s v1alpha1.JobReportStatus) string { return number(int64(s.Workers.Wanted)) })
	for _, phase := range phases {
		add("time "+string(phase), func(s v1alpha1.JobReportStatus) string { return timeIn(s, v1alpha1.Phase(phase), now) })
	}
	add("until all pods ran", func(s v1alpha1.JobReportStatus) string { return between(s.StartTime, s.RunningTime) })
	add("in all", func(s v1alpha1.JobReportStatus) string { return between(s.StartTime, s.CompletionTime) })
	add("connecting", func(s v1alpha1.JobReportStatus) string { return milliseconds(s.MPI.ConnectMilliseconds) })
	add("MPI's start", func(s v1alpha1.JobReportStatus) string { return milliseconds(s.MPI.InitMilliseconds) })
	add("progress", func(s v1alpha1.JobReportStatus) string { return progressOf(s.Training) })
	return rows
}

func number(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

func milliseconds(n int64) string {
	if n == 0 {
		return ""
	}
	return (time.Duration(n) * time.Millisecond).String()
}

// timeIn is how long a job has been in a phase; empty for one that it has not been in, and for its last.
func timeIn(s v1alpha1.JobReportStatus, phase v1alpha1.Phase, now time.Time) string {
	for _, t := range s.PhaseTimes {
		if t.Phase != phase {
			continue
		}
		spent := time.Duration(t.Seconds) * time.Second
		if s.Phase == phase {
			if s.CompletionTime != nil {
				return ""
			}
			spent += now.Sub(t.Since.Time)
		}
		return duration.HumanDuration(max(0, spent))
	}
	return ""
}

func useRows(a, b Job, prices *cost.Prices) [][3]string {
	useA, useB := cost.Consumed(statusOf(a).Consumption), cost.Consumed(statusOf(b).Consumption)
	rows := [][3]string{
		{"core hours", hourText(useA.CoreHours), hourText(useB.CoreHours)},
		{"GiB hours", hourText(useA.GiBHours), hourText(useB.GiBHours)},
	}
	both := useA.Plus(useB)
	for _, name := range slices.Sorted(maps.Keys(both.DeviceHours)) {
		rows = append(rows, [3]string{name + " hours", hourText(useA.DeviceHours[name]), hourText(useB.DeviceHours[name])})
	}
	if prices != nil {
		rates := prices.On(nil)
		rows = append(rows, [3]string{"cost", prices.Amount(rates.Of(useA)), prices.Amount(rates.Of(useB))})
	}
	return rows
}

// hourText is hours as people read them: enough digits to tell small jobs apart.
func hourText(h float64) string {
	if h < 10 {
		return strconv.FormatFloat(h, 'f', 2, 64)
	}
	return strconv.FormatFloat(h, 'f', 1, 64)
}

// findingRows have the findings of both in pairs, those that both have first.
func findingRows(a, b Job) [][3]string {
	findingsA, findingsB := statusOf(a).Findings, statusOf(b).Findings
	var rows [][3]string
	summary := func(all []v1alpha1.Finding, code string) string {
		for _, f := range all {
			if f.Code == code {
				return shortened(f.Summary, 60)
			}
		}
		return ""
	}
	for _, f := range append(slices.Clone(findingsA), findingsB...) {
		if !slices.ContainsFunc(rows, func(row [3]string) bool { return row[0] == f.Code }) {
			rows = append(rows, [3]string{f.Code, summary(findingsA, f.Code), summary(findingsB, f.Code)})
		}
	}
	return rows
}

// between is the time from one moment to another; empty where one of them has not come.
func between(from, to *metav1.Time) string {
	if from == nil || to == nil {
		return ""
	}
	return duration.HumanDuration(max(0, to.Sub(from.Time)))
}
