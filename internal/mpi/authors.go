package mpi

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Authors are the users who did something to a job, as admission recorded them.
type Authors struct {
	// Creator created the job; empty where that is not known.
	Creator string
	// Suspend switched the job's suspension last, and Change changed anything else of its specification last. Neither is
	// known of what happened while no operator answered.
	Suspend, Change Act
}

// Act is what a user did. The zero value is none, or none that is known.
type Act struct {
	// Generation is that which the job had after it.
	Generation int64
	User       string
}

func (a Act) String() string { return strconv.FormatInt(a.Generation, 10) + " " + a.User }

// AuthorsOf reads the authors from a job's annotations. Who switched the suspension is told only if the last change of the
// job was recorded: another one may have switched it since.
func AuthorsOf(job metav1.Object) Authors {
	annotations := job.GetAnnotations()
	authors := Authors{Creator: annotations[AnnotationCreator], Suspend: act(annotations[AnnotationSuspendSetBy]), Change: act(annotations[AnnotationChangedBy])}
	if max(authors.Suspend.Generation, authors.Change.Generation) != job.GetGeneration() {
		authors.Suspend = Act{}
	}
	return authors
}

func act(text string) Act {
	number, user, _ := strings.Cut(text, " ")
	generation, err := strconv.ParseInt(number, 10, 64)
	if err != nil || user == "" {
		return Act{}
	}
	return Act{Generation: generation, User: user}
}

// AuthorAnnotations are the annotations that name a job's authors.
var AuthorAnnotations = []string{AnnotationCreator, AnnotationSuspendSetBy, AnnotationChangedBy}

// Authored are the AuthorAnnotations that a job must have, and no other ones of them, when a user has made it what it is
// after; before is what it was, nil where he creates it. What he wrote into them himself counts for nothing.
func Authored(user string, before, after *unstructured.Unstructured) map[string]string {
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
	did := Act{Generation: before.GetGeneration() + 1, User: user}.String()
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

// withoutSuspend is a job's specification but for its suspension, and this.
func withoutSuspend(job *unstructured.Unstructured) (map[string]any, bool) {
	path := []string{"runPolicy", "suspend"}
	if job.GetKind() == "TrainJob" {
		path = path[1:]
	}
	spec, _, _ := unstructured.NestedMap(job.Object, "spec")
	suspended, _, _ := unstructured.NestedBool(spec, path...)
	unstructured.RemoveNestedField(spec, path...)
	return spec, suspended
}
