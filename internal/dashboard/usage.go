package dashboard

import (
	"errors"
	"slices"
	"strings"

	"opendatahub.io/mpijob/internal/jobs"
	"opendatahub.io/mpijob/internal/phrase"
)

// Usage is what jobs have held.
type Usage struct {
	Lines []jobs.UsageLine `json:"lines"`
	// Failures are the causes for which jobs failed in the period, the most frequent first.
	Failures []FailureCount `json:"failures"`
	// Estimated is how many jobs have a report of an earlier version, so that their part in the period is estimated.
	Estimated int       `json:"estimated"`
	Unpriced  []string  `json:"unpriced"`
	Missing   []string  `json:"missing"`
	Commands  []Snippet `json:"commands"`
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
	found := Usage{Lines: usage.Lines, Estimated: usage.Estimated, Unpriced: orEmpty(usage.Unpriced), Missing: []string{}}
	for _, omitted := range usage.Omitted {
		found.Missing = append(found.Missing, omitted.Kind+"s")
	}
	found.Lines = found.Lines[:min(len(found.Lines), 1000)]
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
