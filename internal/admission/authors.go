package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/reporting"
)

// recordAuthors keeps in a job's annotations who created it, who suspended or resumed it last and who changed it last, as
// the API server knows them, whatever the job itself contains. While no operator answers, no user is recorded, and a policy
// of the API server (config/webhook) refuses other values. It refuses numbers that would not reach the other webhooks.
func recordAuthors(_ context.Context, request admission.Request) admission.Response {
	job, err := decodeTree(request.Object.Raw)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if errs := tooLarge(job); len(errs) > 0 {
		request.Name = job.GetName()
		return responseFor(request, errs, nil)
	}
	var before *unstructured.Unstructured
	if request.Operation == admissionv1.Update {
		if before, err = decodeTree(request.OldObject.Raw); err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
	}
	must := mpi.AuthorAnnotationsFor(request.UserInfo.Username, before, job)
	annotations := job.GetAnnotations()
	changed := false
	for _, name := range mpi.AuthorAnnotations {
		want, known := must[name]
		have, has := annotations[name]
		switch {
		case known == has && want == have:
			continue
		case !known:
			delete(annotations, name)
		case annotations == nil:
			annotations = map[string]string{name: want}
		default:
			annotations[name] = want
		}
		changed = true
	}
	if !changed {
		return admission.Allowed("")
	}
	job.SetAnnotations(annotations)
	return patchResponse(request, job)
}

// deletionRecorder records who asked for a job's deletion in the job's report: the job itself cannot be written any more.
type deletionRecorder struct {
	live     client.Reader
	reporter *reporting.Reporter
}

// Handle never refuses a deletion. Any replica may be asked, whether it leads or not.
func (d deletionRecorder) Handle(ctx context.Context, request admission.Request) admission.Response {
	if d.reporter == nil || request.DryRun != nil && *request.DryRun {
		return admission.Allowed("")
	}
	job, err := decodeTree(request.OldObject.Raw)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if job.GetDeletionTimestamp() == nil {
		if err := d.reporter.RecordDeletion(ctx, d.live, job, request.UserInfo.Username); err != nil {
			log.FromContext(ctx).Error(err, "the job's report does not say who deletes it", "user", request.UserInfo.Username)
		}
	}
	return admission.Allowed("")
}

// decodeTree reads an object whose fields need not be known here.
func decodeTree(data []byte) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(data); err != nil {
		return nil, fmt.Errorf("read object: %w", err)
	}
	return object, nil
}

// patchResponse is the answer that changes the object of a request.
func patchResponse(request admission.Request, object *unstructured.Unstructured) admission.Response {
	data, err := json.Marshal(object.Object)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, fmt.Errorf("write object: %w", err))
	}
	return admission.PatchResponseFromRaw(request.Object.Raw, data)
}
