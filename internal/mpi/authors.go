package mpi

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Authors are the users who changed a job, as admission recorded them.
type Authors struct {
	// Creator is the user who created the job, or "" if unknown.
	Creator string
	// Suspend is the last change of suspend, and Change the last change of any other field of the specification.
	// Changes made while no operator ran are not recorded.
	Suspend, Change Change
}

// Change is a change of a job by a user. The zero value means that no change is known.
type Change struct {
	// Generation is the generation of the job after the change.
	Generation int64
	User       string
}

func (a Change) String() string { return strconv.FormatInt(a.Generation, 10) + " " + a.User }

// AuthorsOf reads the authors from a job's annotations. Suspend is only returned if the last change of the job was
// recorded: an unrecorded change may have switched it since.
func AuthorsOf(job metav1.Object) Authors {
	annotations := job.GetAnnotations()
	authors := Authors{Creator: annotations[AnnotationCreator], Suspend: parseChange(annotations[AnnotationSuspendSetBy]), Change: parseChange(annotations[AnnotationChangedBy])}
	if max(authors.Suspend.Generation, authors.Change.Generation) != job.GetGeneration() {
		authors.Suspend = Change{}
	}
	return authors
}

func parseChange(text string) Change {
	number, user, _ := strings.Cut(text, " ")
	generation, err := strconv.ParseInt(number, 10, 64)
	if err != nil || user == "" {
		return Change{}
	}
	return Change{Generation: generation, User: user}
}

// AuthorAnnotations lists the annotations that hold a job's authors.
var AuthorAnnotations = []string{AnnotationCreator, AnnotationSuspendSetBy, AnnotationChangedBy}

// AuthorAnnotationsFor returns the AuthorAnnotations that a job must have after a user changed it from before to
// after. before is nil for a new job. Values that the user wrote are ignored.
func AuthorAnnotationsFor(user string, before, after *unstructured.Unstructured) map[string]string {
	if before == nil {
		return map[string]string{AnnotationCreator: user}
	}
	must := map[string]string{}
	for _, name := range AuthorAnnotations {
		if value, has := before.GetAnnotations()[name]; has {
			must[name] = value
		}
	}
	if equality.Semantic.DeepEqual(before.Object["spec"], after.Object["spec"]) {
		return must
	}
	did := Change{Generation: before.GetGeneration() + 1, User: user}.String()
	was, wasSuspended := withoutSuspend(before)
	is, isSuspended := withoutSuspend(after)
	if wasSuspended != isSuspended {
		must[AnnotationSuspendSetBy] = did
	}
	if wasSuspended == isSuspended || !equality.Semantic.DeepEqual(was, is) {
		must[AnnotationChangedBy] = did
	}
	return must
}

// withoutSuspend returns a job's specification without its suspend field, and the value of that field.
func withoutSuspend(job *unstructured.Unstructured) (map[string]any, bool) {
	path := []string{"runPolicy", "suspend"}
	if job.GetKind() == KindTrainJob {
		path = path[1:]
	}
	spec, _, _ := unstructured.NestedMap(job.Object, "spec")
	suspended, _, _ := unstructured.NestedBool(spec, path...)
	unstructured.RemoveNestedField(spec, path...)
	return spec, suspended
}
