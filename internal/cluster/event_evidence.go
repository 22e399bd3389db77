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
	uids := map[string]types.UID{}
	for pod := range podsIn(seen) {
		uids["Pod/"+pod.Name] = pod.UID
	}
	uids[job.Kind+"/"+job.Name] = job.UID
	about := []client.MatchingFields{{"involvedObject.kind": job.Kind, "involvedObject.name": job.Name}, {"involvedObject.kind": "Pod"}}
	if uid := g.jobSetUID(ctx, job); uid != "" {
		uids[jobSetKind.Kind+"/"+job.Name] = uid
		about = append(about, client.MatchingFields{"involvedObject.kind": jobSetKind.Kind, "involvedObject.name": job.Name})
	}
	for _, made := range []*batchv1.Job{seen.Launcher, seen.WorkerJob} {
		if made != nil {
			uids["Job/"+made.Name] = made.UID
			about = append(about, client.MatchingFields{"involvedObject.kind": "Job", "involvedObject.name": made.Name})
		}
	}
	var found []jobstate.Event
	for _, about := range about {
		g.eachEvent(ctx, job.Namespace, about, func(e *corev1.Event) {
			uid, ours := uids[e.InvolvedObject.Kind+"/"+e.InvolvedObject.Name]
			if ours && uid == e.InvolvedObject.UID && e.Source.Component != mpi.EventSource && e.Source.Component != mpi.StepSource {
				found = append(found, g.event(e))
			}
		})
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

// eachEvent reads the events of a namespace by page, until an error.
func (g *Gatherer) eachEvent(ctx context.Context, namespace string, about client.MatchingFields, use func(*corev1.Event)) {
	next := ""
	for range maxPages {
		var list corev1.EventList
		if err := g.live.List(ctx, &list, client.InNamespace(namespace), about, client.Limit(pageSize), client.Continue(next)); err != nil {
			return
		}
		for i := range list.Items {
			use(&list.Items[i])
		}
		if next = list.Continue; next == "" {
			return
		}
	}
}
