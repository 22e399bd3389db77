package jobs

import (
	"context"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/masking"
	"opendatahub.io/mpijob/internal/mpi"
)

// serverMetadata are the fields of metadata that the API server and controllers write.
var serverMetadata = []string{"creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "finalizers", "generation", "managedFields", "ownerReferences", "resourceVersion", "selfLink", "uid"}

// Masked masks the secrets in the fields of a job, which is changed, and returns the number of masked values.
func Masked(job *unstructured.Unstructured) int {
	masking.Fields(job.Object, logs.Masker{}.Text)
	var found []MaskedField
	findMasked(job.GetKind(), job.Object, "", &found)
	return len(found)
}

// Editable returns a job as a new one that a user can change: the fields of the job as users wrote them, with secrets masked, under
// the next free name. It also returns the number of masked values. It fails with DeletedError.
func (c *Client) Editable(ctx context.Context, job Job) (*unstructured.Unstructured, int, error) {
	clone, err := c.clone(ctx, job, "")
	if err != nil {
		return nil, 0, err
	}
	masked := Masked(clone.Job)
	return clone.Job, masked, nil
}

// Edited returns the new job that a user made from another by changing Editable. What the API server and controllers write is
// removed, and masked secrets that the user has left are taken from the other job. It fails with DeletedError, or with MaskedError
// if a secret is unknown: the other job is deleted, or its field has no such secret.
func Edited(from Job, job *unstructured.Unstructured) (Clone, error) {
	original, err := from.Written()
	if err != nil {
		return Clone{}, err
	}
	removeSuspend(original) // as in Editable
	edited := job.DeepCopy()
	removeServerFields(edited)
	if from.Object == nil {
		return Clone{Original: original, Job: edited}, checkMasked(from, edited)
	}
	if unknown := unmask(original, edited); len(unknown) > 0 {
		return Clone{}, &MaskedError{Job: from, Fields: unknown}
	}
	return Clone{Original: original, Job: edited}, nil
}

// removeServerFields removes what the API server and controllers write.
func removeServerFields(job *unstructured.Unstructured) {
	delete(job.Object, "status")
	for _, field := range serverMetadata {
		unstructured.RemoveNestedField(job.Object, "metadata", field)
	}
	for _, name := range mpi.AddedAnnotations {
		unstructured.RemoveNestedField(job.Object, "metadata", "annotations", name)
	}
	if annotations, found, _ := unstructured.NestedMap(job.Object, "metadata", "annotations"); found && len(annotations) == 0 {
		unstructured.RemoveNestedField(job.Object, "metadata", "annotations")
	}
}

// unmask replaces masks in an edited job by what the original has in the same field, and returns the fields in which the original
// has no such secret.
func unmask(original, edited *unstructured.Unstructured) []MaskedField {
	shown := original.DeepCopy()
	Masked(shown)
	unknown := map[string]bool{}
	edited.Object, _ = unmaskValue(edited.Object, shown.Object, original.Object, "", unknown).(map[string]any)
	var masked, left []MaskedField
	findMasked(edited.GetKind(), edited.Object, "", &masked)
	for _, field := range masked {
		if unknown[field.Path] {
			left = append(left, field)
		}
	}
	return left
}

// unmaskValue returns an edited value with the secrets of the original, of which shown is the masked form, and adds the paths of
// masks that the original does not have.
func unmaskValue(edited, shown, original any, path string, unknown map[string]bool) any {
	if reflect.DeepEqual(edited, shown) {
		return runtime.DeepCopyJSONValue(original)
	}
	switch edited := edited.(type) {
	case map[string]any:
		fields, _ := shown.(map[string]any)
		secrets, _ := original.(map[string]any)
		for name := range edited {
			edited[name] = unmaskValue(edited[name], fields[name], secrets[name], joinPath(path, name), unknown)
		}
	case []any:
		entries, _ := shown.([]any)
		secrets, _ := original.([]any)
		before := slices.Clone(edited)
		for i := range edited {
			entry, secret := sameEntry(before, i, entries, secrets)
			edited[i] = unmaskValue(edited[i], entry, secret, path+"["+strconv.Itoa(i)+"]", unknown)
		}
	case string:
		unknown[path] = unknown[path] || strings.Contains(edited, logs.Masked)
	}
	return edited
}

// sameEntry returns an entry of an edited list in the original list, and with its secrets: the entry of the same name or, of texts
// such as arguments, the same text after the same text. It returns nil if there is none, or if it is not clear which.
func sameEntry(edited []any, i int, shown, original []any) (entry, secret any) {
	for at := range shown {
		if !isSameEntry(edited, i, shown, at) {
			continue
		}
		if entry != nil && !reflect.DeepEqual(secret, original[at]) {
			return nil, nil
		}
		entry, secret = shown[at], original[at]
	}
	return entry, secret
}

func isSameEntry(edited []any, i int, shown []any, at int) bool {
	a, isA := edited[i].(map[string]any)
	b, isB := shown[at].(map[string]any)
	if isA && isB {
		if a["name"] == nil && b["name"] == nil {
			return i == at
		}
		return reflect.DeepEqual(a["name"], b["name"])
	}
	return reflect.DeepEqual(edited[i], shown[at]) && (i == 0) == (at == 0) && (i == 0 || reflect.DeepEqual(edited[i-1], shown[at-1]))
}
