package jobs

import (
	"cmp"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// objectSuffix matches the suffixes of the names of a job's objects.
var objectSuffix = regexp.MustCompile(`^-(launcher|worker-\d+|node|config|ssh|mpi-hostfile|mpi-ssh-auth)(-[a-z0-9-]+)?$`)

// HasEvent reports whether an event is about the job or one of its objects, and not about an earlier job of the same name.
func (j Job) HasEvent(event *corev1.Event) bool {
	object := event.InvolvedObject
	if j.Object != nil {
		created := j.Object.GetCreationTimestamp()
		if seen := LastSeen(event); seen.Before(&created) {
			return false
		}
	}
	if object.Name == j.Name {
		_, isJob := ParseKind(object.Kind)
		return !isJob || object.Kind == j.Kind && cmp.Or(object.UID, j.UID) == j.UID
	}
	if object.Kind == "Workload" {
		return strings.HasPrefix(object.Name, strings.ToLower(j.Kind)+"-"+j.Name+"-")
	}
	suffix, found := strings.CutPrefix(object.Name, j.Name)
	return found && objectSuffix.MatchString(suffix)
}

// LastSeen returns when an event last happened. The field that contains it depends on the API that the event was written with.
func LastSeen(event *corev1.Event) metav1.Time {
	switch {
	case event.Series != nil && !event.Series.LastObservedTime.IsZero():
		return metav1.Time(event.Series.LastObservedTime)
	case !event.LastTimestamp.IsZero():
		return event.LastTimestamp
	case !event.EventTime.IsZero():
		return metav1.Time(event.EventTime)
	}
	return event.CreationTimestamp
}
