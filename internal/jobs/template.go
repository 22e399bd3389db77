package jobs

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/phrase"
)

// A template is stored in a ConfigMap with mpi.LabelTemplate.
const (
	templatePrefix      = "mpijob-template-"
	templateKey         = "job.yaml"
	templateDescription = mpi.Group + "/description"
)

// Template is a job with parameters.
type Template struct {
	Name, Description string
	Created           metav1.Time
	// Job is the job without name and namespace; nil if Err is set.
	Job        *unstructured.Unstructured
	Parameters Parameters
	// Err is set if the ConfigMap does not contain a valid template.
	Err error
}

func templateConfigMap(name string) string { return templatePrefix + name }

func readTemplate(from corev1.ConfigMap) Template {
	t := Template{Name: strings.TrimPrefix(from.Name, templatePrefix), Description: from.Annotations[templateDescription], Created: from.CreationTimestamp}
	objects, err := Decode([]byte(from.Data[templateKey]))
	if err == nil && len(objects) != 1 {
		err = fmt.Errorf("key %s does not contain one job", templateKey)
	}
	if err != nil {
		t.Err = fmt.Errorf("template %s (ConfigMap %s) is not valid: %w", t.Name, from.Name, err)
		return t
	}
	t.Job = &unstructured.Unstructured{Object: objects[0]}
	t.Parameters, t.Err = FindParameters(t.Job.Object)
	return t
}

// Templates returns the templates of a namespace, sorted by name.
func (c *Client) Templates(ctx context.Context, namespace string) ([]Template, error) {
	var list corev1.ConfigMapList
	if err := c.api.List(ctx, &list, client.InNamespace(namespace), client.HasLabels{mpi.LabelTemplate}); err != nil {
		return nil, fmt.Errorf("list templates: %w", err)
	}
	var all []Template
	for _, config := range list.Items {
		all = append(all, readTemplate(config))
	}
	slices.SortFunc(all, func(a, b Template) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// Template returns a template. It fails with NotFoundError, or with the template's Err, which then is returned with it.
func (c *Client) Template(ctx context.Context, namespace, name string) (Template, error) {
	all, err := c.Templates(ctx, namespace)
	if err != nil {
		return Template{}, err
	}
	missing := &NotFoundError{What: "template", Namespace: namespace, Name: name}
	for _, t := range all {
		if t.Name == name {
			return t, t.Err
		}
		missing.Names = append(missing.Names, t.Name)
	}
	missing.Similar = phrase.Similar(name, missing.Names)
	return Template{}, missing
}

// NewTemplate returns the template of a job, with changes whose values may contain parameters. With escape, texts of the job
// that look like parameters are kept as they are.
func NewTemplate(name, description string, job *unstructured.Unstructured, escape bool, changes ...Change) (Template, error) {
	if problems := validation.IsDNS1123Subdomain(templateConfigMap(name)); len(problems) > 0 {
		return Template{}, Invalid(FieldError{Field: "name", Value: name, Reason: "is not a valid template name: " + strings.Join(problems, "; ")})
	}
	clean := UserFields(job)
	if escape {
		clean.Object = mapTexts(clean.Object, func(text string) any { return Escape(text) }).(map[string]any)
	}
	unstructured.RemoveNestedField(clean.Object, "metadata", "name")
	unstructured.RemoveNestedField(clean.Object, "metadata", "namespace")
	removeSuspend(clean)
	if err := Apply(clean, changes...); err != nil {
		return Template{}, err
	}
	parameters, err := FindParameters(clean.Object)
	return Template{Name: name, Description: description, Job: clean, Parameters: parameters}, err
}

// SaveTemplate stores a template. If one of that name exists, it is replaced, or ExistsError is returned.
func (c *Client) SaveTemplate(ctx context.Context, namespace string, t Template, replace bool) (replaced bool, err error) {
	text, err := yaml.Marshal(t.Job.Object)
	if err != nil {
		return false, err
	}
	config := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: templateConfigMap(t.Name), Labels: map[string]string{mpi.LabelTemplate: "job"}},
		Data:       map[string]string{templateKey: string(text)},
	}
	if t.Description != "" {
		config.Annotations = map[string]string{templateDescription: t.Description}
	}
	switch err := c.api.Create(ctx, config); {
	case err == nil:
		return false, nil
	case !apierrors.IsAlreadyExists(err):
		return false, fmt.Errorf("save template %s: %w", t.Name, err)
	case !replace:
		return false, &ExistsError{Name: "template " + t.Name}
	}
	var old corev1.ConfigMap
	if err := c.api.Get(ctx, client.ObjectKeyFromObject(config), &old); err != nil {
		return false, fmt.Errorf("read template %s: %w", t.Name, err)
	}
	if _, is := old.Labels[mpi.LabelTemplate]; !is {
		return false, fmt.Errorf("ConfigMap %s is not a template and was not changed", old.Name)
	}
	old.Data, old.BinaryData = config.Data, nil
	if old.Annotations == nil {
		old.Annotations = map[string]string{}
	}
	if t.Description != "" {
		old.Annotations[templateDescription] = t.Description
	}
	if err := c.api.Update(ctx, &old); err != nil {
		return false, fmt.Errorf("replace template %s: %w", t.Name, err)
	}
	return true, nil
}

// DeleteTemplate deletes a template, valid or not. Jobs that were created from it stay.
func (c *Client) DeleteTemplate(ctx context.Context, namespace, name string) error {
	if t, err := c.Template(ctx, namespace, name); err != nil && t.Err == nil {
		return err
	}
	var config corev1.ConfigMap
	if err := c.api.Get(ctx, types.NamespacedName{Namespace: namespace, Name: templateConfigMap(name)}, &config); err != nil {
		return fmt.Errorf("read template %s: %w", name, err)
	}
	if err := c.api.Delete(ctx, &config, client.Preconditions{UID: &config.UID}); err != nil {
		return fmt.Errorf("delete template %s: %w", name, err)
	}
	return nil
}

// JobFromTemplate returns a job with the values of parameters and changes. An empty name is replaced by the template's name
// with the next free number.
func (c *Client) JobFromTemplate(ctx context.Context, namespace, name string, t Template, values map[string]string, changes ...Change) (*unstructured.Unstructured, error) {
	filled, err := FillIn(t.Job.Object, values)
	if err != nil {
		return nil, err
	}
	job := &unstructured.Unstructured{Object: filled}
	if err := c.apply(ctx, namespace, job, changes...); err != nil {
		return nil, err
	}
	if name == "" {
		if name, err = c.nextName(ctx, namespace, t.Name); err != nil {
			return nil, err
		}
	}
	job.SetNamespace(namespace)
	job.SetName(name)
	return job, nil
}
