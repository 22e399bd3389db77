package jobs

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// ListSorts are the values that lists can be sorted by.
func ListSorts() []string { return []string{"name", "kind", "phase", "age", "duration"} }

// Sort sorts jobs by a value of ListSorts: the youngest and the longest-running first, phases in the order in which a job
// passes through them. Equal jobs are sorted by namespace and name, as are all jobs for an empty value.
func Sort(jobs []Job, by string, now time.Time) {
	slices.SortStableFunc(jobs, func(a, b Job) int {
		var first int
		switch by {
		case "kind":
			first = strings.Compare(a.Kind, b.Kind)
		case "phase":
			first = cmp.Compare(slices.Index(Phases(), a.Phase()), slices.Index(Phases(), b.Phase()))
		case "age":
			first = b.created().Compare(a.created())
		case "duration":
			first = cmp.Compare(b.ran(now), a.ran(now))
		case "name":
			first = strings.Compare(a.Name, b.Name)
		}
		return cmp.Or(first, strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name), strings.Compare(a.Kind, b.Kind), strings.Compare(string(a.UID), string(b.UID)))
	})
}

// created returns when the job was created; the zero time if unknown.
func (j Job) created() time.Time {
	switch {
	case j.Object != nil:
		return j.Object.GetCreationTimestamp().Time
	case j.Status().StartTime != nil:
		return j.Status().StartTime.Time
	}
	return time.Time{}
}

// ran returns how long the job has run, or ran; 0 if it never ran.
func (j Job) ran(now time.Time) time.Duration {
	status := j.Status()
	if status.RunningTime == nil {
		return 0
	}
	if status.CompletionTime != nil {
		now = status.CompletionTime.Time
	}
	return now.Sub(status.RunningTime.Time)
}
