package operator

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"opendatahub.io/mpijob/internal/cluster"
	"opendatahub.io/mpijob/internal/kinds"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/plan"
)

// addWebhooks serves the admission of jobs. The webhooks fail open (config/webhook): the operator checks every
// job again before it runs it, so that a job refused here and one refused there differ only in when it is told.
func addWebhooks(m manager.Manager, served *certificate, namespace string, c *cluster.Cluster, settings plan.Settings, reports *reporter, together *gangs) error {
	keeper := &certificateKeeper{certificate: served, client: m.GetClient(), live: m.GetAPIReader(), namespace: namespace}
	if err := m.Add(keeper); err != nil {
		return fmt.Errorf("add certificate keeper: %w", err)
	}
	for _, kind := range apiKinds {
		gvk, err := apiutil.GVKForObject(kind.New(), m.GetScheme())
		if err != nil {
			return fmt.Errorf("add webhook of %s: %w", kind.Name(), err)
		}
		path := "/validate-" + strings.ReplaceAll(gvk.Group, ".", "-") + "-" + gvk.Version + "-" + strings.ToLower(gvk.Kind)
		m.GetWebhookServer().Register(path, &admission.Webhook{
			Handler: &validator{kind: kind, decoder: admission.NewDecoder(m.GetScheme()), cluster: c, live: m.GetAPIReader(), settings: settings, gangs: together},
		})
	}
	addGuards(m, c, settings, reports)
	return nil
}

// validator refuses jobs that could not run as they are written.
type validator struct {
	kind     kinds.Kind
	decoder  admission.Decoder
	cluster  *cluster.Cluster
	live     client.Reader
	settings plan.Settings
	gangs    *gangs
}

// sameConnections tells whether two states of a job name the same connections. They are an annotation, which a change of
// the specification is not told by.
func sameConnections(before, after client.Object) bool {
	return before.GetAnnotations()[mpi.AnnotationConnections] == after.GetAnnotations()[mpi.AnnotationConnections]
}

// Handle judges one creation or change of a job.
func (v *validator) Handle(ctx context.Context, request admission.Request) admission.Response {
	object := v.kind.New()
	if err := v.decoder.Decode(request, object); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	var errs field.ErrorList
	chosen, empty := true, true
	if request.Operation == admissionv1.Update {
		before := v.kind.New()
		if err := v.decoder.DecodeRaw(request.OldObject, before); err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
		// Labels, finalizers and the like may change on any job, also on one from before the webhook.
		if before.GetGeneration() == object.GetGeneration() && sameConnections(before, object) {
			return admission.Allowed("")
		}
		errs, chosen = v.kind.Change(before, object), !sameConnections(before, object)
		was, _ := v.kind.Convert(before)
		empty = was.Lifecycle.Suspended
	}
	job, wrong := v.kind.Convert(object)
	errs = slices.Concat(wrong, mpi.Validate(job), errs)
	var missing []string
	if chosen {
		// Not with other changes: a queue is to resume a job whatever has become of the Secrets meanwhile.
		var clashes field.ErrorList
		clashes, missing = mpi.CheckConnections(job.Namespace, cluster.Connections(ctx, v.live, job.Namespace, job.Connections))
		errs = append(errs, clashes...)
	}
	if request.Operation == admissionv1.Create {
		apart, warned := v.gangs.check(job)
		errs, missing = append(errs, apart...), append(missing, warned...)
	}
	found := v.cluster.Preflight(ctx, job, v.settings)
	request.Name = object.GetName()
	errs = withoutRepeats(errs, found.Errs)
	never, full, warnings := room(request.Operation, job, found, empty)
	return answer(request, append(errs, never...), full, slices.Concat(mpi.Warnings(job), missing, warnings))
}

// room tells what the namespace as it is set up has no room for: never, and not now. What comes with a change is only
// warned of, since a queue is to resume a job whatever has become of quotas meanwhile; and of quotas nothing is said
// where they count pods of the job itself.
func room(operation admissionv1.Operation, job mpi.Job, found cluster.Preflight, empty bool) (never, full field.ErrorList, warnings []string) {
	switch {
	case job.ManagedBy != "":
		// It runs elsewhere.
		return nil, nil, nil
	case operation != admissionv1.Update:
		never, full, warnings = mpi.CheckQuota(job, found.Short)
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
		warnings = append(warnings, fmt.Sprintf("the quota of the namespace %s has no room for the job as it is: it asks for %s", job.Namespace, mpi.ShortageText(found.Short)))
	}
	return nil, nil, warnings
}

// answer refuses a request for what is wrong with it, and warns besides. Where nothing is wrong but that quotas are used
// up now, it does so as the API server itself does then: clients know that they may try again.
func answer(request admission.Request, errs, full field.ErrorList, warnings []string) admission.Response {
	if len(errs) > 0 || len(full) == 0 {
		return judged(request, append(errs, full...), warnings)
	}
	resource := schema.GroupResource{Group: request.Resource.Group, Resource: request.Resource.Resource}
	status := apierrors.NewForbidden(resource, request.Name, full.ToAggregate()).Status()
	for _, err := range full {
		status.Details.Causes = append(status.Details.Causes, metav1.StatusCause{Type: metav1.CauseType(err.Type), Field: err.Field, Message: err.ErrorBody()})
	}
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Allowed: false, Result: &status}}.WithWarnings(warnings...)
}

// withoutRepeats adds errors of fields in which we have found none: what both of us find is told in our words.
func withoutRepeats(ours, theirs field.ErrorList) field.ErrorList {
	all := ours
	for _, err := range theirs {
		if !slices.ContainsFunc(ours, func(have *field.Error) bool { return have.Field == err.Field || within(have.Field, err.Field) }) {
			all = append(all, err)
		}
	}
	return all
}

// within tells whether a path leads further into another.
func within(path, outer string) bool {
	rest, found := strings.CutPrefix(path, outer)
	return found && (strings.HasPrefix(rest, ".") || strings.HasPrefix(rest, "["))
}
