package cli

import (
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/cost"
)

type usageOptions struct {
	*Factory
	everywhere      bool
	since, by, sort string
	form            string
	noHeaders       bool
}

// usageForms are what usage prints.
var usageForms = []string{"wide", "json", "csv"}

// usageSorts are what its lines are sorted by.
var usageSorts = []string{"gpu", "cost", "cores", "memory", "jobs", "name"}

func newUsage(f *Factory) *cobra.Command {
	o := &usageOptions{Factory: f}
	c := &cobra.Command{
		Use:   "usage",
		Short: "Say what jobs have used, in hours and in money",
		Long: `Say what jobs have used: hours of GPUs, cores and GiB of memory that their pods held, whether they made use of them or not.
Deleted jobs count too, as long as their records are kept.

--since picks the jobs that ran in that time; each counts in full. With prices written down (ConfigMap mpijob-prices, in the
namespace or in mpijob-system) there is a column for the cost. A namespace's own prices count before the cluster's.`,
		Example: `# The jobs of this namespace in the last month
{{name}} usage --since 30d

# Every namespace, the dearest first
{{name}} usage -A --sort cost

# For a spreadsheet
{{name}} usage -A --by job -o csv > usage.csv`,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c.Context()) },
	}
	flags := c.Flags()
	flags.BoolVarP(&o.everywhere, "all-namespaces", "A", false, "Count the jobs of every namespace")
	flags.StringVar(&o.since, "since", "", "Count jobs that ran in so long, such as 12h or 30d, or since a day, such as 2026-11-01 (default: all that there are records of)")
	flags.StringVar(&o.by, "by", "", "A line for each job or each namespace (default: job, with -A namespace)")
	flags.StringVar(&o.sort, "sort", "", "Sort by "+strings.Join(usageSorts, ", ")+" (default: gpu, and then cores)")
	flags.StringVarP(&o.form, "output", "o", "", "How to print, one of: ("+strings.Join(usageForms, ", ")+")")
	flags.BoolVar(&o.noHeaders, "no-headers", false, "Leave the headings and the last line, with all together, out")
	for name, words := range map[string][]string{"output": usageForms, "sort": usageSorts, "by": {"job", "namespace"}} {
		_ = c.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	}
	return c
}

// usageLine is what one job, or the jobs of one namespace, have used.
type usageLine struct {
	Namespace string `json:"namespace"`
	Job       string `json:"job,omitempty"`
	Kind      string `json:"kind,omitempty"`
	Phase     string `json:"phase,omitempty"`
	// CreatedBy is who made the job, where it is still there.
	CreatedBy   string             `json:"createdBy,omitempty"`
	Jobs        int                `json:"jobs"`
	CoreHours   float64            `json:"coreHours"`
	GiBHours    float64            `json:"gibHours"`
	DeviceHours map[string]float64 `json:"deviceHours,omitempty"`
	GPUHours    float64            `json:"gpuHours"`
	Cost        *float64           `json:"cost,omitempty"`
	Currency    string             `json:"currency,omitempty"`

	use cost.Use
}

