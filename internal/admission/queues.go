package admission

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/kueue"
	"opendatahub.io/mpijob/internal/mpi"
)

// checkQueue returns warnings about the queue of a new job. There are none if the queue does not exist, which clients check, or cannot be
// read.
func checkQueue(ctx context.Context, live client.Reader, job mpi.Job) []string {
	if job.Queue == "" || job.ManagedBy != "" {
		return nil
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kueue.LocalQueueKind)
	if err := live.Get(ctx, types.NamespacedName{Namespace: job.Namespace, Name: job.Queue}, object); err != nil {
		return nil
	}
	var queue kueue.LocalQueue
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &queue); err != nil {
		return nil
	}
	return queue.Warnings(job)
}
