package dashboard

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"opendatahub.io/mpijob/internal/jobs"
	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/phrase"
)

// CloneRequest asks for a job with the fields of another and some changes.
type CloneRequest struct {
	// Name is the name of the new job; empty for the next free number.
	Name string `json:"name,omitempty"`
	// Changes are FIELD=VALUE, such as workers=8.
	Changes []string `json:"changes"`
	// DryRun only previews.
	DryRun bool `json:"dryRun,omitempty"`
}

// clone runs a job again with changes, or with dryRun shows what would change.
func (s *Server) clone(c *call) (any, error) {
	request, err := body[CloneRequest](c)
	if err != nil {
		return nil, err
	}
	job, err := c.findOrUID()
	if err != nil {
		return nil, err
	}
	var changes []jobs.Change
	line := []string{"clone", job.Name}
	if request.Name != "" {
		line = append(line, request.Name)
	}
	line = append(line, "-n", job.Namespace)
	for _, text := range request.Changes {
		change, err := jobs.ParseChange(text)
		if err != nil {
			return nil, err
		}
		changes = append(changes, change)
		line = append(line, "--set", text)
	}
	if reasons := validation.IsDNS1035Label(request.Name); request.Name != "" && len(reasons) > 0 {
		return nil, jobs.Invalid(jobs.FieldError{Field: "name", Value: request.Name, Reason: "is not allowed; use lower-case letters, digits and -, and start with a letter"})
	}
	clone, err := c.jobs.Clone(c.ctx, job, request.Name, changes...)
	if err != nil {
		return nil, err
	}
	diff, err := jobs.Diff(job.String(), clone.Original, jobs.FromObject(clone.Job).String(), clone.Job)
	if err != nil {
		return nil, err
	}
	draft, err := s.submit(c, clone.Job, request.DryRun)
	if note := c.jobs.RuntimeNote(c.ctx, job); note != "" && job.Object == nil {
		draft.Warnings = append(draft.Warnings, note)
	}
	if clone.Note != "" {
		draft.Warnings = append(draft.Warnings, clone.Note)
	}
	draft.Diff = diff
	draft.Commands = []Snippet{{"Command line", "sh", s.options.Program + " " + phrase.QuoteCommand(line)}}
	return draft, err
}

// cloned is a clone with its original.
type cloned struct {
	original jobs.Job
	jobs.Clone
	// shown is the clone of YAML as the user sees it, with the secrets of the original masked; nil for other clones.
	shown *jobs.Clone
}

func (c cloned) diff() (string, error) {
	shown := c.Clone
	if c.shown != nil {
		shown = *c.shown
	}
	return jobs.Diff(c.original.String(), shown.Original, jobs.FromObject(c.Job).String(), shown.Job)
}

// command returns what clones the job on the command line; nil if no command does that without showing a secret.
func (c cloned) command() []string {
	if c.Job.GetKind() != c.Original.GetKind() || c.Job.GetNamespace() != c.Original.GetNamespace() {
		return nil
	}
	changes := c.ChangesOf()
	if c.shown != nil && slices.ContainsFunc(c.shown.ChangesOf(), func(change jobs.Change) bool { return strings.Contains(change.Value, logs.Masked) }) {
		return nil
	}
	line := []string{"clone", c.original.String(), c.Job.GetName(), "-n", c.Job.GetNamespace()}
	for _, change := range changes {
		line = append(line, "--set", change.String())
	}
	return line
}
