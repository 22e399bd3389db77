package cli

import (
	"context"

	"k8s.io/apimachinery/pkg/labels"

	"opendatahub.io/mpijob/internal/jobs"
)

// Jobs returns the library that acts on jobs with the user's credentials.
func (f *Factory) Jobs() (*jobs.Client, error) {
	c, err := f.Client()
	if err != nil {
		return nil, err
	}
	clients, err := f.Clientset()
	if err != nil {
		return nil, err
	}
	return jobs.NewClient(c, clients.Discovery(), f.Now).WithREST(f.rest), nil
}

// jobsHere returns the library and the user's namespace.
func (f *Factory) jobsHere() (*jobs.Client, string, error) {
	c, err := f.Jobs()
	if err != nil {
		return nil, "", err
	}
	namespace, err := f.Namespace()
	return c, namespace, err
}

// Find returns the job that NAME or KIND/NAME refers to in the user's namespace.
func (f *Factory) Find(ctx context.Context, reference string) (jobs.Job, error) {
	c, namespace, err := f.jobsHere()
	if err != nil {
		return jobs.Job{}, err
	}
	return c.Find(ctx, namespace, reference)
}

// List returns the selected jobs and prints a note about each kind that the user may not list.
func (f *Factory) List(ctx context.Context, s jobs.Selection) ([]jobs.Job, error) {
	c, err := f.Jobs()
	if err != nil {
		return nil, err
	}
	list, err := c.List(ctx, s)
	f.noteOmitted(list.Omitted)
	return list.Jobs, err
}

func (f *Factory) noteOmitted(omitted []jobs.Omission) {
	for _, o := range omitted {
		switch text := f.describeError(o.Err); o.Kind {
		case "JobReport":
			say(f.ErrOut, "note: the state of jobs is unknown: %s", text)
		case "Node":
			say(f.ErrOut, "note: prices per node are ignored: %s", text)
		case "ConfigMap":
			say(f.ErrOut, "note: sums of deleted reports are omitted: %s", text)
		default:
			say(f.ErrOut, "note: %ss are omitted: %s", o.Kind, text)
		}
	}
}

// selection returns the selection of the flags -A and -l.
func (f *Factory) selection(allNamespaces bool, selector string) (jobs.Selection, error) {
	var s jobs.Selection
	if !allNamespaces {
		namespace, err := f.Namespace()
		if err != nil {
			return s, err
		}
		s.Namespace = namespace
	}
	if selector != "" {
		parsed, err := labels.Parse(selector)
		if err != nil {
			return s, usagef("-l %s: %v", selector, err)
		}
		s.Labels = parsed
	}
	return s, nil
}
