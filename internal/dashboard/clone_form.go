package dashboard

import (
	"slices"
	"time"

	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/internal/jobs"
	"opendatahub.io/mpijob/internal/phrase"
)

// CloneForm is what a form needs to clone a job.
type CloneForm struct {
	// Request creates the clone, under the next free name.
	Request SpecRequest `json:"request"`
	// Kept are the paths of the job's fields that the request does not contain, and that its clone keeps.
	Kept []string `json:"kept"`
	// Note is why the request is YAML: no specification describes the job. It is empty otherwise.
	Note string `json:"note,omitempty"`
}

// form returns what a form needs to clone a job.
func (s *Server) form(c *call) (any, error) {
	job, err := c.find()
	if err != nil {
		return nil, err
	}
	written, err := job.Written()
	if err != nil {
		return nil, err
	}
	clone, _, err := c.jobs.Editable(c.ctx, job)
	if err != nil {
		return nil, err
	}
	spec, kept, err := c.jobs.SpecOf(c.ctx, job)
	if err != nil {
		status, problem := problemOf(err)
		if status >= 500 || status == 401 {
			return nil, err
		}
		text, err := yaml.Marshal(clone.Object)
		return CloneForm{Request: SpecRequest{Spec: jobs.Spec{Namespace: job.Namespace}, YAML: string(text), Original: job.String()}, Kept: []string{}, Note: problem.Message}, err
	}
	request := SpecRequest{
		Spec: spec, CommandLine: commandLine(spec.Command), FlagLine: phrase.QuoteCommand(spec.MPIFlags), Description: written.GetAnnotations()[descriptionNote],
		DeadlineSeconds: int64(spec.Deadline / time.Second), GangTimeoutSeconds: int64(spec.GangTimeout / time.Second), Original: job.String(),
	}
	request.Spec.Name, request.Spec.Deadline, request.Spec.GangTimeout = clone.GetName(), 0, 0
	separatePods(&request)
	kept = slices.DeleteFunc(kept, func(path string) bool { return path == "metadata.annotations["+descriptionNote+"]" })
	return CloneForm{Request: request, Kept: orEmpty(kept)}, nil
}

// commandLine returns the text that jobs.ParseCommand reads as a command.
func commandLine(command []string) string {
	if len(command) == 3 && command[0] == "sh" && command[1] == "-c" {
		if parsed, err := jobs.ParseCommand(command[2]); err == nil && slices.Equal(parsed, command) {
			return command[2]
		}
	}
	return phrase.QuoteCommand(command)
}
