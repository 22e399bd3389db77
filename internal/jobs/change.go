package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"opendatahub.io/mpijob/internal/kinds"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/phrase"
)

// Change sets a field of a job. The field is a name of ChangeNames, or the path of a field such as spec.slotsPerWorker. An
// empty value removes a label, a variable or the field at a path.
type Change struct{ Field, Value string }

// String returns the change as FIELD=VALUE.
func (c Change) String() string { return c.Field + "=" + c.Value }

// ParseChange reads FIELD=VALUE.
func ParseChange(text string) (Change, error) {
	name, value, found := strings.Cut(text, "=")
	if !found || name == "" {
		return Change{}, Invalid(FieldError{Field: "set", Value: text, Reason: "must be NAME=VALUE, such as workers=8 or spec.runPolicy.cleanPodPolicy=All"})
	}
	return Change{name, value}, nil
}

// setters write the named changes into a job of any kind.
var setters = map[string]func(kinds.Editor, *unstructured.Unstructured, string) error{
	"workers":  setNumber(kinds.SettingWorkers),
	"slots":    setNumber(kinds.SettingSlots),
	"deadline": setNumber(kinds.SettingDeadline),
	"cpu":      setResource("cpu"),
	"memory":   setResource("memory"),
	"gpu":      setGPUs,
	"image":    setImage,
	"command":  setCommand,
	"suspend":  setSuspend,
	"runtime": func(editor kinds.Editor, job *unstructured.Unstructured, value string) error {
		return editor.SetRuntime(job, value)
	},
	"queue": func(_ kinds.Editor, job *unstructured.Unstructured, value string) error {
		setLabel(job, mpi.LabelQueue, value)
		return nil
	},
}

// ChangeNames returns the names of changes, sorted. The last two take the name of a variable or label after the dot.
func ChangeNames() []string {
	return append(slices.Sorted(maps.Keys(setters)), "env.NAME", "label.NAME")
}

// Apply writes changes into a job that is to be created, in order, and has a job that is then suspended stay suspended in a queue. It fails
// with InvalidError about the first change that is not possible.
func Apply(job *unstructured.Unstructured, changes ...Change) error {
	for _, change := range changes {
		if err := applyOne(job, change); err != nil {
			if invalid, is := errors.AsType[*InvalidError](err); is {
				return invalid
			}
			return Invalid(FieldError{Field: "set", Value: change.String(), Reason: err.Error()})
		}
	}
	suspendInQueue(job)
	return nil
}

// apply is Apply for a job that is about to be created in a namespace: a runtime that a change names gets its kind. It fails with
// NotFoundError if that does not exist.
func (c *Client) apply(ctx context.Context, namespace string, job *unstructured.Unstructured, changes ...Change) error {
	if err := Apply(job, changes...); err != nil {
		return err
	}
	if !slices.ContainsFunc(changes, func(change Change) bool { return change.Field == "runtime" }) {
		return nil
	}
	if _, set, _ := unstructured.NestedString(job.Object, runtimeKind...); set {
		return nil // a later change
	}
	kind, _, err := c.runtime(ctx, namespace, FromObject(job).Summary().Runtime)
	if err != nil {
		return err
	}
	return unstructured.SetNestedField(job.Object, kind, runtimeKind...)
}

// runtimeKind is the path of the kind of a TrainJob's runtime.
var runtimeKind = []string{"spec", "runtimeRef", "kind"}

// suspendInQueue sets mpi.AnnotationSuspendInQueue on a job that is suspended: Kueue resets the field suspend, and may add the label of
// the namespace's default queue to a new job. Without a queue, the annotation has no effect.
func suspendInQueue(job *unstructured.Unstructured) {
	suspended, _, err := unstructured.NestedBool(job.Object, editorFor(job.GetKind()).SuspendPath()...)
	if err == nil && suspended {
		annotations := job.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[mpi.AnnotationSuspendInQueue] = "true"
		job.SetAnnotations(annotations)
	}
}

func applyOne(job *unstructured.Unstructured, change Change) error {
	editor := editorFor(job.GetKind())
	prefix, name, dotted := strings.Cut(change.Field, ".")
	switch set, known := setters[change.Field]; {
	case known:
		return set(editor, job, change.Value)
	case dotted && prefix == "env":
		return editor.SetEnv(job, name, change.Value)
	case dotted && prefix == "label":
		setLabel(job, name, change.Value)
		return nil
	case prefix == "spec" || prefix == "metadata":
		return setPath(job.Object, change.Field, change.Value)
	}
	return fmt.Errorf("has an unknown field %q%s", change.Field,
		cmp.Or(phrase.DidYouMean(phrase.Similar(change.Field, ChangeNames())), "; use "+strings.Join(ChangeNames(), ", ")+", or a path such as spec.slotsPerWorker"))
}

func setNumber(setting kinds.Setting) func(kinds.Editor, *unstructured.Unstructured, string) error {
	return func(editor kinds.Editor, job *unstructured.Unstructured, value string) error {
		if parameter.MatchString(value) {
			return editor.SetNumber(job, setting, value)
		}
		number, err := strconv.ParseInt(value, 10, 32)
		if err != nil || number < 0 {
			return errors.New("must be a whole number, 0 or more")
		}
		return editor.SetNumber(job, setting, number)
	}
}

func setImage(editor kinds.Editor, job *unstructured.Unstructured, value string) error {
	if value == "" {
		return errors.New("must name an image")
	}
	return editor.SetImage(job, value)
}

func setCommand(editor kinds.Editor, job *unstructured.Unstructured, value string) error {
	words, err := ParseCommand(value)
	if err != nil {
		return err
	}
	command := make([]any, len(words))
	for i, word := range words {
		command[i] = word
	}
	return editor.SetCommand(job, command)
}

func setSuspend(editor kinds.Editor, job *unstructured.Unstructured, value string) error {
	suspend, err := strconv.ParseBool(value)
	if err != nil {
		return errors.New("must be true or false")
	}
	if !suspend {
		unstructured.RemoveNestedField(job.Object, "metadata", "annotations", mpi.AnnotationSuspendInQueue)
	}
	return unstructured.SetNestedField(job.Object, suspend, editor.SuspendPath()...)
}

func setLabel(job *unstructured.Unstructured, name, value string) {
	labels := job.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	if labels[name] = value; value == "" {
		delete(labels, name)
	}
	job.SetLabels(labels)
	if len(labels) == 0 {
		unstructured.RemoveNestedField(job.Object, "metadata", "labels")
	}
}
