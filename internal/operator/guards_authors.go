package operator

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"opendatahub.io/mpijob/internal/mpi"
)

// recordCreator keeps in a job's annotation who created it, as the API server knows him, whatever the job itself says.
// While no operator answers the annotation is missing, and a policy of the API server's own (config/webhook) sees to it
// that nobody fills it in.
func recordCreator(_ context.Context, request admission.Request) admission.Response {
	job, err := decodeTree(request.Object.Raw)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	creator, known := request.UserInfo.Username, true
	if request.Operation == admissionv1.Update {
		before, err := decodeTree(request.OldObject.Raw)
		if err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
		creator, known = before.GetAnnotations()[mpi.AnnotationCreator]
	}
	annotations := job.GetAnnotations()
	if have, has := annotations[mpi.AnnotationCreator]; has == known && have == creator {
		return admission.Allowed("")
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	delete(annotations, mpi.AnnotationCreator)
	if known {
		annotations[mpi.AnnotationCreator] = creator
	}
	job.SetAnnotations(annotations)
	return changedTo(request, job)
}

// decodeTree reads an object whose fields need not be known here.
func decodeTree(data []byte) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(data); err != nil {
		return nil, fmt.Errorf("read object: %w", err)
	}
	return object, nil
}

// changedTo is the answer that changes the object of a request.
func changedTo(request admission.Request, object *unstructured.Unstructured) admission.Response {
	data, err := json.Marshal(object.Object)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, fmt.Errorf("write object: %w", err))
	}
	return admission.PatchResponseFromRaw(request.Object.Raw, data)
}
