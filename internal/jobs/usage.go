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
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/cost"
	"opendatahub.io/mpijob/internal/mpi"
)

// UsageSorts are the values that usage can be sorted by.
func UsageSorts() []string { return []string{"gpu", "cost", "cores", "memory", "jobs", "name"} }

// What usage can be summed up by.
const (
	GroupJob       = "job"
	GroupNamespace = "namespace"
	GroupUser      = "user"
	GroupQueue     = "queue"
	GroupLabel     = "label"
)

// UsageGroups are the values of UsageQuery.By.
func UsageGroups() []string {
	return []string{GroupJob, GroupNamespace, GroupUser, GroupQueue, GroupLabel}
}

// ParseUsageGroup reads what usage is summed up by: a value of UsageGroups, project for a namespace, or label=KEY.
func ParseUsageGroup(text string) (by, label string, err error) {
	by, label, _ = strings.Cut(text, "=")
	switch {
	case by == "project" && label == "":
		return GroupNamespace, "", nil
	case by == GroupLabel && len(validation.IsQualifiedName(label)) > 0:
		return "", "", Invalid(FieldError{Field: "by", Value: text, Reason: "must name a label, such as label=team"})
	case !slices.Contains(UsageGroups(), by) || by != GroupLabel && label != "":
		return "", "", Invalid(FieldError{Field: "by", Value: text, Reason: "is not allowed; use job, namespace, user, queue or label=KEY"})
	}
	return by, label, nil
}

// UsageQuery selects the jobs whose usage is summed up.
type UsageQuery struct {
	// Namespaces are those of the jobs; an empty name is all namespaces.
	Namespaces []string
	// Since and Until are the period. Of a job that ran beyond it, only the part within the period counts. Zero is no limit.
	Since, Until time.Time
	// By is what jobs are summed up by, a value of UsageGroups; empty for a line for each job. A user, queue or label whose jobs
	// have prices in several currencies has a line for each.
	By string
	// Label is the key of the label that jobs are summed up by, if By is GroupLabel.
	Label string
	// Sort is a value of UsageSorts; empty for gpu.
	Sort string
}

// Usage is the result of a UsageQuery.
type Usage struct {
	Lines []UsageLine
	// Omitted are objects that the user may not list, Nodes if prices depend on them, and a ConfigMap with sums of deleted reports that are
	// damaged.
	Omitted []Omission
	// Estimated is how many jobs have a report of an earlier version, without the times at which they held resources. Their part in
	// the period is estimated.
	Estimated int
	// Unpriced are devices without a price; the cost does not include them.
	Unpriced []string
	// Deleted is how many jobs have a part in the lines by the sums that are kept of deleted reports.
	Deleted int
	// IncompleteUntil is the end of the latest job whose report was deleted, if the user may not read the sums that are kept of such
	// reports and it is in the period. Up to then, jobs may be missing.
	IncompleteUntil time.Time
}

// UsageLine is the usage of one job, or of the jobs of a namespace or a user.
type UsageLine struct {
	Namespace string `json:"namespace,omitempty"`
	Job       string `json:"job,omitempty"`
	Kind      string `json:"kind,omitempty"`
	UID       string `json:"uid,omitempty"`
	Phase     string `json:"phase,omitempty"`
	// CreatedBy is the user who created the jobs; empty if unknown.
	CreatedBy string `json:"createdBy,omitempty"`
	// Queue is the Kueue queue of the jobs, and Label the value of the label that they are summed up by; empty if they have none.
	Queue       string             `json:"queue,omitempty"`
	Label       string             `json:"label,omitempty"`
	Jobs        int                `json:"jobs"`
	CoreHours   float64            `json:"coreHours"`
	GiBHours    float64            `json:"gibHours"`
	DeviceHours map[string]float64 `json:"deviceHours,omitempty"`
	GPUHours    float64            `json:"gpuHours"`
	// Measured is how many of the jobs have a measured usage. Of those, UsedCoreHours, UsedGiBHours and UsedGPUHours are what the pods
	// with ranks used; nil if it is unknown of all.
	Measured      int      `json:"measured,omitempty"`
	UsedCoreHours *float64 `json:"usedCoreHours,omitempty"`
	UsedGiBHours  *float64 `json:"usedGibHours,omitempty"`
	UsedGPUHours  *float64 `json:"usedGpuHours,omitempty"`
	Cost          *float64 `json:"cost,omitempty"`
	Currency      string   `json:"currency,omitempty"`

	use cost.Use
}

