package operator

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
func addWebhooks(m manager.Manager, served *certificate, namespace string, c *cluster.Cluster, settings plan.Settings, reports *reporter) error {
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
			Handler: &validator{kind: kind, decoder: admission.NewDecoder(m.GetScheme()), cluster: c, live: m.GetAPIReader(), settings: settings},
		})
	}
	addGuards(m, settings.ClusterDomain, reports)
	return nil
}

// validator refuses jobs that could not run as they are written.
type validator struct {
	kind     kinds.Kind
	decoder  admission.Decoder
	cluster  *cluster.Cluster
	live     client.Reader
	settings plan.Settings
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
	chosen := true
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
	more, warnings := v.cluster.Preflight(ctx, job, v.settings)
	if errs = withoutRepeats(errs, more); len(errs) == 0 {
		return admission.Allowed("").WithWarnings(slices.Concat(mpi.Warnings(job), missing, warnings)...)
	}
	status := apierrors.NewInvalid(object.GetObjectKind().GroupVersionKind().GroupKind(), object.GetName(), errs).Status()
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Allowed: false, Result: &status}}
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
