package dashboard

import (
	"fmt"

	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/internal/jobs"
	"opendatahub.io/mpijob/internal/phrase"
)

// Edit is a job as a new one that the user can change and create.
type Edit struct {
	// YAML has the next free name. Secrets are masked: what is left masked is taken from the job, if it is not deleted.
	YAML string `json:"yaml"`
	// Original and OriginalUID are those of the SpecRequest that creates it.
	Original    string `json:"original"`
	OriginalUID string `json:"originalUID,omitempty"`
	// Name is the name in the YAML.
	Name string `json:"name"`
	// Masked is the number of masked values.
	Masked int `json:"masked"`
}

// edit returns a job as a new one.
func (s *Server) edit(c *call) (any, error) {
	job, err := c.findOrUID()
	if err != nil {
		return nil, err
	}
	object, masked, err := c.jobs.Editable(c.ctx, job)
	if err != nil {
		return nil, err
	}
	text, err := yaml.Marshal(object.Object)
	return Edit{YAML: string(text), Original: job.String(), OriginalUID: string(job.UID), Name: object.GetName(), Masked: masked}, err
}

// describeEdited describes a job that was made from another by editing its YAML.
func (s *Server) describeEdited(c *call, draft *Draft, clone *cloned) error {
	text, err := yaml.Marshal(clone.shown.Job.Object)
	if err != nil {
		return err
	}
	draft.YAML = string(text)
	if draft.Diff, err = clone.diff(); err != nil {
		return err
	}
	draft.Words = []string{fmt.Sprintf("%s %s in namespace %s, made from %s.", clone.Job.GetKind(), clone.Job.GetName(), clone.Job.GetNamespace(), clone.original)}
	if line := clone.command(); line != nil {
		draft.Commands = []Snippet{{"Command line", "sh", s.options.Program + " " + phrase.QuoteCommand(line)}}
	}
	if note := c.jobs.RuntimeNote(c.ctx, clone.original); note != "" && clone.original.Object == nil {
		draft.Warnings = append(draft.Warnings, note)
	}
	return nil
}

// maskedProblem returns the problem of masks in an edited job, by the paths of their fields.
func maskedProblem(masked *jobs.MaskedError) *Problem {
	problem := &Problem{Code: "Masked", Message: masked.Error()}
	for _, field := range masked.Fields {
		problem.Fields = append(problem.Fields, FieldProblem{Field: field.Path, Reason: "is masked; write the secret, or remove the field"})
	}
	return problem
}