// Usage sums up what jobs have held, deleted jobs with a report included. For users who may read the sums that are kept of deleted
// reports, these are included, too.
func (c *Client) Usage(ctx context.Context, query UsageQuery) (Usage, error) {
	var usage Usage
	var jobs []Job
	for _, namespace := range query.Namespaces {
		list, err := c.List(ctx, Selection{Namespace: namespace, Deleted: true})
		if err != nil {
			return Usage{}, err
		}
		jobs = append(jobs, slices.DeleteFunc(list.Jobs, func(job Job) bool { return job.Report == nil || !query.selects(job) })...)
		usage.omit(list.Omitted...)
	}
	// Sums are read after reports, so that each report is found in one of them.
	sums, readable, damaged, err := c.ledgers(ctx, query.Namespaces)
	if err != nil {
		return Usage{}, err
	}
	usage.omit(damaged...)
	if !readable {
		if usage.IncompleteUntil, err = c.deletedUntil(ctx, query.Namespaces); err != nil {
			return Usage{}, err
		}
		if !usage.IncompleteUntil.After(query.Since) {
			usage.IncompleteUntil = time.Time{}
		}
	}
	jobs = slices.DeleteFunc(jobs, sums.counts)
	prices, nodesErr, err := c.pricesFor(ctx, jobs, slices.Collect(maps.Keys(sums)))
	if err != nil {
		return Usage{}, err
	}
	if nodesErr != nil {
		usage.omit(Omission{Kind: "Node", Err: nodesErr})
	}
	var lines []UsageLine
	for _, job := range jobs {
		line, isEstimate := query.lineOf(job, prices)
		if isEstimate {
			usage.Estimated++
		}
		lines = append(lines, line)
	}
	for _, line := range sums.lines(query, prices) {
		usage.Deleted += line.Jobs
		lines = append(lines, line)
	}
	usage.Unpriced, usage.Lines = prices.unpriced(lines), query.sum(lines)
	sortUsage(usage.Lines, query.Sort)
	return usage, nil
}

// Measured returns how many jobs there are, and of how many agents measured the usage.
func (u Usage) Measured() (jobs, measured int) {
	for _, line := range u.Lines {
		jobs, measured = jobs+line.Jobs, measured+line.Measured
	}
	return jobs, measured
}

// omit adds omissions, one of each kind.
func (u *Usage) omit(omitted ...Omission) {
	for _, one := range omitted {
		if !slices.ContainsFunc(u.Omitted, func(have Omission) bool { return have.Kind == one.Kind }) {
			u.Omitted = append(u.Omitted, one)
		}
	}
}

// selects reports whether a job ran or waited in the period.
func (q UsageQuery) selects(job Job) bool {
	status := job.Status()
	return ranSince(status, q.Since) && (q.Until.IsZero() || status.StartTime == nil || status.StartTime.Time.Before(q.Until))
}

