package dashboard

import (
	"errors"
	"slices"
	"strings"
	"time"

	"opendatahub.io/mpijob/internal/jobs"
	"opendatahub.io/mpijob/internal/phrase"
)

// Usage is what jobs have held.
type Usage struct {
	Lines []jobs.UsageLine `json:"lines"`
	// Omitted is how many lines are left out after the first 1,000. The parameter all=true leaves out none.
	Omitted int `json:"omitted"`
	// Total is the sum of all lines, including those that are left out.
	Total UsageTotal `json:"total"`
	// Failures are the causes for which jobs failed in the period, the most frequent first.
	Failures []FailureCount `json:"failures"`
	// Estimated is how many jobs have a report of an earlier version, so that their part in the period is estimated.
	Estimated int `json:"estimated"`
	// Deleted is how many of the jobs are known by the sums that are kept of deleted reports.
	Deleted int `json:"deleted"`
	// IncompleteUntil is the end of the latest job whose report was deleted, if it is in the period and the user may not read the sums
	// that are kept of such reports. Up to then, jobs may be missing.
	IncompleteUntil *time.Time `json:"incompleteUntil,omitempty"`
	Unpriced        []string   `json:"unpriced"`
	Missing         []string   `json:"missing"`
	Commands        []Snippet  `json:"commands"`
}

// UsageTotal is a sum of lines.
type UsageTotal struct {
	Jobs      int     `json:"jobs"`
	CoreHours float64 `json:"coreHours"`
	GiBHours  float64 `json:"gibHours"`
	GPUHours  float64 `json:"gpuHours"`
	// Measured is how many of the jobs have a measured usage. The used hours are those of these jobs; they are left out if no job has them.
	Measured      int      `json:"measured"`
	UsedCoreHours *float64 `json:"usedCoreHours,omitempty"`
	UsedGiBHours  *float64 `json:"usedGibHours,omitempty"`
	UsedGPUHours  *float64 `json:"usedGpuHours,omitempty"`
	// Costs are by currency. They are empty without prices.
	Costs map[string]float64 `json:"costs"`
}

// maxUsageLines is the maximum number of lines that a page shows.
const maxUsageLines = 1000

// usageOf returns lines with their total: all of them, or the first ones.
func usageOf(lines []jobs.UsageLine, all bool) Usage {
	total := UsageTotal{Costs: map[string]float64{}}
	add := func(sum **float64, hours *float64) {
		switch {
		case hours == nil:
		case *sum == nil:
			*sum = new(*hours)
		default:
			**sum += *hours
		}
	}
	for i := range lines {
		line := &lines[i]
		total.Jobs += line.Jobs
		total.CoreHours += line.CoreHours
		total.GiBHours += line.GiBHours
		total.GPUHours += line.GPUHours
		total.Measured += line.Measured
		add(&total.UsedCoreHours, line.UsedCoreHours)
		add(&total.UsedGiBHours, line.UsedGiBHours)
		add(&total.UsedGPUHours, line.UsedGPUHours)
		if line.Cost != nil {
			total.Costs[line.Currency] += *line.Cost
		}
	}
	shown := lines
	if !all {
		shown = lines[:min(len(lines), maxUsageLines)]
	}
	return Usage{Lines: shown, Omitted: len(lines) - len(shown), Total: total}
}

// usage returns what jobs have held.
func (s *Server) usage(c *call) (any, error) {
	values := c.URL.Query()
	since, until, err := jobs.ParsePeriod(values.Get("since"), values.Get("until"), s.now())
	if err != nil {
		return nil, err
	}
	if sort := values.Get("sort"); sort != "" && !slices.Contains(jobs.UsageSorts(), sort) {
		return nil, jobs.Invalid(jobs.FieldError{Field: "sort", Value: sort, Reason: "is not allowed; use " + strings.Join(jobs.UsageSorts(), ", ")})
	}
	query := jobs.UsageQuery{Since: since, Until: until, Sort: values.Get("sort")}
	if by := values.Get("by"); by != "" {
		if query.By, query.Label, err = jobs.ParseUsageGroup(by); err != nil {
			return nil, err
		}
	}
	if namespace := values.Get("namespace"); namespace != "" {
		query.Namespaces = []string{namespace}
	} else if query.Namespaces, err = s.usageNamespaces(c); err != nil {
		return nil, err
	}
	usage, err := c.jobs.Usage(c.ctx, query)
	if err != nil {
		return nil, err
	}
	found := usageOf(usage.Lines, values.Get("all") == "true")
	found.Estimated, found.Unpriced, found.Missing = usage.Estimated, orEmpty(usage.Unpriced), []string{}
	found.Deleted = usage.Deleted
	if !usage.IncompleteUntil.IsZero() {
		found.IncompleteUntil = &usage.IncompleteUntil
	}
	for _, omitted := range usage.Omitted {
		found.Missing = append(found.Missing, omitted.Kind+"s")
	}
	if found.Failures, err = s.failures(c, since, until, values.Get("namespace")); err != nil {
		return nil, err
	}
	line := []string{"usage"}
	if values.Get("namespace") == "" {
		line = append(line, "-A")
	} else {
		line = append(line, "-n", values.Get("namespace"))
	}
	for _, flag := range []string{"since", "until"} {
		if value := values.Get(flag); value != "" {
			line = append(line, "--"+flag, value)
		}
	}
	found.Commands = []Snippet{{"Command line", "sh", s.options.Program + " " + phrase.QuoteCommand(line)}}
	return found, nil
}

// usageNamespaces returns the namespaces whose usage is shown: all at once for users who may list jobs and reports everywhere, else those
// with jobs that the user sees.
func (s *Server) usageNamespaces(c *call) ([]string, error) {
	mpiJobs, err1 := c.may(c.ctx, "list", resourceOf(jobs.Kinds()[0]).GroupResource(), "")
	reports, err2 := c.may(c.ctx, "list", reportResource, "")
	if err := errors.Join(err1, err2); err != nil || mpiJobs && reports {
		return []string{""}, err
	}
	visible, _, _, err := s.visible(c.ctx, c.user)
	set := map[string]bool{}
	for _, row := range visible {
		set[row.Namespace] = true
	}
	return keys(set), err
}
