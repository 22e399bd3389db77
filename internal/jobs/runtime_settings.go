package jobs

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/mpi"
)

// RuntimeSettings are what an administrator sets of an MPI runtime of the cluster.
type RuntimeSettings struct {
	// Image replaces the image of the workers wherever the runtime has it; empty to keep it.
	Image string `json:"image,omitempty"`
	// Slots is the number of ranks per worker, unless the job sets it; zero to keep it.
	Slots int32 `json:"slots,omitempty"`
	// MaxWorkers and MaxGPUs (per worker) limit the jobs of the runtime; nil for no limit.
	MaxWorkers *int32 `json:"maxWorkers,omitempty"`
	MaxGPUs    *int32 `json:"maxGPUs,omitempty"`
}

// CopyRuntime creates a runtime of the cluster with the specification of another. It fails with InvalidError or ExistsError.
func (c *Client) CopyRuntime(ctx context.Context, from Runtime, name string, settings RuntimeSettings) error {
	object, err := from.copyAs(name, settings)
	if err != nil {
		return err
	}
	err = c.api.Create(ctx, object)
	if apierrors.IsAlreadyExists(err) {
		return &ExistsError{Name: "runtime " + name}
	}
	if err != nil {
		return fmt.Errorf("create runtime %s: %w", name, err)
	}
	return nil
}

// ChangeRuntime changes the settings of a runtime. It fails with InvalidError, or a conflict if the runtime has changed since it
// was read.
func (c *Client) ChangeRuntime(ctx context.Context, runtime Runtime, settings RuntimeSettings) error {
	if errs := settings.check(); len(errs) > 0 {
		return Invalid(errs...)
	}
	object, err := runtime.with(settings)
	if err != nil {
		return err
	}
	if err := c.api.Update(ctx, object); err != nil {
		return fmt.Errorf("change runtime %s: %w", runtime.Name, err)
	}
	return nil
}

// DeleteRuntime deletes a runtime. It reports whether finalizers of other programs keep it for now: Kubeflow Trainer before v2.2
// keeps runtimes that jobs use. The UID protects a new runtime of the same name.
func (c *Client) DeleteRuntime(ctx context.Context, runtime Runtime) (isKept bool, err error) {
	uid := runtime.Object.GetUID()
	if err := c.api.Delete(ctx, runtime.Object, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("delete runtime %s: %w", runtime.Name, err)
	}
	return len(runtime.Object.GetFinalizers()) > 0, nil
}

// copyAs returns a runtime of the cluster with another name and other settings.
func (r Runtime) copyAs(name string, settings RuntimeSettings) (*unstructured.Unstructured, error) {
	errs := settings.check()
	switch {
	case name == "":
		errs = append(errs, FieldError{Field: "name", Reason: "is required"})
	case len(validation.IsDNS1123Label(name)) > 0:
		errs = append(errs, FieldError{Field: "name", Value: name, Reason: "is not allowed; use at most 63 lower-case letters, digits and -, such as mpi-a100"})
	}
	if len(errs) > 0 {
		return nil, Invalid(errs...)
	}
	changed, err := r.with(settings)
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{Object: map[string]any{"spec": changed.Object["spec"]}}
	object.SetGroupVersionKind(RuntimeKinds()[0])
	object.SetName(name)
	object.SetLabels(changed.GetLabels())
	notes := changed.GetAnnotations()
	delete(notes, corev1.LastAppliedConfigAnnotation)
	if len(notes) > 0 {
		object.SetAnnotations(notes)
	}
	return object, nil
}

// with returns the object of the runtime with other settings, which were checked.
func (r Runtime) with(settings RuntimeSettings) (*unstructured.Unstructured, error) {
	if !r.MPI || r.Kind != RuntimeKinds()[0].Kind {
		return nil, Invalid(FieldError{Reason: fmt.Sprintf("%s is not an MPI runtime of the cluster; change it with kubectl", r.Name)})
	}
	object := r.Object.DeepCopy()
	notes := object.GetAnnotations()
	if notes == nil {
		notes = map[string]string{}
	}
	for name, limit := range map[string]*int32{mpi.AnnotationMaxWorkers: settings.MaxWorkers, mpi.AnnotationMaxGPUs: settings.MaxGPUs} {
		delete(notes, name)
		if limit != nil {
			notes[name] = strconv.Itoa(int(*limit))
		}
	}
	object.SetAnnotations(notes)
	if settings.Slots > 0 {
		if err := unstructured.SetNestedField(object.Object, int64(settings.Slots), "spec", "mlPolicy", "mpi", "numProcPerNode"); err != nil {
			return nil, fmt.Errorf("set the slots of %s: %w", r.Name, err)
		}
	}
	if settings.Image != "" {
		replaceImage(object.Object["spec"], r.Image, settings.Image)
	}
	return object, nil
}

// check returns what is wrong with settings.
func (s RuntimeSettings) check() (errs []FieldError) {
	if strings.ContainsAny(s.Image, " \t\n") {
		errs = append(errs, FieldError{Field: "image", Value: s.Image, Reason: "is not allowed; use a reference without spaces, such as quay.io/my-team/train:1.2"})
	}
	if s.Slots < 0 {
		errs = append(errs, FieldError{Field: "slots", Value: strconv.Itoa(int(s.Slots)), Reason: "is not allowed; use 1 or more"})
	}
	if s.MaxWorkers != nil && *s.MaxWorkers < 1 {
		errs = append(errs, FieldError{Field: "maxWorkers", Value: strconv.Itoa(int(*s.MaxWorkers)), Reason: "is not allowed; use 1 or more, or nothing for no limit"})
	}
	if s.MaxGPUs != nil && *s.MaxGPUs < 0 {
		errs = append(errs, FieldError{Field: "maxGPUs", Value: strconv.Itoa(int(*s.MaxGPUs)), Reason: "is not allowed; use 0 or more, or nothing for no limit"})
	}
	return errs
}

// replaceImage replaces the image of the containers of a specification that have it, but not of init containers.
func replaceImage(in any, from, to string) {
	switch in := in.(type) {
	case []any:
		for _, each := range in {
			replaceImage(each, from, to)
		}
	case map[string]any:
		containers, _ := in["containers"].([]any)
		for _, each := range containers {
			if container, is := each.(map[string]any); is && container["image"] == from {
				container["image"] = to
			}
		}
		for _, each := range in {
			replaceImage(each, from, to)
		}
	}
}
