package jobs

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/cost"
	"opendatahub.io/mpijob/internal/mpi"
)

// UsageSorts are the values that usage can be sorted by.
func UsageSorts() []string { return []string{"gpu", "cost", "cores", "memory", "jobs", "name"} }

// UsageQuery selects the jobs whose usage is summed up.
type UsageQuery struct {
	// Namespaces are those of the jobs; an empty name is all namespaces.
	Namespaces []string
	// Since selects jobs that ran after it. Each counts in full. Zero selects all.
	Since time.Time
	// PerNamespace sums up the jobs of each namespace, PerUser those of each user who created them. A user whose jobs have
	// prices in several currencies has a line for each.
	PerNamespace, PerUser bool
	// Sort is a value of UsageSorts; empty for gpu.
	Sort string
}

// Usage is the result of a UsageQuery.
type Usage struct {
	Lines []UsageLine
	// Omitted are objects that the user may not list; Nodes if prices depend on them.
	Omitted []Omission
	// Unpriced are devices without a price; the cost does not include them.
	Unpriced []string
}

// UsageLine is the usage of one job, or of the jobs of a namespace or a user.
type UsageLine struct {
	Namespace string `json:"namespace,omitempty"`
	Job       string `json:"job,omitempty"`
	Kind      string `json:"kind,omitempty"`
	Phase     string `json:"phase,omitempty"`
	// CreatedBy is the user who created the jobs; empty if unknown.
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

// Usage sums up what jobs have held, deleted jobs with a report included.
func (c *Client) Usage(ctx context.Context, query UsageQuery) (Usage, error) {
	var usage Usage
	var jobs []Job
	for _, namespace := range query.Namespaces {
		list, err := c.List(ctx, Selection{Namespace: namespace, Deleted: true})
		if err != nil {
			return Usage{}, err
		}
		jobs = append(jobs, slices.DeleteFunc(list.Jobs, func(job Job) bool { return job.Report == nil || !ranSince(job.Report.Status, query.Since) })...)
		usage.omit(list.Omitted...)
	}
	prices, nodesErr, err := c.pricesFor(ctx, jobs)
	if err != nil {
		return Usage{}, err
	}
	if nodesErr != nil {
		usage.omit(Omission{Kind: "Node", Err: nodesErr})
	}
	usage.Unpriced = prices.unpriced(sumUsage(jobs, prices, nil))
	usage.Lines = sumUsage(jobs, prices, query.group())
	for i := range usage.Lines {
		switch {
		case query.PerNamespace:
			usage.Lines[i].CreatedBy = ""
		case query.PerUser:
			usage.Lines[i].Namespace = ""
		}
	}
	sortUsage(usage.Lines, query.Sort)
	return usage, nil
}

// omit adds omissions, one of each kind.
func (u *Usage) omit(omitted ...Omission) {
	for _, one := range omitted {
		if !slices.ContainsFunc(u.Omitted, func(have Omission) bool { return have.Kind == one.Kind }) {
			u.Omitted = append(u.Omitted, one)
		}
	}
}

// group returns the line that a job's usage is added to; nil for one of its own.
func (q UsageQuery) group() func(job, line UsageLine) bool {
	switch {
	case q.PerNamespace:
		return func(job, line UsageLine) bool { return job.Namespace == line.Namespace }
	case q.PerUser:
		return func(job, line UsageLine) bool {
			return job.CreatedBy == line.CreatedBy && (job.Cost == nil || line.Cost == nil || job.Currency == line.Currency)
		}
	}
	return nil
}

// creator returns the user who created a job: from the job, or from the timeline of its report. It is empty if unknown.
func (j Job) creator() string {
	if j.Object != nil {
		return j.Object.GetAnnotations()[mpi.AnnotationCreator]
	}
	for _, entry := range j.Status().Timeline {
		if _, user, found := strings.Cut(entry.Detail, " By "); found && entry.Event == "Created" {
			return strings.TrimSuffix(user, ".")
		}
	}
	return ""
}

// ParseSince reads a duration such as 12h or 30d, or a day such as 2026-11-01, in the location of now. An empty text is the
// zero time.
func ParseSince(text string, now time.Time) (time.Time, error) {
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
		return time.Time{}, Invalid(FieldError{Field: "since", Value: text, Reason: "must be a duration such as 12h or 30d, or a day such as 2026-11-01"})
	}
	return now.Add(-length), nil
}