// lineOf returns the usage of a job in the period, and whether it is an estimate.
func (q UsageQuery) lineOf(job Job, prices priceList) (line UsageLine, isEstimate bool) {
	status := job.Status()
	line = UsageLine{Namespace: job.Namespace, Job: job.Name, Kind: job.Kind, UID: string(job.UID), Phase: string(job.Phase()), CreatedBy: job.creator(), Queue: job.queue(), Jobs: 1}
	if q.By == GroupLabel {
		line.Label = job.label(q.Label)
	}
	var began time.Time
	for _, when := range []*metav1.Time{status.StartTime, status.RunningTime} {
		if when != nil {
			began = when.Time
		}
	}
	line.use, isEstimate = cost.Between(status.Consumption, began, q.Since, q.Until)
	if p, priced := prices.byNamespace[job.Namespace]; priced {
		amount := p.On(prices.commonLabels(job)).Of(line.use)
		line.Cost, line.Currency = &amount, p.Currency
	}
	line.setHours()
	if used, measured := cost.UsedBetween(status.Usage, q.Since, q.Until); measured {
		line.Measured, line.UsedCoreHours, line.UsedGiBHours, line.UsedGPUHours = 1, used.CoreHours, used.GiBHours, used.GPUHours
	}
	return line, isEstimate
}

// sum returns the lines of jobs, or their sums by what the query asks for.
func (q UsageQuery) sum(all []UsageLine) []UsageLine {
	lines := []UsageLine{} // [] in JSON if there are none
	for _, line := range all {
		group := UsageLine{
			Jobs: line.Jobs, Cost: line.Cost, Currency: line.Currency, use: line.use, Measured: line.Measured,
			UsedCoreHours: line.UsedCoreHours, UsedGiBHours: line.UsedGiBHours, UsedGPUHours: line.UsedGPUHours,
		}
		group.setHours()
		switch q.By {
		case GroupNamespace:
			group.Namespace = line.Namespace
		case GroupUser:
			group.CreatedBy = line.CreatedBy
		case GroupQueue:
			// Each namespace has queues of its own.
			group.Namespace, group.Queue = line.Namespace, line.Queue
		case GroupLabel:
			group.Label = line.Label
		default:
			lines = append(lines, line)
			continue
		}
		i := slices.IndexFunc(lines, func(have UsageLine) bool {
			sameCurrency := group.Cost == nil || have.Cost == nil || group.Currency == have.Currency
			return sameCurrency && have.Namespace == group.Namespace && have.CreatedBy == group.CreatedBy && have.Queue == group.Queue && have.Label == group.Label
		})
		if i < 0 {
			lines = append(lines, group)
			continue
		}
		lines[i] = lines[i].Plus(group)
	}
	return lines
}

// queue returns the Kueue queue of a job; empty if it has none.
func (j Job) queue() string {
	status := j.Status()
	switch {
	case status.Waited != nil && status.Waited.Queue != "":
		return status.Waited.Queue
	case status.Scheduling != nil && status.Scheduling.Queue != "":
		return status.Scheduling.Queue
	}
	return j.label(mpi.LabelQueue)
}

// label returns the value of a label of a job: from the job, or from the manifest in its report. It is empty if it is unknown.
func (j Job) label(key string) string {
	if j.Object != nil {
		return j.Object.GetLabels()[key]
	}
	specification := j.Status().Specification
	if specification == nil {
		return ""
	}
	var object struct {
		Metadata struct {
			Labels map[string]string `json:"labels"`
		} `json:"metadata"`
	}
	if err := yaml.Unmarshal([]byte(specification.Manifest), &object); err != nil {
		return ""
	}
	return object.Metadata.Labels[key]
}

// creator returns the user who created a job: from the job, or from its report. It is empty if unknown.
func (j Job) creator() string {
	if j.Object != nil {
		return j.Object.GetAnnotations()[mpi.AnnotationCreator]
	}
	if run := j.Status().Run; run != nil && (run.Creator != "" || run.FieldManager != "") {
		return run.Creator
	}
	for _, entry := range j.Status().Timeline {
		if _, user, found := strings.Cut(entry.Detail, " By "); found && entry.Event == "Created" {
			return strings.TrimSuffix(user, ".")
		}
	}
	return ""
}

// ParseSince reads the begin of a period, like ParsePeriod.
func ParseSince(text string, now time.Time) (time.Time, error) {
	return parseTime("since", text, now)
}

