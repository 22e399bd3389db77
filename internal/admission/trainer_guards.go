package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"opendatahub.io/mpijob/internal/cluster"
	"opendatahub.io/mpijob/internal/isolation"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/plan"
	"opendatahub.io/mpijob/internal/reporting"
)

// addGuards serves what stands between users and Kubeflow Trainer, whether Trainer is there or not: without it the API
// server has nothing to ask about. config/webhook defines what happens if there is no answer.
func addGuards(m manager.Manager, served *Certificate, c *cluster.Cluster, settings plan.Settings, reports *reporting.Reporter, gangs Gangs) error {
	live := m.GetAPIReader()
	operator, err := newIdentity(m)
	if err != nil {
		return err
	}
	for webhook, handler := range map[string]admission.Handler{
		runtimeWebhook: admission.HandlerFunc(guardRuntime),
		trainJobWebhook: admission.HandlerFunc(func(ctx context.Context, request admission.Request) admission.Response {
			return guardTrainJob(ctx, live, c, settings, gangs, request)
		}),
		namespaceWebhook: admission.HandlerFunc(guardNamespace),
		jobSetWebhook: admission.HandlerFunc(func(ctx context.Context, request admission.Request) admission.Response {
			return wireJobSet(ctx, live, c, settings, gangs, operator, request)
		}),
		authorsWebhook:  admission.HandlerFunc(recordAuthors),
		deletionWebhook: deletionRecorder{live: live, reporter: reports},
	} {
		serve(m, served, webhook, &admission.Webhook{Handler: handler})
	}
	return nil
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
	return responseFor(request, errs, closedDestinations(request.Kind.Kind, found.Annotations[mpi.AnnotationAllowEgress]))
}

// closedDestinations returns warnings about the destinations that a runtime of a namespace cannot allow.
func closedDestinations(kind, allowed string) (warnings []string) {
	entries, _ := isolation.ParseEgress(allowed)
	for _, entry := range entries {
		if _, closed := isolation.ExceptionsIn(entry.CIDR); closed && kind == trainjob.RuntimeKind {
			warnings = append(warnings, fmt.Sprintf("%s: %s has no effect: a %s does not allow addresses of nodes and metadata services; a %s or a Namespace can",
				field.NewPath("metadata", "annotations").Key(mpi.AnnotationAllowEgress), entry, kind, trainjob.ClusterRuntimeKind))
		}
	}
	return warnings
}

// guardTrainJob refuses TrainJobs that cannot run as they are written with the MPI runtime that they name. Trainer
// itself refuses those that name none.
func guardTrainJob(ctx context.Context, live client.Reader, c *cluster.Cluster, settings plan.Settings, gangs Gangs, request admission.Request) admission.Response {
	job, err := trainjob.Decode(request.Object.Raw)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	var before trainjob.TrainJob
	if request.Operation == admissionv1.Update {
		if before, err = trainjob.Decode(request.OldObject.Raw); err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
		if job.DeletionTimestamp != nil {
			return admission.Allowed("")
		}
		if before.Generation == job.Generation && mpi.SameAnnotations(trainjob.Kind, before.Annotations, job.Annotations) {
			return admission.Allowed("").WithWarnings(mpi.WarnAnnotations(trainjob.Kind, before.Annotations, job.Annotations)...)
		}
	}
	job.Namespace = request.Namespace
	used, err := trainjob.LoadRuntime(ctx, live, job)
	switch {
	case err != nil:
		return admission.Errored(http.StatusInternalServerError, err)
	case used == nil:
		// Trainer's own webhook refuses it, and the API server shows the warnings of all.
		return admission.Allowed("").WithWarnings(trainjob.WarnMissingRuntime(ctx, live, job)...)
	case request.Operation == admissionv1.Update:
		before.Namespace = request.Namespace
		errs, warnings := trainjob.CheckChange(before, job, *used)
		errs = append(errs, trainjob.CheckNamespaceChange(before, job, *used, namespaceLimits(ctx, c, job.Namespace, settings))...)
		unencrypted, known := changedEncryption(ctx, c, before, job, *used, settings)
		invalid, refused := preflightChange(ctx, c, before, job, *used, settings)
		return responseFor(request, withoutRepeats(append(errs, unencrypted...), invalid), slices.Concat(warnings, known, refused))
	}
	errs, warnings := trainjob.Check(job, *used)
	errs = append(errs, trainjob.CheckNamespaceLimits(job, *used, namespaceLimits(ctx, c, job.Namespace, settings))...)
	converted := trainjob.Convert(job, *used)
	if used.IsMPI() {
		errs = append(errs, c.CheckEncryption(ctx, converted, settings)...)
	}
	names, _ := trainjob.Connections(job, *used)
	connections := c.Connections(ctx, settings.Home(job.Namespace), names)
	clashes, missing := mpi.ValidateConnections(job.Namespace, connections.Secrets, connections.Others)
	errs = append(errs, clashes...)
	if taken := checkServiceName(ctx, live, job); taken != nil {
		errs = append(errs, taken)
	}
	warnings = append(warnings, missing...)
	unplaced, queued := checkQueue(ctx, c, live, converted, trainjob.PodSets(job, *used))
	errs, warnings = append(errs, unplaced...), append(warnings, queued...)
	if !used.IsMPI() {
		// They are isolated if the administrator chose so.
		denied := c.DeniedConnections(ctx, converted, settings, connections)
		return responseFor(request, errs, append(warnings, denied...))
	}
	converted, slower := c.AdmitRDMA(ctx, converted)
	warnings = append(warnings, slower...)
	found := preflightTrainJob(ctx, c, job, *used, converted, settings)
	errs = withoutRepeats(errs, found.Errs)
	never, full, more := checkRoom(request.Operation, converted, found, true)
	tooLarge, warned := checkNodes(converted, found, gangs.MayGetNodes())
	warned = append(warned, c.DeniedConnections(ctx, converted, settings, connections)...)
	return respond(request, slices.Concat(errs, never, tooLarge), full, slices.Concat(warnings, more, warned))
}

