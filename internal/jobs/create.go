package jobs

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Create creates a job, or with DryRunServer asks the API server and its webhooks whether it could be created; quotas are
// checked, too. With DryRunClient it does nothing. It fails with ExistsError or RejectedError.
func (c *Client) Create(ctx context.Context, job *unstructured.Unstructured, dryRun DryRun) error {
	if dryRun == DryRunClient {
		return nil
	}
	err := c.api.Create(ctx, job, dryRun.createOptions()...)
	if err == nil {
		return nil
	}
	name := FromObject(job).String()
	if apierrors.IsAlreadyExists(err) {
		return &ExistsError{Name: name}
	}
	if _, unknown, found := strings.Cut(err.Error(), "strict decoding error: "); found {
		return &RejectedError{Name: name, Reasons: []string{unknown}}
	}
	status, is := errors.AsType[*apierrors.StatusError](err)
	if !is || status.Status().Details == nil || len(status.Status().Details.Causes) == 0 || !apierrors.IsInvalid(err) {
		return fmt.Errorf("create %s: %w", name, err)
	}
	var reasons []string
	for _, cause := range status.Status().Details.Causes {
		reasons = append(reasons, reasonOf(cause))
	}
	slices.Sort(reasons) // the API server returns them in any order
	return &RejectedError{Name: name, Reasons: slices.Compact(reasons)}
}

// policyDenial is how the API server reports what a ValidatingAdmissionPolicy refuses (apiserver/pkg/admission/plugin/policy/validating).
var policyDenial = regexp.MustCompile(`^ValidatingAdmissionPolicy '([^']+)' with binding '[^']+' denied request: `)

// reasonOf returns a reason of the API server as a text with its field. The message of a policy names the field itself, if there is one.
func reasonOf(cause metav1.StatusCause) string {
	if cause.Field != "" {
		return cause.Field + ": " + cause.Message
	}
	denied := policyDenial.FindStringSubmatch(cause.Message)
	switch {
	case denied == nil:
		return cause.Message
	case strings.HasPrefix(denied[1], "mpijob-"):
		return cause.Message[len(denied[0]):]
	}
	return fmt.Sprintf("%s (ValidatingAdmissionPolicy %s)", cause.Message[len(denied[0]):], denied[1])
}

// Check validates a job without the API server, as far as the operator can. It returns warnings about a job that runs but
// hardly as intended, or RejectedError.
func Check(job *unstructured.Unstructured) (warnings []string, err error) {
	errs, warnings := editorFor(job.GetKind()).Check(job)
	if len(errs) == 0 {
		return append(warnings, warnMasked(job)...), nil
	}
	rejected := &RejectedError{Name: FromObject(job).String()}
	for _, err := range errs {
		rejected.Reasons = append(rejected.Reasons, err.Error())
	}
	return nil, rejected
}
