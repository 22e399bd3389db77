package operator

import (
	"context"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
)

// wireJobSet completes the JobSet that Trainer makes of a TrainJob with a runtime of ours, and keeps it so when Trainer
// applies it again.
func wireJobSet(ctx context.Context, live client.Reader, domain string, request admission.Request) admission.Response {
	jobSet, err := decodeTree(request.Object.Raw)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	owner := metav1.GetControllerOfNoCopy(jobSet)
	if owner == nil || owner.Kind != trainjob.Kind || jobSet.GetAnnotations()[mpi.AnnotationImplementation] == "" {
		return admission.Allowed("")
	}
	if request.Operation == admissionv1.Update {
		before, err := decodeTree(request.OldObject.Raw)
		if err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
		trainjob.Keep(jobSet.Object, before.Object)
		return changedTo(request, jobSet)
	}
	job, err := ownerJob(ctx, live, request.Namespace, *owner)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	if err := trainjob.Wire(jobSet.Object, job, domain); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	return changedTo(request, jobSet)
}

// ownerJob reads the TrainJob that a JobSet is made of. Trainer tries again what is refused here.
func ownerJob(ctx context.Context, live client.Reader, namespace string, owner metav1.OwnerReference) (trainjob.TrainJob, error) {
	job, err := trainjob.LoadJob(ctx, live, types.NamespacedName{Namespace: namespace, Name: owner.Name})
	switch {
	case err != nil:
		return trainjob.TrainJob{}, err
	case job == nil, job.UID != owner.UID:
		return trainjob.TrainJob{}, fmt.Errorf("the TrainJob %s that this JobSet is made of is not there", owner.Name)
	}
	return *job, nil
}
