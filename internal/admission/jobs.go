// Package admission serves the admission webhooks with a certificate that it creates: it validates jobs, guards what Kubeflow
// Trainer runs, completes JobSets and records who created, changed or deleted a job.
package admission

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"opendatahub.io/mpijob/internal/cluster"
	"opendatahub.io/mpijob/internal/kinds"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/plan"
	"opendatahub.io/mpijob/internal/quota"
	"opendatahub.io/mpijob/internal/reporting"
)

// Gangs answers questions about the placement of jobs.
type Gangs interface {
	// Check returns why the pods of a new job cannot be placed together: errors, and warnings.
	Check(job mpi.Job) (field.ErrorList, []string)
	// Gates reports whether the pods of a job that another controller runs are held back until all of them fit.
	Gates(job mpi.Job) bool
	// HasAdmitted reports whether an annotation states that such a job may have all of its pods (mpi.AnnotationAdmitted).
	HasAdmitted(job mpi.Job, annotation string, now time.Time) bool
	// MayGetNodes reports whether a cluster autoscaler may add nodes.
	MayGetNodes() bool
}

// Add serves the admission of jobs. The webhooks fail open (config/webhook): the operator checks every
// job again before it runs it, so that a refusal is only reported earlier here.
func Add(m manager.Manager, jobKinds []kinds.Validated, served *Certificate, namespace string, c *cluster.Cluster, settings plan.Settings, reports *reporting.Reporter, gangs Gangs) error {
	keeper := &certificateKeeper{certificate: served, client: m.GetClient(), live: m.GetAPIReader(), namespace: namespace}
	if err := m.Add(keeper); err != nil {
		return fmt.Errorf("add certificate keeper: %w", err)
	}
	serve(m, served, rdmaWebhook, &admission.Webhook{
		Handler: queuedRDMA{live: m.GetAPIReader(), cluster: c, kinds: jobKinds, decoder: admission.NewDecoder(m.GetScheme())},
	})
	for _, kind := range jobKinds {
		serve(m, served, strings.ToLower(kind.Name())+"."+mpi.Group, &admission.Webhook{
			Handler: &validator{kind: kind, decoder: admission.NewDecoder(m.GetScheme()), live: m.GetAPIReader(), cluster: c, settings: settings, gangs: gangs},
		})
	}
	return addGuards(m, served, c, settings, reports, gangs)
}

// validator refuses jobs that could not run as they are written.
type validator struct {
	kind     kinds.Validated
	decoder  admission.Decoder
	live     client.Reader
	cluster  *cluster.Cluster
	settings plan.Settings
	gangs    Gangs
}

// same reports whether two states of a job have the same value of an annotation.
func same(name string, before, after client.Object) bool {
	return before.GetAnnotations()[name] == after.GetAnnotations()[name]
}

// Handle judges one creation or change of a job.
func (v *validator) Handle(ctx context.Context, request admission.Request) admission.Response {
	object := v.kind.New()
	if err := v.decoder.Decode(request, object); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	request.Name = object.GetName()
	var errs, old field.ErrorList
	var had map[string]string
	var was mpi.Job
	chosen, empty := true, true
	if request.Operation == admissionv1.Update {
		before := v.kind.New()
		if err := v.decoder.DecodeRaw(request.OldObject, before); err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
		had = before.GetAnnotations()
		switch {
		case object.GetDeletionTimestamp() != nil:
			return admission.Allowed("")
		case before.GetGeneration() == object.GetGeneration() && same(mpi.AnnotationConnections, before, object) && same(mpi.AnnotationLaunch, before, object):
			// Labels, finalizers and the like may change on any job, also on one from before the webhook.
			return responseFor(request, v.changedAnnotations(before, object), mpi.WarnAnnotations(v.kind.Name(), had, object.GetAnnotations()))
		}
		errs, chosen = v.kind.Change(before, object), !same(mpi.AnnotationConnections, before, object)
		was, old = v.kind.Convert(before)
		empty, old = was.Lifecycle.Suspended, append(old, mpi.Validate(was)...)
	}
	job, wrong := v.kind.Convert(object)
	wrong, kept := mpi.SplitNew(old, append(wrong, mpi.Validate(job)...))
	// What a new job was before is empty, and communicates with nothing.
	unencrypted, known := v.cluster.CheckEncryptionChange(ctx, was, job, v.settings)
	errs = slices.Concat(wrong, errs, unencrypted)
	var missing []string
	for _, err := range append(kept, known...) {
		missing = append(missing, err.Error())
	}
	missing = append(missing, mpi.WarnAnnotations(v.kind.Name(), had, object.GetAnnotations())...)
	if chosen {
		// Not with other changes: a queue must be able to resume a job whose Secrets were changed.
		connections := v.cluster.Connections(ctx, v.settings.Home(job.Namespace), job.Connections)
		clashes, absent := mpi.ValidateConnections(job.Namespace, connections.Secrets, connections.Others)
		errs, missing = append(errs, clashes...), slices.Concat(missing, absent, v.cluster.DeniedConnections(ctx, job, v.settings, connections))
	}
	if request.Operation == admissionv1.Create {
		apart, warned := v.gangs.Check(job)
		never, queued := checkQueue(ctx, v.cluster, v.live, job, job.PodSets())
		errs, missing = slices.Concat(errs, apart, never), slices.Concat(missing, warned, queued)
	}
	job, slower := v.cluster.AdmitRDMA(ctx, job)
	missing = append(missing, slower...)
	found := v.cluster.Preflight(ctx, job, v.settings)
	errs = withoutRepeats(errs, found.Errs)
	never, full, warnings := checkRoom(request.Operation, job, found, empty)
	if request.Operation == admissionv1.Create {
		tooLarge, warned := checkNodes(job, found, v.gangs.MayGetNodes())
		never, warnings = append(never, tooLarge...), append(warnings, warned...)
	}
	return respond(request, append(errs, never...), full, slices.Concat(mpi.Warnings(job), missing, warnings))
}