// preflightTrainJob is the API server's response to a TrainJob before it is created or changed. converted is the TrainJob, converted.
func preflightTrainJob(ctx context.Context, c *cluster.Cluster, job trainjob.TrainJob, used trainjob.Runtime, converted mpi.Job, settings plan.Settings) cluster.Preflight {
	return c.PreflightTrainJob(ctx, converted, settings.NetworkPolicies, func(role mpi.Role, path string) string { return trainjob.FieldOf(job, used, role, path) })
}

// preflightChange returns the errors and warnings of the API server about the pods of a suspended TrainJob that is changed. A queue that
// resumes a job is never refused: it would try again and again.
func preflightChange(ctx context.Context, c *cluster.Cluster, before, after trainjob.TrainJob, used trainjob.Runtime, settings plan.Settings) (field.ErrorList, []string) {
	was, is := trainjob.Convert(before, used), trainjob.Convert(after, used)
	resumedByQueue := is.Queue != "" && !is.Lifecycle.Suspended
	if !used.IsMPI() || !was.Lifecycle.Suspended || resumedByQueue || is.ManagedBy != "" || is.Recorded.Finish != nil ||
		equality.Semantic.DeepEqual(was.Launcher.Template, is.Launcher.Template) && equality.Semantic.DeepEqual(was.Workers.Template, is.Workers.Template) {
		return nil, nil
	}
	found := preflightTrainJob(ctx, c, after, used, is, settings)
	_, _, warnings := checkRoom(admissionv1.Update, is, found, false)
	return found.Errs, warnings
}

// changedEncryption returns the errors of a TrainJob with MPI that is changed so that traffic between its pods is not encrypted although
// that is required, and warnings if it was not before.
func changedEncryption(ctx context.Context, c *cluster.Cluster, before, after trainjob.TrainJob, used trainjob.Runtime, settings plan.Settings) (added field.ErrorList, warnings []string) {
	if !used.IsMPI() {
		return nil, nil
	}
	added, kept := c.CheckEncryptionChange(ctx, trainjob.Convert(before, used), trainjob.Convert(after, used), settings)
	for _, err := range kept {
		warnings = append(warnings, err.Error())
	}
	return added, warnings
}

// namespaceLimits returns the limits of the jobs of a namespace, without those that cannot be read: the API server compares the job's JobSet
// with all of them (config/webhook/limits.yaml).
func namespaceLimits(ctx context.Context, c *cluster.Cluster, namespace string, settings plan.Settings) trainjob.Limits {
	limits, _ := trainjob.LoadLimits(ctx, c.NamespaceAnnotations, namespace, settings.OperatorNamespace)
	return limits
}

// checkServiceName refuses a TrainJob whose host names would belong to another owner's Service: JobSet uses any Service of
// its name, and that of an MPIJob selects other pods. The Service of an earlier JobSet is about to be deleted. If the API
// server does not answer, nothing is refused.
func checkServiceName(ctx context.Context, live client.Reader, job trainjob.TrainJob) *field.Error {
	service := &metav1.PartialObjectMetadata{}
	service.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Service"))
	if err := live.Get(ctx, client.ObjectKey{Namespace: job.Namespace, Name: job.Name}, service); err != nil {
		return nil
	}
	owner := metav1.GetControllerOfNoCopy(service)
	if owner != nil && owner.Kind == trainjob.JobSetKind.Kind || service.DeletionTimestamp != nil {
		return nil
	}
	of := "another owner"
	if owner != nil {
		of = owner.Kind + " " + owner.Name
	}
	return field.Invalid(field.NewPath("metadata", "name"), job.Name, fmt.Sprintf("the job's pods would be looked for under the Service %s, which is that of %s; give the job another name", job.Name, of))
}

// guardNamespace refuses namespaces whose annotations of allowed destinations, of limits of jobs or of encryption are invalid.
func guardNamespace(_ context.Context, request admission.Request) admission.Response {
	var namespace metav1.PartialObjectMetadata
	if err := json.Unmarshal(request.Object.Raw, &namespace); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("read Namespace: %w", err))
	}
	return responseFor(request, slices.Concat(isolation.CheckEgress(namespace.Annotations), trainjob.CheckLimitAnnotations(namespace.Annotations), mpi.CheckRequireEncryption(namespace.Annotations)), nil)
}

// responseFor is the answer to errors and warnings.
func responseFor(request admission.Request, errs field.ErrorList, warnings []string) admission.Response {
	if len(errs) == 0 {
		return admission.Allowed("").WithWarnings(warnings...)
	}
	kind := schema.GroupKind{Group: request.Kind.Group, Kind: request.Kind.Kind}
	status := apierrors.NewInvalid(kind, request.Name, errs).Status()
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Allowed: false, Result: &status}}.WithWarnings(warnings...)
}
