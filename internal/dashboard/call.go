package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/jobs"
	"opendatahub.io/mpijob/internal/mpi"
)

// call is a request of a user.
type call struct {
	*user
	*http.Request
	// ctx ends with the request or its timeout.
	ctx context.Context
}

// namespace and reference return what the URL names.
func (c *call) namespace() string { return c.PathValue("namespace") }
func (c *call) reference() string { return c.PathValue("kind") + "/" + c.PathValue("name") }

// find returns the job that the URL names.
func (c *call) find() (jobs.Job, error) {
	return c.jobs.Find(c.ctx, c.namespace(), c.reference())
}

// findOrUID returns the job that the URL names; with the parameter uid, a deleted job with that UID by its report.
func (c *call) findOrUID() (jobs.Job, error) {
	return c.findUID(c.namespace(), c.reference(), c.URL.Query().Get("uid"))
}

// findUID returns the job of a reference, KIND/NAME; with a UID that is not this job's, a deleted job by its report.
func (c *call) findUID(namespace, reference, uid string) (jobs.Job, error) {
	job, err := c.jobs.Find(c.ctx, namespace, reference)
	if uid == "" || err == nil && string(job.UID) == uid {
		return job, err
	}
	plain := reference[strings.LastIndex(reference, "/")+1:]
	var reports v1alpha1.JobReportList
	name := labels.SelectorFromSet(labels.Set{mpi.LabelReportJob: mpi.Job{Name: plain}.ReportLabels()[mpi.LabelReportJob]})
	if listErr := c.api.List(c.ctx, &reports, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: name}); listErr != nil {
		return jobs.Job{}, listErr
	}
	for i := range reports.Items {
		if string(reports.Items[i].Spec.JobRef.UID) == uid {
			return jobs.FromReport(&reports.Items[i]), nil
		}
	}
	return jobs.Job{}, &jobs.NotFoundError{What: "job with this UID, or its report,", Namespace: namespace, Name: plain}
}

// body reads the body of a request. Unknown fields are errors.
func body[T any](c *call) (T, error) {
	var value T
	decoder := json.NewDecoder(c.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&value); err != nil {
		if large, is := errors.AsType[*http.MaxBytesError](err); is {
			return value, jobs.Invalid(jobs.FieldError{Reason: fmt.Sprintf("the request is larger than the limit of %d KiB", large.Limit>>10)})
		}
		return value, jobs.Invalid(jobs.FieldError{Reason: "the request is not valid JSON: " + strings.TrimPrefix(err.Error(), "json: ")})
	}
	return value, nil
}