func (o *usageOptions) run(ctx context.Context) error {
	if err := o.validate(); err != nil {
		return err
	}
	since, err := sinceWhen(o.since, o.Now())
	if err != nil {
		return err
	}
	selection, err := o.selection(o.everywhere, "")
	if err != nil {
		return err
	}
	selection.Gone = true
	jobs, notes, err := o.Jobs(ctx, selection)
	if err != nil {
		return err
	}
	for _, note := range notes {
		say(o.ErrOut, "note: %s", note)
	}
	jobs = slices.DeleteFunc(jobs, func(job Job) bool { return job.Report == nil || !ranSince(job.Report.Status, since) })
	if len(jobs) == 0 && o.form != "json" {
		say(o.ErrOut, "no jobs with a record%s", map[bool]string{true: " in that time", false: ""}[o.since != ""])
		return nil
	}
	priced, err := o.pricesOf(ctx, jobs)
	if err != nil {
		return err
	}
	lines := sum(jobs, priced, o.by)
	sortUsage(lines, o.sort)
	for _, note := range priced.notes(lines) {
		say(o.ErrOut, "note: %s", note)
	}
	switch o.form {
	case "json":
		encoder := json.NewEncoder(o.Out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(map[string]any{"usage": lines})
	case "csv":
		return o.csv(lines)
	}
	return o.table(lines)
}

func (o *usageOptions) validate() error {
	if o.by == "" {
		if o.by = "job"; o.everywhere {
			o.by = "namespace"
		}
	}
	if err := oneOf("--by", o.by, "job", "namespace"); err != nil {
		return err
	}
	if o.sort != "" {
		if err := oneOf("--sort", o.sort, usageSorts...); err != nil {
			return err
		}
	}
	if o.form != "" {
		return oneOf("-o", o.form, usageForms...)
	}
	return nil
}

// sinceWhen reads 12h, 30d or 2026-11-01; the zero time where nothing is said.
func sinceWhen(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if day, err := time.ParseInLocation(time.DateOnly, text, now.Location()); err == nil {
		return day, nil
	}
	length, err := time.ParseDuration(text)
	if days, found := strings.CutSuffix(text, "d"); found {
		var n int
		if n, err = strconv.Atoi(days); err == nil {
			length = time.Duration(n) * 24 * time.Hour
		}
	}
	if err != nil || length <= 0 {
		return time.Time{}, usagef("--since %s: must be a time such as 12h or 30d, or a day such as 2026-11-01", text)
	}
	return now.Add(-length), nil
}

// ranSince tells whether a job held anything since a time.
func ranSince(status v1alpha1.JobReportStatus, since time.Time) bool {
	until := status.CompletionTime
	if until == nil && status.Consumption != nil {
		until = &status.Consumption.Until
	}
	return since.IsZero() || until == nil || until.After(since)
}

// priceList has what jobs cost in each namespace, and which labels their nodes have.
type priceList struct {
	byNamespace map[string]cost.Prices
	nodes       map[string]map[string]string
}

// pricesOf reads the prices that some jobs go by. Nodes are asked for only where prices differ between them, and left out
// where the user may not list them.
func (f *Factory) pricesOf(ctx context.Context, jobs []Job) (priceList, error) {
	list := priceList{byNamespace: map[string]cost.Prices{}}
	asked := map[string]bool{}
	byNode := false
	for _, job := range jobs {
		if asked[job.Namespace] {
			continue
		}
		asked[job.Namespace] = true
		prices, found, err := f.prices(ctx, job.Namespace)
		if err != nil {
			return list, err
		}
		if found {
			list.byNamespace[job.Namespace] = prices
			byNode = byNode || len(prices.Nodes) > 0
		}
	}
	if !byNode {
		return list, nil
	}
	c, err := f.Client()
	if err != nil {
		return list, err
	}
	nodes := &metav1.PartialObjectMetadataList{}
	nodes.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
	if err := c.List(ctx, nodes); err != nil {
		say(f.ErrOut, "note: prices differ between nodes, and these cannot be listed (%s): jobs go by the prices without a label", f.words(err))
		return list, nil
	}
	list.nodes = map[string]map[string]string{}
	for _, node := range nodes.Items {
		list.nodes[node.Name] = node.Labels
	}
	return list, nil
}

// on are the labels that all nodes of a job have in common.
func (p priceList) on(job Job) map[string]string {
	var common map[string]string
	for _, pod := range statusOf(job).Pods {
		labels, known := p.nodes[pod.Node]
		switch {
		case pod.Node == "":
		case !known:
			return nil
		case common == nil:
			common = maps.Clone(labels)
		default:
			maps.DeleteFunc(common, func(key, value string) bool { return labels[key] != value })
		}
	}
	return common
}

// notes tell of devices without a price.
func (p priceList) notes(lines []usageLine) []string {
	var notes []string
	for _, line := range lines {
		prices, priced := p.byNamespace[line.Namespace]
		if !priced {
			continue
		}
		for _, name := range prices.On(nil).Unpriced(line.use) {
			note := fmt.Sprintf("%s has no price: it is not part of the cost", name)
			if !slices.Contains(notes, note) {
				notes = append(notes, note)
			}
		}
	}
	return notes
}

// sum adds jobs up to lines.
func sum(jobs []Job, prices priceList, by string) []usageLine {
	lines := []usageLine{} // none is [] as JSON
	for _, job := range jobs {
		line := usageLine{Namespace: job.Namespace, Jobs: 1, use: cost.Consumed(statusOf(job).Consumption)}
		if by == "job" {
			line.Job, line.Kind, line.Phase = job.Name, job.Kind, string(job.Phase())
			if job.Object != nil {
				line.CreatedBy = job.Object.GetAnnotations()["mpi.opendatahub.io/created-by"]
			}
		}
		if p, priced := prices.byNamespace[job.Namespace]; priced {
			amount := p.On(prices.on(job)).Of(line.use)
			line.Cost, line.Currency = &amount, p.Currency
		}
		i := slices.IndexFunc(lines, func(have usageLine) bool { return by == "namespace" && have.Namespace == line.Namespace })
		if i < 0 {
			lines = append(lines, line)
			continue
		}
		lines[i] = lines[i].plus(line)
	}
	for i := range lines {
		lines[i].CoreHours, lines[i].GiBHours, lines[i].DeviceHours, lines[i].GPUHours = lines[i].use.CoreHours, lines[i].use.GiBHours, lines[i].use.DeviceHours, lines[i].use.GPUHours()
	}
	return lines
}

func (l usageLine) plus(other usageLine) usageLine {
	l.Jobs += other.Jobs
	l.use = l.use.Plus(other.use)
	switch {
	case other.Cost == nil:
	case l.Cost == nil:
		l.Cost, l.Currency = other.Cost, other.Currency
	default:
		both := *l.Cost + *other.Cost
		l.Cost = &both
	}
	return l
}

func sortUsage(lines []usageLine, by string) {
	amount := func(l usageLine) float64 {
		if l.Cost == nil {
			return 0
		}
		return *l.Cost
	}
	slices.SortStableFunc(lines, func(a, b usageLine) int {
		var first int
		switch by {
		case "cost":
			first = cmp.Compare(amount(b), amount(a))
		case "cores":
			first = cmp.Compare(b.CoreHours, a.CoreHours)
		case "memory":
			first = cmp.Compare(b.GiBHours, a.GiBHours)
		case "jobs":
			first = cmp.Compare(b.Jobs, a.Jobs)
		case "name":
		default:
			first = cmp.Or(cmp.Compare(b.GPUHours, a.GPUHours), cmp.Compare(b.CoreHours, a.CoreHours))
		}
		return cmp.Or(first, strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Job, b.Job), strings.Compare(a.Kind, b.Kind))
	})
}

