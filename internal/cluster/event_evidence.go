package cluster

import (
	"cmp"
	"context"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
)

// readEvents reads the Kubernetes events of the job's objects, except those of the operator.
func (g *Gatherer) readEvents(ctx context.Context, job mpi.Job, seen jobstate.Observed) []jobstate.Event {
	objects := []corev1.ObjectReference{{Kind: job.Kind, Name: job.Name, UID: job.UID}}
	if uid := g.jobSetUID(ctx, job); uid != "" {
		objects = append(objects, corev1.ObjectReference{Kind: jobSetKind.Kind, Name: job.Name, UID: uid})
	}
	for _, made := range []*batchv1.Job{seen.Launcher, seen.WorkerJob} {
		if made != nil {
			objects = append(objects, corev1.ObjectReference{Kind: "Job", Name: made.Name, UID: made.UID})
		}
	}
	all := g.events.in(ctx, g, job.Namespace)
	var found []jobstate.Event
	for _, object := range objects {
		if all.complete {
			found = append(found, g.eventsAbout(all, object)...)
			continue
		}
		about := client.MatchingFields{"involvedObject.kind": object.Kind, "involvedObject.name": object.Name}
		g.eachEvent(ctx, job.Namespace, about, func(e *corev1.Event) {
			if e.InvolvedObject.UID == object.UID && isOfOthers(e) {
				found = append(found, g.event(e))
			}
		})
	}
	for _, pod := range seen.AllPodsAndInitializers() {
		found = append(found, g.eventsAbout(all, corev1.ObjectReference{Kind: "Pod", Name: pod.Name, UID: pod.UID})...)
	}
	slices.SortFunc(found, func(a, b jobstate.Event) int {
		return cmp.Or(a.Last.Compare(b.Last), strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name),
			strings.Compare(a.Reason, b.Reason), strings.Compare(a.Message, b.Message))
	})
	return found[max(0, len(found)-jobstate.MaxEvents):]
}

// jobSetKind is the kind of the object that creates the Jobs of a TrainJob.
var jobSetKind = schema.GroupVersionKind{Group: "jobset.x-k8s.io", Version: "v1alpha2", Kind: "JobSet"}

// jobSetUID returns the UID of the JobSet of a job that another controller runs; "" if there is none.
func (g *Gatherer) jobSetUID(ctx context.Context, job mpi.Job) types.UID {
	if !job.External {
		return ""
	}
	var found metav1.PartialObjectMetadata
	found.SetGroupVersionKind(jobSetKind)
	if err := g.live.Get(ctx, client.ObjectKey{Namespace: job.Namespace, Name: job.Name}, &found); err != nil {
		return ""
	}
	if owner := metav1.GetControllerOf(&found); owner == nil || owner.UID != job.UID {
		return ""
	}
	return found.UID
}

// eventsAbout returns the events of an object in those of its namespace.
func (g *Gatherer) eventsAbout(all *eventList, object corev1.ObjectReference) []jobstate.Event {
	var found []jobstate.Event
	for i := range all.byObject[object.UID] {
		if e := &all.byObject[object.UID][i]; e.InvolvedObject.Kind == object.Kind && e.InvolvedObject.Name == object.Name {
			found = append(found, g.event(e))
		}
	}
	return found
}

// isOfOthers reports whether an event is not one of the operator.
func isOfOthers(e *corev1.Event) bool {
	return e.Source.Component != mpi.EventSource && e.Source.Component != mpi.StepSource
}

// eachEvent reads the events of a namespace by page. It returns false if it has not read all of them, because of an error or
// because there are too many.
func (g *Gatherer) eachEvent(ctx context.Context, namespace string, about client.MatchingFields, use func(*corev1.Event)) bool {
	next := ""
	for range maxPages {
		var list corev1.EventList
		options := []client.ListOption{client.InNamespace(namespace), client.Limit(pageSize), client.Continue(next)}
		if about != nil {
			options = append(options, about)
		}
		if err := g.live.List(ctx, &list, options...); err != nil {
			return false
		}
		for i := range list.Items {
			use(&list.Items[i])
		}
		if next = list.Continue; next == "" {
			return true
		}
	}
	return false
}
