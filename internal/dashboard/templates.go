package dashboard

import (
	"errors"
	"time"

	"opendatahub.io/mpijob/internal/jobs"
)

// Templates are the templates of a namespace.
type Templates struct {
	Templates []Template `json:"templates"`
}

// Template is a saved job with parameters.
type Template struct {
	Name        string              `json:"name"`
	Description string              `json:"description,omitempty"`
	Kind        string              `json:"kind,omitempty"`
	Created     time.Time           `json:"created"`
	Parameters  []TemplateParameter `json:"parameters"`
	// Error is set if the template is not valid.
	Error string `json:"error,omitempty"`
}

// TemplateParameter is a value that a template leaves open.
type TemplateParameter struct {
	Name     string `json:"name"`
	Default  string `json:"default,omitempty"`
	Required bool   `json:"required"`
}

// TemplateRequest saves a job as a template. Texts of YAML such as ${WORKERS:-4} are its parameters.
type TemplateRequest struct {
	Name        string      `json:"name"`
	Description string      `json:"description,omitempty"`
	Job         SpecRequest `json:"job"`
	// Replace overwrites a template of the same name.
	Replace bool `json:"replace,omitempty"`
}

// TemplateResult is a template that was saved, or a problem.
type TemplateResult struct {
	Message string   `json:"message,omitempty"`
	Problem *Problem `json:"problem,omitempty"`
}

// templates returns the templates of a namespace, which its users share with the command line and the SDK.
func (s *Server) templates(c *call) (any, error) {
	all, err := c.jobs.Templates(c.ctx, c.namespace())
	if err != nil {
		return nil, err
	}
	found := Templates{Templates: []Template{}}
	for _, template := range all {
		shown := Template{Name: template.Name, Description: template.Description, Created: template.Created.UTC(), Parameters: []TemplateParameter{}}
		if template.Err != nil {
			shown.Error = template.Err.Error()
		} else {
			shown.Kind = template.Job.GetKind()
		}
		for _, name := range keys(template.Parameters) {
			value := template.Parameters[name]
			parameter := TemplateParameter{Name: name, Required: value == nil}
			if value != nil {
				parameter.Default = *value
			}
			shown.Parameters = append(shown.Parameters, parameter)
		}
		found.Templates = append(found.Templates, shown)
	}
	return found, nil
}

// saveTemplate stores the job of a request as a template of its namespace.
func (s *Server) saveTemplate(c *call) (any, error) {
	request, err := body[TemplateRequest](c)
	if err != nil {
		return nil, err
	}
	object, _, problem, err := c.build(&request.Job)
	switch {
	case err != nil:
		return nil, err
	case problem != nil:
		return TemplateResult{Problem: problem}, nil
	}
	template, err := jobs.NewTemplate(request.Name, request.Description, object, request.Job.YAML == "")
	if err != nil {
		return TemplateResult{Problem: invalid(err)}, nil
	}
	replaced, err := c.jobs.SaveTemplate(c.ctx, c.namespace(), template, request.Replace)
	if _, exists := errors.AsType[*jobs.ExistsError](err); exists {
		return TemplateResult{Problem: invalid(err)}, nil
	}
	if err != nil {
		return nil, err
	}
	text := "The template " + template.Name + " is saved in project " + c.namespace() + "."
	if replaced {
		text = "The template " + template.Name + " is replaced."
	}
	return TemplateResult{Message: text}, nil
}

// removeTemplate deletes a template.
func (s *Server) removeTemplate(c *call) (any, error) {
	name := c.PathValue("name")
	if err := c.jobs.DeleteTemplate(c.ctx, c.namespace(), name); err != nil {
		return nil, err
	}
	return ActionResult{"Deleted", "The template " + name + " is deleted. Jobs that were created from it stay."}, nil
}
