package jobs

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"opendatahub.io/mpijob/internal/mpi"
)

// Clone is a new job that is made from another.
type Clone struct {
	// Original is the original job's user fields, and Job the new job, which is not created yet.
	Original, Job *unstructured.Unstructured
	// Note is about a part of the original that the clone keeps although it may no longer fit; empty for none.
	Note string
}

// Clone returns a job with the fields of another and some changes. It is not suspended. The number of ranks in its command follows the
// number of its slots, if the original starts as many ranks as it has slots. An empty name is replaced by the
// original's name with the next free number. Of a deleted job, the fields are those in its report. It fails with DeletedError,
// InvalidError, or MaskedError if the changes do not set all fields that are masked there.
func (c *Client) Clone(ctx context.Context, job Job, name string, changes ...Change) (Clone, error) {
	made, err := c.clone(ctx, job, name, changes...)
	if err != nil {
		return Clone{}, err
	}
	return made, checkMasked(job, made.Job)
}

// clone is Clone of a job whose fields may be masked.
func (c *Client) clone(ctx context.Context, job Job, name string, changes ...Change) (Clone, error) {
	original, err := job.Written()
	if err != nil {
		return Clone{}, err
	}
	clone := original.DeepCopy()
	removeSuspend(clone)
	if err := c.apply(ctx, job.Namespace, clone, changes...); err != nil {
		return Clone{}, err
	}
	note := c.followRanks(ctx, original, clone)
	if name == "" {
		var err error
		if name, err = c.nextName(ctx, job.Namespace, clone.GetName()); err != nil {
			return Clone{}, err
		}
	}
	clone.SetName(name)
	if !slices.ContainsFunc(changes, func(change Change) bool { return strings.HasSuffix(change.Field, "subPath") }) {
		renameOutput(clone, original.GetName())
	}
	return Clone{Original: original, Job: clone, Note: note}, nil
}

// renameOutput has a clone name its own folder for results, which Build mounts at the path in OUTPUT_DIR: the folder with the
// original's name gets that of the clone.
func renameOutput(clone *unstructured.Unstructured, original string) {
	var folders []string
	visitObjects(clone.Object["spec"], func(fields map[string]any) {
		if value, is := fields["value"].(string); is && fields["name"] == outputVariable {
			folders = append(folders, strings.TrimRight(value, "/"))
		}
	})
	visitObjects(clone.Object["spec"], func(fields map[string]any) {
		if path, is := fields["mountPath"].(string); is && fields["subPath"] == original && slices.Contains(folders, strings.TrimRight(path, "/")) {
			fields["subPath"] = clone.GetName()
		}
	})
}

// visitObjects calls a function with all objects in a value of JSON, itself included.
func visitObjects(value any, visit func(map[string]any)) {
	switch value := value.(type) {
	case map[string]any:
		visit(value)
		for _, field := range value {
			visitObjects(field, visit)
		}
	case []any:
		for _, entry := range value {
			visitObjects(entry, visit)
		}
	}
}

// UserFields returns a copy of a job without the fields that the API server, controllers and the operator have added, and without
// its suspension in a queue.
func UserFields(job *unstructured.Unstructured) *unstructured.Unstructured {
	clean := &unstructured.Unstructured{Object: map[string]any{"apiVersion": job.GetAPIVersion(), "kind": job.GetKind()}}
	clean.SetName(job.GetName())
	clean.SetNamespace(job.GetNamespace())
	clean.SetLabels(job.GetLabels())
	annotations := job.GetAnnotations()
	for _, name := range mpi.AddedAnnotations {
		delete(annotations, name)
	}
	delete(annotations, mpi.AnnotationSuspendInQueue)
	if len(annotations) > 0 {
		clean.SetAnnotations(annotations)
	}
	if spec, found := job.DeepCopy().Object["spec"]; found {
		clean.Object["spec"] = spec
	}
	mpi.RemoveAssignments(clean.Object)
	mpi.RestoreRDMA(clean.Object, mpi.RemovedRDMA(job.GetAnnotations()))
	return clean
}

// removeSuspend removes the field that suspends a job, and its parent if that becomes empty. A job that is not suspended stays as it is: the
// API server writes this default, and it would be shown as a difference.
func removeSuspend(job *unstructured.Unstructured) {
	path := editorFor(job.GetKind()).SuspendPath()
	if suspended, found, err := unstructured.NestedBool(job.Object, path...); found && err == nil && !suspended {
		return
	}
	unstructured.RemoveNestedField(job.Object, path...)
	if parent, found, _ := unstructured.NestedMap(job.Object, path[:len(path)-1]...); found && len(parent) == 0 {
		unstructured.RemoveNestedField(job.Object, path[:len(path)-1]...)
	}
}

// nextName returns a name with the next number that neither a job nor a report has.
func (c *Client) nextName(ctx context.Context, namespace, name string) (string, error) {
	list, err := c.List(ctx, Selection{Namespace: namespace, Deleted: true})
	if err != nil {
		return "", err
	}
	return nextNumber(name, namesOf(list.Jobs)), nil
}

var numbered = regexp.MustCompile(`^(.*)-([1-9][0-9]{0,5})$`)

// nextNumber returns a name with the number after the highest that is taken.
func nextNumber(name string, taken []string) string {
	stem := name
	if parts := numbered.FindStringSubmatch(name); parts != nil {
		stem = parts[1]
	}
	highest := 1
	for _, other := range taken {
		parts := numbered.FindStringSubmatch(other)
		if parts == nil || parts[1] != stem {
			continue
		}
		if n, err := strconv.Atoi(parts[2]); err == nil {
			highest = max(highest, n)
		}
	}
	return cmp.Or(strings.TrimSuffix(stem, "-"), name) + "-" + strconv.Itoa(highest+1)
}
