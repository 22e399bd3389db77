package operator

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"opendatahub.io/mpijob/internal/cluster"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/plan"
)

// addGuards serves what stands between users and Kubeflow Trainer, whether Trainer is there or not: without it the API
// server has nothing to ask about. config/webhook says what happens while nobody answers.
func addGuards(m manager.Manager, c *cluster.Cluster, settings plan.Settings, reports *reporter) {
	live := m.GetAPIReader()
	for path, handler := range map[string]admission.Handler{
		"/validate-runtime": admission.HandlerFunc(guardRuntime),
		"/validate-trainjob": admission.HandlerFunc(func(ctx context.Context, request admission.Request) admission.Response {
			return guardTrainJob(ctx, live, c, settings, request)
		}),
		"/validate-namespace": admission.HandlerFunc(guardNamespace),
		"/mutate-jobset": admission.HandlerFunc(func(ctx context.Context, request admission.Request) admission.Response {
			return wireJobSet(ctx, live, settings.ClusterDomain, request)
		}),
		"/mutate-authors":    admission.HandlerFunc(recordAuthors),
		"/validate-deletion": deletions{client: m.GetClient(), live: live, reporter: reports},
	} {
		m.GetWebhookServer().Register(path, &admission.Webhook{Handler: handler})
	}
}

// guardRuntime refuses runtimes with which Trainer runs something else than what jobs ask for.
func guardRuntime(_ context.Context, request admission.Request) admission.Response {
	found, err := trainjob.DecodeRuntime(request.Object.Raw)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	errs := trainjob.CheckRuntime(found)
	if request.Operation == admissionv1.Update {
		before, err := trainjob.DecodeRuntime(request.OldObject.Raw)
		if err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
		if before.Generation == found.Generation && len(trainjob.CheckRuntime(before)) > 0 {
			// One from before the webhook can have its labels and finalizers changed.
			return admission.Allowed("")
		}
	}
	return judged(request, errs, nil)
}

// guardTrainJob refuses TrainJobs that cannot run as they are written with the MPI runtime that they name. Trainer
// itself refuses those that name none.
func guardTrainJob(ctx context.Context, live client.Reader, c *cluster.Cluster, settings plan.Settings, request admission.Request) admission.Response {
	job, err := trainjob.Decode(request.Object.Raw)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	var before trainjob.TrainJob
	if request.Operation == admissionv1.Update {
		if before, err = trainjob.Decode(request.OldObject.Raw); err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
		if before.Generation == job.Generation && before.Annotations[mpi.AnnotationConnections] == job.Annotations[mpi.AnnotationConnections] {
			return admission.Allowed("")
		}
	}
	job.Namespace = request.Namespace
	used, err := trainjob.LoadRuntime(ctx, live, job)
	switch {
	case err != nil:
		return admission.Errored(http.StatusInternalServerError, err)
	case used == nil:
		return admission.Allowed("")
	case request.Operation == admissionv1.Update:
		before.Namespace = request.Namespace
		errs, warnings := trainjob.CheckChange(before, job, *used)
		return judged(request, errs, warnings)
	}
	errs, warnings := trainjob.Check(job, *used)
	names, _ := trainjob.Connections(job, *used)
	clashes, missing := mpi.CheckConnections(job.Namespace, cluster.Connections(ctx, live, job.Namespace, names))
	errs = append(errs, clashes...)
	if taken := nameTaken(ctx, live, job); taken != nil {
		errs = append(errs, taken)
	}
	warnings = append(warnings, missing...)
	if !used.IsMPI() {
		return judged(request, errs, warnings)
	}
	converted := trainjob.Convert(job, *used)
	never, full, more := room(request.Operation, converted, c.PreflightTrainJob(ctx, converted, settings.NetworkPolicies), true)
	return answer(request, append(errs, never...), full, append(warnings, more...))
}

// nameTaken refuses a TrainJob whose pods would be looked for under somebody else's Service: JobSet takes whatever
// Service has its name, and that of an MPIJob leads to other pods. One of an earlier JobSet is on its way out. That the
// API server does not answer is no reason to refuse anything.
func nameTaken(ctx context.Context, live client.Reader, job trainjob.TrainJob) *field.Error {
	service := &metav1.PartialObjectMetadata{}
	service.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Service"))
	if err := live.Get(ctx, client.ObjectKey{Namespace: job.Namespace, Name: job.Name}, service); err != nil {
		return nil
	}
	owner := metav1.GetControllerOfNoCopy(service)
	if owner != nil && owner.Kind == trainjob.JobSetKind.Kind || service.DeletionTimestamp != nil {
		return nil
	}
	of := "somebody else"
	if owner != nil {
		of = owner.Kind + " " + owner.Name
	}
	return field.Invalid(field.NewPath("metadata", "name"), job.Name, fmt.Sprintf("the job's pods would be looked for under the Service %s, which is that of %s; give the job another name", job.Name, of))
}

// guardNamespace refuses namespaces that say in words of their own where pods may connect to.
func guardNamespace(_ context.Context, request admission.Request) admission.Response {
	var namespace metav1.PartialObjectMetadata
	if err := json.Unmarshal(request.Object.Raw, &namespace); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("read Namespace: %w", err))
	}
	return judged(request, mpi.CheckEgress(namespace.Annotations), nil)
}

// judged is the answer to errors and warnings.
func judged(request admission.Request, errs field.ErrorList, warnings []string) admission.Response {
	if len(errs) == 0 {
		return admission.Allowed("").WithWarnings(warnings...)
	}
	kind := schema.GroupKind{Group: request.Kind.Group, Kind: request.Kind.Kind}
	status := apierrors.NewInvalid(kind, request.Name, errs).Status()
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Allowed: false, Result: &status}}.WithWarnings(warnings...)
}