// ranSince reports whether a job held resources after a moment.
func ranSince(status v1alpha1.JobReportStatus, since time.Time) bool {
	until := status.CompletionTime
	if until == nil && status.Consumption != nil {
		until = &status.Consumption.Until
	}
	return since.IsZero() || until == nil || until.After(since)
}

// priceList is the prices of some namespaces, and the labels of nodes if prices depend on them.
type priceList struct {
	byNamespace map[string]cost.Prices
	nodes       map[string]map[string]string
}

// pricesFor reads the prices for jobs. If nodes cannot be listed, jobs cost the prices without a label.
func (c *Client) pricesFor(ctx context.Context, jobs []Job) (list priceList, nodesErr, err error) {
	list.byNamespace = map[string]cost.Prices{}
	read := map[string]bool{}
	byNode := false
	for _, job := range jobs {
		if read[job.Namespace] {
			continue
		}
		read[job.Namespace] = true
		prices, err := c.Prices(ctx, job.Namespace)
		if err != nil {
			return list, nil, err
		}
		if prices != nil {
			list.byNamespace[job.Namespace] = *prices
			byNode = byNode || len(prices.Nodes) > 0
		}
	}
	if !byNode {
		return list, nil, nil
	}
	nodes := &metav1.PartialObjectMetadataList{}
	nodes.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
	if err := c.api.List(ctx, nodes); err != nil {
		return list, fmt.Errorf("list nodes: %w", err), nil
	}
	list.nodes = map[string]map[string]string{}
	for _, node := range nodes.Items {
		list.nodes[node.Name] = node.Labels
	}
	return list, nil, nil
}

// commonLabels returns the labels that all nodes of a job have; none if a node is unknown.
func (p priceList) commonLabels(job Job) map[string]string {
	var common map[string]string
	for _, pod := range job.Status().Pods {
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

func (p priceList) unpriced(lines []UsageLine) []string {
	var names []string
	for _, line := range lines {
		prices, priced := p.byNamespace[line.Namespace]
		if !priced {
			continue
		}
		for _, name := range prices.On(nil).Unpriced(line.use) {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// sumUsage returns a line for each job, or for each group of jobs.
func sumUsage(jobs []Job, prices priceList, sameGroup func(job, line UsageLine) bool) []UsageLine {
	lines := []UsageLine{} // [] in JSON if there are none
	for _, job := range jobs {
		line := UsageLine{Namespace: job.Namespace, CreatedBy: job.creator(), Jobs: 1, use: cost.Consumed(job.Status().Consumption)}
		if p, priced := prices.byNamespace[job.Namespace]; priced {
			amount := p.On(prices.commonLabels(job)).Of(line.use)
			line.Cost, line.Currency = &amount, p.Currency
		}
		line.setHours()
		if sameGroup == nil {
			line.Job, line.Kind, line.Phase = job.Name, job.Kind, string(job.Phase())
			lines = append(lines, line)
			continue
		}
		if i := slices.IndexFunc(lines, func(have UsageLine) bool { return sameGroup(line, have) }); i >= 0 {
			lines[i] = lines[i].Plus(line)
			continue
		}
		lines = append(lines, line)
	}
	return lines
}

func (l *UsageLine) setHours() {
	l.CoreHours, l.GiBHours, l.DeviceHours, l.GPUHours = l.use.CoreHours, l.use.GiBHours, l.use.DeviceHours, l.use.GPUHours()
}

// Plus returns the sum of two lines. Costs are added without regard to their currencies.
func (l UsageLine) Plus(other UsageLine) UsageLine {
	l.Jobs += other.Jobs
	l.use = l.use.Plus(other.use)
	l.setHours()
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

func sortUsage(lines []UsageLine, by string) {
	amount := func(l UsageLine) float64 {
		if l.Cost == nil {
			return 0
		}
		return *l.Cost
	}
	slices.SortStableFunc(lines, func(a, b UsageLine) int {
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