// ParsePeriod reads the limits of a period: durations before now such as 12h or 30d, days such as 2026-11-01, which begin at
// midnight in the location of now, or times such as 2026-11-01T08:00:00Z. The period ends just before its end. An empty text is the zero
// time, no limit.
func ParsePeriod(since, until string, now time.Time) (from, to time.Time, err error) {
	if from, err = ParseSince(since, now); err != nil {
		return from, to, err
	}
	if to, err = parseTime("until", until, now); err != nil {
		return from, to, err
	}
	if !to.IsZero() && !from.Before(to) {
		return from, to, Invalid(FieldError{Field: "until", Value: until, Reason: "must be after since, which is " + from.Format(time.RFC3339)})
	}
	return from, to, nil
}

func parseTime(field, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if day, err := time.ParseInLocation(time.DateOnly, text, now.Location()); err == nil {
		return day, nil
	}
	if moment, err := time.Parse(time.RFC3339, text); err == nil {
		return moment, nil
	}
	length, err := time.ParseDuration(text)
	if days, found := strings.CutSuffix(text, "d"); found {
		var n int
		if n, err = strconv.Atoi(days); err == nil {
			length = time.Duration(n) * 24 * time.Hour
		}
	}
	if err != nil || length <= 0 {
		return time.Time{}, Invalid(FieldError{Field: field, Value: text, Reason: "must be a duration such as 12h or 30d, a day such as 2026-11-01, or a time such as 2026-11-01T08:00:00Z"})
	}
	return now.Add(-length), nil
}

// ranSince reports whether a job held resources after a moment.
func ranSince(status v1alpha1.JobReportStatus, since time.Time) bool {
	until, held := status.CompletionTime, status.Consumption
	if until == nil && held != nil {
		until = &held.Until
	}
	if since.IsZero() || until == nil || until.After(since) {
		return true
	}
	if held == nil || len(held.Steps) == 0 {
		return false
	}
	// Pods may outlive their job.
	use, _ := cost.Between(held, time.Time{}, since, time.Time{})
	return !use.IsNone()
}

// priceList is the prices of some namespaces, and the labels of nodes if prices depend on them.
type priceList struct {
	byNamespace map[string]cost.Prices
	nodes       map[string]map[string]string
}

// pricesFor reads the prices for jobs and further namespaces. If nodes cannot be listed, jobs cost the prices without a label.
func (c *Client) pricesFor(ctx context.Context, jobs []Job, namespaces []string) (list priceList, nodesErr, err error) {
	list.byNamespace = map[string]cost.Prices{}
	read := map[string]bool{}
	byNode := false
	for _, job := range jobs {
		namespaces = append(namespaces, job.Namespace)
	}
	for _, namespace := range namespaces {
		if read[namespace] {
			continue
		}
		read[namespace] = true
		prices, err := c.Prices(ctx, namespace)
		if err != nil {
			return list, nil, err
		}
		if prices != nil {
			list.byNamespace[namespace] = *prices
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

func (l *UsageLine) setHours() {
	l.CoreHours, l.GiBHours, l.DeviceHours, l.GPUHours = l.use.CoreHours, l.use.GiBHours, l.use.DeviceHours, l.use.GPUHours()
}

// Plus returns the sum of two lines. Costs are added without regard to their currencies.
func (l UsageLine) Plus(other UsageLine) UsageLine {
	l.Jobs += other.Jobs
	l.use = l.use.Plus(other.use)
	l.setHours()
	l.Measured += other.Measured
	l.UsedCoreHours, l.UsedGiBHours, l.UsedGPUHours = cost.PlusKnown(l.UsedCoreHours, other.UsedCoreHours), cost.PlusKnown(l.UsedGiBHours, other.UsedGiBHours), cost.PlusKnown(l.UsedGPUHours, other.UsedGPUHours)
	if l.Cost == nil {
		l.Currency = other.Currency
	}
	l.Cost = cost.PlusKnown(l.Cost, other.Cost)
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
		return cmp.Or(first, strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Job, b.Job), strings.Compare(a.Kind, b.Kind), strings.Compare(a.Queue, b.Queue), strings.Compare(a.Label, b.Label))
	})
}
