package operator

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/report"
)

// recordAuthors keeps in a job's annotations who created it, who suspended or resumed it last and who changed it last, as
// the API server knows them, whatever the job itself says. While no operator answers nobody is recorded, and a policy of
// the API server's own (config/webhook) sees to it that nobody writes down another one.
func recordAuthors(_ context.Context, request admission.Request) admission.Response {
	job, err := decodeTree(request.Object.Raw)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	var before *unstructured.Unstructured
	if request.Operation == admissionv1.Update {
		if before, err = decodeTree(request.OldObject.Raw); err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
	}
	must := mpi.Authored(request.UserInfo.Username, before, job)
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
	return changedTo(request, job)
}

// deletions records who asked for a job's deletion in the job's report: the job itself cannot be written any more.
type deletions struct {
	client   client.Client
	live     client.Reader
	reporter *reporter
}

// Handle never refuses a deletion. Any replica may be asked, whether it leads or not.
func (d deletions) Handle(ctx context.Context, request admission.Request) admission.Response {
	if d.reporter == nil || request.DryRun != nil && *request.DryRun {
		return admission.Allowed("")
	}
	job, err := decodeTree(request.OldObject.Raw)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if job.GetDeletionTimestamp() == nil {
		if err := d.record(ctx, job, request.UserInfo.Username); err != nil {
			log.FromContext(ctx).Error(err, "the job's report does not say who deletes it", "user", request.UserInfo.Username)
		}
	}
	return admission.Allowed("")
}

func (d deletions) record(ctx context.Context, job *unstructured.Unstructured, user string) error {
	// The API server waits no longer than config/webhook says, and the user waits as long.
	const patience = 3 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	described := mpi.Job{APIVersion: job.GetAPIVersion(), Kind: job.GetKind(), Namespace: job.GetNamespace(), Name: job.GetName(), UID: job.GetUID()}
	key := client.ObjectKey{Namespace: described.Namespace, Name: described.ReportName()}
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		var found v1alpha1.JobReport
		if err := d.live.Get(ctx, key, &found); err != nil {
			return err //nolint:wrapcheck // it is wrapped below; what may be tried again must be seen here
		}
		next, news := report.DeletionRequested(found, user, d.reporter.clock.Now())
		if !news {
			return nil
		}
		if err := d.client.Update(ctx, &next, client.DisableReadYourWritesConsistency); err != nil {
			return err //nolint:wrapcheck // as above
		}
		d.reporter.announce(described, &found, next)
		return nil
	})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return fmt.Errorf("write report %s: %w", key, err)
	}
	return nil
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
