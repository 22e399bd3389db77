package admission

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/cluster"
	"opendatahub.io/mpijob/internal/kueue"
	"opendatahub.io/mpijob/internal/mpi"
)

// checkQueue returns warnings about the queue of a new job, and its priority there. There are none about a queue that does not exist, which
// clients check, or cannot be read.
func checkQueue(ctx context.Context, live client.Reader, job mpi.Job) []string {
	if job.Queue == "" || job.ManagedBy != "" {
		return nil
	}
	unknown := checkPriority(ctx, live, job)
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kueue.LocalQueueKind)
	if err := live.Get(ctx, types.NamespacedName{Namespace: job.Namespace, Name: job.Queue}, object); err != nil {
		return unknown
	}
	var queue kueue.LocalQueue
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &queue); err != nil {
		return unknown
	}
	return append(queue.Warnings(job), unknown...)
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
