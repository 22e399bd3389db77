package dashboard

import (
	"errors"

	"opendatahub.io/mpijob/internal/jobs"
	"opendatahub.io/mpijob/internal/phrase"
)

// Comparison is two jobs side by side.
type Comparison struct {
	Note     string              `json:"note,omitempty"`
	Sections []ComparisonSection `json:"sections"`
	Diff     string              `json:"diff,omitempty"`
	Commands []Snippet           `json:"commands"`
}

// ComparisonSection is a part of a comparison.
type ComparisonSection struct {
	Title string               `json:"title"`
	Rows  []jobs.ComparedValue `json:"rows"`
}

// compare compares two jobs. With the parameter uid for each of them, a deleted job is found by its report if another job has its name.
func (s *Server) compare(c *call) (any, error) {
	var found [2]jobs.Job
	var errs [2]error
	references, uids := list(c.URL.Query(), "job"), list(c.URL.Query(), "uid")
	if len(references) != 2 {
		return nil, jobs.Invalid(jobs.FieldError{Field: "job", Reason: "must name two jobs, as KIND/NAME"})
	}
	if len(uids) != 0 && len(uids) != 2 {
		return nil, jobs.Invalid(jobs.FieldError{Field: "uid", Reason: "must be set for both jobs or for none"})
	}
	// The command line names jobs without UIDs.
	isNamed := true
	for i, reference := range references {
		found[i], errs[i] = c.jobs.Find(c.ctx, c.namespace(), reference)
		if len(uids) > 0 && (errs[i] != nil || string(found[i].UID) != uids[i]) {
			isNamed = false
			found[i], errs[i] = c.findUID(c.namespace(), reference, uids[i])
		}
	}
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	prices, err := c.jobs.Prices(c.ctx, c.namespace())
	if err != nil {
		prices = nil // an error in the prices does not keep jobs from being compared
	}
	result := jobs.Compare(found[0], found[1], prices, s.now())
	shown := Comparison{Note: result.Note, Sections: []ComparisonSection{}, Commands: []Snippet{}}
	if isNamed {
		shown.Commands = append(shown.Commands, Snippet{"Command line", "sh", s.options.Program + " " + phrase.QuoteCommand([]string{"compare", found[0].String(), found[1].String(), "-n", c.namespace()})})
	}
	for _, section := range []struct {
		title string
		rows  []jobs.ComparedValue
	}{{"Run", result.Run}, {"Findings", result.Findings}, {"Reserved", result.Usage}, {"Fields", result.Fields}} {
		if len(section.rows) > 0 {
			shown.Sections = append(shown.Sections, ComparisonSection{section.title, section.rows})
		}
	}
	return shown, nil
}
