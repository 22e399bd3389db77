package admission

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"opendatahub.io/mpijob/internal/cluster"
	"opendatahub.io/mpijob/internal/kinds"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
)

// queuedRDMA removes requests for RDMA that no node offers from the fields of a new job in a queue, and of a suspended job that gets the
// label of a queue: Kueue counts what these fields request. It keeps them in an annotation (mpi.AnnotationRemovedRDMA), and removes them
// again if a user applies the same job again, also after the job has left its queue: JobSets cannot be changed in these fields.
type queuedRDMA struct {
	live    client.Reader
	cluster *cluster.Cluster
	// kinds are the kinds of jobs besides TrainJobs.
	kinds   []kinds.Validated
	decoder admission.Decoder
}

// Handle refuses no job. Requests that it leaves are removed when the pods are created.
func (q queuedRDMA) Handle(ctx context.Context, request admission.Request) admission.Response {
	answer, err := q.strip(ctx, request)
	if err != nil {
		return admission.Allowed("").WithWarnings(fmt.Sprintf("Kueue may count requests for RDMA that no node offers: they were not removed from the job's fields: %v", err))
	}
	return answer
}

// strip answers a request with the job's fields as the queue is to count them.
func (q queuedRDMA) strip(ctx context.Context, request admission.Request) (admission.Response, error) {
	object, err := decodeTree(request.Object.Raw)
	if err != nil {
		return admission.Response{}, err
	}
	old, err := oldTree(request)
	if err != nil {
		return admission.Response{}, err
	}
	before := removedBefore(old, object)
	stripped := object.DeepCopy()
	removed := mpi.StripRDMA(stripped.Object)
	if len(removed) > 0 {
		remove, err := q.shouldRemove(ctx, request, old, object, len(before) > 0)
		if err != nil {
			return admission.Response{}, err
		}
		if !remove {
			stripped, removed = object, nil
		}
	}
	value, err := mpi.WithRemovedRDMA(before, removed)
	if err != nil {
		return admission.Response{}, err
	}
	annotations := stripped.GetAnnotations()
	switch have, has := annotations[mpi.AnnotationRemovedRDMA]; {
	case value == have && has == (value != ""):
		if len(removed) == 0 {
			return admission.Allowed(""), nil
		}
	case value == "":
		delete(annotations, mpi.AnnotationRemovedRDMA)
	case annotations == nil:
		annotations = map[string]string{mpi.AnnotationRemovedRDMA: value}
	default:
		annotations[mpi.AnnotationRemovedRDMA] = value
	}
	stripped.SetAnnotations(annotations)
	return patchResponse(request, stripped), nil
}

// removedBefore returns the requests that were removed from the job before this change. Those of a new job are from the first of two calls for
// it, or from a job of which it is a copy.
func removedBefore(old, object *unstructured.Unstructured) []mpi.RemovedRequest {
	if old != nil {
		object = old
	}
	return mpi.RemovedRDMA(object.GetAnnotations())
}

// oldTree returns the job before a change; nil for a new job.
func oldTree(request admission.Request) (*unstructured.Unstructured, error) {
	if request.Operation != admissionv1.Update {
		return nil, nil
	}
	return decodeTree(request.OldObject.Raw)
}

// shouldRemove reports whether the requests for RDMA of a job are to be removed: those of a job that enters a queue if no node offers them,
// and those of another job if they were removed before.
func (q queuedRDMA) shouldRemove(ctx context.Context, request admission.Request, old, object *unstructured.Unstructured, wereRemoved bool) (bool, error) {
	if optional, _ := mpi.ParseRDMA(object.GetAnnotations()); !optional {
		return false, nil
	}
	if old != nil && (wereRemoved || !entersQueue(old, object)) {
		return wereRemoved, nil
	}
	job, err := q.convert(ctx, request)
	if err != nil {
		return false, err
	}
	return job.ManagedBy == "" && job.RDMA.Optional && q.cluster.LacksRDMA(ctx, job.PodSpecs()), nil
}

// entersQueue reports whether a suspended job gets the label of a queue. The pods of one that is not suspended may exist already.
func entersQueue(old, object *unstructured.Unstructured) bool {
	return old.GetLabels()[mpi.LabelQueue] == "" && object.GetLabels()[mpi.LabelQueue] != "" && mpi.IsSuspended(old) && mpi.IsSuspended(object)
}

// convert returns the job of a request.
func (q queuedRDMA) convert(ctx context.Context, request admission.Request) (mpi.Job, error) {
	for _, kind := range q.kinds {
		if kind.Name() != request.Kind.Kind {
			continue
		}
		object := kind.New()
		if err := q.decoder.Decode(request, object); err != nil {
			return mpi.Job{}, fmt.Errorf("read %s: %w", kind.Name(), err)
		}
		job, _ := kind.Convert(object)
		return job, nil
	}
	from, err := trainjob.Decode(request.Object.Raw)
	if err != nil {
		return mpi.Job{}, err
	}
	from.Namespace = request.Namespace
	used, err := trainjob.LoadRuntime(ctx, q.live, from)
	if err != nil || used == nil {
		return mpi.Job{}, err
	}
	return trainjob.Convert(from, *used), nil
}