// usageTable is how lines are printed.
type usageTable struct {
	namespaces, jobs, wide, priced bool
	devices                        []string
}

func (t usageTable) header() []string {
	var header []string
	if t.namespaces {
		header = append(header, "NAMESPACE")
	}
	if t.jobs {
		header = append(header, "JOB", "KIND", "PHASE")
	} else {
		header = append(header, "JOBS")
	}
	header = append(header, "GPU-HOURS", "CORE-HOURS", "GIB-HOURS")
	if t.wide {
		header = append(append(header, t.devices...), "BY")
	}
	if t.priced {
		header = append(header, "COST")
	}
	return header
}

func (t usageTable) row(l usageLine) []cell {
	var words []string
	if t.namespaces {
		words = append(words, l.Namespace)
	}
	if t.jobs {
		words = append(words, l.Job, l.Kind, cmp.Or(l.Phase, "-"))
	} else {
		words = append(words, strconv.Itoa(l.Jobs))
	}
	words = append(words, hourText(l.use.GPUHours()), hourText(l.use.CoreHours), hourText(l.use.GiBHours))
	if t.wide {
		for _, name := range t.devices {
			words = append(words, hourText(l.use.DeviceHours[name]))
		}
		words = append(words, cmp.Or(l.CreatedBy, "-"))
	}
	if t.priced {
		words = append(words, costText(l))
	}
	return plain(words...)
}

func (o *usageOptions) table(lines []usageLine) error {
	how := usageTable{namespaces: o.everywhere || o.by == "namespace", jobs: o.by == "job", wide: o.form == "wide", devices: devicesOf(lines)}
	currencies := map[string]bool{}
	all := usageLine{}
	for _, line := range lines {
		all = all.plus(line)
		if line.Cost != nil {
			currencies[line.Currency] = true
		}
	}
	how.priced = len(currencies) > 0
	t := table{header: how.header()}
	for _, line := range lines {
		t.rows = append(t.rows, how.row(line))
	}
	if len(lines) > 1 && !o.noHeaders {
		if len(currencies) > 1 {
			all.Cost = nil // sums of different moneys mean nothing
		}
		all.Namespace, all.Job, all.Kind = "all", "all", fmt.Sprintf("%d jobs", all.Jobs)
		cells := how.row(all)
		for i := range cells {
			cells[i].colour = bold
		}
		t.rows = append(t.rows, cells)
	}
	return t.write(o.Factory, o.Out, "", !o.noHeaders)
}

// devicesOf are the names of all devices, sorted.
func devicesOf(lines []usageLine) []string {
	var names []string
	for _, line := range lines {
		names = append(names, slices.Collect(maps.Keys(line.DeviceHours))...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func costText(l usageLine) string {
	if l.Cost == nil {
		return "-"
	}
	return cost.Prices{Currency: l.Currency}.Amount(*l.Cost)
}

func (o *usageOptions) csv(lines []usageLine) error {
	devices := devicesOf(lines)
	w := csv.NewWriter(o.Out)
	if !o.noHeaders {
		header := append([]string{"namespace", "job", "kind", "phase", "createdBy", "jobs", "gpuHours", "coreHours", "gibHours"}, devices...)
		if err := w.Write(append(header, "cost", "currency")); err != nil {
			return err
		}
	}
	figure := func(f float64) string { return strconv.FormatFloat(f, 'f', 4, 64) }
	for _, l := range lines {
		record := []string{l.Namespace, l.Job, l.Kind, l.Phase, harmless(l.CreatedBy), strconv.Itoa(l.Jobs), figure(l.GPUHours), figure(l.CoreHours), figure(l.GiBHours)}
		for _, name := range devices {
			record = append(record, figure(l.DeviceHours[name]))
		}
		amount := ""
		if l.Cost != nil {
			amount = figure(*l.Cost)
		}
		if err := w.Write(append(record, amount, l.Currency)); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}

// harmless keeps spreadsheets from taking a text for a formula.
func harmless(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
}
