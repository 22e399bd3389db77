package jobs

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"opendatahub.io/mpijob/internal/kinds"
	"opendatahub.io/mpijob/internal/kinds/mpijob"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
)

// editors are those of all kinds, the default kind first.
var editors = []kinds.Editor{mpijob.Editor{}, trainjob.Editor{}}

// Kinds returns the kinds of jobs, the default kind first.
func Kinds() []schema.GroupVersionKind {
	all := make([]schema.GroupVersionKind, len(editors))
	for i, editor := range editors {
		all[i] = editor.GroupVersionKind()
	}
	return all
}

// IsJob reports whether a kind is one of jobs.
func IsJob(kind schema.GroupVersionKind) bool { return slices.Contains(Kinds(), kind) }

// editorFor returns the editor of a kind; that of the default kind for an unknown one.
func editorFor(kind string) kinds.Editor {
	for _, editor := range editors {
		if editor.GroupVersionKind().Kind == kind {
			return editor
		}
	}
	return editors[0]
}

// SizeOf returns how many workers a job of any kind has and what its pods request, and whether the job alone determines it.
func SizeOf(job *unstructured.Unstructured) (kinds.Size, bool) {
	return editorFor(job.GetKind()).Size(job)
}

// ParseKind reads a kind in any form that kubectl accepts, such as mpijob, MPIJobs or trainjobs.trainer.kubeflow.org.
func ParseKind(word string) (schema.GroupVersionKind, bool) {
	word, _, _ = strings.Cut(strings.ToLower(word), ".")
	for _, kind := range Kinds() {
		if lower := strings.ToLower(kind.Kind); word == lower || word == lower+"s" {
			return kind, true
		}
	}
	return schema.GroupVersionKind{}, false
}

// parseReference reads NAME or KIND/NAME. Without a kind, all kinds are returned.
func parseReference(reference string) ([]schema.GroupVersionKind, string, error) {
	word, name, qualified := strings.Cut(reference, "/")
	if !qualified && reference != "" {
		return Kinds(), reference, nil
	}
	kind, known := ParseKind(word)
	if reference == "" {
		reference = `""`
	}
	if !known || name == "" {
		return nil, "", Invalid(FieldError{Field: "name", Value: reference, Reason: "is not a job; use NAME, mpijob/NAME or trainjob/NAME"})
	}
	return []schema.GroupVersionKind{kind}, name, nil
}
