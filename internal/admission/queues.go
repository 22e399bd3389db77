package admission

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/cluster"
	"opendatahub.io/mpijob/internal/kueue"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/podspec"
	"opendatahub.io/mpijob/internal/quota"
)

// checkQueue returns why the queue of a new job, which has these pods, never admits it, and warnings about the queue and the job's priority
// there. There are none about a queue that does not exist, which clients check, or cannot be read.
func checkQueue(ctx context.Context, c *cluster.Cluster, live client.Reader, job mpi.Job, pods []mpi.PodSet) (field.ErrorList, []string) {
	if job.Queue == "" || job.ManagedBy != "" {
		return nil, nil
	}
	unknown := checkPriority(ctx, live, job)
	queue, err := cluster.GetAs[kueue.LocalQueue](ctx, live, kueue.LocalQueueKind, types.NamespacedName{Namespace: job.Namespace, Name: job.Queue})
	if err != nil {
		return nil, unknown
	}
	warnings := append(queue.Warnings(job), unknown...)
	empty, isCertain := checkRequests(ctx, c, live, job, queue.Spec.ClusterQueue, pods)
	// A job that its user suspends does not wait in the queue yet.
	if isCertain && !job.SuspendedInQueue {
		return empty, warnings
	}
	for _, err := range empty {
		warnings = append(warnings, err.Error())
	}
	return nil, warnings
}

// checkRequests returns errors about the pods of a new job that request nothing, if Kueue selects their nodes, and whether it is certain that they are
// never admitted. Without a quota of pods, such pods get no flavor. With one, Kueue 0.15 to 0.17 admits them; Kueue 0.19 never does, and tries
// such a job again and again, so that others wait. There are no errors if the queue or its flavors cannot be read, or if Kueue has not
// suspended the job: it then leaves jobs of this kind or namespace alone.
func checkRequests(ctx context.Context, c *cluster.Cluster, live client.Reader, job mpi.Job, clusterQueue string, pods []mpi.PodSet) (errs field.ErrorList, isCertain bool) {
	if !job.Lifecycle.Suspended {
		return nil, false
	}
	empty := withoutRequests(ctx, c, job.Namespace, pods)
	if len(empty) == 0 {
		return nil, false
	}
	queue, err := cluster.GetAs[kueue.ClusterQueue](ctx, live, kueue.ClusterQueueKind, types.NamespacedName{Name: clusterQueue})
	if err != nil {
		return nil, false
	}
	flavors, err := cluster.ListAs[kueue.ResourceFlavor](ctx, live, kueue.ResourceFlavorKind)
	if err != nil {
		return nil, false
	}
	what := fmt.Sprintf("Kueue, which selects the nodes in queue %s (topology-aware scheduling), never admits such pods without a quota of pods. ", job.Queue)
	if queue.CountsPods() {
		what = fmt.Sprintf("Kueue 0.19, which selects the nodes in queue %s (topology-aware scheduling), never admits such pods: the job waits forever, and other jobs behind it. ", job.Queue)
	}
	for _, set := range empty {
		if queue.SelectsNodes(set.Template, flavors) {
			errs = append(errs, needsRequests(job, set, what))
		}
	}
	return errs, !queue.CountsPods()
}

// withoutRequests returns the pods that request nothing, also not by a default of the namespace's LimitRanges.
func withoutRequests(ctx context.Context, c *cluster.Cluster, namespace string, pods []mpi.PodSet) []mpi.PodSet {
	ranges, err := c.LimitRanges(ctx, namespace)
	if err != nil {
		return nil
	}
	var empty []mpi.PodSet
	for _, set := range pods {
		if len(set.Template.Spec.Containers) > 0 && podspec.RequestsNothing(quota.WithDefaults(set.Template, ranges)) {
			empty = append(empty, set)
		}
	}
	return empty
}

// needsRequests is the error about pods that request nothing, and what Kueue does with them.
func needsRequests(job mpi.Job, pods mpi.PodSet, what string) *field.Error {
	why := fmt.Sprintf("the pods (%s) request nothing, and %s", pods.Name, what)
	if pods.Requests == nil {
		return field.Invalid(job.Fields.Launch.Child("name"), job.Runtime, why+"Use a runtime whose pods request CPU or memory, or ask its administrator to add requests to the runtime")
	}
	return field.Required(pods.Requests, why+"Request CPU or memory, such as cpu: 100m ("+pods.Flag+" of the command line)")
}

// checkPriority returns a warning if Kueue's priority class of a new job in a queue does not exist. There is none if the classes cannot be read.
func checkPriority(ctx context.Context, live client.Reader, job mpi.Job) []string {
	if job.QueuePriority == "" {
		return nil
	}
	classes, err := cluster.Names(ctx, live, kueue.PriorityClassListKind)
	if err != nil {
		return nil
	}
	if warning := kueue.PriorityWarning(job, classes); warning != "" {
		return []string{warning}
	}
	return nil
}