// changedAnnotations returns the errors of annotations by which an update makes a job invalid. Those of a finished job have no
// effect any more.
func (v *validator) changedAnnotations(before, after client.Object) field.ErrorList {
	kind, namespace := v.kind.Name(), after.GetNamespace()
	if mpi.SameAnnotations(kind, before.GetAnnotations(), after.GetAnnotations()) {
		return nil
	}
	if was, _ := v.kind.Convert(before); was.Recorded.Finish != nil {
		return nil
	}
	errs, _ := mpi.SplitNew(mpi.CheckAnnotations(kind, namespace, before.GetAnnotations()), mpi.CheckAnnotations(kind, namespace, after.GetAnnotations()))
	return errs
}

// checkRoom returns what the quotas and policies of the namespace never allow, and what they do not allow now. For a change
// these are only warnings, because a queue must be able to resume a job after quotas were changed. Quotas that count pods of
// the job itself are ignored.
func checkRoom(operation admissionv1.Operation, job mpi.Job, found cluster.Preflight, empty bool) (never, full field.ErrorList, warnings []string) {
	switch {
	case job.ManagedBy != "":
		// It runs elsewhere.
		return nil, nil, nil
	case operation != admissionv1.Update:
		never, full, warnings = quota.CheckQuota(job, found.Short)
		return slices.Concat(found.Refused, never), full, slices.Concat(found.Warnings, warnings)
	}
	for _, err := range found.Refused {
		warnings = append(warnings, err.Error())
	}
	for _, text := range found.Warnings {
		if !strings.Contains(text, "exceeded quota:") {
			warnings = append(warnings, text)
		}
	}
	if empty && len(found.Short) > 0 {
		warnings = append(warnings, fmt.Sprintf("the quota of the namespace %s has no room for the job as it is: it asks for %s", job.Namespace, quota.ShortageText(found.Short)))
	}
	return nil, nil, warnings
}

// checkNodes returns what no node of the cluster can hold, for a new job. These are only warnings if an autoscaler may add
// larger nodes, if a queue may still add tolerations and node selectors, and for suspended jobs.
func checkNodes(job mpi.Job, found cluster.Preflight, mayGetNodes bool) (errs field.ErrorList, warnings []string) {
	switch {
	case job.ManagedBy != "":
		// It runs elsewhere.
		return nil, nil
	case !mayGetNodes && job.Queue == "" && !job.Lifecycle.Suspended:
		return found.TooLarge, found.Unmatched
	}
	for _, err := range found.TooLarge {
		text := err.Error()
		if mayGetNodes {
			text += ". The cluster has an autoscaler, which may add larger nodes"
		}
		warnings = append(warnings, text)
	}
	return nil, append(warnings, found.Unmatched...)
}

// respond refuses a request for what is wrong with it, and warns besides. Where nothing is wrong but that quotas are used
// up now, it does so as the API server itself does then: clients know that they may try again.
func respond(request admission.Request, errs, full field.ErrorList, warnings []string) admission.Response {
	if len(errs) > 0 || len(full) == 0 {
		return responseFor(request, append(errs, full...), warnings)
	}
	resource := schema.GroupResource{Group: request.Resource.Group, Resource: request.Resource.Resource}
	status := apierrors.NewForbidden(resource, request.Name, full.ToAggregate()).Status()
	for _, err := range full {
		status.Details.Causes = append(status.Details.Causes, metav1.StatusCause{Type: metav1.CauseType(err.Type), Field: err.Field, Message: err.ErrorBody()})
	}
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Allowed: false, Result: &status}}.WithWarnings(warnings...)
}

// withoutRepeats adds their errors, except for fields in which we have found an error too.
func withoutRepeats(ours, theirs field.ErrorList) field.ErrorList {
	all := ours
	for _, err := range theirs {
		if !slices.ContainsFunc(ours, func(have *field.Error) bool { return have.Field == err.Field || isWithin(have.Field, err.Field) }) {
			all = append(all, err)
		}
	}
	return all
}

// isWithin reports whether a path leads further into another.
func isWithin(path, outer string) bool {
	rest, found := strings.CutPrefix(path, outer)
	return found && (strings.HasPrefix(rest, ".") || strings.HasPrefix(rest, "["))
}
