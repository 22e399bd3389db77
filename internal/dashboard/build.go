package dashboard

import (
	"cmp"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"opendatahub.io/mpijob/internal/jobs"
)

// build returns the job that is requested, and what it is a clone of, or a problem of the request.
func (c *call) build(request *SpecRequest) (*unstructured.Unstructured, *cloned, *Problem, error) {
	if request.Template != "" {
		object, problem, err := c.fromTemplate(request)
		if object != nil && request.Description != "" {
			describe(object, request.Description)
		}
		return object, nil, problem, err
	}
	if request.YAML != "" {
		return c.fromYAML(request)
	}
	if errs := complete(request); len(errs) > 0 {
		return nil, nil, invalid(jobs.Invalid(errs...)), nil
	}
	object, clone, err := c.fromSpec(request)
	if err != nil {
		if status, problem := problemOf(err); status < 500 && status != 401 {
			return nil, nil, &problem, nil
		}
		return nil, nil, nil, err
	}
	describe(object, request.Description)
	return object, clone, nil, nil
}

// describe sets the description of a job, or removes it if it is empty.
func describe(object *unstructured.Unstructured, description string) {
	notes := object.GetAnnotations()
	if notes == nil {
		notes = map[string]string{}
	}
	if notes[descriptionNote] = description; description == "" {
		delete(notes, descriptionNote)
	}
	if object.SetAnnotations(notes); len(notes) == 0 {
		unstructured.RemoveNestedField(object.Object, "metadata", "annotations")
	}
}

// fromSpec returns the job of a specification, or a clone that differs from its original as the specification does.
func (c *call) fromSpec(request *SpecRequest) (*unstructured.Unstructured, *cloned, error) {
	if request.Original == "" {
		built, err := c.jobs.Build(c.ctx, request.Spec)
		return built.Job, nil, err
	}
	original, err := c.jobs.Find(c.ctx, request.Spec.Namespace, request.Original)
	if err != nil {
		return nil, nil, err
	}
	clone, err := c.jobs.CloneWithSpec(c.ctx, original, request.Spec)
	return clone.Job, &cloned{original: original, Clone: clone}, err
}

// fromTemplate returns the job of a template, or a problem of the request.
func (c *call) fromTemplate(request *SpecRequest) (*unstructured.Unstructured, *Problem, error) {
	spec := &request.Spec
	if errs := nameErrors(spec); len(errs) > 0 {
		return nil, invalid(jobs.Invalid(errs...)), nil
	}
	template, err := c.jobs.Template(c.ctx, spec.Namespace, request.Template)
	if err == nil {
		var object *unstructured.Unstructured
		if object, err = c.jobs.JobFromTemplate(c.ctx, spec.Namespace, spec.Name, template, request.Values); err == nil {
			return object, nil, nil
		}
	}
	if status, problem := problemOf(err); status < 500 && status != 401 {
		return nil, &problem, nil
	}
	return nil, nil, err
}

// fromYAML returns the job of a request's YAML, and the job that it is a clone of, or a problem of the request.
func (c *call) fromYAML(request *SpecRequest) (*unstructured.Unstructured, *cloned, *Problem, error) {
	object, err := decodeYAML(request.YAML, request.Spec.Namespace)
	if err != nil || request.Original == "" {
		return object, nil, invalid(err), nil
	}
	var clone jobs.Clone
	original, err := c.findUID(request.Spec.Namespace, request.Original, request.OriginalUID)
	if err == nil {
		clone, err = jobs.Edited(original, object)
	}
	if masked, is := errors.AsType[*jobs.MaskedError](err); is {
		return nil, nil, maskedProblem(masked), nil
	}
	if err != nil {
		if status, problem := problemOf(err); status < 500 && status != 401 {
			return nil, nil, &problem, nil
		}
		return nil, nil, nil, err
	}
	// Secrets of the original are not shown.
	shown := jobs.Clone{Original: clone.Original.DeepCopy(), Job: object}
	jobs.Masked(shown.Original)
	return clone.Job, &cloned{original: original, Clone: clone, shown: &shown}, nil, nil
}

// decodeYAML reads a job. A job without a namespace gets the given one.
func decodeYAML(text, namespace string) (*unstructured.Unstructured, error) {
	if len(text) > maxYAML {
		return nil, jobs.Invalid(jobs.FieldError{Field: "yaml", Reason: fmt.Sprintf("has %d KiB, which is more than the limit of %d KiB", len(text)>>10, maxYAML>>10)})
	}
	objects, err := jobs.Decode([]byte(text))
	if err != nil {
		return nil, jobs.Invalid(jobs.FieldError{Field: "yaml", Reason: err.Error()})
	}
	if len(objects) != 1 {
		return nil, jobs.Invalid(jobs.FieldError{Field: "yaml", Reason: fmt.Sprintf("must contain one job; it contains %d objects", len(objects))})
	}
	object := &unstructured.Unstructured{Object: objects[0]}
	if !jobs.IsJob(object.GroupVersionKind()) {
		return nil, jobs.Invalid(jobs.FieldError{Field: "yaml", Value: cmp.Or(object.GetKind(), "an object without kind"), Reason: "is not a job; use kind MPIJob (kubeflow.org/v2beta1) or TrainJob (trainer.kubeflow.org/v1alpha1)"})
	}
	if object.GetName() == "" {
		return nil, jobs.Invalid(jobs.FieldError{Field: "metadata.name", Reason: "is required"})
	}
	if object.GetNamespace() == "" {
		object.SetNamespace(namespace)
	}
	if object.GetNamespace() == "" {
		return nil, jobs.Invalid(jobs.FieldError{Field: "metadata.namespace", Reason: "is required"})
	}
	return object, nil
}
