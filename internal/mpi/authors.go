package mpi

import (
	"encoding/json"
	"maps"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
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
	// SuspendInQueue is the user who suspended the job in its queue, or resumed it there last, whichever holds now; "" if unknown, or if
	// the job was created so.
	SuspendInQueue string
	// CreatedWith is the field manager of the request that created the job if Creator is unknown; "" if that is unknown, too.
	CreatedWith string
	// Unrecorded is the last change of the specification if its user is unknown.
	Unrecorded UnrecordedChange
}

// UnrecordedChange is a change of a job's specification whose user is unknown, as the job's managed fields show it. These contain the
// last time at which a manager wrote, no users, and nothing of fields that were removed. The zero value means that the user of the last
// change is known, or that there was no change.
type UnrecordedChange struct {
	// Generation is the generation of the job after the change.
	Generation int64
	// Manager is the field manager that wrote to the specification last, and At is when.
	Manager string
	At      time.Time
	// OnlySuspend reports that the manager has written no field but suspend.
	OnlySuspend bool
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
	authors.SuspendInQueue = suspendedInQueueBy(annotations)
	recorded := max(authors.Suspend.Generation, authors.Change.Generation)
	if recorded != job.GetGeneration() {
		authors.Suspend = Change{}
	}
	if authors.Creator == "" {
		authors.CreatedWith = createdWith(job)
	}
	if generation := job.GetGeneration(); generation > max(recorded, 1) {
		authors.Unrecorded = lastWrite(job)
	}
	return authors
}

// suspendedInQueueBy returns who last changed whether a job is suspended in its queue; "" if that was not recorded. A change that was not
// recorded since then shows as another value.
func suspendedInQueueBy(annotations map[string]string) string {
	value, user, _ := strings.Cut(annotations[AnnotationQueueSuspendSetBy], " ")
	if suspended, _ := ParseSuspendInQueue(annotations); value != strconv.FormatBool(suspended) {
		return ""
	}
	return user
}

// TrimManagedFields removes the managed fields of a job, except for the names and times that AuthorsOf reads if users were not
// recorded. What is left is not valid as managed fields: the API server ignores it and keeps its own.
func TrimManagedFields(job metav1.Object) {
	authors := AuthorsOf(job)
	if authors.CreatedWith == "" && authors.Unrecorded.Manager == "" {
		job.SetManagedFields(nil)
		return
	}
	job.SetManagedFields(specManagers(job))
}

// createdWith returns the field manager of the request that created a job. The API server sets the time of this manager before the
// job's own. If the manager wrote again since, its first time is lost.
func createdWith(job metav1.Object) string {
	created := job.GetCreationTimestamp()
	var first *metav1.ManagedFieldsEntry
	for _, entry := range specManagers(job) {
		if !created.Before(entry.Time) && (first == nil || entry.Time.Before(first.Time)) {
			first = &entry
		}
	}
	if first == nil {
		return ""
	}
	return first.Manager
}

// lastWrite returns which field manager wrote last to a job's specification after the job's creation. Times have seconds: of two managers
// in one second, none is known to be the last.
func lastWrite(job metav1.Object) UnrecordedChange {
	latest := job.GetCreationTimestamp()
	var last UnrecordedChange
	for _, entry := range specManagers(job) {
		switch {
		case entry.Time.Equal(&latest):
			last = UnrecordedChange{}
		case latest.Before(entry.Time):
			latest = *entry.Time
			last = UnrecordedChange{Generation: job.GetGeneration(), Manager: entry.Manager, At: entry.Time.Time, OnlySuspend: entry.FieldsV1 != nil}
		}
	}
	return last
}

// onlySuspend are the fields of a manager that wrote no field but suspend, as specManagers returns them.
var onlySuspend = metav1.NewFieldsV1(`{"f:spec":{"f:suspend":{}}}`)

// specManagers returns the managers that wrote to a job's specification, without their fields unless these are onlySuspend. It accepts
// its own result.
func specManagers(job metav1.Object) []metav1.ManagedFieldsEntry {
	var managers []metav1.ManagedFieldsEntry
	for _, entry := range job.GetManagedFields() {
		if entry.Subresource != "" || entry.Time == nil {
			continue
		}
		kept := metav1.ManagedFieldsEntry{Manager: entry.Manager, Operation: entry.Operation, Time: entry.Time}
		if entry.FieldsV1 != nil {
			var fields struct {
				Spec map[string]map[string]any `json:"f:spec"`
			}
			if json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil || fields.Spec == nil {
				continue
			}
			if policy, has := fields.Spec["f:runPolicy"]; has && isOnly(policy, "f:suspend") && isOnly(fields.Spec, "f:runPolicy") || isOnly(fields.Spec, "f:suspend") {
				kept.FieldsV1 = onlySuspend
			}
		}
		managers = append(managers, kept)
	}
	return managers
}

// isOnly reports whether managed fields have a field and no other. The name "." is that of the fields' parent.
func isOnly[T any](fields map[string]T, name string) bool {
	for have := range maps.Keys(fields) {
		if have != name && have != "." {
			return false
		}
	}
	_, has := fields[name]
	return has
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
var AuthorAnnotations = []string{AnnotationCreator, AnnotationSuspendSetBy, AnnotationChangedBy, AnnotationQueueSuspendSetBy}

// AddedAnnotations are the annotations that kubectl and the operator add to a job: a copy of the job is made without them.
var AddedAnnotations = append([]string{corev1.LastAppliedConfigAnnotation, AnnotationRemovedRDMA}, AuthorAnnotations...)

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
	wasInQueue, _ := ParseSuspendInQueue(before.GetAnnotations())
	if isInQueue, _ := ParseSuspendInQueue(after.GetAnnotations()); wasInQueue != isInQueue {
		must[AnnotationQueueSuspendSetBy] = strconv.FormatBool(isInQueue) + " " + user
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

// IsSuspended returns the value of a job's suspend field.
func IsSuspended(job *unstructured.Unstructured) bool {
	_, suspended := withoutSuspend(job)
	return suspended
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
