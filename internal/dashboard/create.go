package dashboard

import (
	"errors"
	"fmt"

	"opendatahub.io/mpijob/internal/phrase"
)

// create creates the job of a specification or of YAML, or with dryRun checks it as the API server and the webhooks would.
// A job that cannot be created is a draft with a problem, so that the page shows both.
func (s *Server) create(c *call) (any, error) {
	request, err := body[SpecRequest](c)
	if err != nil {
		return nil, err
	}
	object, clone, problem, err := c.build(&request)
	if err != nil {
		return nil, err
	}
	if problem != nil {
		problem.locate(request.YAML)
		return Draft{Problem: problem}, nil
	}
	draft, err := s.submit(c, object.DeepCopy(), request.DryRun) // the API server's answer adds fields
	if draft.Problem != nil {
		draft.Problem.locate(request.YAML)
	}
	switch {
	case clone != nil && clone.shown != nil:
		return draft, errors.Join(err, s.describeEdited(c, &draft, clone))
	case clone != nil:
		draft.Words = words(&request, object)
		draft.Diff, _ = clone.diff() // the review shows the YAML as well
		if clone.Note != "" {
			draft.Warnings = append(draft.Warnings, clone.Note)
		}
		draft.Commands = []Snippet{{"Command line", "sh", s.options.Program + " " + phrase.QuoteCommand(clone.command())}}
	case request.Template != "":
		draft.Words = []string{fmt.Sprintf("%s %s in namespace %s, from the template %s.", object.GetKind(), object.GetName(), object.GetNamespace(), request.Template)}
		draft.Commands = []Snippet{{"Command line", "sh", s.options.Program + " " + phrase.QuoteCommand(templateCommand(&request, object))}}
	case request.YAML == "":
		draft.Words = words(&request, object)
		draft.Commands = s.specCommands(request.Spec)
	default:
		draft.Words = []string{fmt.Sprintf("%s %s in namespace %s, as written in YAML.", object.GetKind(), object.GetName(), object.GetNamespace())}
		draft.Commands = []Snippet{{"Command line", "sh", s.options.Program + " create -f job.yaml -n " + phrase.QuoteCommand([]string{object.GetNamespace()})}}
	}
	return draft, err
}
